// The state of a group, as values.

import Kafka
import Log

struct GroupStanding: Sendable {
    var name: String
    /// Kafka's name of the state.
    var state: String
    var members: [Admin.Member]
    /// Sorted.
    var partitions: [PartitionStanding]
}

struct PartitionStanding: Sendable {
    var partition: TopicPartition
    /// The committed offset; nil: the group has no position here.
    var position: NextOffset?
    /// nil: the partition does not exist any more.
    var ends: PartitionEnds?
    /// nil: it is not known, because a position or an answer is missing.
    var lag: Lag?
    /// Timestamp of the next record to read, in milliseconds since 1970; nil: there is no record, or it is not known.
    var nextTimestamp: Int64?
}

struct PartitionEnds: Sendable, Equatable {
    var beginning: NextOffset
    /// The end of committed records.
    var committed: NextOffset
    /// The end of all records, including those of open transactions.
    var all: NextOffset

    /// Offsets that consumers of committed records do not get yet.
    var heldBack: Int64 { max(0, all.value - committed.value) }
}

/// Records that wait to be read.
enum Lag: Sendable, Equatable {
    case exactly(Int64)
    /// Some of the offsets may not be records.
    case atMost(Int64)

    var count: Int64 {
        switch self {
        case .exactly(let count), .atMost(let count): count
        }
    }

    var isExact: Bool { if case .exactly = self { true } else { false } }

    static func + (left: Lag, right: Lag) -> Lag {
        let sum = left.count + right.count
        return left.isExact && right.isExact ? .exactly(sum) : .atMost(sum)
    }
}
