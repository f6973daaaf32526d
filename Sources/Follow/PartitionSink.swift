// Where the records of a partition go.

public import Log

/// How far a copy is in one topic.
public struct KeptPlace: Equatable, Sendable {
    /// Everything before it is kept; nil: nothing was read yet.
    public var next: NextOffset?
    /// When this was the end of the topic's partition, in milliseconds since 1970 by the host's clock; of a copy that was never
    /// complete, when it was begun. Deletions since then are still to be found, as long as the topic keeps them.
    public var currentAt: Int64
    /// The greatest timestamp of a record that was read: the partition's clock. nil: no record was.
    public var clock: Int64?

    public init(next: NextOffset?, currentAt: Int64, clock: Int64?) {
        self.next = next
        self.currentAt = currentAt
        self.clock = clock
    }
}

/// What a sink has found when it was opened.
public enum SinkContents: Equatable, Sendable {
    case nothing
    /// By the number of the topic.
    case places([KeptPlace])
    /// Something that does not fit what is followed, and why. It is wiped.
    case foreign(String)
}

/// What cannot be opened, read or written. The sink is closed and opened again: the log has everything.
public struct SinkFault: Error, Equatable {
    /// For people: what failed, and why.
    public var words: String
    /// What is kept makes no sense: wiping it and reading everything again helps.
    public var isBroken: Bool

    public init(_ words: String, isBroken: Bool = false) {
        self.words = words
        self.isBroken = isBroken
    }
}

/// A copy of one partition of all topics that are followed: a store, a table of a database, something in memory, another service.
///
/// Records and the places that belong to them become the sink's in one step, `write`: a copy whose places run ahead of its
/// records misses some for ever, and one whose places stay behind has some twice. Every call comes on the thread that follows.
public protocol PartitionSink: AnyObject {
    /// Also after `close` and `wipe`, of the same object. What is kept in memory alone is `nothing` then.
    func open() throws(SinkFault) -> SinkContents
    /// Places are known to fit the topics, and records come next.
    func begin() throws(SinkFault)
    /// Takes a record in; it may be lost until `write`. `record.topic` is the number of the topic.
    ///
    /// - Returns: nil, or why the record may not be passed: then nothing behind it is read of this topic's partition until a sink
    ///   is opened for it again.
    func take(_ record: borrowing RecordView) -> String?
    /// Of what was taken and is not written yet.
    var heldBytes: Int { get }
    /// Keeps all that was taken since the last time, and the places behind it: all of it or nothing, also when the process dies in
    /// the middle.
    ///
    /// - Parameter isLasting: false: may be lost with the process, for a copy that is being built, but only from the end.
    func write(_ places: [KeptPlace], isLasting: Bool) throws(SinkFault)
    /// Nothing but the places has changed: that need not be kept each time.
    func move(to places: [KeptPlace])
    /// All that the topics had at some moment is written. Told at every step at which it is so.
    func confirm()
    /// What somebody else, who reads what is kept, has met there; nil after it was opened again.
    var fault: SinkFault? { get }
    /// What was taken and not written goes.
    func close() throws(SinkFault)
    /// Closes it first, in whatever state it is. Nothing is kept afterwards.
    func wipe() throws(SinkFault)
}

extension PartitionSink {
    public func begin() throws(SinkFault) {}
    public var heldBytes: Int { 0 }
    public func move(to places: [KeptPlace]) {}
    public func confirm() {}
    public var fault: SinkFault? { nil }
}
