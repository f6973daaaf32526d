// The interface of a log. It does not depend on Kafka.

public import Platform

/// Topics with partitions, written and read by many.
///
/// A record has a key, a value, headers and a timestamp, and gets an offset. Offsets of a partition grow, but not every
/// offset is a record: in Kafka the control records of transactions use some. A topic either keeps all records for some
/// time or, if compacted, at least the last record of each key.
public protocol RecordLog: Sendable {
    /// The shapes of these topics; a missing topic is left out.
    func topics(_ names: [String], by deadline: Deadline) throws(LogFault) -> [String: TopicShape]
    /// Creates the missing topics. Existing topics stay as they are.
    func create(_ topics: [NewTopic], by deadline: Deadline) throws(LogFault)

    /// A worker's session: joins the group, and writes under the identity. The next session with the same identity
    /// fences this one and aborts its open transaction. Blocks until that is done, or until `deadline`.
    func openSession(_ options: SessionOptions, by deadline: Deadline) throws(LogFault) -> any LogSession
    /// Aborts the open transaction of a session of this identity, as opening another session would, but joins nothing:
    /// for an identity that no process will have again. A process that still has it is fenced.
    func settle(_ identity: String, by deadline: Deadline) throws(LogFault)
    /// Reads without a group.
    func openReader(_ options: ReaderOptions) throws(LogFault) -> any LogReader
    /// Appends without a transaction.
    func openWriter(_ options: WriterOptions) throws(LogFault) -> any LogWriter
    /// Writes in place of a group without members. Fault `generation`: it has members. Blocks until the open
    /// transaction of an earlier takeover of the same identity is aborted, or until `deadline`.
    func openTakeover(_ options: TakeoverOptions, by deadline: Deadline) throws(LogFault) -> any GroupTakeover
    /// Reads committed offsets of groups, without joining them.
    /// - Parameter name: for messages of the log.
    func openGroupWatch(_ name: String) throws(LogFault) -> any GroupWatch
}

extension RecordLog {
    /// For a log that leaves no transaction open.
    public func settle(_ identity: String, by deadline: Deadline) throws(LogFault) {}

    /// For a log without takeovers.
    public func openTakeover(_ options: TakeoverOptions, by deadline: Deadline) throws(LogFault) -> any GroupTakeover {
        throw LogFault(.stop, .misuse, "groups of this log cannot be taken over")
    }

    /// For a log whose groups cannot be read.
    public func openGroupWatch(_ name: String) throws(LogFault) -> any GroupWatch {
        throw LogFault(.stop, .misuse, "offsets of groups cannot be read from this log")
    }
}

public struct TopicShape: Sendable, Equatable {
    public var partitions: Int32
    /// The last record of each key stays, however old it is.
    public var isCompacted: Bool
    /// For an existing compacted topic: how long compaction keeps a deletion, at least, for readers that are behind.
    /// nil: it is not known. When a topic is created, the log decides.
    public var deletionsKept: Duration?

    public init(partitions: Int32, isCompacted: Bool, deletionsKept: Duration? = nil) {
        self.partitions = partitions
        self.isCompacted = isCompacted
        self.deletionsKept = deletionsKept
    }
}

public struct NewTopic: Sendable, Equatable {
    public var name: String
    public var shape: TopicShape

    public init(_ name: String, partitions: Int32, isCompacted: Bool = false) {
        self.name = name
        shape = TopicShape(partitions: partitions, isCompacted: isCompacted)
    }
}

// MARK: Sessions

public struct SessionOptions: Sendable {
    public var group: String
    /// The identity of this member of the group and of its transactions: the same after a restart, and used by no other
    /// process.
    public var identity: String
    /// A record's `topic` is the index in this list. Partition p of all of them has one owner.
    public var inputs: [String]
    /// An output's `topic` is the index in this list.
    public var outputs: [String]
    /// The number of partitions of the topics, if keys are placed by it: see `grown`. nil: any number is accepted.
    public var partitions: Int32?
    /// Whether the group keeps the partitions for a session of the same identity when this one is closed. If false,
    /// closing it leaves the group, and others get the partitions at once.
    public var keepsPlace = true
    /// How long a silent member keeps its partitions; one that keeps its place and returns within this time gets them
    /// without a rebalance.
    public var sessionTimeout: Duration = .seconds(30)
    /// How long a dead member's open transaction can block readers at most.
    public var transactionTimeout: Duration = .seconds(10)
    /// Approximate memory for records that are fetched and not delivered yet.
    public var readAheadBytes = 24 << 20
    /// How long records may wait for others, so that one answer of a broker has many. Otherwise each record would be an
    /// answer of its own, and brokers would be busy with requests.
    public var fetchWait: Duration = .milliseconds(20)
    /// The clock of `ownedUntil`.
    public var bootClock: @Sendable () -> Duration = BootClock.now
    /// Receives, on any thread, events that the log reports by itself.
    public var onEvent: @Sendable (LogEvent) -> Void = { _ in }

