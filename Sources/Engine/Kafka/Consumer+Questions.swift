// Requests of a consumer to the broker; all of them block.

internal import CRDKafka
public import Log
public import Platform

extension Consumer {
    /// The group's committed offsets; nil for a partition without one. Waits for open transactions of an earlier owner.
    public func committed(
        _ partitions: [TopicPartition], by deadline: Deadline
    ) throws(KafkaFault) -> [TopicPartition: NextOffset] {
        let list = TopicPartitionList(capacity: partitions.count)
        for partition in partitions { list.append(partition) }
        try KafkaFault.check(
            rd_kafka_committed(raw, list.raw, deadline.remaining.timeoutMilliseconds), "read committed offsets")
        var committed: [TopicPartition: NextOffset] = [:]
        try list.forEach { element throws(KafkaFault) in
            try KafkaFault.check(element.err, "read the committed offset of \(TopicPartition(element))")
            if element.offset >= 0 { committed[TopicPartition(element)] = NextOffset(element.offset) }
        }
        return committed
    }

    /// The number of partitions of each topic. Throws if a topic is missing.
    func partitionCounts(_ names: [String], by deadline: Deadline) throws(KafkaFault) -> [Int32] {
        var counts: [Int32] = []
        for name in names {
            guard let topic = rd_kafka_topic_new(raw, name, nil) else {
                throw KafkaFault(
                    .stopProcess, KafkaCode(rd_kafka_last_error()), operation: "use topic \(name)",
                    detail: "\(name) is not a valid topic name")
            }
            defer { rd_kafka_topic_destroy(topic) }
            counts.append(try partitionCount(of: topic, raw, by: deadline))
        }
        return counts
    }

    /// The first existing offset, and the end: of committed records, or of all with `readsUncommitted`.
    public func watermarks(
        of partition: TopicPartition, by deadline: Deadline
    ) throws(KafkaFault) -> (beginning: NextOffset, end: NextOffset) {
        var low: Int64 = 0
        var high: Int64 = 0
        try askingLeaders(of: [partition.topic], by: deadline) { () throws(KafkaFault) in
            try KafkaFault.check(
                rd_kafka_query_watermark_offsets(
                    raw, partition.topic, partition.partition, &low, &high, deadline.remaining.timeoutMilliseconds),
                "read the end of \(partition)")
        }
        return (NextOffset(low), NextOffset(high))
    }

    /// Returns for each partition the offset of the first record at or after `timestamp` (ms). If no record follows, it is the end.
    public func offsets(
        at timestamp: Int64, in partitions: [TopicPartition], by deadline: Deadline
    ) throws(KafkaFault) -> [TopicPartition: NextOffset] {
        var found = try list(timestamp, of: partitions, "find offsets by time", by: deadline)
        for partition in partitions where found[partition] == nil {
            found[partition] = try watermarks(of: partition, by: deadline).end
        }
        return found
    }

    /// The end of each partition, as in `watermarks`, with one request to each broker for all its partitions.
    public func ends(
        of partitions: [TopicPartition], by deadline: Deadline
    ) throws(KafkaFault) -> [TopicPartition: NextOffset] {
        try list(Int64(RD_KAFKA_OFFSET_END), of: partitions, "read the ends of partitions", by: deadline)
    }

    /// The first existing offset of each partition, with one request to each broker.
    public func beginnings(
        of partitions: [TopicPartition], by deadline: Deadline
    ) throws(KafkaFault) -> [TopicPartition: NextOffset] {
        try list(Int64(RD_KAFKA_OFFSET_BEGINNING), of: partitions, "read the beginnings of partitions", by: deadline)
    }

    /// The request (ListOffsets) behind the three functions above: a time, or one of two special numbers for beginning
    /// and end. A partition without an answer is left out.
    private func list(
        _ timestamp: Int64, of partitions: [TopicPartition], _ operation: String, by deadline: Deadline
    ) throws(KafkaFault) -> [TopicPartition: NextOffset] {
        if partitions.isEmpty { return [:] }
        return try askingLeaders(of: Set(partitions.map(\.topic)), by: deadline) { () throws(KafkaFault) in
            let list = TopicPartitionList(capacity: partitions.count)
            for partition in partitions { list.append(partition, offset: timestamp) }
            try KafkaFault.check(
                rd_kafka_offsets_for_times(raw, list.raw, deadline.remaining.timeoutMilliseconds), operation)
            var found: [TopicPartition: NextOffset] = [:]
            try list.forEach { element throws(KafkaFault) in
                let partition = TopicPartition(element)
                try KafkaFault.check(element.err, "\(operation): \(partition)")
                if element.offset >= 0 { found[partition] = NextOffset(element.offset) }
            }
            return found
        }
    }

    /// librdkafka looks up a partition's leader once and keeps it for 15 minutes. If a broker answers that it is not
    /// the leader any more, 2.0.2 looks the leader up again only for topics that this client reads; requests for other
    /// topics would fail for as long. So after a failed request this looks the leaders up before the next one.
    private func askingLeaders<Answer>(
        of topics: Set<String>, by deadline: Deadline, _ body: () throws(KafkaFault) -> Answer
    ) throws(KafkaFault) -> Answer {
        let doubtful = leadersInDoubt.intersection(topics)
        if !doubtful.isEmpty {
            _ = try partitionCounts(doubtful.sorted(), by: deadline)
            leadersInDoubt.subtract(doubtful)
        }
        do throws(KafkaFault) { return try body() } catch {
            leadersInDoubt.formUnion(topics)
            throw error
        }
    }
}
