// A worker in a process of its own, started by the rows.

import CLoops
import Contract
import Glibc
import Kafka
import KafkaTestKit
import Log
import Platform
import RocksStore
import Runtime
import Store
import Synchronization
import Telemetry

let workerPartitions: Int32 = 12
/// With the default of `state.cache.bytes`.
func defaultMemory(partitions: Int = Int(workerPartitions)) -> MemoryPlan {
    MemoryPlan(bytes: 256 << 20, threads: 1, partitions: partitions)
}

/// The worker with names of its own for each run: several runs read one input, and none finds what another has left.
struct Rerun: Processor {
    let worker: MeasuredWorker
    private let processor: any Processor
    let definition: WorkerDefinition

    /// - Parameters:
    ///   - prefix: prefix of the input's name.
    ///   - run: part of all other names.
    init(_ worker: MeasuredWorker, prefix: String, run: String) {
        guard let prefix = TopicPrefix(prefix) else { preconditionFailure("\(prefix) is no prefix") }
        self.worker = worker
        processor = worker.processor(Names(prefix: prefix, environment: .production))
        var definition = processor.definition
        definition.group += ".\(run)"
        definition.changelog += ".\(run)"
        for index in definition.outputs.indices { definition.outputs[index].topic += ".\(run)" }
        self.definition = definition
    }

    func process(_ record: borrowing RecordView, _ turn: Turn) throws(ProcessFailure) {
        try processor.process(record, turn)
    }
    func fire(_ timer: TimerName, _ turn: Turn) throws(ProcessFailure) { try processor.fire(timer, turn) }
    func settle(_ place: KeyState, _ turn: Turn) throws(ProcessFailure) { try processor.settle(place, turn) }

    /// All topics of the worker.
    var topics: [NewTopic] { sharedTopics + ownTopics }

    /// The topics that all runs share.
    var sharedTopics: [NewTopic] {
        [definition.events.topic, definition.deadLetters].map { NewTopic($0, partitions: workerPartitions) }
    }

    /// The topics of this run alone.
    var ownTopics: [NewTopic] {
        definition.outputs.map { NewTopic($0.topic, partitions: workerPartitions) }
            + [NewTopic(definition.changelog, partitions: workerPartitions, isCompacted: true)]
    }
}

/// A worker of one thread that runs until the process ends.
final class RunningWorker {
    private let service: WorkerService

    init(
        _ worker: MeasuredWorker, prefix: String, run: String, _ log: any RecordLog, _ stores: any PartitionStores,
        _ hooks: SessionHooks, change: (inout WorkerService.Configuration) -> Void = { _ in }
    ) throws {
        var configuration = WorkerService.Configuration()
        change(&configuration)
        service = WorkerService(
            { Rerun(worker, prefix: prefix, run: run) }, log: WatchedLog(log, hooks), stores: stores, configuration,
            health: Health(),
            metrics: Metrics(), logger: Logger(level: .warning, format: .text))
        try service.start { fault in
            printMessage("bench: the worker has ended: \(fault)")
            exitProcess(3)
        }
    }

    func stop() throws { try service.stop(by: Deadline(after: .seconds(20))) }
}

/// Stores of the rows that do not measure the cache: with its default size.
func openStores(_ directory: String, _ memory: MemoryPlan = defaultMemory()) throws -> RocksStores {
    try RocksStores(directory: directory, cache: makeCache(memory))
}

func makeCache(_ memory: MemoryPlan) -> StoreCache {
    StoreCache(bytes: memory.blockBytes, bufferBytes: memory.bufferBytes, stores: memory.stores)
}

/// The output of a run in another process: names and numbers.
struct RunFigures {
    private var values: [String: Double] = [:]

    init() {}

    init(_ spending: Spending) {
        values = [
            "cpu": spending.cpuMicroseconds, "wall": spending.wallMicroseconds, "commits": spending.commits,
            "all-commits": spending.allCommits, "records": spending.records, "peak": Self.peakBytes,
        ]
        values["broker"] = spending.brokerMicroseconds
    }

    subscript(_ name: String) -> Double {
        get { values[name] ?? .nan }
        set { values[name] = newValue }
    }

