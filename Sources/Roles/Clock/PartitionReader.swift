// Reads the ends of partitions, and the records before them.

import Kafka
import Log
import Platform

/// A reader without a group. For use by one thread.
final class PartitionReader {
    private let consumer: Consumer
    private let topic: String

    /// - Parameter group: a group that this user may read. The reader neither joins it nor commits to it, but
    ///   librdkafka looks up its coordinator anyway.
    init(clientID: String, group: String, topic: String, properties: ClientProperties) throws(PropertyFault) {
        var options = Consumer.Configuration(clientID: clientID, groupID: group, properties: properties)
        // The true end matters, including records of open and aborted transactions.
        options.readsUncommitted = true
        // One record of each partition is enough.
        options.queuedRecords = 1
        options.queuedKilobytes = 1024
        consumer = try Consumer(options)
        self.topic = topic
    }

    /// The offset of the next record of each partition. One request to each broker that leads one.
    func ends(of partitions: [Int32], by deadline: Deadline) throws(KafkaFault) -> [Int32: Int64] {
        byNumber(try consumer.ends(of: partitions.map { TopicPartition(topic, $0) }, by: deadline))
    }

    /// The records before these ends; nil if no record is left. A partition that does not answer in time is left out.
    func lastRecords(
        before ends: [Int32: Int64], by deadline: Deadline
    ) throws(KafkaFault) -> [Int32: TickSchedule.Record?] {
        let beginnings = byNumber(
            try consumer.beginnings(of: ends.keys.sorted().map { TopicPartition(topic, $0) }, by: deadline))
        var found: [Int32: TickSchedule.Record?] = [:]
        var starts: [TopicPartition: NextOffset] = [:]
        for (partition, end) in ends {
            guard let beginning = beginnings[partition] else { continue }
            if beginning >= end {
                found.updateValue(nil, forKey: partition)
            } else {
                starts[TopicPartition(topic, partition)] = NextOffset(end - 1)
            }
        }
        if starts.isEmpty { return found }
        try consumer.assign(starts)
        while found.count < ends.count, !deadline.hasPassed {
            if let record = try consumer.poll(min(deadline.remaining, .milliseconds(20))) {
                found.updateValue(
                    record.timestamp.map { TickSchedule.Record(timestamp: $0, isTick: record.key == nil) },
                    forKey: record.partition)
            }
            // The control record of a transaction uses an offset but is not a record.
            for (partition, next) in consumer.positions
            where found[partition.partition] == nil && next.value >= ends[partition.partition, default: .max] {
                found.updateValue(nil, forKey: partition.partition)
            }
        }
        // Fetches nothing more until the next look.
        try consumer.assign([:])
        return found
    }

    /// For each partition the timestamp of the last notification before its end, among the records since `time`; nil:
    /// there is none. A partition that is not read in time is left out.
    ///
    /// The search goes backwards from the end, in ever larger steps: only ticks can follow the notification, and of
    /// those there are few, however many notifications there are since `time`.
    func lastNotifications(
        since time: Int64, before ends: [Int32: Int64], by deadline: Deadline
    ) throws(KafkaFault) -> [Int32: Int64?] {
        let wanted = ends.keys.sorted().map { TopicPartition(topic, $0) }
        let first = byNumber(try consumer.offsets(at: time, in: wanted, by: deadline))
        var found: [Int32: Int64?] = [:]
        var open = ends.filter { first[$0.key] != nil }
        var step = Self.firstStep
        while !open.isEmpty, !deadline.hasPassed {
            let starts = Dictionary(
                uniqueKeysWithValues: open.map { ($0.key, max(first[$0.key, default: 0], $0.value - step)) })
            let last = try lastNotifications(from: starts, before: open, by: deadline)
            for (partition, timestamp) in last {
                let start = starts[partition, default: 0]
                if timestamp != nil || start == first[partition] {
                    found.updateValue(timestamp, forKey: partition)
                    open[partition] = nil
                } else {
                    open[partition] = start
                }
            }
            step *= 8
        }
        return found
    }

    private static let firstStep: Int64 = 128

    /// For the partitions that were read to their ends.
    private func lastNotifications(
        from starts: [Int32: Int64], before ends: [Int32: Int64], by deadline: Deadline
    ) throws(KafkaFault) -> [Int32: Int64?] {
        var found: [Int32: Int64] = [:]
        var left = Set(starts.filter { $0.value < ends[$0.key, default: 0] }.keys)
        try consumer.assign(
            Dictionary(
                uniqueKeysWithValues: left.map { (TopicPartition(topic, $0), NextOffset(starts[$0, default: 0])) }))
        while !left.isEmpty, !deadline.hasPassed {
            if let record = try consumer.poll(min(deadline.remaining, .milliseconds(20))), record.key != nil,
                record.offset < ends[record.partition, default: 0]
            {
                found[record.partition] = record.timestamp
            }
            for (partition, next) in consumer.positions where next.value >= ends[partition.partition, default: .max] {
                left.remove(partition.partition)
            }
        }
        try consumer.assign([:])
        let read = starts.keys.filter { !left.contains($0) }
        return Dictionary(uniqueKeysWithValues: read.map { ($0, found[$0]) })
    }

    func close(by deadline: Deadline) { consumer.close(by: deadline) }

    private func byNumber(_ offsets: [TopicPartition: NextOffset]) -> [Int32: Int64] {
        Dictionary(uniqueKeysWithValues: offsets.map { ($0.key.partition, $0.value.value) })
    }
}