    public init(group: String, identity: String, inputs: [String], outputs: [String]) {
        self.group = group
        self.identity = identity
        self.inputs = inputs
        self.outputs = outputs
    }

    /// The topics that have more partitions than `partitions`, and how many. Throws if a topic has fewer, or if all of
    /// them have more: then the setting is wrong. If only some have more, those have grown since they were created, and
    /// the partitions of keys are unchanged.
    public func grown(_ counts: [(topic: String, count: Int32)]) throws(LogFault) -> [String: Int32] {
        guard let partitions else { return [:] }
        let isProven = counts.contains { $0.count == partitions }
        for (topic, count) in counts where count < partitions || !isProven {
            throw .partitions(of: topic, are: count, not: partitions)
        }
        let grown = counts.filter { $0.count > partitions }
        return Dictionary(grown.map { ($0.topic, $0.count) }) { first, _ in first }
    }
}

/// For the log of the process and for metrics; they need no reaction.
public enum LogEvent: Sendable {
    public enum Level: Sendable { case error, warning, info, debug }

    case message(Level, String)
    /// The transactional producer was replaced by a new one, so that a late request cannot affect the next transaction.
    case writerReplaced(reason: String)
    /// Something that a person should change. Rare.
    case advice(String)
}

/// The outcome of a poll.
public enum SessionEvent: Equatable, Sendable {
    /// The batch has records; fewer than requested if there were no more.
    case records
    /// Nothing arrived in time.
    case nothing
    /// From now on the session owns these partitions and no others: answer with `take` before the next poll.
    case assigned([TopicPartition])
    /// Others will get these partitions and wait: commit what is open, within seconds, and answer with `giveBack`. The
    /// same partitions may be assigned again at once.
    case revoked([TopicPartition])
    /// Others may already own these partitions: abort what is open, and answer with `giveBack`.
    case lost([TopicPartition])
    /// Records of the partition were deleted before they were read, or its topic was created again: there is no record
    /// at its position. It delivers no records until it is assigned again. The other partitions continue.
    case positionGone(TopicPartition)
}

/// One owner of partitions. One thread makes every call.
///
/// A cycle is: `poll` and `append` any number of times, then `commit` with the positions up to which the input was
/// processed. All outputs and positions become visible together, or none of them. After `abort` the owner seeks to
/// where the cycle began.
public protocol LogSession: AnyObject {
    /// Returns records, or a change of the assignment. Waits at most `wait` for the first record. Records that were
    /// lent before are returned. Call at least once a second, even if everything is paused.
    func poll(into batch: RecordBatch, limit: Int, wait: Duration) throws(LogFault) -> SessionEvent

    /// The group's committed offsets; nil for a partition without one. Waits until an earlier owner's commit in
    /// progress has ended.
    func committed(_ partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]

    /// The first existing record of each: the start if the group has no offset.
    func beginnings(of partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]

    /// Answers `assigned`: reading starts at these offsets. Every assigned partition needs a start; `paused` ones
    /// deliver no records until `resume`.
    func take(_ starts: [TopicPartition: NextOffset], paused: Set<TopicPartition>) throws(LogFault)
    /// Answers `revoked` and `lost`.
    func giveBack() throws(LogFault)

    func pause(_ partitions: [TopicPartition]) throws(LogFault)
    func resume(_ partitions: [TopicPartition]) throws(LogFault)
    /// Continues reading at these positions; what was fetched before is dropped. Partitions that are not owned are
    /// ignored.
    func seek(to positions: [TopicPartition: NextOffset]) throws(LogFault)

    /// The next record to be delivered, or the end, after any control records.
    func position(of partition: TopicPartition) -> NextOffset?

