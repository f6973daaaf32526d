// How long an output takes from the publishing of the notification that causes it, and what that costs.

import Glibc
import Kafka
import KafkaTestKit
import Log
import Platform
import Runtime
import Synchronization

private let perSecond = 500
private let seconds = 20
/// Until the worker has processed what piled up while it started.
private let warmUp = 10
/// Before the first run: until Java has compiled what the broker does often.
private let firstWarmUp = 45
/// A run with its start and its end.
private let secondsOfRun = seconds + warmUp + 15

/// Milliseconds.
private let mostOfHalf = (must: 30.0, goal: 12.0)
private let mostOfNearlyAll = (must: 60.0, goal: 40.0)
/// Cores.
private let mostOfWorker = (must: 0.20, goal: 0.12)
private let mostOfBroker = (must: 0.25, goal: 0.18)

/// `PERENNIAL_BENCH_INTERVALS="5 20 50"`: values of `commit.interval.ms`. The promise is about the default.
private let usualInterval = Int(WorkerService.Configuration().commitInterval / .milliseconds(1))
private var intervals: [Int] {
    let chosen = environmentVariables().first { $0.name == "PERENNIAL_BENCH_INTERVALS" }?.value ?? ""
    let numbers = chosen.split(separator: " ").compactMap { Int($0) }
    return numbers.isEmpty ? [usualInterval] : numbers
}

func measureWorkerLatency(_ report: inout Report) async throws {
    let broker = try await MeasuredBroker.start()
    let input = WorkerInput("worker-latency", of: .entitlements, on: broker.bootstrap, end: WallClock.milliseconds())
    // Each has one notification, or an output would not follow each.
    let subscriptions = perSecond * (firstWarmUp + secondsOfRun * intervals.count)
    try await input.create(run: "live")
    try await input.fillChangelog(run: "live", subscriptions: subscriptions)
    let scratch = try ScratchDirectory("bench-worker")
    defer { withExtendedLifetime(scratch) {} }
    let trickle = Trickle(input, perSecond: perSecond, about: subscriptions)
    report.note(
        "\(perSecond * seconds) notifications, \(perSecond) a second, one by one, of known subscriptions; publisher, worker, Kafka "
            + "and reader on one machine; a commit interval at a time")
    for interval in intervals {
        let seconds = interval == intervals[0] ? firstWarmUp : warmUp
        let measured = try await measure(input, interval, state: scratch.path, broker, warmUp: seconds)
        tell(measured, interval, &report)
    }
    try await trickle.stop()
    try await input.delete(runs: ["live"])
    await broker.close()
}

private struct Measured {
    /// Milliseconds, in order.
    var waits: [Double]
    /// Cores.
    var worker: Double
    var broker: Double?
    var parts: [Part]
    var commitsPerSecond: Double
}

private func measure(
    _ input: WorkerInput, _ interval: Int, state: String, _ broker: MeasuredBroker, warmUp: Int
) async throws -> Measured {
    let worker = try WorkerProcess(input, run: "live", state: state, interval: interval)
    _ = try await worker.moments("committed", of: Set(0..<workerPartitions))
    try await Task.sleep(for: .seconds(warmUp))
    func cpu() throws -> (worker: Double, broker: Double?) {
        (try cpuSeconds(worker.child.processID), try broker.processID.map { try cpuSeconds($0) })
    }
    let (first, begin, before) = (WallClock.milliseconds(), ContinuousClock.now, try cpu())
    let waits = try await readLatencies(input, run: "live", count: perSecond * seconds)
    let (last, taken, after) = (
        WallClock.milliseconds(), begin.duration(to: .now).fractionalSeconds, try cpu()
    )
    _ = try await worker.child.terminate(within: .seconds(30))
    let parts = Part.all(in: worker.child.standardOutput).filter { (first..<last).contains($0.published) }
    guard parts.count > perSecond * seconds / 2 else { throw NotInTime("the parts of the waits", limit: .zero) }
    return Measured(
        waits: waits.sorted(), worker: (after.worker - before.worker) / taken,
        broker: before.broker.flatMap { before in after.broker.map { ($0 - before) / taken } }, parts: parts,
        commitsPerSecond: Double(Set(parts.map(\.cycle)).count) / taken)
}