    /// Peak of resident memory. In getrusage's figure the peak of the process that started this one may count as well.
    static var peakBytes: Double {
        let status = String(decoding: (try? readFile("/proc/self/status", limitBytes: 1 << 16)) ?? [], as: UTF8.self)
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        let kilobytes = line?.split(whereSeparator: { " \t".contains($0) }).dropFirst().first.flatMap { Double($0) }
        return (kilobytes ?? .nan) * 1024
    }

    static var residentBytes: Double { residentPages(1) }
    /// Of them, those that are in files: code, constants.
    static var residentFileBytes: Double { residentPages(2) }

    private static func residentPages(_ field: Int) -> Double {
        guard let text = try? readFile("/proc/self/statm", limitBytes: 200) else { return .nan }
        let pages = String(decoding: text, as: UTF8.self).split(separator: " ")
        return pages.count > field ? (Double(pages[field]) ?? .nan) * Double(sysconf(Int32(_SC_PAGESIZE))) : .nan
    }

    var line: String { values.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " ") }

    init?(line: some StringProtocol) {
        for pair in line.split(separator: " ") {
            let parts = pair.split(separator: "=")
            guard parts.count == 2, let value = Double(parts[1]) else { return nil }
            values[String(parts[0])] = value
        }
    }
}

/// `bench run worker-…`: prints its figures in one line.
func runWorker(_ arguments: [String]) throws -> RunFigures {
    switch arguments[0] {
    case "worker-memory":
        try runInMemory(worker(arguments), subscriptions: number(arguments, 2), records: number(arguments, 3))
    case "worker-churn": try runChurnDomain(arguments[1], records: number(arguments, 2))
    case "worker-domain": try runDomain(arguments[1], records: number(arguments, 2))
    case "worker-bare":
        switch worker(arguments) {
        case .entitlements: try runBare(records: number(arguments, 2))
        case .churn: try runChurnBare(records: number(arguments, 2))
        }
    case "worker-on-kafka":
        try runOnKafka(
            worker(arguments), arguments[2], arguments[3], run: arguments[4],
            Stretch(from: number(arguments, 5), to: number(arguments, 6), broker: number(arguments, 7)))
    case "worker-in-c":
        try runInC(
            worker(arguments), arguments[2], arguments[3], run: arguments[4],
            Stretch(from: number(arguments, 5), to: number(arguments, 6), broker: number(arguments, 7)),
            Lives(of: number(arguments, 8), end: Int64(number(arguments, 9))),
            recordsPerTransaction: number(arguments, 10), settledPerTransaction: number(arguments, 11))
    case "worker-refunds": try runRefunds(arguments[1], arguments[2], requests: number(arguments, 3))
    case "worker-answers": try runAnswers(RefundServer.Files(directory: arguments[1]), requests: number(arguments, 2))
    case "worker-answers-c":
        try runAnswersInC(RefundServer.Files(directory: arguments[1]), requests: number(arguments, 2))
    case "worker-restore": try runRestore(arguments[1], arguments[2], run: arguments[3])
    case "worker-size": try runSize(subscriptions: number(arguments, 1))
    case "worker-year": try runYear(worker(arguments), subscriptions: number(arguments, 2))
    default: try runUntilKilled(arguments)
    }
}

private func worker(_ arguments: [String]) -> MeasuredWorker {
    guard arguments.count > 1, let worker = MeasuredWorker(rawValue: arguments[1]) else {
        printMessage("bench: \(arguments[0]) needs a worker first")
        exitProcess(2)
    }
    return worker
}

private func number(_ arguments: [String], _ index: Int) -> Int {
    guard arguments.count > index, let number = Int(arguments[index]) else {
        printMessage("bench: \(arguments[0]) needs a number as argument \(index)")
        exitProcess(2)
    }
    return number
}

func requireSpending(_ meter: Meter, within limit: Duration) throws -> Spending {
    guard let spending = meter.spending(within: limit) else { throw NotInTime("the end of the run", limit: limit) }
    return spending
}

// MARK: On Kafka

/// The records between which a run is measured.
struct Stretch {
    let from: Int
    let to: Int
    /// The process of the broker; nil: its CPU time is not measured.
    let broker: Int32?

    init(from: Int, to: Int, broker: Int) {
        self.from = from
        self.to = to
        self.broker = broker == 0 ? nil : Int32(broker)
    }
}

