// A worker as part of a process: its threads, their health, and their end.

public import Log
public import Platform
public import Service
public import Store
import Synchronization
public import Telemetry

/// Runs a processor on a log until it is stopped.
public final class WorkerService: ServicePart {
    public struct Configuration: Sendable {
        public var replica = Replica.slot(0)
        /// The worker leaves the group when it stops: others get its partitions at once, and after a restart it is a
        /// new member. A dynamic replica always leaves.
        public var leaves = false
        /// Dynamic replicas that have ended: the transactions that they left open are ended.
        public var leftovers: [Leftover] = []
        public var threads = 1
        public var commitInterval: Duration = .milliseconds(20)
        public var sessionTimeout: Duration = .seconds(30)
        /// Memory of all threads and partitions of the process together.
        public var memory = MemoryPlan(bytes: 256 << 20, threads: 1, partitions: 12)
        public var crashNotes: (any CrashNotesProvider)?
        /// Where a partition is restored if another process keeps its store locked (`WorkerDirectory.aside`).
        public var aside: (any PartitionStores)?
        /// Another part of the process acts on what this worker writes (`WorkerService.ownership`).
        public var showsOwnership = false
        /// Limit for all threads together. nil: their speed is not limited.
        public var pace: Pace?
        /// `WorkerOptions.bounds`.
        public var bounds: [TopicPartition: NextOffset] = [:]

        public init() {}
    }

    /// A thread without a sign of life for this long gets no more work. One that is silent for much longer will not
    /// recover.
    private static let silenceLimit: Duration = .seconds(60)
    private static let deathLimit: Duration = .seconds(180)
    private static let lagInterval: Duration = .seconds(5)

    /// The partitions of this process.
    public struct Holding: Sendable, Equatable {
        /// All partitions assigned to it.
        public var partitions: Set<Int32> = []
        /// The partitions that need help, and why, with what to do.
        public var stuck: [Int32: String] = [:]

        public init() {}
    }

    /// What a thread reports to the others.
    private final class Pulse: Sendable {
        let beat: Atomic<Int64>
        let troubles = Mutex<[String]>(["it is starting"])
        let holding = Mutex(Holding())

        init(_ elapsed: Duration) { beat = Atomic(elapsed.wholeMilliseconds) }

        func age(at elapsed: Duration) -> Duration {
            .milliseconds(elapsed.wholeMilliseconds - beat.load(ordering: .relaxed))
        }
    }

    /// As of the last check.
    private final class HeldWords: Sendable {
        let words = Mutex<[String]>([])
    }

    public let name: String
    private let makeProcessor: @Sendable () -> any Processor
    private let definition: WorkerDefinition
    private let log: any RecordLog
    private let stores: any PartitionStores
    private let configuration: Configuration
    private let metrics: Metrics
    private let workerMetrics: WorkerMetrics
    private let logger: Logger
    private let environment: WorkerEnvironment
    private let restorer: Restorer
    private let storeFaults = StoreFaults()
    private let board = PositionBoard()
    /// Messages about open transactions that hide records from this worker.
    private let held = HeldWords()
    /// Empty unless the configuration asks for it.
    public let ownership: Ownership
    private let pulses: [Pulse]

    private let stopRequested = Latch()
    private let workersEnded: [Latch]
    private let restorerMayEnd = Latch()
    private let helpersEnded = [Latch(), Latch(), Latch()]
    private let isClean = Atomic(true)
    private let stopDeadline = Mutex(Deadline(after: .seconds(25)))

