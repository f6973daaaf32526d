// The interface of a log. Nothing in it needs Kafka.

public import Platform

/// Topics with partitions, written and read by many.
///
/// A record has a key, a value, headers and a timestamp, and gets an offset: offsets of a partition grow, but not every offset
/// is a record (the ends of transactions take some in Kafka). A topic either keeps all records for some time or, compacted, at
/// least the last one of each key.
public protocol RecordLog: Sendable {
    /// What is there of these topics; a topic that is missing is left out.
    func topics(_ names: [String], by deadline: Deadline) throws(LogFault) -> [String: TopicShape]
    /// Creates topics that are missing. One that is there is left as it is.
    func create(_ topics: [NewTopic], by deadline: Deadline) throws(LogFault)

    /// A worker's session: joins the group, and writes under the identity's name. Whoever opens one with the same identity later
    /// fences this one and ends what it has left open. Blocks until that is done, or `deadline`.
    func openSession(_ options: SessionOptions, by deadline: Deadline) throws(LogFault) -> any LogSession
    /// Ends what a session of this identity has left open, as opening another would, and joins nothing: for an identity that
    /// nobody is going to have again. Whoever still has it is fenced.
    func settle(_ identity: String, by deadline: Deadline) throws(LogFault)
    /// Reads without a group.
    func openReader(_ options: ReaderOptions) throws(LogFault) -> any LogReader
    /// Appends without a transaction.
    func openWriter(_ options: WriterOptions) throws(LogFault) -> any LogWriter
    /// Writes in the place of a group that has no members. Fault `generation`: it has some. Blocks until what an earlier takeover of
    /// the same identity has left open is ended, or `deadline`.
    func openTakeover(_ options: TakeoverOptions, by deadline: Deadline) throws(LogFault) -> any GroupTakeover
    /// Looks at positions of groups, of which it joins none.
    /// - Parameter name: for the log's own messages.
    func openGroupWatch(_ name: String) throws(LogFault) -> any GroupWatch
}

extension RecordLog {
    /// For a log in which nothing is left open.
    public func settle(_ identity: String, by deadline: Deadline) throws(LogFault) {}

    /// For a log whose groups are not taken over.
    public func openTakeover(_ options: TakeoverOptions, by deadline: Deadline) throws(LogFault) -> any GroupTakeover {
        throw LogFault(.stop, .misuse, "groups of this log cannot be taken over")
    }

    /// For a log whose groups nobody looks at.
    public func openGroupWatch(_ name: String) throws(LogFault) -> any GroupWatch {
        throw LogFault(.stop, .misuse, "groups of this log cannot be looked at")
    }
}

public struct TopicShape: Sendable, Equatable {
    public var partitions: Int32
    /// The last record of each key stays, however old it is.
    public var isCompacted: Bool
    /// Of a compacted topic that is there: how long compaction leaves a deletion for readers who are behind, at least. nil: not
    /// known. Creating a topic leaves it to the log.
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
    /// Of this member of the group and of its transactions: the same after a restart, and nobody else's.
    public var identity: String
    /// A record's `topic` is the index in this list. Partition p of all of them has one owner.
    public var inputs: [String]
    /// An output's `topic` is the index in this list.
    public var outputs: [String]
    /// Of the topics, for who places keys by it: see `grown`. nil: any number will do.
    public var partitions: Int32?
    /// Whether the group keeps the partitions for a session of the same identity when this one is closed. If not, closing it
    /// leaves the group, and others have the partitions at once.
    public var keepsPlace = true
    /// How long a silent member keeps its partitions; one that keeps its place and is back within it has them without a rebalance.
    public var sessionTimeout: Duration = .seconds(30)
    /// How long a dead member's open transaction holds readers back at most.
    public var transactionTimeout: Duration = .seconds(10)
    /// About as much memory may hold what was fetched and is not given yet.
    public var readAheadBytes = 24 << 20
    /// What `ownedUntil` is told on.
    public var bootClock: @Sendable () -> Duration = BootClock.now
    /// Hears, on any thread, what the log says by itself.
    public var onEvent: @Sendable (LogEvent) -> Void = { _ in }

