// One flood against a real ingest, with genuine notifications at the same time from another address.

import Glibc
import IngestTestKit
import KafkaTestKit
import Platform
import Testing

struct FloodRun {
    static let genuineSource = "127.0.0.3"
    /// Posts per second, each over a connection of its own, as Apple may do.
    private static let genuineRate = 10.0
    private static let genuineConnections = 64
    private static let livezRate = 5.0
    /// How long genuine posts run without a flood, to measure what they cost by themselves.
    private static let quietSeconds = 2.0
    /// How many of the bodies are used up in checking that posts are answered.
    private static let warmUpCount = 256
    /// Longer than any limit, so that late answers are measured, too.
    private static let timeout: Duration = .seconds(30)

    let kind: FloodKind
    let seconds: Double
    /// How long after the flood memory is read; with `readsMemoryEarly` as soon as it is below its limit.
    let restOfMemory: Duration
    let readsMemoryEarly: Bool
    private let fixture: NotificationFixture
    private let ingest: IngestProcess
    private let broker: Broker
    private let prefix: String

    /// Enough bodies that none of them is posted twice.
    static func fixture(seconds: Double) throws -> NotificationFixture {
        try NotificationFixture(count: warmUpCount + Int((quietSeconds + seconds) * genuineRate) + 10)
    }

    /// - Parameter program: path of `perennial`.
    static func start(
        _ kind: FloodKind, _ program: String, _ fixture: NotificationFixture, seconds: Double,
        restOfMemory: Duration, readsMemoryEarly: Bool
    ) async throws -> FloodRun {
        let broker = try await Broker.shared()
        let prefix = "flood-\(UInt32.random(in: 0 ... .max))"
        let ingest = try await IngestProcess.start(
            program, bootstrap: broker.bootstrap, prefix: prefix, roots: fixture.rootPEM, apps: fixture.appsFile,
            isPlaintext: kind.isPlaintext, settings: kind.settings)
        return FloodRun(
            kind: kind, seconds: seconds, restOfMemory: restOfMemory, readsMemoryEarly: readsMemoryEarly,
            fixture: fixture,
            ingest: ingest, broker: broker, prefix: prefix)
    }

    func measure() async throws -> FloodFigures {
        let requests = try kind.requests(fixture)
        try await ingest.warmUp(fixture.bodies, count: Self.warmUpCount, from: Self.genuineSource)
        let recordsBefore = try await values("notifications").count
        let (quiet, quietPosts) = try await cpu {
            try await post(from: Self.warmUpCount, seconds: Self.quietSeconds).sent
        }
        let linesBefore = logLines
        let (busy, outcome) = try await cpu {
            try await flooded(by: requests, postingFrom: Self.warmUpCount + quietPosts)
        }
        let (flood, genuine, livez) = (outcome.flood, outcome.genuine, outcome.livez)
        let linesAfter = logLines
        let peak = try ingest.peakMemoryBytes()
        // Before the rest, in which ticks are written to the quiet partitions.
        let records = try await values("notifications").count - recordsBefore
        let (memory, later) = try await memoryLater()
        let rejected = try await values("rejected").reduce(0) { $0 + $1.count }
        let expected = kind.usualStatuses.reduce(0) { $0 + flood.answered($1) }
        let usual = kind.usualStatuses.isEmpty ? flood.sent - flood.answered(200) : expected
        let figures = FloodFigures(
            kind: kind, sent: flood.sent, answers: flood.description, usual: usual,
            rate: Double(flood.sent) / flood.seconds, genuine: genuine.sent, genuineAccepted: genuine.answered(200),
            median: genuine.latency.p50, longest: genuine.latency.max,
            livez: livez.map { ($0.sent, $0.answered(200), $0.latency.max) }, peakBytes: peak, laterBytes: memory,
            later: later, rejectedBytes: rejected,
            microsecondsEach: max(0, busy - quiet / Self.quietSeconds * seconds) * 1e6 / Double(max(1, flood.sent)),
            surplusRecords: max(0, records - quietPosts - genuine.sent), logLines: linesAfter - linesBefore)
        try await stop()
        return figures
    }

    private struct Outcome {
        let flood: FloodOutcome
        let genuine: LoadOutcome
        /// nil if it was not asked.
        let livez: LoadOutcome?
    }

    private func flooded(by requests: Bodies, postingFrom first: Int) async throws -> Outcome {
        async let sent = flood(requests)
        async let posted = post(from: first, seconds: seconds)
        async let asked = askWhetherItLives()
        return Outcome(flood: try await sent, genuine: try await posted, livez: try await asked)
    }

    private func flood(_ requests: Bodies) async throws -> FloodOutcome {
        let url = kind.isAboutAdmin ? ingest.adminURL : ingest.url
        let port = try #require(url.firstMatch(of: #/:([0-9]+)/#).flatMap { UInt16($0.1) })
        var flood = Flood(
            from: kind.sources, port: port, requests: requests, connections: kind.connections, rate: kind.rate,
            seconds: seconds)
        flood.keepsConnections = !kind.usualStatuses.isEmpty
        return try await onOwnThread("flood") { [flood] in try flood.run() }
    }

    private func post(from first: Int, seconds: Double) async throws -> LoadOutcome {
        var load = Load(ingest.url, authorityFile: ingest.authorityFile, bodies: fixture.bodies, .seconds(seconds))
        load.firstBody = first
        load.connectionCount = Self.genuineConnections
        load.connections = .new
        load.rate = Self.genuineRate
        load.source = Self.genuineSource
        load.timeout = Self.timeout
        return try await onOwnThread("genuine") { [load] in try load.run() }
    }

    /// nil: the line is about something else.
    private func askWhetherItLives() async throws -> LoadOutcome? {
        guard kind.isAboutAdmin else { return nil }
        var nothing = Bodies()
        nothing.append([])
        var load = Load("\(ingest.adminURL)/livez", authorityFile: nil, bodies: nothing, .seconds(seconds))
        load.method = "GET"
        load.connections = .new
        load.rate = Self.livezRate
        load.source = Self.genuineSource
        load.timeout = Self.timeout
        return try await onOwnThread("livez") { [load] in try load.run() }
    }

    /// CPU seconds that ingest used meanwhile.
    private func cpu<Value>(_ body: () async throws -> Value) async throws -> (seconds: Double, value: Value) {
        let before = try ingest.cpuSeconds()
        let value = try await body()
        return (try ingest.cpuSeconds() - before, value)
    }

    private var logLines: Int { ingest.process.standardOutput.utf8.count { $0 == UInt8(ascii: "\n") } }

    private func memoryLater() async throws -> (bytes: Int, after: Duration) {
        let start = ContinuousClock.now
        while true {
            let bytes = try ingest.memoryBytes()
            let waited = start.duration(to: .now)
            let isEarly = readsMemoryEarly && bytes < FloodLimits().laterBytes
            if isEarly || waited > restOfMemory { return (bytes, waited) }
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    private func values(_ topic: String) async throws -> [[UInt8]] {
        var values: [[UInt8]] = []
        for environment in ["production", "sandbox"] {
            values += try await broker.readWhole("\(prefix).\(environment).\(topic)").map(\.value)
        }
        return values
    }

    private func stop() async throws {
        let ending = try await ingest.process.terminate(within: .seconds(30))
        #expect(ending == .exited(code: 0), "\(ingest.process.lastLines(20))")
    }
}
