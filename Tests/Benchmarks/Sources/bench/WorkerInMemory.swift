// The worker on one core, with its log and its state in memory, compared with its own work in a bare loop.

import CLoops
import Contract
import Entitlements
import EntitlementsWorker
import JSON
import KafkaTestKit
import Log
import MemoryLog
import Platform
import Runtime
import Store
import SubscriptionHistory

private let subscriptions = 1_000_000
/// Of 2.2 KB each, held in memory.
private let records = 400_000
private let rounds = 5
/// Records per second of one core.
private let floor = 100_000.0
/// As a share of the speed of the worker `entitlements`.
private let churnReach = 0.5

func measureWorkerInMemory(_ report: inout Report) async throws {
    var (bare, worker): ([Double], [Double]) = ([], [])
    var peak = 0.0
    for round in 1...rounds {
        bare.append(try await measureRun(["worker-bare", "entitlements", "\(records)"])["cpu"] / Double(records))
        let figures = try await measureRun(["worker-memory", "entitlements", "\(subscriptions)", "\(records)"])
        worker.append(figures["cpu"] / Double(records))
        peak = max(peak, figures["peak"])
        printMessage("worker-memory \(round)/\(rounds)")
    }
    report.note(
        "CPU microseconds per record (getrusage of the process), median [min-max] of \(rounds) alternating runs; "
            + "records of 2.2 KB about \(subscriptions) subscriptions; the log is in the same \(mebibytes(peak)) at most"
    )
    report.judge(
        "worker-memory",
        "the domain alone \(figures(bare)), worker \(figures(worker)): \(decimals(1e6 / median(worker))) records/s per core, "
            + "against \(decimals(floor))/s",
        ratio: 1e6 / median(worker) / floor, .atLeast(1))
}

func mebibytes(_ bytes: Double) -> String { "\(Int(bytes / 1_048_576)) MiB" }

/// Measures churn beside entitlements, on the same input.
func measureChurnInMemory(_ report: inout Report) async throws {
    var (bare, churn, entitlements): ([Double], [Double], [Double]) = ([], [], [])
    var last = RunFigures()
    var peak = 0.0
    for round in 1...rounds {
        bare.append(try await measureRun(["worker-bare", "churn", "\(records)"])["cpu"] / Double(records))
        let size = ["\(subscriptions)", "\(records)"]
        last = try await measureRun(["worker-memory", "churn"] + size)
        churn.append(last["cpu"] / Double(records))
        peak = max(peak, last["peak"])
        entitlements.append(try await measureRun(["worker-memory", "entitlements"] + size)["cpu"] / Double(records))
        printMessage("churn-memory \(round)/\(rounds)")
    }
    report.note(
        "CPU microseconds per record (getrusage of the process), median [min-max] of \(rounds) alternating runs; "
            + "renewals about \(subscriptions) subscriptions, each with a year in \(churnState(end: Notifications.usualEnd).count) "
            + "bytes of state; \(Int(last["events"])) events, \(Int(last["cells"])) cells; the log is in the same \(mebibytes(peak)) at most"
    )
    report.judge(
        "churn-memory",
        "the domain alone \(figures(bare)), worker \(figures(churn)): \(decimals(1e6 / median(churn))) records/s per core; "
            + "entitlements \(figures(entitlements))",
        ratio: median(entitlements) / median(churn), .atLeast(churnReach))
}

/// Runs `bench run …` and reads its figures.
func measureRun(_ arguments: [String], within limit: Duration = .seconds(600)) async throws -> RunFigures {
    prepareMemory()
    let result = try await run(try productPath("bench"), ["run"] + arguments, timeout: limit)
    guard result.code == 0, let line = result.standardOutput.split(separator: "\n").last,
        let figures = RunFigures(line: line)
    else {
        printMessage("bench: a run of \(arguments[0]) failed: \(result.standardError)")
        exitProcess(3)
    }
    return figures
}

/// Fills a topic, with keys as in the product.
private func fill(
    _ log: MemoryLog, _ topic: String, count: Int, _ add: (_ n: Int, _ outputs: OutputBatch) -> Void
) throws {
    let writer = try log.openWriter(WriterOptions(name: "bench", topics: [topic]))
    let outputs = OutputBatch()
    for n in 0..<count {
        add(n, outputs)
        if outputs.count == 1000 || n == count - 1 {
            _ = try writer.append(outputs, by: Deadline(after: .seconds(10)))
            outputs.removeAll()
        }
    }
}