    /// - Parameter makeProcessor: called once for each thread.
    ///
    /// Adds conditions to `health`: what stops partitions, and threads without a sign of life.
    public init(
        _ makeProcessor: @escaping @Sendable () -> any Processor, log: any RecordLog, stores: any PartitionStores,
        _ configuration: Configuration, health: Health, metrics: Metrics, logger: Logger
    ) {
        let definition = makeProcessor().definition
        name = definition.name
        self.makeProcessor = makeProcessor
        self.definition = definition
        self.log = log
        self.stores = stores
        self.configuration = configuration
        self.metrics = metrics
        self.logger = logger
        let instruments = WorkerMetrics(metrics, definition)
        workerMetrics = instruments
        environment = .real { event in
            switch event {
            case .message(let level, let words):
                switch level {
                case .error: logger.error("log", ["detail": .string(words)])
                case .warning: logger.warning("log", ["detail": .string(words)])
                case .info, .debug: logger.debug("log", ["detail": .string(words)])
                }
            case .advice(let words): logger.warning("a recommendation for Kafka", ["detail": .string(words)])
            case .writerReplaced(let reason):
                instruments.replacedWriters.add()
                logger.info("the transactional producer was replaced", ["detail": .string(reason)])
            }
        }
        restorer = Restorer(
            definition, log: log, name: "\(definition.name)-restore", memory: configuration.memory,
            wallClock: environment.wallClock,
            remaining: { instruments.restoreRemaining.set(Double($0)) })
        let elapsed = environment.elapsed
        let pulses = (0..<configuration.threads).map { _ in Pulse(elapsed()) }
        self.pulses = pulses
        workersEnded = pulses.map { _ in Latch() }
        ownership = Ownership(threads: configuration.threads, bootClock: environment.bootClock)
        health.condition(name) {
            let all = pulses.flatMap { $0.troubles.withLock { $0 } }
            return all.isEmpty ? nil : all.joined(separator: "; ")
        }
        let held = held
        health.condition("\(name)-held", .readiness) {
            let all = held.words.withLock { $0 }
            return all.isEmpty ? nil : all.joined(separator: "; ")
        }
        health.condition("\(name)-threads", .readiness) { Self.silence(pulses, elapsed(), Self.silenceLimit) }
        health.condition("\(name)-life", .liveness) { Self.silence(pulses, elapsed(), Self.deathLimit) }
        metrics.gauge(
            "perennial_watchdog_age_seconds",
            help: "Seconds since the last sign of life of the thread that has been silent for longest.",
            labels: ["worker": name]
        ) {
            pulses.reduce(.zero) { max($0, $1.age(at: elapsed())) }.fractionalSeconds
        }
    }

    private static func silence(_ pulses: [Pulse], _ elapsed: Duration, _ limit: Duration) -> String? {
        let silent = pulses.indices.filter { pulses[$0].age(at: elapsed) > limit }
        return silent.isEmpty
            ? nil : "thread \(silent.map(String.init).joined(separator: ", ")) has done nothing for more than \(limit)"
    }

    /// The committed positions in the inputs of a partition: the events, then the tables. nil: this process does not
    /// work on it.
    public func positions(of partition: Int32) -> [NextOffset]? { board.next(of: partition) }

    /// As of a few moments ago.
    public var holding: Holding {
        pulses.reduce(into: Holding()) { all, pulse in
            let part = pulse.holding.withLock { $0 }
            all.partitions.formUnion(part.partitions)
            all.stuck.merge(part.stuck) { first, _ in first }
        }
    }

    // MARK: Life

    public func start(failed: @escaping @Sendable (any Error) -> Void) throws {
        try run("restore", helpersEnded[0]) { self.restore() }
        try run("lag", helpersEnded[1]) { self.watchLag() }
        try run("settle", helpersEnded[2]) { self.settleLeftovers() }
        for thread in pulses.indices {
            try run("\(name)-\(thread)", workersEnded[thread]) { self.work(thread, failed: failed) }
        }
    }

    private func run(_ name: String, _ ended: Latch, _ body: @escaping @Sendable () -> Void) throws {
        let thread = WorkerThread.start(name) {
            defer { ended.open() }
            body()
        }
        if case .failure(let error)? = thread.result { throw error }
    }

    public func stop(by deadline: Deadline) throws {
        stopDeadline.withLock { $0 = deadline }
        stopRequested.open()
        var hasEnded = true
        // The restorer continues meanwhile: the stores that it has are returned through it. The other helpers end at
        // once, beside the workers.
        for latch in workersEnded where !latch.wait(until: deadline) { hasEnded = false }
        restorerMayEnd.open()
        for latch in helpersEnded where !latch.wait(until: deadline) { hasEnded = false }
        if !hasEnded { throw ServicePartFault.stillRunning }
        if !isClean.load(ordering: .relaxed) {
            throw WorkerEnd("the last transaction was not committed; its records will be processed again")
        }
    }

