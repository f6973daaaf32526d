// The entitlements worker in a process of its own, as the rows start it.

import CLoops
import Contract
import Entitlements
import EntitlementsWorker
import Glibc
import Kafka
import KafkaTestKit
import Log
import Platform
import Runtime
import Store
import Synchronization
import Telemetry

let workerPartitions: Int32 = 12

/// The worker under names of a run: several runs read one input, and none finds what another has left.
struct Rerun: Processor {
    private let entitlements: EntitlementsProcessor
    let definition: WorkerDefinition

    /// - Parameters:
    ///   - prefix: of the input.
    ///   - run: in the names of all else.
    init(prefix: String, run: String) {
        guard let prefix = TopicPrefix(prefix) else { preconditionFailure("\(prefix) is no prefix") }
        entitlements = EntitlementsProcessor(
            Names(prefix: prefix, environment: .production), rules: benchRules, partitions: workerPartitions,
            app: "perennial/1.0.0", metrics: EntitlementsMetrics(Metrics()))
        var definition = entitlements.definition
        definition.group += ".\(run)"
        definition.changelog += ".\(run)"
        self.definition = definition
    }

    func process(_ record: borrowing RecordView, _ turn: Turn) throws(ProcessFailure) {
        try entitlements.process(record, turn)
    }
    func fire(_ timer: TimerName, _ turn: Turn) throws(ProcessFailure) { try entitlements.fire(timer, turn) }

    /// All topics of the worker.
    var topics: [NewTopic] {
        let plain = [definition.events.topic, definition.deadLetters] + definition.outputs.map(\.topic)
        return plain.map { NewTopic($0, partitions: workerPartitions) }
            + [NewTopic(definition.changelog, partitions: workerPartitions, isCompacted: true)]
    }
}

/// A worker of one thread that runs until the process ends.
final class RunningWorker {
    private let service: WorkerService

    init(
        prefix: String, run: String, _ log: any RecordLog, _ stores: any PartitionStores, _ hooks: SessionHooks,
        change: (inout WorkerService.Configuration) -> Void = { _ in }
    ) throws {
        var configuration = WorkerService.Configuration()
        change(&configuration)
        service = WorkerService(
            { Rerun(prefix: prefix, run: run) }, log: WatchedLog(log, hooks), stores: stores, configuration,
            health: Health(),
            metrics: Metrics(), logger: Logger(level: .warning, format: .text))
        try service.start { fault in
            printMessage("bench: the worker has ended: \(fault)")
            exitProcess(3)
        }
    }

    func stop() throws { try service.stop(by: Deadline(after: .seconds(20))) }
}

/// Stores of the rows that measure nothing about the cache: its default.
func openStores(_ directory: String) throws -> RocksStores {
    try RocksStores(directory: directory, cache: StoreCache(bytes: 256 << 20))
}

/// What a run in another process says: names and numbers.
struct RunFigures {
    private var values: [String: Double] = [:]

    init() {}

    init(_ spending: Spending) {
        values = [
            "cpu": spending.cpuMicroseconds, "wall": spending.wallMicroseconds, "commits": spending.commits,
            "peak": Self.peakBytes,
        ]
    }

    subscript(_ name: String) -> Double {
        get { values[name] ?? .nan }
        set { values[name] = newValue }
    }

    /// The most that was resident at once.
    static var peakBytes: Double {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        return Double(usage.ru_maxrss) * 1024
    }

    static var residentBytes: Double {
        guard let text = try? readFile("/proc/self/statm", limitBytes: 200) else { return .nan }
        let pages = String(decoding: text, as: UTF8.self).split(separator: " ")
        return pages.count > 1 ? (Double(pages[1]) ?? .nan) * Double(sysconf(Int32(_SC_PAGESIZE))) : .nan
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
    case "worker-memory": try runInMemory(subscriptions: number(arguments, 1), records: number(arguments, 2))
    case "worker-bare": try runBare(records: number(arguments, 1))
    case "worker-on-kafka":
        try runOnKafka(
            arguments[1], arguments[2], run: arguments[3], records: number(arguments, 4),
            isReplay: arguments.count > 5)
    case "worker-in-c": try runInC(arguments)
    case "worker-restore": try runRestore(arguments[1], arguments[2], run: arguments[3])
    case "worker-size": try runSize(subscriptions: number(arguments, 1))
    default: try runUntilKilled(arguments)
    }
}

private func number(_ arguments: [String], _ index: Int) -> Int {
    guard arguments.count > index, let number = Int(arguments[index]) else {
        printMessage("bench: \(arguments[0]) needs a number in place \(index)")
        exitProcess(2)
    }
    return number
}

func requireSpending(_ meter: Meter, within limit: Duration) throws -> Spending {
    guard let spending = meter.spending(within: limit) else { throw NotInTime("the end of the run", limit: limit) }
    return spending
}

// MARK: On Kafka