/// A worker that knows all subscriptions and gets renewals of the first ones.
func runInMemory(_ measured: MeasuredWorker, subscriptions: Int, records: Int) throws -> RunFigures {
    let processor = Rerun(measured, prefix: "bench", run: "memory")
    let log = MemoryLog()
    // Nothing is compacted here; with Kafka the broker does that.
    try log.create(
        processor.topics.map { NewTopic($0.name, partitions: workerPartitions) }, by: Deadline(after: .seconds(1)))
    var changelog = Changelog(measured)
    try fill(log, processor.definition.changelog, count: subscriptions) { n, outputs in
        changelog.make(n)
        outputs.begin(topic: 0, partition: changelog.partition(of: workerPartitions), timestamp: 0)
        outputs.end(key: changelog.key.span, value: changelog.value.span)
    }
    try fillWithNotifications(log, processor, records: records, subscriptions: subscriptions)
    let meter = Meter()
    let told = OutputCount(keyedTopic: measured == .churn ? 0 : nil)
    let worker = try RunningWorker(
        measured, prefix: "bench", run: "memory", log, MemoryStores(),
        told.hooks(meter.hooks(records: records).holding(until: workerPartitions)))
    let spending = try requireSpending(meter, within: .seconds(300))
    try worker.stop()
    var figures = RunFigures(spending)
    figures["cells"] = Double(told.keys)
    figures["events"] = Double(told.count(of: 1))
    return figures
}

private func fillWithNotifications(_ log: MemoryLog, _ processor: Rerun, records: Int, subscriptions: Int) throws {
    var notifications = Notifications()
    try fill(log, processor.definition.events.topic, count: records) { n, outputs in
        notifications.make(n, of: scattered(n, of: subscriptions))
        outputs.begin(
            topic: 0, partition: notifications.partition(of: workerPartitions), timestamp: notifications.timestamp)
        outputs.headers(Notifications.headers)
        outputs.end(key: notifications.key.span, value: notifications.value.span)
    }
}

/// Each number is far from the one before, and comes once before any is repeated.
func scattered(_ n: Int, of count: Int) -> Int { n % count * 611_953 % count }

/// The work of the worker for a notification, without an engine around it.
struct DomainWork: ~Copyable {
    /// Sizes in bytes.
    struct Made {
        var entitlement = 0
        var event = 0
        var account = 0
        var state = 0
    }

    private var notifications = Notifications()
    private var json = JSONDocument()
    private var teller = SubscriptionTeller(benchRules, .production)
    private let known = entitlementsState(end: Notifications.usualEnd)

    /// Reads a renewal and the stored state, and writes all results.
    mutating func renewal() throws -> Made {
        notifications.make(0, of: 0)
        let value = notifications.value
        try json.read(value.span)
        teller.read(json)
        let clock = notifications.timestamp
        let isTold = withKept(known, &teller) { $0.mergeNews() && tell(&$0, at: clock) }
        guard isTold, teller.hasNewValue, teller.nextStep != nil else { throw NotInTime("a change", limit: .zero) }
        return makeOutputs(&teller)
    }
}

/// Writes what is left to write, as the worker does.
func makeOutputs(_ teller: inout SubscriptionTeller) -> DomainWork.Made {
    var made = DomainWork.Made()
    if teller.hasNewValue { made.entitlement = teller.value.count }
    if teller.accountBound != nil { made.account = teller.accountValue.count }
    for number in teller.events.indices {
        eventID.withUTF8Buffer { id in
            Notifications.key.withUnsafeBufferPointer { made.event += teller.eventValue(number, id: id, $0).count }
        }
    }
    made.state = teller.stateBytes.count
    return made
}

private let eventID: StaticString = "11-100000-1"

func runBare(records: Int) throws -> RunFigures {
    var work = DomainWork()
    let meter = Meter()
    meter.start()
    for _ in 0..<records where try work.renewal().event == 0 { throw NotInTime("an event", limit: .zero) }
    meter.stop()
    return RunFigures(try requireSpending(meter, within: .zero))
}
