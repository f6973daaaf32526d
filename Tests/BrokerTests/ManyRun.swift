// A long run: one disturbance after the other, while a simulated store posts all the time.

import KafkaTestKit
import Log
import PlainChurn
import Platform
import Testing
import TruthCheck

final class ManyRun {
    static let partitions = 12
    /// New notifications per second: enough that each partition gets some, so that a partition that stands still is seen.
    private static let rate = 40
    /// The simulated time is a hundred days. A busy machine takes longer for them, and so does the run.
    private static let notificationsOfASubscriber = 4
    /// Long enough that a moving partition is seen to move on a machine this busy.
    private static let calm = Duration.milliseconds(2_500)
    private static let calmFor = Duration.seconds(2)

    private let subscribers: Int
    private let cluster: KafkaCluster
    private let installation: Installation
    private let store: MakeBelieveStore
    private let crew: ManyCrew
    private let watch: ManyWatch
    private var notifications: [WholeRecord] = []
    /// For each partition, the offset after the last record in `notifications`.
    private var kept: [Int32: Int64] = [:]
    private(set) var steps: [ManyCause: Int] = [:]
    private(set) var deletedRecords: Int64 = 0
    private var ended: Int64 = 0

    init(seconds: Int, _ cluster: KafkaCluster) async throws {
        subscribers = seconds * Self.rate / Self.notificationsOfASubscriber
        self.cluster = cluster
        let broker = Broker(bootstrap: cluster.bootstrapServers)
        installation = try await Installation.make("many", broker, partitions: Self.partitions, replicas: 3)
        store = try await MakeBelieveStore.ofAHundredDays(
            seed: 31, subscribers: subscribers)
        crew = try ManyCrew(installation, store)
        watch = ManyWatch(installation, crew.shape.kinds)
    }

    func play() async throws {
        let fillsDisks = try await crew.mountSmallDisks()
        if !fillsDisks { print("many: no disk is filled, because only root can mount one") }
        do {
            try await disturb(fillsDisks)
            try await crew.unmount()
        } catch {
            print("many: \(error)\n\(try await crew.words(lines: 25))")
            try await watch.stop()
            try await crew.unmount()
            throw error
        }
    }

    private func disturb(_ fillsDisks: Bool) async throws {
        try await crew.start()
        let simulator = try store.post(to: crew.port, rate: Self.rate)
        watch.start()
        try await waitUntilCalm("all partitions are running")
        watch.now(.nothing)
        var plan = ManyPlan(crew.shape, partitions: Int32(Self.partitions), fillsDisks: fillsDisks)
        // The disks are copied, to be used later as old disks.
        try await step(.rolling) { try await crew.rollAll() }
        while simulator.isRunning {
            let next = plan.next()
            try await step(next.cause) { try await take(next) }
        }
        // Exit code 0: every post that was not accepted was sent again and accepted.
        #expect(try await simulator.wait() == .exited(code: 0), "\(simulator.lastLines(10))")
        try await end()
    }

    private func step(_ cause: ManyCause, _ body: () async throws -> Void) async throws {
        watch.now(cause)
        let start = ContinuousClock.now
        try await body()
        let done = start.duration(to: .now)
        try await waitUntilCalm("all partitions run again after: \(cause.rawValue)")
        print("many: \(cause.rawValue): \(done.inSeconds), calm after \(start.duration(to: .now).inSeconds)")
        steps[cause, default: 0] += 1
        watch.now(.nothing)
    }

    private func waitUntilCalm(_ what: String) async throws {
        let deadline = Deadline(after: .seconds(120))
        var calmSince: ContinuousClock.Instant?
        while true {
            try await crew.restartEnded()
            let standing = watch.standing(longerThan: Self.calm)
            if !standing.isEmpty { calmSince = nil } else if calmSince == nil { calmSince = .now }
            if let calmSince, calmSince.duration(to: .now) >= Self.calmFor { return }
            if deadline.hasPassed {
                throw NotInTime(what, limit: .seconds(120), detail: standing.joined(separator: "\n"))
            }
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    private func take(_ step: ManyStep) async throws {
        let broker = cluster.brokers[step.broker]
        switch step.cause {
        case .brokerDies:
            try await broker.kill9()
            try await Task.sleep(for: .seconds(step.seconds))
            try await broker.start()
        case .brokerFreezes:
            broker.suspend()
            try await Task.sleep(for: .seconds(step.seconds))
            broker.resume()
        case .deleted: try await deleteRecords(of: step.partition)
        default: try await crew.suffer(step)
        }
    }

    /// Notifications that all workers have processed and the judge has read.
    private func deleteRecords(of partition: Int32) async throws {
        try await keep()
        let positions = crew.shape.kinds.map { kind in
            watch.position(ManyPartition(kind: kind, number: partition))?.value ?? 0
        }
        let place = min(positions.min()!, kept[partition] ?? 0)
        let scratch = try ScratchDirectory("many-places")
        let topic = installation.topic("notifications")
        let file = try scratch.write(
            #"{"version": 1, "partitions": [{"topic": "\#(topic)", "partition": \#(partition), "offset": \#(place)}]}"#,
            to: "places.json")
        try await cluster.tool("kafka-delete-records.sh", ["--offset-json-file", file])
        deletedRecords += place
    }

    private func keep() async throws {
        let read = try await installation.read("notifications", from: kept)
        notifications += read
        for record in read { kept[record.partition] = record.offset + 1 }
    }

    private func end() async throws {
        try await crew.stopIngest()
        ended = WallClock.milliseconds()
        for kind in crew.shape.kinds {
            try await waitUntil("\(kind.rawValue) has processed everything", within: .seconds(180)) {
                try await installation.isDealtWith(by: kind.rawValue)
            }
        }
        try await watch.stop()
        try await crew.stopWorkers()
        try await keep()
    }

    /// What was written, and how long the test waited for it.
    func judge() async throws {
        try store.expectKept(in: notifications)
        let entitlements = try await EntitlementsJudge(installation, store, ended: ended)
        let churn = try await ChurnJudge(installation, notifications: notifications, zone: ManyCrew.zone)
        // Without any cases the judge would find nothing wrong.
        #expect(entitlements.truth.subscriptionCount >= subscribers * 9 / 10)
        #expect(churn.judge.cells.count > 500)
        let report = ManyReport(watch.pauses)
        for line in report.lines(steps: steps) { print(line) }
        print("  the watch saw nothing for up to \(watch.blindest.inSeconds); \(deletedRecords) records deleted")
        for ending in crew.endings { print("  \(ending)") }
        // The session timeout, and as long as a start takes here.
        #expect(report.longest < .seconds(60))
        print(
            "many: \(entitlements.values) values, \(entitlements.events + churn.events) events, "
                + "\(churn.judge.cells.count) cells, \(steps.values.reduce(0, +)) disturbances, "
                + "longest pause \(report.longest.inSeconds) (median/longest: \(report.figures))")
    }
}
