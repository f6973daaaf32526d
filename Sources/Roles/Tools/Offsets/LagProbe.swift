// The records between a position and an end: the first one, and their number.

import Kafka
import Log
import Platform

enum LagProbe {
    /// Up to this many offsets, records are read and counted one by one. Near the end an operator wants exact numbers, and the ends
    /// of transactions, which use offsets but are not records, would look like a lag that never ends.
    static let countLimit: Int64 = 1000

    struct Span: Equatable {
        var from: NextOffset
        var to: NextOffset

        var offsets: Int64 { max(0, to.value - from.value) }
    }

    struct Found: Equatable {
        var lag: Lag
        /// Timestamp of the first record, in milliseconds since 1970.
        var timestamp: Int64?
    }

    /// Counts the records of one span as they arrive.
    struct Count {
        let span: Span
        private var records: Int64 = 0
        private var first: (offset: Int64, timestamp: Int64?)?
        private(set) var isDone: Bool

        init(_ span: Span) {
            self.span = span
            isDone = span.offsets == 0
        }

        mutating func add(offset: Int64, timestamp: Int64?) {
            guard !isDone else { return }
            guard offset < span.to.value else { return isDone = true }
            if first == nil { first = (offset, timestamp) }
            records += 1
            isDone = offset + 1 == span.to.value || span.offsets > LagProbe.countLimit
        }

        /// No more records arrive before this offset.
        mutating func pass(to next: NextOffset) { if next >= span.to { isDone = true } }

        var found: Found {
            guard isDone, span.offsets <= LagProbe.countLimit || first == nil else {
                return Found(
                    lag: .atMost(span.to.value - (first?.offset ?? span.from.value)), timestamp: first?.timestamp)
            }
            return Found(lag: .exactly(records), timestamp: first?.timestamp)
        }
    }

    /// - Returns: the results, and whether all were complete in time.
    static func look(
        _ reader: Consumer, _ spans: [TopicPartition: Span], until deadline: Deadline
    ) throws(KafkaFault) -> (found: [TopicPartition: Found], isWhole: Bool) {
        var counts = spans.mapValues { Count($0) }
        var open = Set(counts.filter { !$0.value.isDone }.keys)
        if open.isEmpty { return (counts.mapValues(\.found), true) }
        try reader.assign(spans.filter { open.contains($0.key) }.mapValues(\.from))
        while !open.isEmpty, !deadline.hasPassed {
            if let record = try reader.poll(.milliseconds(100)) {
                counts[record.topicPartition]?.add(offset: record.offset, timestamp: record.timestamp)
            }
            // The last offset may be the marker of a transaction instead of a record.
            let positions = reader.positions
            let done = open.filter { partition in
                if let next = positions[partition] { counts[partition]?.pass(to: next) }
                return counts[partition]?.isDone ?? true
            }
            // Stops fetching from finished partitions.
            if !done.isEmpty { try reader.pause(done.sorted()) }
            open.subtract(done)
        }
        return (counts.mapValues(\.found), open.isEmpty)
    }
}
