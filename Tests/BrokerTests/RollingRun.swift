// A rolling restart of all workers, again and again, and where its time goes.

import Foundation
import JSON
import KafkaTestKit
import Platform
import Testing

final class RollingRun {
    /// Each partition stands still for less than this, in milliseconds.
    static let promise: Int64 = 5_000
    private static let warmUp = Duration.seconds(FleetLimits.warmUp)
    /// Between two restarts, as an operator waits for the process to be ready.
    private static let between = Duration.seconds(2)

    /// One process that was stopped and started. Times are in milliseconds since 1970.
    struct Restart: Sendable {
        let place: ManyPlace
        let asked: Int64
        var moments: [(at: Int64, words: String)] = []
        var step = FleetWaits.Step(cause: .rolling)
        /// The partitions of the process. Empty: they are not known, so all of its kind count.
        var own: Set<Int32> = []

        /// Only its own partitions: others do not notice.
        var stands: [FleetWaits.Stand] {
            step.stands.values.filter { stand in
                stand.partition.kind == place.kind && (own.isEmpty || own.contains(stand.partition.number))
            }.sorted { $0.partition < $1.partition }
        }

        var longest: Int64 { stands.map(\.milliseconds).max() ?? 0 }
    }

    private let stage: FleetStage
    private(set) var restarts: [Restart] = []

    init(seconds: Int, rate: Int, program: String, _ cluster: KafkaCluster) async throws {
        let shape = ManyShape(name: "rolling", kinds: ManyKind.allCases, slots: 2, threads: 1, program: program)
        stage = try await FleetStage(shape, cluster, seconds: seconds, rate: rate)
    }

    func play() async throws {
        do {
            try await stage.open()
            while stage.isPosting, stage.age < Self.warmUp { try await stage.pass(.milliseconds(500)) }
            while stage.isPosting {
                for place in stage.crew.shape.places where stage.isPosting {
                    try await restart(place)
                    try await stage.pass(Self.between)
                }
            }
            try await stage.end()
        } catch {
            try await stage.watch.stop()
            throw error
        }
    }

    private func restart(_ place: ManyPlace) async throws {
        var restart = Restart(place: place, asked: WallClock.milliseconds())
        var said: [(at: Int64, words: String)] = []
        try await stage.step(.rolling) {
            let old = try stage.crew.process(place)
            restart.moments.append((restart.asked, "SIGTERM"))
            try await old.stop()
            restart.moments.append((WallClock.milliseconds(), "the process has ended"))
            said = Self.moments(in: old.log, since: restart.asked)
            try stage.crew.start(place)
            restart.moments.append((WallClock.milliseconds(), "the next process is started"))
            let new = try stage.crew.process(place)
            try await new.waitUntilReady()
            restart.moments.append((WallClock.milliseconds(), "/readyz answers 200"))
            said += Self.moments(in: new.log, since: restart.asked)
            restart.own = Self.assigned(in: new.log)
        }
        restart.moments += said
        // `step` has begun the next one.
        let steps = stage.watch.waits.steps
        restart.step = steps.last { $0.cause == .rolling } ?? restart.step
        restarts.append(restart)
        for line in Self.lines(restart) { print("rolling: \(line)") }
    }

    /// The lines that a process has logged.
    private static func moments(in log: String, since: Int64) -> [(at: Int64, words: String)] {
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        return log.split(separator: "\n").compactMap { line in
            guard let json = try? JSONValue.read(Array(line.utf8)), let time = json["time"]?.string,
                let date = try? Date(time, strategy: style), let message = json["message"]?.string
            else { return nil }
            let at = Int64(date.timeIntervalSince1970 * 1_000)
            return at < since ? nil : (at, "logged: \(message)")
        }
    }

    /// The partitions that the log has named last.
    static func assigned(in log: String) -> Set<Int32> {
        for line in log.split(separator: "\n").reversed() {
            guard let json = try? JSONValue.read(Array(line.utf8)), json["message"]?.string == "partitions assigned"
            else { continue }
            return Set((json["detail"]?.string ?? "").split(separator: " ").compactMap { Int32($0) })
        }
        return []
    }

    /// One line of figures, and one for each moment, in milliseconds since SIGTERM.
    static func lines(_ restart: Restart) -> [String] {
        var moments = restart.moments
        let long = restart.stands.filter { $0.milliseconds >= 1_000 }
        if let first = long.min(by: { $0.from < $1.from }) {
            moments.append((first.from, "first partition stands still: \(first.partition)"))
        }
        if let last = long.max(by: { $0.from < $1.from }) {
            moments.append((last.from, "last commit of the old process: \(last.partition)"))
        }
        if let first = long.min(by: { $0.until < $1.until }) {
            moments.append((first.until, "first commit of the new process: \(first.partition)"))
        }
        if let last = long.max(by: { $0.until < $1.until }) {
            moments.append((last.until, "last partition commits again: \(last.partition)"))
        }
        return [
            "\(restart.place): \(long.count) partitions stood still for a second or more, the longest for \(restart.longest) ms; "
                + "publish to committed during it: \(FleetWaits.words(FleetWaits.merged([restart.step], of: restart.place.kind)))"
        ]
            + moments.sorted { $0.at < $1.at }.map { "  \($0.at - restart.asked) ms \($0.words)" }
    }

    /// Empty: each partition stood still for less than is promised.
    static func faults(_ restarts: [Restart]) -> [String] {
        restarts.flatMap { restart in
            restart.step.stands.values.filter { $0.milliseconds >= promise }.sorted { $0.partition < $1.partition }.map
            {
                "\($0.partition) stood still for \($0.milliseconds) ms when \(restart.place) was restarted"
            }
        }
    }

    /// For each kind of worker: median and longest of the pauses, and how long its notifications waited in the meantime.
    private var figures: String {
        stage.crew.shape.kinds.compactMap { kind in
            let own = restarts.filter { $0.place.kind == kind }
            guard let longest = own.map(\.longest).max() else { return nil }
            let pauses = own.flatMap(\.stands).map(\.milliseconds).filter { $0 >= 1_000 }.sorted()
            let half = pauses.isEmpty ? 0 : pauses[(pauses.count - 1) / 2]
            let p99 = FleetWaits.wait(990, of: FleetWaits.merged(own.map(\.step), of: kind)) ?? 0
            return "\(kind.rawValue) \(half)/\(longest) ms and p99 \(p99) ms"
        }.joined(separator: ", ")
    }

    func judge() async throws {
        let all = stage.crew.shape.places.count
        #expect(
            restarts.count >= all,
            "\(restarts.count) restarts: give it more time, so that each of \(all) processes has one")
        let waits = FleetWaits.merged(restarts.map(\.step))
        let faults = Self.faults(restarts)
        print("rolling: publish to committed during restarts: \(FleetWaits.words(waits))")
        for fault in faults { print("rolling: over: \(fault)") }
        #expect(faults.isEmpty, "\(faults.count) pauses of 5 s or more, the first: \(faults.first ?? "")")
        try await stage.judge(
            "\(restarts.count) restarts (median/longest pause, and publish to committed: \(figures)), publish to committed during them: "
                + FleetWaits.words(waits), onlyQuiet: false)
        #expect(!stage.cluster.hasSkippedMarkers, "a broker has skipped the markers of a transaction: run it again")
    }
}
