// Writes in place of a group whose members have ended.

public import Platform

public struct TakeoverOptions: Sendable {
    public var group: String
    /// The identity of the transactions, which no other process uses. A second takeover with it aborts the open
    /// transaction of this one.
    public var identity: String
    /// An output's `topic` is the index in this list.
    public var topics: [String]
    public var transactionTimeout: Duration = .seconds(10)

    public init(group: String, identity: String, topics: [String]) {
        self.group = group
        self.identity = identity
        self.topics = topics
    }
}

/// Appends records and commits offsets of a group, both in one transaction, while the group has no members. For tools
/// that repair or replace the state of a worker. One thread makes every call.
public protocol GroupTakeover: AnyObject {
    /// The group's committed offsets; nil for a partition without one. Waits until a commit in progress has ended.
    func committed(_ partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]
    /// Appends to the open transaction, or begins one.
    func append(_ outputs: OutputBatch) throws(LogFault)
    /// Makes everything appended, and the offsets, visible together.
    ///
    /// Fault `generation`: the group has members; nothing became visible. `rebuild`: the outcome may be unknown; the
    /// group's offsets show it. After a fault only `close` is possible.
    func commit(_ positions: [TopicPartition: NextOffset]) throws(LogFault)
    /// Aborts an open transaction, and closes the takeover.
    @discardableResult func close(by deadline: Deadline) -> Bool
}

extension LogFault {
    /// - Parameter members: the names that the members give themselves.
    public static func occupied(group: String, by members: [String]) -> LogFault {
        LogFault(
            .stop, .generation,
            "the group \(group) has members: \(members.joined(separator: ", ")). Stop every process of the worker "
                + "first. The group may keep a stopped process as a member for up to 30 s")
    }
}
