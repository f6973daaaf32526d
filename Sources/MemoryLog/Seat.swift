// What the log knows of one session.

internal import Log
internal import Platform

/// An open transaction: what it wrote is in the partitions already, and nobody sees it.
struct OpenTransaction {
    struct Part {
        let partition: MemoryPartition
        let topic: Int
        /// Of its last record here.
        var last: Int64
    }

    /// Never 0, and never the same twice.
    let number: Int
    let began: Int64
    var parts: [Part] = []
    /// Positions that were sent and not committed, because the session died in between.
    var pending: [TopicPartition: NextOffset] = [:]
}

/// A session's place in its group and its transaction. Used under the log's lock only.
final class Seat {
    enum Standing {
        /// Not in the group: at the next poll it joins.
        case outside
        /// In the group, without partitions until the round ends.
        case waiting
        /// The round has ended: the next poll tells.
        case granted
        /// Told of `assigned`; `take` is awaited.
        case told
        case owning
        /// Told of `revoked`; `giveBack` is awaited.
        case revoking
        /// Thrown out: the next poll tells.
        case expelled
        /// Told of `lost`; `giveBack` is awaited.
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
    /// In order of topic and partition.
    var assigned: [TopicPartition] = []
    var lastSeen: Int64
    var transaction: OpenTransaction?

    /// The process is gone: the log hears nothing of it any more.
    var isGone = false
    var isClosed = false
    /// A younger session has the identity.
    var isFenced = false
    /// The transaction was ended by the log, which takes no more from this writer.
    var isWriterFenced = false
    /// The outcome of a commit was withheld: only `close` is left.
    var mustRebuild = false
    /// A cycle was refused: only `abort` and `close` are left for the writer.
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

    /// Whether the group waits for it before anything can be assigned anew.
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
        // Taken out while it changes, so that nothing is copied.
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

    /// From here on the log hears nothing of the process.
    func die() -> LogFault {
        isGone = true
        return LogFault(.rebuild, .other, "the process of \(identity) is gone")
    }

    /// Why nothing can be asked of this session any more; nil: it can.
    var ending: LogFault? {
        if isGone { return LogFault(.rebuild, .other, "the process of \(identity) is gone") }
        if isFenced { return LogFault(.rebuild, .fenced, "a younger session is \(identity)") }
        if isClosed { return LogFault(.rebuild, .misuse, "the session of \(identity) is closed") }
        if mustRebuild {
            return LogFault(.rebuild, .other, "the outcome of the last commit of \(identity) is unknown: rebuild")
        }
        return nil
    }
}
