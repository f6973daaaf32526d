// Whole worker processes that end and start.

import Glibc
import Kafka
import KafkaTestKit
import Log
import Platform
import Runtime
import Synchronization

// MARK: One process

/// A process that works until it is told to stop, and its output.
struct WorkerProcess {
    struct Event {
        let name: String
        let microseconds: Int64
        let partitions: [Int32]
    }

    let child: ChildProcess

    /// - Parameter interval: milliseconds between two commits, at most; then it prints the parts of the waits at its end.
    init(_ input: WorkerInput, run: String, state: String, slot: Int = 0, interval: Int? = nil) throws {
        child = try ChildProcess(
            try productPath("bench"),
            ["run", "worker-process", input.bootstrap, input.prefix, run, state, "\(slot)"]
                + (interval.map { ["\($0)"] } ?? []))
    }

    func events(_ name: String, after moment: Int64 = 0) -> [Event] {
        child.standardOutput.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ")
            guard words.count >= 2, words[0] == name, let at = Int64(words[1]), at > moment else { return nil }
            let numbers = words.count > 2 ? words[2].split(separator: ",").compactMap { Int32($0) } : []
            return Event(name: name, microseconds: at, partitions: numbers)
        }
    }

    /// The first moment at which each of these partitions had such an event.
    func moments(_ name: String, of partitions: Set<Int32>, after moment: Int64 = 0) async throws -> [Int64] {
        var moments: [Int32: Int64] = [:]
        try await waitUntil("\(name) of \(partitions.count) partitions", within: .seconds(120)) {
            guard child.isRunning else {
                throw NotInTime("a worker that runs", limit: .zero, detail: child.lastLines(10))
            }
            for event in events(name, after: moment) {
                for partition in event.partitions { moments[partition] = moments[partition] ?? event.microseconds }
            }
            return partitions.isSubset(of: moments.keys)
        }
        return partitions.compactMap { moments[$0] }
    }
}

private let everyPartition = Set(0..<workerPartitions)

/// Publishes this many per second, one by one, until it is told to stop. The timestamp is the time of publishing.
final class Trickle: Sendable {
    private let isOver = Latch()
    private let thread: WorkerThread

    /// - Parameter subscriptions: they take turns.
    init(_ input: WorkerInput, perSecond: Int, about subscriptions: Int = 100_000) {
        let isOver = isOver
        let topic = input.processor("").definition.events.topic
        let (bootstrap, end) = (input.bootstrap, input.end)
        thread = WorkerThread.start("trickle") {
            var options = Producer.Configuration(
                clientID: "bench", properties: ClientProperties(bootstrapServers: bootstrap))
            options.lingerMilliseconds = 0
            let producer = try Producer(options) { _ in }
            let handle = try producer.topic(topic)
            _ = try producer.partitionCounts(by: Deadline(after: .seconds(10)))
            var notifications = Notifications(end: end)
            let headers = [RecordHeader("schema", "notification/1")]
            let start = ContinuousClock.now
            var n = 0
            while !isOver.isOpen {
                notifications.make(n, of: scattered(n, of: subscriptions))
                try producer.send(
                    to: handle, partition: notifications.partition(of: workerPartitions), key: notifications.key.span,
                    value: notifications.value.span, headers: headers, timestamp: WallClock.milliseconds(), token: 0)
                producer.poll()
                n += 1
                let due = start.advanced(by: .seconds(1) * n / perSecond)
                let left = ContinuousClock.now.duration(to: due)
                if left > .zero { usleep(UInt32(left.fractionalSeconds * 1e6)) }
            }
            try producer.flush(by: Deadline(after: .seconds(10)))
            producer.close(by: Deadline(after: .seconds(10)))
        }
    }

    func stop() async throws {
        isOver.open()
        try await thread.join()
    }
}

// MARK: After a crash

/// Published meanwhile.
private let perSecond = 500
private var restartSubscriptions: Int { isFull ? 1_000_000 : 300_000 }
private let restartRounds = 5
private let restartCeiling = 5.0

