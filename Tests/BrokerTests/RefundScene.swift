// Workers that answer refund requests at a simulated Apple, while they are killed, stopped and restarted.

import Foundation
import JSON
import KafkaTestKit
import Platform
import Testing

/// One request that reached Apple's side, from its own journal.
struct JournalEntry: Sendable {
    let at: Int64
    let transactionId: String
    let body: String
    let slot: Int
    let status: Int64?
    let isTaken: Bool

    init?(_ line: [UInt8]) throws {
        let json = try JSONValue.read(line)
        guard let at = json["at"]?.integer, let transactionId = json["transactionId"]?.string else { return nil }
        self.at = at
        self.transactionId = transactionId
        body = json["body"]?.string ?? ""
        // perennial/0.2.0 (<group>.<slot>)
        let agent = json["userAgent"]?.string ?? ""
        slot = agent.split(separator: ".").last.flatMap { Int($0.dropLast()) } ?? -1
        status = json["status"]?.integer
        isTaken = json["taken"]?.bool ?? false
    }
}

/// One refund request, as the simulator knows it.
struct RefundTruth: Sendable {
    let uuid: String
    let transactionId: String
    let originalTransactionId: String
    /// When Apple asked.
    let at: Int64
    let deadline: Int64
    /// must, may, never.
    let answer: String

    init?(_ line: [UInt8]) throws {
        let json = try JSONValue.read(line)
        guard json["kind"]?.string == "refund_request", let uuid = json["notificationUUID"]?.string,
            let transactionId = json["transactionId"]?.string, let at = json["at"]?.integer,
            let originalTransactionId = json["originalTransactionId"]?.string,
            let deadline = json["deadline"]?.integer, let answer = json["answer"]?.string
        else { return nil }
        self.uuid = uuid
        self.transactionId = transactionId
        self.originalTransactionId = originalTransactionId
        self.at = at
        self.deadline = deadline
        self.answer = answer
    }
}

/// The records of one request in the topic `consumption`, in order.
struct RequestHistory: Sendable {
    var kinds: [String] = []
    var details: [String] = []
    var bodies: Set<String> = []
    var transactionId = ""

    static let finals: Set = ["sent", "failed", "expired"]

    var finalCount: Int { kinds.count { Self.finals.contains($0) } }
    /// Only outcomes may follow, or other records only if usage arrives.
    var isSettled: Bool {
        // An attempt may have been in flight when its answer was withheld: `retrying` reports it, and nothing is sent again.
        let turns = kinds.filter { !["outcome", "shadow", "retrying"].contains($0) }
        guard let last = turns.last else { return false }
        return Self.finals.contains(last) || last == "withheld"
    }
}

/// Ingest, a simulator that also plays Apple's API, and replicas of the worker.
final class RefundScene {
    struct Story: Sendable {
        var seed: Int
        var subscribers: Int
        var hours = 13
        var ahead = "45s"
        /// In percent.
        var faults = 20
        var settings: [String] = []
        /// The connection to Apple can be cut, and is cut at first.
        var hasGate = false
    }

    private let installation: Installation
    private let scratch: ScratchDirectory
    private let story: Story
    private(set) var workers: [ServiceProcess] = []
    private let ingest: ServiceProcess
    private let ingestPort: UInt16
    let simulator: ChildProcess
    private var appleSettings: [String: String] = [:]
    private(set) var gate: Gate?

    private static let usageToken = "a-token-of-the-tests-1"

    init(_ installation: Installation, _ story: Story, replicas: Int) async throws {
        self.installation = installation
        self.story = story
        scratch = try ScratchDirectory("refunds")
        let files = try await run(
            productPath("perennial"),
            [
                "simulate", "--seed", "\(story.seed)", "--root", scratch.file("root.pem"), "--apps",
                scratch.file("apps.json"),
            ],
            environment: .only([:]), workingDirectory: "/")
        try #require(files.code == 0, "\(files.words)")
        let port = try Ports.free()
        ingestPort = port
        ingest = try ServiceProcess(
            [
                "ingest", "--ingest.plaintext", "true", "--ingest.listen", "127.0.0.1:\(port)", "--apps",
                scratch.file("apps.json"), "--verify.roots", scratch.file("root.pem"), "--usage.token", Self.usageToken,
                "--tick.interval.ms", "1000",
            ] + installation.settings)
        try await ingest.waitUntilReady()
        simulator = try Self.startSimulator(story, scratch, port)
        try await waitUntil("the simulator serves Apple's API", within: patience) { [scratch, simulator] in
            fileExists(scratch.file("apple.conf")) || !simulator.isRunning
        }
        appleSettings = try Self.settings(in: scratch.file("apple.conf"))
        if story.hasGate { try placeGate() }
        for slot in 0..<replicas { workers.append(try startWorker(slot)) }
    }

    /// Turns lines of `key = value` into flags.
    private static func settings(in file: String) throws -> [String: String] {
        var settings: [String: String] = [:]
        for line in try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n") {
            let parts = line.split(separator: "=", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
            if parts.count == 2 { settings["--\(parts[0])"] = parts[1] }
        }
        return settings
    }