private func tell(_ measured: Measured, _ interval: Int, _ report: inout Report) {
    func pair(_ name: String, _ values: [Double]) -> String {
        let sorted = values.sorted()
        return "\(name) \(decimals(half(sorted))) / \(decimals(nearlyAll(sorted)))"
    }
    let (p50, p99) = (half(measured.waits), nearlyAll(measured.waits))
    let cores = measured.broker.map { "\(short($0)) core" } ?? "not known"
    report.note(
        "\(interval) ms: p50 \(decimals(p50)) ms, p99 \(decimals(p99)) ms, \(short(measured.commitsPerSecond)) commits a second; "
            + "worker \(short(measured.worker)) core, broker \(cores)")
    report.note(
        "\(interval) ms, parts in ms, p50 / p99: "
            + [
                pair("published to polled", measured.parts.map(\.toPoll)),
                pair("polled to the commit's begin", measured.parts.map(\.toCommit)),
                pair("commit", measured.parts.map(\.commit)),
            ].joined(separator: ", "))
    guard interval == usualInterval else { return }
    func judge(_ name: String, _ figure: String, _ value: Double, _ most: (must: Double, goal: Double)) {
        report.judge(
            name, "\(figure), against \(decimals(most.must)), goal \(decimals(most.goal))", ratio: value / most.must,
            .atMost(1))
    }
    judge("worker-latency-half", "half within \(decimals(p50)) ms", p50, mostOfHalf)
    judge("worker-latency", "99 of 100 within \(decimals(p99)) ms", p99, mostOfNearlyAll)
    judge("worker-latency-cpu", "worker \(short(measured.worker)) core", measured.worker, mostOfWorker)
    if let broker = measured.broker {
        judge("worker-latency-broker", "broker \(short(broker)) core", broker, mostOfBroker)
    } else {
        report.note("the CPU time of the broker is not known: it is not a process of this run (set KAFKA_HOME)")
    }
}

private func half(_ sorted: [Double]) -> Double { sorted[sorted.count / 2] }
private func nearlyAll(_ sorted: [Double]) -> Double { sorted[sorted.count * 99 / 100] }

/// Outputs have the timestamps of the records that caused them.
private func readLatencies(_ input: WorkerInput, run: String, count: Int) async throws -> [Double] {
    let topic = input.processor(run).definition.outputs[0].topic
    let log = KafkaLog(ClientProperties(bootstrapServers: input.bootstrap))
    let found = Mutex<[Double]>([])
    try await onThread {
        let reader = try log.openReader(ReaderOptions(name: "bench", group: "bench", topics: [topic]))
        defer { reader.close(by: Deadline(after: .seconds(5))) }
        let partitions = (0..<workerPartitions).map { TopicPartition(topic, $0) }
        try reader.read(from: try reader.ends(.committed, of: partitions, by: Deadline(after: .seconds(10))))
        let batch = RecordBatch()
        let deadline = Deadline(after: .seconds(120))
        while found.withLock({ $0.count }) < count, !deadline.hasPassed {
            try reader.poll(into: batch, limit: 500, wait: .milliseconds(100))
            let now = WallClock.milliseconds()
            for index in 0..<batch.count {
                let wait = Double(now - batch[index].timestamp)
                found.withLock { $0.append(wait) }
            }
        }
    }
    let waits = found.withLock { $0 }
    guard waits.count >= count else { throw NotInTime("\(count) outputs", limit: .seconds(120)) }
    return waits
}

// MARK: In the worker's process

/// What one record waited for, in milliseconds.
struct Part {
    /// By the publisher's clock, in whole milliseconds since 1970.
    let published: Int64
    let cycle: Int
    let toPoll: Double
    let toCommit: Double
    let commit: Double

    fileprivate static func all(in output: String) -> [Part] {
        output.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ")
            guard words.count == 6, words[0] == "part", let published = Int64(words[1]), let cycle = Int(words[2]),
                let toPoll = Double(words[3]), let toCommit = Double(words[4]), let commit = Double(words[5])
            else { return nil }
            return Part(published: published, cycle: cycle, toPoll: toPoll, toCommit: toCommit, commit: commit)
        }
    }

    fileprivate var line: String { "part \(published) \(cycle) \(toPoll) \(toCommit) \(commit)" }
}

/// Takes the times of each record. They are printed at the end, because printing takes time, too.
final class PartTimes: Sendable {
    private struct State {
        var open: [(published: Int64, toPoll: Double, polled: Int64)] = []
        var begin: Int64 = 0
        var cycle = 0
        var parts: [Part] = []
    }

    private let state = Mutex(State())

    func hooks(_ others: SessionHooks) -> SessionHooks {
        var hooks = others
        hooks.received = { batch in
            let (wall, now) = (wallMicroseconds(), monotonicMicroseconds())
            self.state.withLock { state in
                for index in 0..<batch.count {
                    let published = batch[index].timestamp
                    state.open.append((published, Double(wall - published * 1000) / 1000, now))
                }
            }
        }
        hooks.committing = { self.state.withLock { $0.begin = monotonicMicroseconds() } }
        hooks.committed = { positions in
            let now = monotonicMicroseconds()
            self.state.withLock { state in
                for record in state.open {
                    state.parts.append(
                        Part(
                            published: record.published, cycle: state.cycle, toPoll: record.toPoll,
                            toCommit: Double(state.begin - record.polled) / 1000,
                            commit: Double(now - state.begin) / 1000))
                }
                state.open.removeAll(keepingCapacity: true)
                state.cycle += 1
            }
            others.committed(positions)
        }
        return hooks
    }

    func print() { printData(state.withLock { $0.parts }.map(\.line).joined(separator: "\n")) }
}

private func wallMicroseconds() -> Int64 {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Int64(now.tv_sec) * 1_000_000 + Int64(now.tv_nsec) / 1000
}
