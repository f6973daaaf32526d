// A log that fails on demand.

public import Log
public import MemoryLog
public import Platform
import Synchronization

/// An in-memory log whose readers fail or see what the test sets.
public final class BrokenLog: RecordLog {
    private struct State {
        var fault: LogFault?
        var faultOnce: LogFault?
        var beginning: NextOffset?
        var atRead: (@Sendable () -> Void)?
        var starts: [[TopicPartition: NextOffset]] = []
        var atEnds: (@Sendable () -> Void)?
        var atOffsets: (@Sendable () -> Void)?
    }

    public let memory: MemoryLog
    private let state = Mutex(State())

    public init(_ memory: MemoryLog) { self.memory = memory }

    /// Thrown by every call.
    public var fault: LogFault? {
        get { state.withLock { $0.fault } }
        set { state.withLock { $0.fault = newValue } }
    }
    /// Thrown by the next poll.
    public var faultOnce: LogFault? {
        get { state.withLock { $0.faultOnce } }
        set { state.withLock { $0.faultOnce = newValue } }
    }
    /// The beginning of every partition; nil: the real one is shown.
    public var beginning: NextOffset? {
        get { state.withLock { $0.beginning } }
        set { state.withLock { $0.beginning = newValue } }
    }

    /// Called when a reader gets its start positions: the copies are open by then, and nothing has been read into them.
    public var atRead: (@Sendable () -> Void)? {
        get { state.withLock { $0.atRead } }
        set { state.withLock { $0.atRead = newValue } }
    }

    /// Where readers were told to begin, one after the other.
    public var starts: [[TopicPartition: NextOffset]] { state.withLock { $0.starts } }
    fileprivate func begin(_ starts: [TopicPartition: NextOffset]) { state.withLock { $0.starts.append(starts) } }

    /// Called when a reader has fetched the ends of partitions, but before it receives them.
    public var atEnds: (@Sendable () -> Void)? {
        get { state.withLock { $0.atEnds } }
        set { state.withLock { $0.atEnds = newValue } }
    }

    /// Called once, between the two queries of a start by time: first for the first record that is young enough, then
    /// for the end if there is none.
    public var atOffsets: (@Sendable () -> Void)? {
        get { state.withLock { $0.atOffsets } }
        set { state.withLock { $0.atOffsets = newValue } }
    }

    fileprivate func enter() throws(LogFault) { if let fault { throw fault } }

    public func topics(_ names: [String], by deadline: Deadline) throws(LogFault) -> [String: TopicShape] {
        try enter()
        return try memory.topics(names, by: deadline)
    }
    public func create(_ topics: [NewTopic], by deadline: Deadline) throws(LogFault) {
        try memory.create(topics, by: deadline)
    }
    public func openSession(_ options: SessionOptions, by deadline: Deadline) throws(LogFault) -> any LogSession {
        try memory.openSession(options, by: deadline)
    }
    public func settle(_ identity: String, by deadline: Deadline) throws(LogFault) {
        try memory.settle(identity, by: deadline)
    }
    public func openReader(_ options: ReaderOptions) throws(LogFault) -> any LogReader {
        try enter()
        return BrokenReader(self, try memory.openReader(options))
    }
    public func openWriter(_ options: WriterOptions) throws(LogFault) -> any LogWriter {
        try memory.openWriter(options)
    }
    public func openTakeover(_ options: TakeoverOptions, by deadline: Deadline) throws(LogFault) -> any GroupTakeover {
        try memory.openTakeover(options, by: deadline)
    }
    public func openGroupWatch(_ name: String) throws(LogFault) -> any GroupWatch {
        try enter()
        return BrokenWatch(self, try memory.openGroupWatch(name))
    }
}

private final class BrokenWatch: GroupWatch {
    private let log: BrokenLog
    private let watch: any GroupWatch

    init(_ log: BrokenLog, _ watch: any GroupWatch) {
        self.log = log
        self.watch = watch
    }

    func positions(of group: String, by deadline: Deadline) throws(LogFault) -> [TopicPartition: NextOffset] {
        try log.enter()
        return try watch.positions(of: group, by: deadline)
    }

    func close(by deadline: Deadline) -> Bool { watch.close(by: deadline) }
}

private final class BrokenReader: LogReader {
    private let log: BrokenLog
    private let reader: any LogReader

    init(_ log: BrokenLog, _ reader: any LogReader) {
        self.log = log
        self.reader = reader
    }

    func beginnings(
        of partitions: [TopicPartition], by deadline: Deadline
    ) throws(LogFault) -> [TopicPartition: NextOffset] {
        try log.enter()
        let found = try reader.beginnings(of: partitions, by: deadline)
        // Only for partitions with records: an empty partition begins at its end.
        guard let beginning = log.beginning else { return found }
        let ends = try reader.ends(.all, of: partitions, by: deadline)
        return Dictionary(uniqueKeysWithValues: found.map { ($0.key, min(beginning, ends[$0.key]!)) })
    }
    func ends(
        _ kind: EndKind, of partitions: [TopicPartition], by deadline: Deadline
    ) throws(LogFault) -> [TopicPartition: NextOffset] {
        try log.enter()
        let found = try reader.ends(kind, of: partitions, by: deadline)
        log.atEnds?()
        return found
    }
    func offsets(
        at timestamp: Int64, in partitions: [TopicPartition], by deadline: Deadline
    ) throws(LogFault) -> [TopicPartition: NextOffset] {
        try log.enter()
        var found = try reader.offsets(at: timestamp, in: partitions, by: deadline)
        guard let atOffsets = log.atOffsets else { return found }
        log.atOffsets = nil
        let ends = try reader.ends(.committed, of: partitions, by: deadline)
        atOffsets()
        let later = try reader.ends(.committed, of: partitions, by: deadline)
        for partition in partitions where found[partition] == ends[partition] { found[partition] = later[partition] }
        return found
    }
    func read(from starts: [TopicPartition: NextOffset]) throws(LogFault) {
        log.atRead?()
        try reader.read(from: starts)
        log.begin(starts)
    }
    func poll(into batch: RecordBatch, limit: Int, wait: Duration) throws(LogFault) {
        try log.enter()
        if let fault = log.faultOnce {
            log.faultOnce = nil
            throw fault
        }
        try reader.poll(into: batch, limit: limit, wait: wait)
    }
    func position(of partition: TopicPartition) -> NextOffset? { reader.position(of: partition) }
    func close(by deadline: Deadline) -> Bool { reader.close(by: deadline) }
}