    /// Appends to the open transaction, or begins one. Readers of committed records see nothing of it before `commit`.
    func append(_ outputs: OutputBatch) throws(LogFault)
    /// Ends the cycle: everything appended since the last one, and the group's offsets, become visible together. Pass
    /// the position of every partition that the cycle concerns, even if only a timer fired: this checks that the
    /// session still owns them.
    ///
    /// `rewind`: nothing became visible. `rebuild`: the outcome may be unknown.
    func commit(_ positions: [TopicPartition: NextOffset]) throws(LogFault)
    /// Aborts everything appended since the last commit. If there is nothing, it does nothing.
    func abort() throws(LogFault)
    /// The offset after the last record of the last commit in the partition of an output; nil if that commit wrote
    /// nothing there.
    func appendedEnd(topic: Int, partition: Int32) -> NextOffset?

    /// Topics with more partitions than the options say, and how many, as of the opening of the session. No keys are
    /// looked up in the additional partitions.
    var grown: [String: Int32] { get }

    /// Until when no other session can own the session's partitions, on the options' `bootClock`; nil: it owns none, or
    /// the group has not confirmed it yet. See `Lease`: only a `commit` with positions starts it, and renews it after
    /// it has expired.
    var ownedUntil: Duration? { get }

    /// The beginning of `close`, which must follow: aborts an open transaction, and does not wait for the rest. No other
    /// call may come in between.
    func beginClosing(by deadline: Deadline)
    /// Aborts an open transaction and closes. If the session keeps its place, the group keeps the partitions for the
    /// session timeout; otherwise they may have a new owner before this returns. False if it was not closed by the
    /// deadline: then end the process.
    @discardableResult func close(by deadline: Deadline) -> Bool
}

extension LogSession {
    public var grown: [String: Int32] { [:] }
    /// For a log that closes without waiting.
    public func beginClosing(by deadline: Deadline) {}
}

// MARK: Readers

public struct ReaderOptions: Sendable {
    /// For messages of the log.
    public var name: String
    /// A group that the user may read; the reader neither joins it nor commits to it.
    public var group: String
    /// A record's `topic` is the index in this list.
    public var topics: [String]
    /// Fetch ahead: good for a restore or a replay, which read much, but not for a few records.
    public var readsAhead = false
    /// How long a broker may hold a request for records when there are none. Other questions to this broker wait behind it.
    public var fetchWait: Duration = .milliseconds(50)
    /// Approximate memory for the records that a reader fetches ahead.
    public var readAheadBytes = 256 << 20
    /// The reader is polled at least about once a second while it is open, so it may report statistics.
    public var isPolledAlways = false

    public init(name: String, group: String, topics: [String]) {
        self.name = name
        self.group = group
        self.topics = topics
    }
}

/// The end of a partition, as different readers see it.
public enum EndKind: Sendable {
    /// The end of the committed records: before the first record of an open transaction.
    case committed
    /// The end of all records, including open and aborted transactions: all existing records have smaller offsets.
    case all
}

/// Reads committed records of partitions that it chooses itself. For use by one thread.
public protocol LogReader: AnyObject {
    func beginnings(of partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]
    func ends(_ kind: EndKind, of partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]
    /// For each partition the first record with a timestamp at or after `timestamp`; the committed end if there is
    /// none.
    func offsets(at timestamp: Int64, in partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]

    /// Reads these partitions from these positions, and no others.
    func read(from starts: [TopicPartition: NextOffset]) throws(LogFault)
    /// Waits at most `wait` for the first record; an empty batch: nothing arrived in time. `positionGone`: there is no
    /// longer a record at the position.
    func poll(into batch: RecordBatch, limit: Int, wait: Duration) throws(LogFault)
    /// The next record to be delivered, or the end, after any control records.
    func position(of partition: TopicPartition) -> NextOffset?

    @discardableResult func close(by deadline: Deadline) -> Bool
}

// MARK: Groups

/// Reads the committed offsets of groups. For use by one thread.
public protocol GroupWatch: AnyObject {
    /// Every offset that the group has committed at this moment, without those of open transactions. Empty: the group
    /// does not exist, never committed, or the log has deleted it.
    func positions(of group: String, by deadline: Deadline) throws(LogFault) -> [TopicPartition: NextOffset]

    @discardableResult func close(by deadline: Deadline) -> Bool
}

// MARK: Writers

public struct WriterOptions: Sendable {
    /// For messages of the log.
    public var name: String
    /// An output's `topic` is the index in this list.
    public var topics: [String]

    public init(name: String, topics: [String]) {
        self.name = name
        self.topics = topics
    }
}

/// Appends records outside of transactions. For use by one thread.
public protocol LogWriter: AnyObject {
    /// Returns when all records are acknowledged, with the offset of each.
    func append(_ outputs: OutputBatch, by deadline: Deadline) throws(LogFault) -> [Int64]

    @discardableResult func close(by deadline: Deadline) -> Bool
}
