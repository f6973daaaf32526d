// Workers of one processor over an in-memory log, in one thread and in virtual time.

public import Log
import LogTestKit
public import MemoryLog
import Platform
public import Runtime
public import Store
public import Telemetry

/// Runs any number of worker processes with the production code, stepped by the test. The same calls always have the
/// same effects.
public final class WorkerSimulation {
    /// One worker process and its disk.
    public final class Process {
        public let slot: Int
        public var disk = MemoryDisk()
        /// For partitions whose stores on `disk` another process keeps open.
        public fileprivate(set) var aside = MemoryDisk()
        fileprivate var worker: Worker?
        fileprivate var restorer: Restorer?
        fileprivate var board = PositionBoard()
        /// The partitions that this life owns; nil: ownership is not shown.
        public fileprivate(set) var ownership: Ownership?
        /// Why the last life ended, if it ended by itself.
        public fileprivate(set) var end: WorkerEnd?

        init(slot: Int) { self.slot = slot }

        public var isRunning: Bool { worker != nil }
        /// For this life: the next offset of each input of a partition, committed.
        public var positions: @Sendable (Int32) -> [NextOffset]? { { [board] in board.next(of: $0) } }
        /// What keeps it from working.
        public var troubles: [String] { worker?.troubles ?? ["it is not running"] }
    }

    /// A replacement must have the same definition except for rules and formats. It is used by lives that start later.
    public var processor: any Processor
    public let log: MemoryLog
    public let clock: MemoryLog.Clock
    public let processes: [Process]
    public var commitInterval: Duration = .milliseconds(20)
    /// 0 appends at once: transactions stay open between polls.
    public var bytesPerAppend = 0
    /// Used by lives that start later, in place of the disks of the processes.
    public var stores: (any PartitionStores)?
    /// Small, so that a simulated process has to read its state repeatedly.
    public var cacheBytes = 4096
    public var storeInterval: Duration = .milliseconds(200)
    /// `WorkerOptions.flush` of lives that start later.
    public var flush = FlushRule()
    /// How many of the writes that a store has not flushed survive a kill, as with `MemoryDisk.crash`. By default none do.
    public var keptAtCrash: (_ writes: Int) -> Int = { _ in 0 }
    public var sessionTimeout: Duration = .seconds(6)
    /// If false, lives that start later leave the group when they stop.
    public var keepsPlace = true
    /// `WorkerOptions.bounds` of lives that start later.
    public var bounds: [TopicPartition: NextOffset] = [:]
    /// True if a consumer acts on the workers' output: lives that start later show what they own.
    public var showsOwnership = false
    private let definition: WorkerDefinition
    private let jitter: any RandomNumberGenerator & Sendable
    /// Shared by all processes, so that no two lives have the same number.
    private let lives: Dice
    private let metrics: WorkerMetrics
    private let logger: Logger
    private let writer: any LogWriter
    private let writerTopics: [String]

    /// Creates the topics of the processor.
    public convenience init(
        _ processor: any Processor, processes: Int, startingAt start: Int64 = 1_700_000_000_000,
        faults: (any LogFaults)? = nil, seed: UInt64 = 1, logLevel: LogLevel = .error
    ) throws {
        let clock = MemoryLog.Clock.manual(startingAt: start)
        try self.init(
            processor, processes: processes, MemoryLog(clock: clock, faults: faults), clock, seed: seed,
            logLevel: logLevel)
    }

    /// Workers of another processor over the same log.
    public func beside(_ processor: any Processor) throws -> WorkerSimulation {
        try WorkerSimulation(processor, processes: 1, log, clock, seed: 1, logLevel: .error)
    }

    private init(
        _ processor: any Processor, processes: Int, _ log: MemoryLog, _ clock: MemoryLog.Clock, seed: UInt64,
        logLevel: LogLevel
    ) throws {
        self.processor = processor
        let definition = processor.definition
        self.definition = definition
        self.clock = clock
        self.log = log
        self.processes = (0..<processes).map { Process(slot: $0) }
        jitter = SplitMix64(seed: seed)
        lives = Dice(SplitMix64(seed: ~seed))
        metrics = WorkerMetrics(Metrics(), worker: definition.name)
        logger = Logger(level: logLevel, format: .text)
        var topics = ([definition.events] + definition.tables).map {
            NewTopic($0.topic, partitions: definition.partitions)
        }
        topics += (definition.outputs.map(\.topic) + [definition.deadLetters]).map {
            NewTopic($0, partitions: definition.partitions)
        }
        topics.append(NewTopic(definition.changelog, partitions: definition.partitions, isCompacted: true))
        try log.create(topics, by: Deadline(after: .seconds(1)))
        writerTopics = ([definition.events] + definition.tables).map(\.topic)
        writer = try log.openWriter(WriterOptions(name: "feeder", topics: writerTopics))
    }

