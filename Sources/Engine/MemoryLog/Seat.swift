// What the log knows about one session.

internal import Log
internal import Platform

/// An open transaction: its records are in the partitions already, but not visible.
struct OpenTransaction {
    struct Part {
        let partition: MemoryPartition
        let topic: Int
        /// Of its last record here.
        var last: Int64
    }

    /// Never 0, and unique.
    let number: Int
    let began: Int64
    var parts: [Part] = []
    /// Offsets that were sent and not committed because the session ended in between.
    var pending: [TopicPartition: NextOffset] = [:]
}

/// A session's membership of its group and its transaction. Used only under the log's lock.
final class Seat {
    enum Standing {
        /// Not in the group: it joins at the next poll.
        case outside
        /// In the group, without partitions until the rebalance ends.
        case waiting
        /// The rebalance has ended: the next poll reports the assignment.
        case granted
        /// `assigned` was reported; `take` is expected.
        case told
        case owning
        /// `revoked` was reported; `giveBack` is expected.
        case revoking
        /// Removed from the group: the next poll reports it.
        case expelled
        /// `lost` was reported; `giveBack` is expected.
        case losing
    }

    let options: SessionOptions
    let inputs: [Topic]
    let sessionTimeout: Int64
    let transactionTimeout: Int64
    let group: MemoryGroup

    /// As of the opening.
    var grown: [String: Int32] = [:]
    var standing = Standing.outside
    /// Sorted by topic and partition.
    var assigned: [TopicPartition] = []
    var lastSeen: Int64
    var transaction: OpenTransaction?

    /// The process has ended: the log gets no more calls from it.
    var isGone = false
    var isClosed = false
    /// A newer session has the identity.
    var isFenced = false
    /// The log has aborted the transaction, and accepts nothing more from this producer.
    var isWriterFenced = false
    /// The outcome of a commit was withheld: only `close` is possible.
    var mustRebuild = false
    /// A cycle was refused: the producer may only call `abort` and `close`.
    var mustAbort = false

    init(_ options: SessionOptions, inputs: [Topic], _ group: MemoryGroup, now: Int64) {
        self.options = options
        self.inputs = inputs
        self.group = group
        sessionTimeout = options.sessionTimeout.wholeMilliseconds
        transactionTimeout = options.transactionTimeout.wholeMilliseconds
        lastSeen = now
    }

    var identity: String { options.identity }
    var isMember: Bool { group.members.contains { $0 === self } }

    /// Whether the group waits for it before partitions can be assigned anew.
    var holdsPartitions: Bool {
        switch standing {
        case .told, .owning, .revoking: true
        case .outside, .waiting, .granted, .expelled, .losing: false
        }
    }

    func owns(_ partition: TopicPartition) -> Bool { holdsPartitions && assigned.contains(partition) }

    /// Appends to its transaction, or begins one.
    func put(_ outputs: OutputBatch, _ count: Int, _ state: inout LogState) throws(LogFault) {
        let now = state.clock.now
        // Removed from the seat while it changes, so that nothing is copied.
        var transaction = self.transaction ?? state.begin(now: now)
        self.transaction = nil
        defer { self.transaction = transaction }
        for index in 0..<count {
            let topic = Int(outputs.records[index].topic)
            guard options.outputs.indices.contains(topic) else {
                throw LogFault(.stop, .misuse, "\(identity) has no output \(topic)")
            }
            let (partition, offset) = try state.append(
                outputs, index, to: try state.topic(options.outputs[topic]), transaction: transaction.number, now: now)
            if let part = transaction.parts.firstIndex(where: { $0.partition === partition }) {
                transaction.parts[part].last = offset
            } else {
                transaction.parts.append(.init(partition: partition, topic: topic, last: offset))
            }
        }
    }

    /// From now on the log gets no more calls from the process.
    func die() -> LogFault {
        isGone = true
        return LogFault(.rebuild, .other, "the process of \(identity) has ended")
    }

    /// Why this session can answer no more calls; nil: it can.
    var ending: LogFault? {
        if isGone { return LogFault(.rebuild, .other, "the process of \(identity) has ended") }
        if isFenced { return LogFault(.rebuild, .fenced, "a newer session has the identity \(identity)") }
        if isClosed { return LogFault(.rebuild, .misuse, "the session of \(identity) is closed") }
        if mustRebuild {
            return LogFault(.rebuild, .other, "the outcome of the last commit of \(identity) is unknown: rebuild")
        }
        return nil
    }
}
