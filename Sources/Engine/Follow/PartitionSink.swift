// The receiver of a partition's records.

public import Log

/// The position of a copy in one topic.
public struct KeptPlace: Equatable, Sendable {
    /// Everything before this offset is stored; nil: nothing was read yet.
    public var next: NextOffset?
    /// When this was the end of the topic's partition, in milliseconds since 1970 by the host's clock; for a copy that
    /// was never complete, when it was started. The topic still has the deletions since then, as long as it keeps them.
    public var currentAt: Int64
    /// The greatest timestamp of the records read: the partition's clock. nil: no record was read.
    public var clock: Int64?

    public init(next: NextOffset?, currentAt: Int64, clock: Int64?) {
        self.next = next
        self.currentAt = currentAt
        self.clock = clock
    }
}

/// What a sink contains when it is opened.
public enum SinkContents: Equatable, Sendable {
    case nothing
    /// By the number of the topic.
    case places([KeptPlace])
    /// Contents that do not fit the followed topics, and why. They are wiped.
    case foreign(String)
}

/// A failed opening, read or write. The sink is closed and opened again: the log has everything.
public struct SinkFault: Error, Equatable {
    /// What failed and why, for people.
    public var words: String
    /// The stored contents are invalid: wiping them and reading everything again helps.
    public var isBroken: Bool

    public init(_ words: String, isBroken: Bool = false) {
        self.words = words
        self.isBroken = isBroken
    }
}

/// A copy of one partition of all followed topics: a store, a table of a database, something in memory, another
/// service.
///
/// `write` stores records and their positions in one step: a copy whose positions are ahead of its records misses some
/// forever, and one whose positions are behind gets some twice. Every call comes on the thread of the follower.
public protocol PartitionSink: AnyObject {
    /// Also called after `close` and `wipe` of the same object. Contents that were only in memory are `nothing` then.
    func open() throws(SinkFault) -> SinkContents
    /// The positions fit the topics, and records follow.
    func begin() throws(SinkFault)
    /// Takes a record, which may be lost until `write`. `record.topic` is the number of the topic.
    ///
    /// - Returns: nil, or why reading must not pass the record: then no later record of this topic's partition is read
    ///   until a sink is opened for it again.
    func take(_ record: borrowing RecordView) -> String?
    /// Bytes that were taken and are not written yet.
    var heldBytes: Int { get }
    /// Stores everything taken since the last call, and the positions after it: all of it or nothing, even if the
    /// process crashes in the middle.
    ///
    /// - Parameter isLasting: false: a crash of the process may lose the write, but not earlier ones without later
    ///   ones; for a copy that is being built.
    func write(_ places: [KeptPlace], isLasting: Bool) throws(SinkFault)
    /// Only the positions have changed: they need not be stored each time.
    func move(to places: [KeptPlace])
    /// Everything that the topics had at some time is written. Called at every step for which this is true.
    func confirm()
    /// A fault that another reader of the stored contents has found; nil after the sink is opened again.
    var fault: SinkFault? { get }
    /// Drops what was taken and not written.
    func close() throws(SinkFault)
    /// Closes it first, in any state. Afterwards nothing is stored.
    func wipe() throws(SinkFault)
}

extension PartitionSink {
    public func begin() throws(SinkFault) {}
    public var heldBytes: Int { 0 }
    public func move(to places: [KeptPlace]) {}
    public func confirm() {}
    public var fault: SinkFault? { nil }
}
