// The contents of a ledger's topics, read without the workers.

public import Log
public import Platform

extension RecordLog {
    /// All that readers of committed records see, partition by partition, in order.
    /// - Parameter starts: first offsets in these partitions; the others are read from the beginning.
    public func ledgerRecords(
        in topics: [String], partitions count: Int32, from starts: [TopicPartition: NextOffset] = [:],
        by deadline: Deadline
    ) throws -> [LedgerRecord] {
        let reader = try openReader(ReaderOptions(name: "judge", group: "judge", topics: topics))
        defer { reader.close(by: deadline) }
        let partitions = topics.flatMap { topic in (0..<count).map { TopicPartition(topic, $0) } }
        let ends = try reader.ends(.committed, of: partitions, by: deadline)
        var positions = try reader.beginnings(of: partitions, by: deadline)
        for (partition, start) in starts where positions[partition] != nil { positions[partition] = start }
        positions = positions.filter { $0.value < ends[$0.key]! }
        if positions.isEmpty { return [] }
        try reader.read(from: positions)
        let batch = RecordBatch()
        var records: [LedgerRecord] = []
        while positions.keys.contains(where: { (reader.position(of: $0) ?? NextOffset(0)) < ends[$0]! }) {
            if deadline.hasPassed { throw LogFault(.retrySameCall, .timedOut, "\(topics) were not read to their end") }
            try reader.poll(into: batch, limit: 1000, wait: .milliseconds(50))
            for index in 0..<batch.count {
                let record = batch[index]
                records.append(
                    LedgerRecord(
                        partition: record.partition, offset: record.offset, timestamp: record.timestamp,
                        key: record.copyOfKey(), value: record.copyOfValue(),
                        headers: record.headers.map { ($0.name, String(decoding: $0.value ?? [], as: UTF8.self)) }))
            }
        }
        return records.sorted { ($0.partition, $0.offset) < ($1.partition, $1.offset) }
    }
}