    public func identity(_ process: Process) -> String { "\(definition.group).\(process.slot)-0" }

    // MARK: Input

    /// Appends one record to the events (`input` 0) or a table (1 and up), at the current time unless `timestamp` is
    /// given.
    public func feed(
        input: Int = 0, partition: Int32, key: [UInt8]?, value: [UInt8]?, headers: [RecordHeader],
        timestamp: Int64? = nil
    ) throws {
        let batch = OutputBatch()
        batch.append(
            topic: input, partition: partition, timestamp: timestamp ?? clock.now, key: key, value: value,
            headers: headers)
        _ = try writer.append(batch, by: Deadline(after: .seconds(1)))
    }

    /// Appends a tick to every partition of the events.
    public func tick(at timestamp: Int64? = nil) throws {
        let headers = [RecordHeader("schema", "tick/1")]
        for partition in 0..<definition.partitions {
            try feed(partition: partition, key: nil, value: [], headers: headers, timestamp: timestamp)
        }
    }

    // MARK: Lives

    public func start(_ process: Process) {
        precondition(!process.isRunning, "the process is already running")
        let (clock, identity) = (clock, identity(process))
        let restorer = Restorer(
            processor.definition, log: log, name: identity, wallClock: { clock.now }, remaining: { _ in })
        var options = WorkerOptions(identity: identity)
        options.commitInterval = commitInterval
        options.bytesPerAppend = bytesPerAppend
        options.storeInterval = storeInterval
        options.flush = flush
        options.cacheBytes = cacheBytes
        options.sessionTimeout = sessionTimeout
        options.aside = MemoryStores(disk: process.aside)
        options.keepsPlace = keepsPlace
        options.bounds = bounds
        process.board = PositionBoard()
        process.ownership = showsOwnership ? Ownership(threads: 1, bootClock: bootClock) : nil
        options.ownership = process.ownership
        let start = clock.now
        let jitter = Dice(jitter)
        var environment = WorkerEnvironment(
            elapsed: { .milliseconds(clock.now - start) }, wallClock: { clock.now },
            pause: { duration in
                clock.advance(by: duration)
                restorer.step(wait: .zero)
            }, jitter: { jitter.next() })
        environment.bootClock = bootClock
        environment.newLife = { [lives] in max(1, lives.next()) }
        process.worker = Worker(
            processor, log: log, stores: stores ?? MemoryStores(disk: process.disk), options: options,
            restorer: restorer,
            environment: environment, logger: logger, metrics: metrics, board: process.board)
        process.restorer = restorer
        process.end = nil
    }

    private var bootClock: @Sendable () -> Duration { { [clock] in .milliseconds(clock.now) } }

    /// One poll by the worker and one by its restorer. A process that a fault of the log has killed is removed
    /// afterwards. In production they are two threads: with `restorerFirst` the restorer runs first.
    public func step(_ process: Process, restorerFirst: Bool = false) {
        guard let worker = process.worker, let restorer = process.restorer else { return }
        do throws(WorkerEnd) {
            if restorerFirst { restorer.step(wait: .zero) }
            try worker.step()
            if !restorerFirst { restorer.step(wait: .zero) }
        } catch {
            process.end = error
            crash(process)
        }
        if log.isGone(identity(process)) { crash(process) }
    }

    /// `kill -9`.
    public func crash(_ process: Process) {
        log.kill(identity(process))
        process.worker = nil
        process.restorer = nil
        process.disk.crash(kept: keptAtCrash)
        process.aside.crash(kept: keptAtCrash)
    }

