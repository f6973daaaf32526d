// Reads letters from Kafka, each once.

import Cluster
import Contract
import Kafka
import Log
import Platform

/// Reads a topic from a given start to the end that it has when reading begins.
struct LetterScan: Sendable {
    enum Start {
        case beginning
        /// Records written at or after this time.
        case time(Int64)
        /// The last letters of each partition.
        case newest(Int)
        case position(partition: Int32, offset: Int64)
    }

    enum Begin {
        /// From the oldest record of every partition.
        case oldest
        case later
    }

    let environment: Contract.Environment
    let topic: String
    /// A name that access lists can grant: it is neither joined nor committed to, but librdkafka looks up its coordinator.
    let group: String
    let partitions: [Int32]
    let kafka: ClientProperties

    /// If no record arrives for this long although there are some, the brokers are in trouble.
    private static let silenceLimit: Duration = .seconds(30)
    private static let answerLimit: Duration = .seconds(10)

    /// - Parameters:
    ///   - progress: called after each record with the fraction that was read, 0 to 1.
    ///   - body: false ends the reading.
    /// - Returns: the offsets where reading began.
    @discardableResult
    func run(
        from start: Start, progress: (_ fraction: Double) -> Void = { _ in },
        _ body: (borrowing ConsumedRecord) throws(ToolFault) -> Bool
    ) throws(ToolFault) -> Begin {
        let consumer: Consumer
        do throws(PropertyFault) {
            consumer = try Consumer(.init(clientID: "perennial-dead-letters", groupID: group, properties: kafka))
        } catch {
            throw ToolFault(error)
        }
        defer { consumer.close(by: Deadline(after: .seconds(5))) }
        var (starts, ends, begin) = try ToolFault.persisting { () throws(KafkaFault) in try range(start, consumer) }
        ends = ends.filter { starts[$0.key, default: $0.value] < $0.value }
        starts = starts.filter { ends[$0.key] != nil }
        let total = ends.reduce(0) { $0 + $1.value.value - starts[$1.key, default: $1.value].value }
        if ends.isEmpty { return begin }
        try ToolFault.asking { () throws(KafkaFault) in try consumer.assign(starts) }
        var done: Int64 = 0
        var patience = Deadline(after: Self.silenceLimit)
        while !ends.isEmpty {
            guard let record = try ToolFault.asking({ () throws(KafkaFault) in try consumer.poll(.milliseconds(200)) })
            else {
                // The last offset may be the marker of a transaction instead of a record.
                for (partition, next) in consumer.positions where next >= ends[partition] ?? next {
                    ends[partition] = nil
                }
                if patience.hasPassed { throw silence(consumer) }
                continue
            }
            patience = Deadline(after: Self.silenceLimit)
            let partition = record.topicPartition
            guard let end = ends[partition], record.offset < end.value else { continue }
            if NextOffset(after: record.offset) == end { ends[partition] = nil }
            done += 1
            if try !body(record) { return begin }
            progress(Double(done) / Double(max(1, total)))
        }
        return begin
    }

    private func range(
        _ start: Start, _ consumer: Consumer
    ) throws(KafkaFault) -> (
        starts: [TopicPartition: NextOffset], ends: [TopicPartition: NextOffset], begin: Begin
    ) {
        let all = partitions.map { TopicPartition(topic, $0) }
        let deadline = Deadline(after: Self.answerLimit)
        var ends = try consumer.ends(of: all, by: deadline)
        let beginnings = try consumer.beginnings(of: all, by: deadline)
        var starts: [TopicPartition: NextOffset]
        switch start {
        case .beginning: starts = beginnings
        case .time(let time): starts = try consumer.offsets(at: time, in: all, by: deadline)
        case .newest(let count):
            starts = [:]
            for (partition, end) in ends {
                starts[partition] = max(beginnings[partition, default: end], NextOffset(end.value - Int64(count)))
            }
        case .position(let number, let offset):
            let partition = TopicPartition(topic, number)
            guard let beginning = beginnings[partition], let end = ends[partition],
                (beginning.value..<end.value).contains(offset)
            else { return ([:], [:], .later) }
            ends = [partition: NextOffset(after: offset)]
            starts = [partition: NextOffset(offset)]
        }
        let isLater = starts.contains { partition, first in beginnings[partition].map { $0 < first } ?? false }
        return (starts, ends, isLater ? .later : .oldest)
    }

    private func silence(_ consumer: Consumer) -> ToolFault {
        let cause = consumer.recentFaults.last.map { ": \($0.detail)" } ?? ""
        return ToolFault(
            .gaveUp, "Kafka gave no records of \(topic) for \(Self.silenceLimit.wholeMilliseconds / 1000) s\(cause)")
    }
}
