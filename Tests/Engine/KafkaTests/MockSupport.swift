// Shared by the tests on the mock cluster.

import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

/// Patience for what takes milliseconds on an idle machine.
let soon = patience

/// Its deinitialisation shows that everything that held it is gone.
final class Canary: Sendable {}

struct Seen: Equatable {
    var key: [UInt8]?
    var value: [UInt8]?
    var offset: Int64
    var timestamp: Int64?
    var headers: [RecordHeader]
}

extension Consumer {
    func next(within limit: Duration) throws -> Seen? {
        guard let record = try poll(limit) else { return nil }
        return Seen(
            key: record.copyOfKey(), value: record.copyOfValue(), offset: record.offset, timestamp: record.timestamp,
            headers: record.headers)
    }

    /// Reads until the condition holds; the test fails if it does not.
    func read(until isDone: () -> Bool) throws -> [(partition: TopicPartition, offset: Int64)] {
        let deadline = Deadline(after: soon)
        var seen: [(TopicPartition, Int64)] = []
        while !isDone() {
            if deadline.hasPassed {
                Issue.record("the condition did not come true in time")
                break
            }
            if let record = try poll(.milliseconds(50)) { seen.append((record.topicPartition, record.offset)) }
        }
        return seen
    }
}

func fill(_ topic: String, partitions: Int32, records: Int, _ properties: ClientProperties) throws {
    var failures = 0
    let producer = try Producer(.init(clientID: "fill", properties: properties)) {
        if $0.failure != nil { failures += 1 }
    }
    let target = try producer.topic(topic)
    for partition in 0..<partitions {
        for number in 0..<records {
            try producer.send(to: target, partition: partition, key: nil, value: Array(String(number).utf8).span)
        }
    }
    try producer.flush(by: Deadline(after: soon))
    #expect(failures == 0)
    producer.close(by: Deadline(after: soon))
}

final class RecordingHooks: RebalanceHooks {
    enum Event: Equatable { case assigned([TopicPartition]), revoked([TopicPartition]), lost([TopicPartition]) }
    var heard: [Event] = []
    var plan = AssignmentPlan()

    func assigned(_ partitions: [TopicPartition], by consumer: Consumer) -> AssignmentPlan {
        heard.append(.assigned(partitions))
        return plan
    }
    func revoked(_ partitions: [TopicPartition], by consumer: Consumer) { heard.append(.revoked(partitions)) }
    func lost(_ partitions: [TopicPartition], by consumer: Consumer) { heard.append(.lost(partitions)) }
}