func measureWorkerRestart(_ report: inout Report) async throws {
    let input = try await WorkerInput("worker-restart")
    try await input.create(run: "crash")
    try await input.fillChangelog(run: "crash", subscriptions: restartSubscriptions)
    let scratch = try ScratchDirectory("bench-worker")
    defer { withExtendedLifetime(scratch) {} }
    let trickle = Trickle(input, perSecond: perSecond)
    var worker = try WorkerProcess(input, run: "crash", state: scratch.path)
    _ = try await worker.moments("committed", of: everyPartition)
    var waits: [Double] = []
    for round in 1...restartRounds {
        worker.child.killNow()
        _ = try await worker.child.wait()
        let start = monotonicMicroseconds()
        worker = try WorkerProcess(input, run: "crash", state: scratch.path)
        try await waitUntil("a commit after a crash", within: .seconds(60)) { !worker.events("committed").isEmpty }
        waits.append(Double(worker.events("committed")[0].microseconds - start) / 1e6)
        _ = try await worker.moments("committed", of: everyPartition)
        printMessage("worker-restart \(round)/\(restartRounds)")
    }
    try await trickle.stop()
    _ = try await worker.child.terminate()
    try await input.delete(runs: ["crash"])
    report.note("\(restartSubscriptions) subscriptions on disk, static membership, \(restartRounds) kills during work")
    report.judge(
        "worker-restart",
        "\(figures(waits)) s from the start to the first commit; against \(decimals(restartCeiling)) s",
        ratio: median(waits) / restartCeiling, .atMost(1))
}

// MARK: To another process

/// Values of 560 bytes: one gibibyte in all with `PERENNIAL_BENCH_FULL=1`, otherwise a quarter of it.
private var handoverRecords: Int { isFull ? 2_000_000 : 500_000 }
private let handoverCeiling = 2.0

func measureWorkerHandover(_ report: inout Report) async throws {
    let input = try await WorkerInput("worker-handover")
    try await input.create(run: "move")
    try await input.fillChangelog(run: "move", subscriptions: handoverRecords)
    let scratch = try ScratchDirectory("bench-worker")
    defer { withExtendedLifetime(scratch) {} }
    let trickle = Trickle(input, perSecond: perSecond)
    var old = try WorkerProcess(input, run: "move", state: "\(scratch.path)/old")
    _ = try await old.moments("committed", of: everyPartition)
    // The copy is what an operator's snapshot would be: slightly old.
    _ = try await old.child.terminate(within: .seconds(30))
    let copied = try await run("cp", ["-r", "\(scratch.path)/old", "\(scratch.path)/new"], timeout: .seconds(120))
    guard copied.code == 0 else { throw NotInTime("a copy of the state", limit: .zero, detail: copied.standardError) }
    old = try WorkerProcess(input, run: "move", state: "\(scratch.path)/old")
    _ = try await old.moments("committed", of: everyPartition)
    let joined = monotonicMicroseconds()
    let new = try WorkerProcess(input, run: "move", state: "\(scratch.path)/new", slot: 1)
    try await waitUntil("partitions of the new worker", within: .seconds(60)) { !new.events("assigned").isEmpty }
    let moved = Set(new.events("assigned")[0].partitions)
    guard let revoked = old.events("revoked", after: joined).first else {
        throw NotInTime("the old worker's revocation", limit: .zero)
    }
    let ends = try await new.moments("committed", of: moved)
    let kept = try await old.moments("committed", of: everyPartition.subtracting(moved), after: revoked.microseconds)
    let (seconds, own) = (
        Double((ends.max() ?? 0) - revoked.microseconds) / 1e6, Double((kept.max() ?? 0) - revoked.microseconds) / 1e6
    )
    try await trickle.stop()
    _ = try await old.child.terminate(within: .seconds(30))
    _ = try await new.child.terminate(within: .seconds(30))
    try await input.delete(runs: ["move"])
    report.note(
        "\(handoverRecords) values of \(Changelog(.entitlements).value.count) bytes in \(workerPartitions) partitions, \(moved.count) of them to a copy of the state"
    )
    report.judge(
        "worker-handover",
        "\(decimals(seconds)) s from the revocation to the first commit of each that moved, \(decimals(own)) s of each that stayed; "
            + "against \(decimals(handoverCeiling)) s", ratio: seconds / handoverCeiling, .atMost(1))
}
