// The records of one partition.

internal import Log
internal import Platform

extension MemoryLog {
    /// Settings of a topic in addition to its shape.
    public struct TopicSettings: Sendable {
        /// The oldest records beyond this number are removed, in strides; nil keeps all. Not for a compacted topic.
        public var retainedRecords: Int?
        /// Records get the log's time instead of their own.
        public var usesAppendTime = false
        /// A record further in the future is refused.
        public var maximalLead: Duration?
        /// Key, value and headers of a record; a larger record is refused. Kafka's own default.
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

/// Used only under the log's lock.
///
/// An offset belongs to a record, or to the control record that ended a transaction, or to a removed record. Only
/// records are stored, in order, and their offsets show where something is missing.
final class MemoryPartition {
    private struct Slot {
        let record: StoredRecord
        /// The transaction of the record; 0: it is in no transaction.
        let transaction: Int
    }

    let name: TopicPartition
    /// The first offset, which increases when records are removed by age.
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

    /// How far readers of committed records can read: every transaction before it has ended.
    var stableEnd: Int64 { open.first?.first ?? end }
    var recordCount: Int { slots.count }

    // MARK: Writing

    /// - Parameter transaction: 0: the record is in none, and visible at once unless an open transaction is before it.
    func append(_ record: StoredRecord, transaction: Int) {
        if transaction != 0, !open.contains(where: { $0.transaction == transaction }) {
            open.append((transaction, end))
        }
        slots.append(Slot(record: record, transaction: transaction))
        end += 1
        appendsSinceCompaction += 1
    }

    /// The control record uses an offset: code that takes "last record + 1" for the position is wrong here, as with
    /// Kafka.
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
        /// The number of lent records, and where reading continues.
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

    /// The first committed record at or after `timestamp`; the committed end if there is none.
    func offset(at timestamp: Int64) -> Int64 {
        let stable = stableEnd
        for slot in slots where slot.record.timestamp >= timestamp { return min(slot.record.offset, stable) }
        return stable
    }

    private func slotIndex(atOrAfter offset: Int64) -> Int {
        guard let first = slots.first?.record.offset, first < offset else { return 0 }
        // Offsets increase by at least one, so the slot is here or earlier.
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

    // MARK: Removing

    /// Drops the oldest records beyond `count`. In strides of a quarter, so that each append pays little for it.
    func retain(_ count: Int) {
        guard slots.count > count + max(16, count / 4) else { return }
        // Uncommitted records stay: no reader could read them yet.
        let limit = min(slots.count - count, slotIndex(atOrAfter: stableEnd))
        guard limit > 0 else { return }
        beginning = slots[limit - 1].record.offset + 1
        slots.removeFirst(limit)
    }

    func deleteRecords(before offset: Int64) {
        beginning = max(beginning, min(offset, stableEnd))
        slots.removeAll { $0.record.offset < beginning }
    }

    /// Compaction is worth its cost when as much was appended as the partition has.
    var isDueForCompaction: Bool { appendsSinceCompaction >= max(1000, slots.count / 2) }

    /// The last committed record of each key stays, and a tombstone until it was appended before `tombstonesFrom`.
    /// Offsets stay.
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
