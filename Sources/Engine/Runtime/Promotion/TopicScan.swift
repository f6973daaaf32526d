// All committed records of one topic partition, once.

internal import Log
internal import Platform

enum TopicScan {
    /// Passes on every record up to the current end.
    static func run(
        _ partition: TopicPartition, _ log: any RecordLog, group: String, by deadline: Deadline,
        _ take: (borrowing RecordView) throws(PromotionFault) -> Void
    ) throws(PromotionFault) {
        let reader = try PromotionFault.asking { () throws(LogFault) in
            var options = ReaderOptions(name: "promote", group: group, topics: [partition.topic])
            options.readsAhead = true
            options.readAheadBytes = 32 << 20
            return try log.openReader(options)
        }
        let batch = RecordBatch()
        defer {
            batch.removeAll()
            reader.close(by: Deadline(after: .seconds(5)))
        }
        let end = try PromotionFault.asking { () throws(LogFault) in try begin(partition, reader, by: deadline) }
        while let position = reader.position(of: partition), position < end {
            if deadline.hasPassed {
                throw .log(
                    LogFault(.retrySameCall, .timedOut, "reading \(partition) did not finish before the deadline"))
            }
            try PromotionFault.asking { () throws(LogFault) in
                try reader.poll(into: batch, limit: 1000, wait: .milliseconds(100))
            }
            for index in 0..<batch.count where batch[index].offset < end.value { try take(batch[index]) }
        }
    }

    private static func begin(
        _ partition: TopicPartition, _ reader: any LogReader, by deadline: Deadline
    ) throws(LogFault) -> NextOffset {
        guard let beginning = try reader.beginnings(of: [partition], by: deadline)[partition],
            let end = try reader.ends(.committed, of: [partition], by: deadline)[partition]
        else { throw LogFault(.retrySameCall, .timedOut, "the broker did not return the end offsets of \(partition)") }
        try reader.read(from: [partition: beginning])
        return end
    }
}
