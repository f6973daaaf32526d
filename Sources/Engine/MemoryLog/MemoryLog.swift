// A log in the memory of one process.

public import Log
public import Platform

/// Behaves as Kafka does, including control records, generations and fencing, for as long as the process lives.
///
/// One lock guards everything; a call holds it for one batch. With a manual clock one thread can play all roles, and
/// the same calls always have the same outcome: nothing depends on hash order, on the time of day or on threads.
public final class MemoryLog: RecordLog, Sendable {
    let core: LogCore
    private let settings: TopicSettings

    /// - Parameters:
    /// - settings: for topics that are not configured individually.
    /// - tombstonesKept: how long compaction keeps a tombstone for readers that are behind.
    /// - faults: the faults to inject; nil: nothing fails.
    public init(
        clock: Clock = .real(), settings: TopicSettings = TopicSettings(), tombstonesKept: Duration = .seconds(86_400),
        faults: (any LogFaults)? = nil
    ) {
        core = LogCore(
            LogState(clock: clock, tombstonesKept: tombstonesKept.wholeMilliseconds), clock: clock, faults: faults)
        self.settings = settings
    }

    // MARK: RecordLog

    public func topics(_ names: [String], by deadline: Deadline) throws(LogFault) -> [String: TopicShape] {
        core.locked { state in
            var found: [String: TopicShape] = [:]
            for name in names {
                guard var shape = state.topics[name]?.shape else { continue }
                if shape.isCompacted { shape.deletionsKept = .milliseconds(state.tombstonesKept) }
                found[name] = shape
            }
            return found
        }
    }

    public func create(_ topics: [NewTopic], by deadline: Deadline) throws(LogFault) {
        for topic in topics where topic.shape.partitions < 1 {
            throw LogFault(.stop, .misuse, "\(topic.name) needs at least one partition")
        }
        core.locked { state in
            for topic in topics where state.topics[topic.name] == nil {
                state.topics[topic.name] = Topic(topic, settings)
            }
        }
    }

    public func openSession(_ options: SessionOptions, by deadline: Deadline) throws(LogFault) -> any LogSession {
        try MemorySession(options, core)
    }

    public func settle(_ identity: String, by deadline: Deadline) throws(LogFault) {
        core.changing { state in
            if let seat = state.seat(identity) { state.fence(seat, now: state.clock.now) }
        }
    }

    public func openReader(_ options: ReaderOptions) throws(LogFault) -> any LogReader { MemoryReader(options, core) }

    public func openWriter(_ options: WriterOptions) throws(LogFault) -> any LogWriter { MemoryWriter(options, core) }

    public func openTakeover(_ options: TakeoverOptions, by deadline: Deadline) throws(LogFault) -> any GroupTakeover {
        try MemoryTakeover(options, core)
    }

    public func openGroupWatch(_ name: String) throws(LogFault) -> any GroupWatch { MemoryGroupWatch(core) }

    // MARK: Operations and time

    /// Changes the settings of an existing topic.
    public func configure(_ topic: String, _ change: (inout TopicSettings) -> Void) throws(LogFault) {
        try core.locked { state throws(LogFault) in change(&(try state.topic(topic)).settings) }
    }

    /// Gives a topic more partitions. Members that have joined get them with the next assignment.
    public func grow(_ topic: String, to partitions: Int32) throws(LogFault) {
        try core.locked { state throws(LogFault) in try state.topic(topic).grow(to: partitions) }
    }

    /// Compacts every compacted topic now; it also happens automatically as records are appended.
    public func compact() {
        core.locked { state in
            let now = state.clock.now
            for name in state.topics.keys.sorted() {
                guard let topic = state.topics[name], topic.shape.isCompacted else { continue }
                for partition in topic.partitions { state.compact(partition, now: now) }
            }
        }
    }

    /// Removes the topic with all its records; afterwards one of the same name may be created. The topic must not be in
    /// use.
    public func delete(topic: String) { core.locked { state in state.topics[topic] = nil } }

    /// Removes the records of a partition before this offset, compacted or not, if they are committed.
    public func deleteRecords(of partition: TopicPartition, before place: NextOffset) throws(LogFault) {
        try core.locked { state throws(LogFault) in try state.partition(partition).deleteRecords(before: place.value) }
    }

    /// Deletes the group's committed offsets, as Kafka does a week after its last member has left.
    public func delete(group: String) { core.locked { state in state.groups[group]?.committed = [:] } }

    /// The group's committed offsets, as an operator sees them.
    public func committed(group: String) -> [TopicPartition: NextOffset] {
        core.locked { state in state.committed(group: group) }
    }

    /// From now on the session of this identity behaves like a process that has ended: nothing it does has an effect,
    /// every call throws, and the log notices only by time-outs, or when the identity returns.
    public func kill(_ identity: String) { core.locked { state in state.seat(identity)?.isGone = true } }

    /// Whether the last session of this identity was killed, by `kill` or by a fault.
    public func isGone(_ identity: String) -> Bool { core.locked { state in state.seat(identity)?.isGone ?? false } }

    /// The number of records in all partitions.
    public var recordCount: Int {
        core.locked { state in
            state.topics.values.reduce(0) { $0 + $1.partitions.reduce(0) { $0 + $1.recordCount } }
        }
    }
}

/// The lock, and waiting under it.
final class LogCore: @unchecked Sendable {
    private let monitor = Monitor()
    // Unchecked: used only under the lock of `monitor`, and so is every object that it refers to.
    private var state: LogState
    private var sleepers = 0
    let clock: MemoryLog.Clock
    let faults: (any LogFaults)?

    init(_ state: LogState, clock: MemoryLog.Clock, faults: (any LogFaults)?) {
        self.state = state
        self.clock = clock
        self.faults = faults
    }

    /// Applies due time-outs before `body`.
    func locked<Value, Failure: Error>(
        _ body: (inout LogState) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try monitor.withLock { () throws(Failure) in
            state.expire(now: clock.now)
            return try body(&state)
        }
    }

    /// For changes that others may be waiting for.
    func changing<Value, Failure: Error>(
        _ body: (inout LogState) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try monitor.withLock { () throws(Failure) in
            defer { if sleepers > 0 { monitor.callAll() } }
            state.expire(now: clock.now)
            return try body(&state)
        }
    }

    /// Calls `body` until it returns an answer, at most until `deadline`: then nil. With a manual clock it is called
    /// once.
    func waiting<Value>(
        until deadline: Deadline, for body: (inout LogState) throws(LogFault) -> Value?
    ) throws(LogFault) -> Value? {
        try monitor.withLock { () throws(LogFault) in
            while true {
                state.expire(now: clock.now)
                if let value = try body(&state) { return value }
                guard !clock.isManual, !deadline.hasPassed else { return nil }
                sleepers += 1
                // Time-outs wake no thread, so they are checked in between.
                monitor.wait(until: Deadline(after: min(deadline.remaining, .milliseconds(100))))
                sleepers -= 1
            }
        }
    }
}
