// Where a group stands, as values.

import Kafka
import Log

struct GroupStanding: Sendable {
    var name: String
    /// As Kafka says it.
    var state: String
    var members: [Admin.Member]
    /// Sorted.
    var partitions: [PartitionStanding]
}

struct PartitionStanding: Sendable {
    var partition: TopicPartition
    /// The next record to read; nil: the group has none here.
    var position: NextOffset?
    /// nil: the partition is not there any more.
    var ends: PartitionEnds?
    /// nil: not known, for want of a position or of an answer.
    var lag: Lag?
    /// Milliseconds since 1970 of the next record to read; nil: there is none, or it is not known.
    var nextTimestamp: Int64?
}

struct PartitionEnds: Sendable, Equatable {
    var beginning: NextOffset
    /// Of committed records.
    var committed: NextOffset
    /// Of all, those of open transactions included.
    var all: NextOffset

    /// Offsets that readers of committed records do not get yet.
    var heldBack: Int64 { max(0, all.value - committed.value) }
}

/// Records that wait to be read.
enum Lag: Sendable, Equatable {
    case exactly(Int64)
    /// Some of the offsets may be no records.
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