/// A worker that knows all subscriptions, from the beginning of its input to the end. What it reads of its changelog first is not
/// counted.
private func runOnKafka(_ bootstrap: String, _ prefix: String, run: String, records: Int, isReplay: Bool) throws
    -> RunFigures
{
    var properties = ClientProperties(bootstrapServers: bootstrap)
    if isReplay {
        // Enough that the queue never fills: librdkafka 2.0.2 then stands still for up to a second.
        properties.set("queued.min.messages", "500000", for: .consumer)
        properties.set("queued.max.messages.kbytes", "524288", for: .consumer)
    }
    let scratch = try ScratchDirectory("bench-worker")
    defer { withExtendedLifetime(scratch) {} }
    let meter = Meter()
    let worker = try RunningWorker(
        prefix: prefix, run: run, KafkaLog(properties), try openStores(scratch.path),
        meter.hooks(records: records).holding(until: workerPartitions)
    ) { configuration in
        if isReplay { configuration.commitInterval = .seconds(1) }
    }
    let spending = try requireSpending(meter, within: .seconds(300))
    try worker.stop()
    return RunFigures(spending)
}

/// The same work without a worker: `worker-in-c BOOTSTRAP PREFIX RUN RECORDS RECORDS-PER-TRANSACTION`.
private func runInC(_ arguments: [String]) throws -> RunFigures {
    let definition = Rerun(prefix: arguments[2], run: arguments[3]).definition
    var transactions: Int64 = 0
    let changelog = Changelog()
    let sample = try Sample()
    // C strings that live until the process ends.
    func text(_ text: String) -> UnsafePointer<CChar> { UnsafePointer(strdup(text)) }
    func output(_ index: Int) -> bench_worker_output {
        bench_worker_output(
            topic: text(definition.outputs[index].topic), type: text(definition.outputs[index].type),
            key: Int64(sample.outputs[index].key), value: Int64(sample.outputs[index].value))
    }
    var work = bench_worker_work(
        bootstrap: text(arguments[1]), group: text(definition.group), input: text(definition.events.topic),
        outputs: (output(0), output(1), output(2)), changelog: text(definition.changelog),
        rules: text(benchRules.fingerprint),
        partitions: workerPartitions, records: Int64(number(arguments, 4)),
        records_per_transaction: Int64(number(arguments, 5)), changelog_key: Int64(changelog.key.count),
        changelog_value: Int64(sample.stateBytes),
        // The fixed part of a note, and one topic with its position.
        note: Int64(36 + 10 + definition.events.topic.utf8.count))
    let spent = bench_worker(&work, &transactions)
    guard spent > 0 else { throw NotInTime("every record in the loop in C", limit: .seconds(300)) }
    var figures = RunFigures(Spending(cpuMicroseconds: Double(spent)))
    figures["commits"] = Double(transactions)
    return figures
}

/// How many bytes a renewal makes.
private struct Sample {
    let outputs: [(key: Int, value: Int)]
    let stateBytes: Int

    init() throws {
        var work = DomainWork()
        let made = try work.renewal()
        let key = Notifications.key.count
        outputs = [
            (key, made.entitlement), (key, made.event), (Notifications.token.utf8.count + 1 + key, made.account),
        ]
        // The changelog adds the format and one timer.
        stateBytes = 11 + made.state
    }
}

/// A worker whose disk is lost: until all partitions are read.
private func runRestore(_ bootstrap: String, _ prefix: String, run: String) throws -> RunFigures {
    let scratch = try ScratchDirectory("bench-worker")
    defer { withExtendedLifetime(scratch) {} }
    let meter = Meter()
    let worker = try RunningWorker(
        prefix: prefix, run: run, KafkaLog(ClientProperties(bootstrapServers: bootstrap)),
        try openStores(scratch.path), meter.hooks(restoring: workerPartitions))
    let spending = try requireSpending(meter, within: .seconds(300))
    try worker.stop()
    return RunFigures(spending)
}

/// `worker-process BOOTSTRAP PREFIX RUN STATE SLOT`: prints what happens, with microseconds on the clock that all processes of
/// the machine share.
private func runUntilKilled(_ arguments: [String]) throws -> RunFigures {
    guard arguments[0] == "worker-process", arguments.count == 6 else {
        printMessage("usage: bench run worker-process BOOTSTRAP PREFIX RUN STATE SLOT")
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
            case .records, .nothing: break
            }
        },
        resumed: { tell("resumed", $0.map(\.partition)) },
        committed: { positions in
            // The first of each partition since it was assigned.
            let new = told.withLock { told in
                positions.keys.map(\.partition).filter { told.insert($0).inserted }
            }
            if !new.isEmpty { tell("committed", new) }
        })
    let slot = number(arguments, 5)
    let group = Rerun(prefix: arguments[2], run: arguments[3]).definition.group
    let directory = try WorkerDirectory(
        directory: arguments[4], group: group, slot: slot, cacheBytes: 256 << 20)
    let worker = try RunningWorker(
        prefix: arguments[2], run: arguments[3], KafkaLog(ClientProperties(bootstrapServers: arguments[1])),
        directory.stores, hooks
    ) { configuration in
        configuration.slot = slot
        configuration.crashNotes = directory
    }
    while Signals.wait(for: .seconds(3600)) == nil {}
    try worker.stop()
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