    /// Between the workers and Apple's API.
    private func placeGate() throws {
        let address = try #require(appleSettings["--apple.api.production"])
        let target = try #require(address.split(separator: ":").last.flatMap { UInt16($0) }, "\(address)")
        let gate = try Gate(to: target)
        let host = address.split(separator: ":").dropLast().joined(separator: ":")
        appleSettings["--apple.api.production"] = "\(host):\(gate.port)"
        self.gate = gate
    }

    private static func startSimulator(_ story: Story, _ scratch: ScratchDirectory, _ port: UInt16) throws
        -> ChildProcess
    {
        try ChildProcess(
            productPath("perennial"),
            [
                "simulate", "--seed", "\(story.seed)", "--subscribers", "\(story.subscribers)", "--hours",
                "\(story.hours)", "--live", "--ahead", story.ahead, "--refunds", "100", "--connections", "8",
                "--retry-scale", "14400", "--url", "http://127.0.0.1:\(port)/notifications", "--usage",
                "http://127.0.0.1:\(port)/usage", "--usage-token", usageToken, "--api", "127.0.0.1:0", "--api-ca",
                scratch.file("apple.pem"), "--api-key", scratch.file("apple.p8"), "--api-settings",
                scratch.file("apple.conf"), "--api-journal", scratch.file("journal.jsonl"), "--api-faults",
                "\(story.faults)", "--api-hold", "5s", "--truth", scratch.file("truth.jsonl"),
            ], environment: .only([:]), workingDirectory: "/")
    }

    private func startWorker(
        _ slot: Int, instead: [String: String] = [:], environment: [String: String] = [:]
    ) throws -> ServiceProcess {
        let apple = appleSettings.merging(instead) { $1 }.flatMap { [$0.key, $0.value] }
        return try ServiceProcess(
            [
                "consumption", "--worker.slot", "\(slot)", "--state.directory", disk(slot), "--apps",
                scratch.file("apps.json"), "--consumption.wait.ms", "3000",
            ] + apple + story.settings + installation.settings, environment: environment)
    }

    /// Starts one more worker, in the next slot.
    /// - Parameter instead: settings that replace those that the simulator gives for Apple.
    @discardableResult
    func addWorker(instead: [String: String] = [:], environment: [String: String] = [:]) throws -> ServiceProcess {
        workers.append(try startWorker(workers.count, instead: instead, environment: environment))
        return workers[workers.count - 1]
    }

    /// Stops a worker as an operator does, and starts it with the right settings.
    func restart(_ slot: Int) async throws {
        try await workers[slot].stop()
        workers[slot] = try startWorker(slot)
    }