    public init(group: String, identity: String, inputs: [String], outputs: [String]) {
        self.group = group
        self.identity = identity
        self.inputs = inputs
        self.outputs = outputs
    }

    /// Those of the topics that have more partitions than `partitions`, and how many. No session is opened where a topic has fewer,
    /// or where all of them have more: somebody has set the number wrong. Where only some have more, those were grown since they
    /// were made, and the places of keys are what they were.
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

/// For the log of the process and for metrics; nothing has to be done about them.
public enum LogEvent: Sendable {
    public enum Level: Sendable { case error, warning, info, debug }

    case message(Level, String)
    /// What writes the transactions was replaced by a new one, so that a late request cannot touch the next.
    case writerReplaced(reason: String)
    /// What a person should change. Told seldom.
    case advice(String)
}

/// What a poll has brought.
public enum SessionEvent: Equatable, Sendable {
    /// The batch holds records, fewer than were asked for when no more were there.
    case records
    /// Nothing came in time.
    case nothing
    /// These partitions are the session's from now on, and all it has: answer with `take`, before anything else is polled.
    case assigned([TopicPartition])
    /// They are about to go to others, who wait: commit what is open, within seconds, and answer with `giveBack`. The same
    /// partitions may come again at once.
    case revoked([TopicPartition])
    /// They may belong to others already: abort what is open, and answer with `giveBack`.
    case lost([TopicPartition])
    /// Records of the partition were deleted before they were read, or its topic was made anew: there is nothing at its position.
    /// It gives no records until it is assigned again. The other partitions go on.
    case positionGone(TopicPartition)
}

/// One owner of partitions. One thread makes every call.
///
/// A cycle is: `poll` and `append` any number of times, then `commit` with the positions up to which the input was dealt with.
/// All of the outputs and the positions become visible in one step, or none. After `abort` the owner seeks to where the cycle
/// began.
public protocol LogSession: AnyObject {
    /// Records, or what happened to the partitions. Waits at most `wait` for the first record. What was lent before is given
    /// back. Call at least once a second, also when everything is paused.
    func poll(into batch: RecordBatch, limit: Int, wait: Duration) throws(LogFault) -> SessionEvent

    /// The group's committed positions; nil for a partition without one. Waits until an earlier owner's commit, if one is under
    /// way, is settled.
    func committed(_ partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]

    /// The first record there is of each: the start where the group has no position.
    func beginnings(of partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]

    /// Answers `assigned`: reading starts there. Every partition that was assigned has a start; `paused` ones give no records
    /// until `resume`.
    func take(_ starts: [TopicPartition: NextOffset], paused: Set<TopicPartition>) throws(LogFault)
    /// Answers `revoked` and `lost`.
    func giveBack() throws(LogFault)

    func pause(_ partitions: [TopicPartition]) throws(LogFault)
    func resume(_ partitions: [TopicPartition]) throws(LogFault)
    /// Reading goes on there; what was fetched before is dropped. Partitions that are not owned are ignored.
    func seek(to positions: [TopicPartition: NextOffset]) throws(LogFault)

    /// The next record to be given, or the end beyond what takes offsets without being a record.
    func position(of partition: TopicPartition) -> NextOffset?

    /// Appends to the open transaction, or begins one. Readers of committed data see nothing of it before `commit`.
    func append(_ outputs: OutputBatch) throws(LogFault)
    /// Ends the cycle: everything appended since the last one, and the group's positions, become visible together. Give the
    /// position of every partition that was worked for, also when only a timer fired: it is what shows that they are still this
    /// session's.
    ///
    /// `rewind`: nothing became visible. `rebuild`: the outcome may be unknown.
    func commit(_ positions: [TopicPartition: NextOffset]) throws(LogFault)
    /// Takes back everything appended since the last commit. Without anything to take back it does nothing.
    func abort() throws(LogFault)
    /// Where the partition of an output went on behind the last record of the last commit; nil when that wrote nothing there.
    func appendedEnd(topic: Int, partition: Int32) -> NextOffset?

