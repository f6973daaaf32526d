// The records of one partition.

internal import Log
internal import Platform

extension MemoryLog {
    /// What a topic does beyond its shape.
    public struct TopicSettings: Sendable {
        /// The oldest of more records than these go, in strides; nil keeps all. Not of a compacted topic.
        public var retainedRecords: Int?
        /// Records get the log's time in place of their own.
        public var usesAppendTime = false
        /// A record from further in the future is refused.
        public var maximalLead: Duration?
        /// Key and value and headers of a record; more is refused. Kafka's own default.
        public var maximalBytes = 1_048_588

        public init() {}
    }
}

final class Topic {
    let name: String
    private(set) var shape: TopicShape
    var settings: MemoryLog.TopicSettings
    private(set) var partitions: [MemoryPartition]

    init(_ topic: NewTopic, _ settings: MemoryLog.TopicSettings) {
        name = topic.name
        shape = topic.shape
        self.settings = settings
        partitions = (0..<topic.shape.partitions).map { MemoryPartition(TopicPartition(topic.name, $0)) }
    }

    func grow(to count: Int32) {
        for number in shape.partitions..<max(count, shape.partitions) {
            partitions.append(MemoryPartition(TopicPartition(name, number)))
        }
        shape.partitions = Int32(partitions.count)
    }
}

/// Used under the log's lock only.
///
/// An offset belongs to a record, or to the marker that ended a transaction, or to a record that is gone: only records are
/// kept, in order, and the offsets tell where something is missing.
final class MemoryPartition {
    private struct Slot {
        let record: StoredRecord
        /// The transaction it came in; 0: none.
        let transaction: Int
    }

    let name: TopicPartition
    /// Before it records have gone by age.
    private(set) var beginning: Int64 = 0
    /// The offset of the next record.
    private(set) var end: Int64 = 0
    private var slots: [Slot] = []
    /// Open transactions with the offset of their first record here, oldest first.
    private var open: [(transaction: Int, first: Int64)] = []
    private var appendsSinceCompaction = 0

    init(_ name: TopicPartition) {
        self.name = name
    }

    /// Where readers of committed records come to: before it every transaction has ended.
    var stableEnd: Int64 { open.first?.first ?? end }
    var recordCount: Int { slots.count }

    // MARK: Writing

    /// - Parameter transaction: 0: none, visible at once unless an open transaction is before it.
    func append(_ record: StoredRecord, transaction: Int) {
        if transaction != 0, !open.contains(where: { $0.transaction == transaction }) {
            open.append((transaction, end))
        }
        slots.append(Slot(record: record, transaction: transaction))
        end += 1
        appendsSinceCompaction += 1
    }

    /// The marker takes an offset: whoever takes "last record + 1" for the position is wrong here as with Kafka.
    func finish(transaction: Int, committed: Bool) {
        guard let index = open.firstIndex(where: { $0.transaction == transaction }) else { return }
        let first = open.remove(at: index).first
        if !committed {
            let start = slotIndex(atOrAfter: first)
            let kept = slots[start...].filter { $0.transaction != transaction }
            slots.replaceSubrange(start..., with: kept)
        }
        end += 1
    }

    // MARK: Reading

    enum Reading {
        /// How many were lent, and where reading goes on.
        case lent(Int, next: Int64)
        case gone
    }

    /// Lends at most `limit` committed records from `position` on.
    func lend(from position: Int64, limit: Int, as topic: Int32, into batch: RecordBatch) -> Reading {
        guard beginning <= position, position <= end else { return .gone }
        let stable = stableEnd
        var index = slotIndex(atOrAfter: position)
        var count = 0
        while index < slots.count, slots[index].record.offset < stable {
            guard count < limit else { return .lent(count, next: slots[index].record.offset) }
            batch.append(slots[index].record.lend(as: topic, of: name.partition))
            index += 1
            count += 1
        }
        return .lent(count, next: max(position, stable))
    }

    /// The first committed record at or after `timestamp`; the committed end when there is none.
    func offset(at timestamp: Int64) -> Int64 {
        let stable = stableEnd
        for slot in slots where slot.record.timestamp >= timestamp { return min(slot.record.offset, stable) }
        return stable
    }

    private func slotIndex(atOrAfter offset: Int64) -> Int {
        guard let first = slots.first?.record.offset, first < offset else { return 0 }
        // Offsets grow by one at least, so the slot is here or before.
        var high = min(slots.count, Int(offset - first))
        if high == slots.count || slots[high].record.offset != offset {
            var low = 0
            while low < high {
                let middle = (low + high) / 2
                if slots[middle].record.offset < offset { low = middle + 1 } else { high = middle }
            }
        }
        return high
    }

    // MARK: Forgetting

    /// Drops the oldest of more than `count` records. In strides of a quarter, so that each append pays little for it.
    func retain(_ count: Int) {
        guard slots.count > count + max(16, count / 4) else { return }
        // What is not committed yet stays: nobody has had a chance to read it.
        let limit = min(slots.count - count, slotIndex(atOrAfter: stableEnd))
        guard limit > 0 else { return }
        beginning = slots[limit - 1].record.offset + 1
        slots.removeFirst(limit)
    }

    func deleteRecords(before offset: Int64) {
        beginning = max(beginning, min(offset, stableEnd))
        slots.removeAll { $0.record.offset < beginning }
    }

    /// Worth it when as much was appended as is there.
    var isDueForCompaction: Bool { appendsSinceCompaction >= max(1000, slots.count / 2) }

    /// Of each key the last committed record stays, a tombstone until it was appended `tombstonesFrom` ago. Offsets stay.
    func compact(tombstonesFrom: Int64) {
        appendsSinceCompaction = 0
        let stable = slotIndex(atOrAfter: stableEnd)
        var last: [StoredKey: Int] = [:]
        for index in 0..<stable { last[StoredKey(record: slots[index].record)] = index }
        var kept: [Slot] = []
        for index in 0..<stable {
            let record = slots[index].record
            guard last[StoredKey(record: record)] == index else { continue }
            if record.isTombstone, record.header.appended < tombstonesFrom { continue }
            kept.append(slots[index])
        }
        slots.replaceSubrange(0..<stable, with: kept)
    }
}