    /// SIGTERM. Returns whether it ended cleanly.
    @discardableResult
    public func stop(_ process: Process) -> Bool {
        guard let worker = process.worker else { return false }
        let isClean = worker.stop(by: Deadline(after: .seconds(5)))
        process.restorer?.close(by: Deadline(after: .seconds(1)))
        process.worker = nil
        process.restorer = nil
        return isClean
    }

    public func loseDisk(of process: Process) {
        precondition(!process.isRunning, "a disk is lost with its process")
        process.disk = MemoryDisk()
        process.aside = MemoryDisk()
    }

    /// Steps all processes until every input is processed and committed. Returns false if that takes more than `limit`
    /// rounds.
    public func runToEnd(limit: Int = 20_000) throws -> Bool {
        for _ in 0..<limit {
            for process in processes { step(process) }
            clock.advance(by: .milliseconds(5))
            if try isAtEnd() { return true }
        }
        return false
    }

    public func isAtEnd() throws -> Bool {
        let committed = log.committed(group: definition.group)
        let reader = try log.openReader(ReaderOptions(name: "onlooker", group: "onlooker", topics: writerTopics))
        defer { reader.close(by: Deadline(after: .seconds(1))) }
        let partitions = writerTopics.flatMap { topic in
            (0..<definition.partitions).map { TopicPartition(topic, $0) }
        }
        let beginnings = try reader.beginnings(of: partitions, by: Deadline(after: .seconds(1)))
        let ends = try reader.ends(.all, of: partitions, by: Deadline(after: .seconds(1)))
        let positions = Dictionary(uniqueKeysWithValues: partitions.map { ($0, committed[$0] ?? beginnings[$0]!) })
        let open = positions.filter { $0.value < ends[$0.key]! }
        if open.isEmpty { return true }
        // What is left may be the ends of transactions, which are not records.
        try reader.read(from: open)
        let batch = RecordBatch()
        try reader.poll(into: batch, limit: 1, wait: .zero)
        return batch.isEmpty && open.keys.allSatisfy { (reader.position(of: $0) ?? open[$0]!) >= ends[$0]! }
    }

    // MARK: Output

    /// A record as a reader of committed data sees it.
    public struct Seen: Equatable, CustomStringConvertible {
        public var partition: Int32
        public var offset: Int64
        public var timestamp: Int64
        public var key: [UInt8]?
        public var value: [UInt8]?
        public var headers: [RecordHeader]

        public func header(_ name: String) -> String? {
            headers.last { $0.name == name }?.value.map { String(decoding: $0, as: UTF8.self) }
        }

        public var keyText: String { String(decoding: key ?? [], as: UTF8.self) }
        public var valueText: String { String(decoding: value ?? [], as: UTF8.self) }
        public var description: String { "\(partition):\(offset) \(header("id") ?? "") \(keyText) \(valueText)" }
    }

    /// Everything committed in a topic, partition by partition.
    public func read(_ topic: String) throws -> [Seen] {
        let reader = try log.openReader(ReaderOptions(name: "onlooker", group: "onlooker", topics: [topic]))
        let deadline = Deadline(after: .seconds(5))
        defer { reader.close(by: deadline) }
        let partitions = (0..<definition.partitions).map { TopicPartition(topic, $0) }
        let ends = try reader.ends(.committed, of: partitions, by: deadline)
        try reader.read(from: try reader.beginnings(of: partitions, by: deadline))
        var seen: [Seen] = []
        let batch = RecordBatch()
        while partitions.contains(where: { (reader.position(of: $0) ?? NextOffset(0)) < ends[$0]! }) {
            try reader.poll(into: batch, limit: 1000, wait: .zero)
            for index in 0..<batch.count {
                let record = batch[index]
                seen.append(
                    Seen(
                        partition: record.partition, offset: record.offset, timestamp: record.timestamp,
                        key: record.copyOfKey(), value: record.copyOfValue(), headers: record.headers))
            }
        }
        return seen.sorted { ($0.partition, $0.offset) < ($1.partition, $1.offset) }
    }
}

/// A random number generator that several closures share.
private final class Dice: @unchecked Sendable {
    // Unchecked, because a simulation has one thread.
    private var generator: any RandomNumberGenerator

    init(_ generator: any RandomNumberGenerator) { self.generator = generator }

    func next() -> UInt64 { generator.next() }
}