/// A worker that knows all subscriptions, from the beginning of its input to the end.
private func runOnKafka(
    _ measured: MeasuredWorker, _ bootstrap: String, _ prefix: String, run: String, _ stretch: Stretch
) throws -> RunFigures {
    let scratch = try ScratchDirectory("bench-worker")
    defer { withExtendedLifetime(scratch) {} }
    let meter = Meter(broker: stretch.broker)
    let worker = try RunningWorker(
        measured, prefix: prefix, run: run, KafkaLog(ClientProperties(bootstrapServers: bootstrap)),
        try openStores(scratch.path), meter.hooks(from: stretch.from, to: stretch.to))
    let spending = try requireSpending(meter, within: .seconds(400))
    try worker.stop()
    return RunFigures(spending)
}

/// A worker whose disk is lost, measured until all partitions are restored.
private func runRestore(_ bootstrap: String, _ prefix: String, run: String) throws -> RunFigures {
    let scratch = try ScratchDirectory("bench-worker")
    defer { withExtendedLifetime(scratch) {} }
    let meter = Meter()
    let worker = try RunningWorker(
        .entitlements, prefix: prefix, run: run, KafkaLog(ClientProperties(bootstrapServers: bootstrap)),
        try openStores(scratch.path), meter.hooks(restoring: workerPartitions))
    let spending = try requireSpending(meter, within: .seconds(300))
    try worker.stop()
    return RunFigures(spending)
}

/// `worker-process BOOTSTRAP PREFIX RUN STATE SLOT [INTERVAL]`: prints what happens, with microseconds of the clock that all
/// processes of the machine share. With an interval, it also prints the parts of the records' waits at its end.
private func runUntilKilled(_ arguments: [String]) throws -> RunFigures {
    guard arguments[0] == "worker-process", (6...7).contains(arguments.count) else {
        printMessage("usage: bench run worker-process BOOTSTRAP PREFIX RUN STATE SLOT [INTERVAL]")
        exitProcess(2)
    }
    let told = Mutex<Set<Int32>>([])
    let hooks = SessionHooks(
        polled: { event in
            switch event {
            case .assigned(let partitions):
                told.withLock { $0 = [] }
                tell("assigned", partitions.map(\.partition))
            case .revoked(let partitions): tell("revoked", partitions.map(\.partition))
            case .lost(let partitions): tell("lost", partitions.map(\.partition))
            case .records, .nothing, .positionGone: break
            }
        },
        resumed: { tell("resumed", $0.map(\.partition)) },
        committed: { positions in
            // The first record of each partition since its assignment.
            let new = told.withLock { told in
                positions.keys.map(\.partition).filter { told.insert($0).inserted }
            }
            if !new.isEmpty { tell("committed", new) }
        })
    let slot = number(arguments, 5)
    let interval = arguments.count > 6 ? number(arguments, 6) : nil
    let parts = PartTimes()
    let group = Rerun(.entitlements, prefix: arguments[2], run: arguments[3]).definition.group
    let directory = try WorkerDirectory(
        directory: arguments[4], group: group, replica: .slot(slot),
        makeStores: RocksStores.sharing(makeCache(defaultMemory())))
    let worker = try RunningWorker(
        .entitlements, prefix: arguments[2], run: arguments[3],
        KafkaLog(ClientProperties(bootstrapServers: arguments[1])), directory.stores,
        interval == nil ? hooks : parts.hooks(hooks)
    ) { configuration in
        configuration.replica = .slot(slot)
        if let interval { configuration.commitInterval = .milliseconds(interval) }
        configuration.crashNotes = directory
    }
    while Signals.wait(for: .seconds(3600)) == nil {}
    try worker.stop()
    if interval != nil { parts.print() }
    return RunFigures()
}

private func tell(_ what: String, _ partitions: [Int32]) {
    printData("\(what) \(monotonicMicroseconds()) \(partitions.sorted().map(String.init).joined(separator: ","))")
}

func monotonicMicroseconds() -> Int64 {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    return Int64(now.tv_sec) * 1_000_000 + Int64(now.tv_nsec) / 1000
}

/// `worker-count-c BOOTSTRAP TOPIC RECORDS`
func countLoop(_ arguments: [String]) throws -> Int64 {
    bench_consume(arguments[1], arguments[2], workerPartitions, Int64(number(arguments, 3)))
}