    /// Topics with more partitions than the options say, and how many, as they were when the session was opened. Nobody looks for a
    /// key in the rest of them.
    var grown: [String: Int32] { get }

    /// Until when nobody else can have the session's partitions, on the options' `bootClock`; nil: it has none, or the
    /// group has not confirmed it yet. See `Lease`: it begins, and comes back when it has ended, with a `commit` that gives
    /// positions.
    var ownedUntil: Duration? { get }

    /// Aborts what is open and ends. Of a session that keeps its place the group keeps the partitions for the session's time; of
    /// another they may have a new owner before this returns. False when it was not gone by the deadline: then end the process.
    @discardableResult func close(by deadline: Deadline) -> Bool
}

extension LogSession {
    public var grown: [String: Int32] { [:] }
}

// MARK: Readers

public struct ReaderOptions: Sendable {
    /// For the log's own messages.
    public var name: String
    /// A name that the user may ask for; it is neither joined nor committed to.
    public var group: String
    /// A record's `topic` is the index in this list.
    public var topics: [String]
    /// Fetched ahead: a restore or a replay wants much, a look at a few records wants little.
    public var readsAhead = false
    /// About as much memory may hold what a reader that reads ahead has fetched.
    public var readAheadBytes = 256 << 20
    /// It is polled about once a second at least as long as it is open, and may tell of itself meanwhile.
    public var isPolledAlways = false

    public init(name: String, group: String, topics: [String]) {
        self.name = name
        self.group = group
        self.topics = topics
    }
}

/// The end of a partition, as different readers see it.
public enum EndKind: Sendable {
    /// Of what is committed: before the first record of an open transaction.
    case committed
    /// Of everything, open and aborted transactions included: whatever was written before has a smaller offset.
    case all
}

/// Reads committed records of partitions that it chooses itself. One thread.
public protocol LogReader: AnyObject {
    func beginnings(of partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]
    func ends(_ kind: EndKind, of partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]
    /// Of each partition the first record with a timestamp at or after `timestamp`; the committed end when there is none.
    func offsets(at timestamp: Int64, in partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]

    /// Reads these partitions from these positions, and no others.
    func read(from starts: [TopicPartition: NextOffset]) throws(LogFault)
    /// Waits at most `wait` for the first record; an empty batch: nothing came in time. `positionGone`: there is no record at the
    /// position any more.
    func poll(into batch: RecordBatch, limit: Int, wait: Duration) throws(LogFault)
    /// The next record to be given, or the end beyond what takes offsets without being a record.
    func position(of partition: TopicPartition) -> NextOffset?

    @discardableResult func close(by deadline: Deadline) -> Bool
}

// MARK: Groups

/// Sees how far groups are. One thread.
public protocol GroupWatch: AnyObject {
    /// Every position that the group has committed, as it is in force now: of transactions that have not ended nothing. Empty: there
    /// is no such group, or it never committed, or the log has forgotten it.
    func positions(of group: String, by deadline: Deadline) throws(LogFault) -> [TopicPartition: NextOffset]

    @discardableResult func close(by deadline: Deadline) -> Bool
}

// MARK: Writers

public struct WriterOptions: Sendable {
    /// For the log's own messages.
    public var name: String
    /// An output's `topic` is the index in this list.
    public var topics: [String]

    public init(name: String, topics: [String]) {
        self.name = name
        self.topics = topics
    }
}

/// Appends records outside of transactions. One thread.
public protocol LogWriter: AnyObject {
    /// Returns when all of the records are kept, with the offset of each.
    func append(_ outputs: OutputBatch, by deadline: Deadline) throws(LogFault) -> [Int64]

    @discardableResult func close(by deadline: Deadline) -> Bool
}
