// Writing in the place of a group whose members are gone.

public import Platform

public struct TakeoverOptions: Sendable {
    public var group: String
    /// Of the transactions: nobody else's. A second takeover with it ends what this one has left open.
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

/// Appends records and moves the positions of a group, both in one step, while nobody is in the group. For tools that mend or
/// replace the state of a worker. One thread makes every call.
public protocol GroupTakeover: AnyObject {
    /// The group's committed positions; nil for a partition without one. Waits until a commit under way is settled.
    func committed(_ partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]
    /// Appends to the open transaction, or begins one.
    func append(_ outputs: OutputBatch) throws(LogFault)
    /// Everything that was appended, and the positions, become visible together.
    ///
    /// Fault `generation`: somebody is in the group; nothing became visible. `rebuild`: the outcome may be unknown, and the group's
    /// positions tell. Only `close` is left after a fault.
    func commit(_ positions: [TopicPartition: NextOffset]) throws(LogFault)
    /// Aborts what is open, and ends.
    @discardableResult func close(by deadline: Deadline) -> Bool
}

extension LogFault {
    /// - Parameter members: as they call themselves.
    public static func occupied(group: String, by members: [String]) -> LogFault {
        LogFault(
            .stop, .generation,
            "somebody is in the group \(group): \(members.joined(separator: ", ")). Stop every process of the worker first. "
                + "The group keeps the place of a process that was stopped for up to 30 s")
    }
}