    /// A key that Apple does not know, as a file.
    func makeForeignKey() async throws -> String {
        let file = scratch.file("foreign.p8")
        let made = try await run(
            "openssl", ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", file])
        try #require(made.code == 0, "\(made.words)")
        return file
    }

    /// Posts the backend's usage for one purchase, by `POST /usage`.
    func tell(_ request: RefundTruth, consented: Bool) async throws {
        let row = """
            {"v":1,"originalTransactionId":"\(request.originalTransactionId)","transactionId":"\(request.transactionId)",\
            "consented":\(consented),"consentedAt":\(WallClock.milliseconds())}
            """
        // 503: a broker on a busy machine may not take it in time. Then the backend sends it again.
        try await waitUntil("ingest takes the usage", within: patience) {
            let posted = try await run(
                "curl",
                [
                    "--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "--header",
                    "Content-Type: application/json", "--header", "Authorization: Bearer \(Self.usageToken)", "--data",
                    row, "http://127.0.0.1:\(ingestPort)/usage",
                ])
            if posted.standardOutput == "503" { return false }
            try #require(posted.standardOutput == "202", "\(posted.words)")
            return true
        }
    }

    func disk(_ slot: Int) -> String { scratch.file("disk-\(slot)") }

    // MARK: Strikes

    /// `kill -9`; the worker is started again at once, sometimes without its disk.
    func kill(_ slot: Int, wipes: Bool) async throws {
        workers[slot].process.killNow()
        _ = try await workers[slot].process.wait()
        if wipes, fileExists(disk(slot)) { try FileManager.default.removeItem(atPath: disk(slot)) }
        workers[slot] = try startWorker(slot)
    }

    /// Stops a process (SIGSTOP) for longer than its group waits, and continues it.
    struct Freeze: Sendable {
        let slot: Int
        let from: Int64
        let until: Int64

        /// Stops it now, and continues it later.
        init(of process: ChildProcess, slot: Int, for duration: Duration) async throws {
            self.slot = slot
            from = WallClock.milliseconds()
            process.suspend()
            try await Task.sleep(for: duration)
            until = WallClock.milliseconds()
            process.resume()
        }
    }

    // MARK: State of the scene

    /// The simulator has posted everything: then the truth is written.
    func waitUntilTold(within limit: Duration = .seconds(180)) async throws {
        // Said when the file is whole: it is there as soon as its first line is made.
        try await simulator.waitUntilPrinted("serving until", within: limit)
    }

    /// Every request that has to be answered is decided.
    func waitUntilDecided(within limit: Duration = .seconds(120)) async throws {
        try await waitUntil("every request that has to be answered is decided", within: limit) {
            let histories = try await self.histories()
            return try self.truth().filter { $0.answer == "must" }
                .allSatisfy { histories[$0.uuid]?.kinds.contains("decided") == true }
        }
    }

    /// Every request that has to be answered was answered once, in time, with the decided body.
    func expectAllSent(_ sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let histories = try await histories()
        let taken = Dictionary(grouping: try journal().filter(\.isTaken), by: \.transactionId)
        let must = try truth().filter { $0.answer == "must" }
        #expect(must.count > 20, "a judge without cases", sourceLocation: sourceLocation)
        for request in must {
            let history = histories[request.uuid] ?? RequestHistory()
            let calls = taken[request.transactionId] ?? []
            #expect(
                history.kinds.contains("sent") && history.finalCount == 1 && history.bodies.count == 1,
                "\(request.uuid): \(history)", sourceLocation: sourceLocation)
            #expect(
                calls.contains { history.bodies.contains($0.body) && $0.at < request.deadline },
                "\(request.uuid): Apple has \(calls)", sourceLocation: sourceLocation)
        }
    }

    /// Every posted request has its final record, or waits only for usage.
    func waitUntilSettled(within limit: Duration) async throws {
        try await waitUntilTold()
        do {
            try await waitUntil("every request is settled", within: limit) {
                let histories = try await self.histories()
                let known = try self.truth().count
                return histories.count >= known * 95 / 100 && histories.values.allSatisfy(\.isSettled)
            }
        } catch {
            let histories = try await histories()
            print("\(histories.count) of \(try truth().count) requests are known")
            let open = histories.filter { !$0.value.isSettled }
            print("\(open.count) are open: \(open.prefix(5))")
            for worker in workers {
                print(try await worker.reasons(), worker.process.lastLines(15))
            }
            print(simulator.lastLines(3))
            throw error
        }
    }

    func histories() async throws -> [String: RequestHistory] {
        var histories: [String: RequestHistory] = [:]
        for record in try await installation.broker.readWhole(installation.topic("consumption")) {
            let json = try JSONValue.read(record.value)
            let id = try #require(json["id"]?.string)
            let kind = try #require(json["kind"]?.string)
            histories[id, default: RequestHistory()].kinds.append(kind)
            histories[id]?.details.append(json["detail"]?.string ?? "")
            histories[id]?.transactionId = json["transactionId"]?.string ?? ""
            if kind == "decided" { histories[id]?.bodies.insert(try Self.rawBody(of: record.value)) }
        }
        return histories
    }

    /// Byte for byte.
    private static func rawBody(of value: [UInt8]) throws -> String {
        var json = JSONDocument()
        try json.read(value.span)
        guard let body = json.member("body", of: json.root) else { return "" }
        return json.raw(body.value).withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }

    /// For each request whose attempt failed, the time of the next attempt, from the topic `consumption`.
    func nextAttempts() async throws -> [String: Int64] {
        var times: [String: Int64] = [:]
        for record in try await installation.broker.readWhole(installation.topic("consumption")) {
            let json = try JSONValue.read(record.value)
            guard json["kind"]?.string == "retrying", let id = json["id"]?.string else { continue }
            times[id] = json["retryAt"]?.integer
        }
        return times
    }

    /// When ingest accepted the last notification.
    func lastPost() async throws -> Int64 {
        let posts = try await records("notifications").filter { $0.header("schema")?.hasPrefix("tick/") == false }
        return try #require(posts.compactMap(\.timestamp).max())
    }

    /// When Apple accepted the last answer.
    func lastSent() throws -> Int64 { try #require(try journal().filter(\.isTaken).map(\.at).max()) }

    func journal() throws -> [JournalEntry] { try lines("journal.jsonl").compactMap { try JournalEntry($0) } }
    func truth() throws -> [RefundTruth] { try lines("truth.jsonl").compactMap { try RefundTruth($0) } }

    private func lines(_ name: String) throws -> [[UInt8]] {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: scratch.file(name)))
        // The simulator may be writing the last line at this moment: only lines that end are read.
        guard let end = bytes.lastIndex(of: UInt8(ascii: "\n")) else { return [] }
        return bytes[..<end].split(separator: UInt8(ascii: "\n")).map { [UInt8]($0) }
    }

    func records(_ topic: String) async throws -> [WholeRecord] {
        try await installation.broker.readWhole(installation.topic(topic))
    }

    func end() async throws {
        for worker in workers { try await worker.stop() }
        try await gate?.end()
        try await ingest.stop()
        _ = try await simulator.terminate(within: .seconds(60))
    }
}

extension ScratchDirectory {
    func file(_ name: String) -> String { "\(path)/\(name)" }
}