    private func work(_ thread: Int, failed: @Sendable (any Error) -> Void) {
        var options = WorkerOptions(
            identity: configuration.replica.identity(group: definition.group, thread: thread))
        options.isDynamic = configuration.replica.isDynamic
        options.keepsPlace = !configuration.replica.isDynamic && !configuration.leaves
        options.thread = thread
        options.commitInterval = configuration.commitInterval
        options.sessionTimeout = configuration.sessionTimeout
        options.cacheBytes = configuration.memory.entryBytes / configuration.threads
        options.readAheadBytes = configuration.memory.readAheadBytes
        options.bytesPerCycle = configuration.memory.cycleBytes
        options.crashNotes = configuration.crashNotes
        options.aside = configuration.aside
        options.storeFaults = storeFaults
        options.pace = configuration.pace
        options.bounds = configuration.bounds
        options.ownership = configuration.showsOwnership ? ownership : nil
        let worker = Worker(
            makeProcessor(), log: log, stores: stores, options: options, restorer: restorer, environment: environment,
            logger: logger, metrics: workerMetrics, board: board)
        let pulse = pulses[thread]
        var nextReport = Duration.zero
        do throws(WorkerEnd) {
            while !stopRequested.isOpen {
                try worker.step()
                let now = environment.elapsed()
                let gap = pulse.age(at: now)
                if gap > .milliseconds(1) { workerMetrics.pollGap.observe(gap) }
                pulse.beat.store(now.wholeMilliseconds, ordering: .relaxed)
                if now >= nextReport {
                    nextReport = now + .milliseconds(200)
                    let (troubles, holding) = (worker.troubles, worker.holding)
                    pulse.troubles.withLock { $0 = troubles }
                    pulse.holding.withLock { $0 = holding }
                }
            }
        } catch {
            failed(error)
            // No deadline was given yet.
            _ = worker.stop(by: Deadline(after: .seconds(10)))
            return
        }
        let deadline = stopDeadline.withLock { $0 }
        if !worker.stop(by: deadline) { isClean.store(false, ordering: .relaxed) }
    }

    /// An open transaction of a killed process blocks its successors and all readers until the transaction times out.
    /// This runs beside the worker, which has to wait for that anyway.
    private func settleLeftovers() {
        for leftover in configuration.leftovers {
            while !stopRequested.isOpen {
                do throws(LogFault) {
                    for identity in leftover.identities {
                        try log.settle(identity, by: Deadline(after: .seconds(2)))
                    }
                    leftover.forget()
                    break
                } catch {
                    // Without a broker there is nothing to end now.
                    logger.debug(
                        "a transaction of a replica that has ended is still open", ["detail": .string(error.words)])
                    if error.remedy == .stop { break }
                }
                if stopRequested.wait(until: Deadline(after: .seconds(1))) { return }
            }
        }
    }

    private func restore() {
        if !restorerMayEnd.isOpen { restorer.prepare() }
        while !restorerMayEnd.isOpen { restorer.step(wait: .milliseconds(100)) }
        restorer.close(by: stopDeadline.withLock { $0 })
    }

    private func watchLag() {
        var watch = LagWatch(definition, log: log, board: board, metrics: metrics)
        var told: Set<HeldPartition> = []
        while !stopRequested.wait(until: Deadline(after: Self.lagInterval)) {
            watch.look(elapsed: environment.elapsed(), wallClock: environment.wallClock())
            told = tell(watch.held, told)
        }
        watch.close()
    }

    /// Logs each condition once, and reports it to the health check for as long as it lasts.
    private func tell(
        _ held: [(partition: HeldPartition, time: Duration)], _ told: Set<HeldPartition>
    ) -> Set<HeldPartition> {
        self.held.words.withLock { $0 = held.map { $0.partition.words(after: $0.time) } }
        for (partition, time) in held where !told.contains(partition) {
            logger.error(
                "an open transaction blocks the readers of a partition",
                ["worker": .string(name), "detail": .string(partition.words(after: time))])
        }
        let now = Set(held.map(\.partition))
        for partition in told.subtracting(now) {
            logger.info(
                "an open transaction no longer blocks the readers of a partition",
                ["worker": .string(name), "detail": .string("\(partition.partition)")])
        }
        return now
    }
}
