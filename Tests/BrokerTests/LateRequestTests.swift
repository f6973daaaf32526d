import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

/// Why a client sends a request twice.
enum Mishap: String, CaseIterable, Sendable {
    case timeout, cutConnection

    var clientSide: RequestHold.ClientSide {
        switch self {
        case .timeout: .keepOpen
        case .cutConnection: .cut
        }
    }
}

/// What the next transaction does, in which the late request arrives.
enum NextEnding: String, CaseIterable, Sendable { case commits, aborts }

extension RealBroker {
    /// A request of one transaction is held back between client and broker, the client's retry succeeds, and the held request
    /// arrives in the middle of the next transaction. Without a new producer epoch it acts on that transaction.
    @Suite(
        .serialized, .enabled(if: BrokerSource.current.canStartBrokers, Comment(rawValue: BrokerSource.privateSkipLine))
    )
    struct `A late request` {
        private func withProxy(
            _ body: @Sendable (Broker, FrameProxy) async throws -> Void
        ) async throws {
            let cluster = try await ProxiedKafka.cluster()
            try await body(Broker(bootstrap: cluster.bootstrapServers), try #require(cluster.proxy))
        }

        /// Requests time out after a second here, so that a retry fits into the transaction's ten.
        private func properties(_ broker: Broker) -> ClientProperties {
            var properties = broker.properties
            properties.set("socket.timeout.ms", "1000")
            return properties
        }

        @Test(arguments: Mishap.allCases, NextEnding.allCases)
        func `to end a transaction does not touch the next one`(mishap: Mishap, ending: NextEnding) async throws {
            try await withProxy { broker, proxy in
                let topic = try await broker.makeTopic("late-end")
                let properties = properties(broker)
                let producer = try await blocking {
                    Confined(try TransactionalProducer.ready("\(topic).0-0", properties))
                }
                let hold = proxy.hold(.endTxn, client: mishap.clientSide) { $0.contains(topic) }
                try await blocking {
                    let output = try producer.value.topic(topic)
                    try producer.value.begin()
                    try producer.value.sendAndWait("B", to: output)
                    try producer.value.commit()
                    try producer.value.begin()
                    try producer.value.sendAndWait("C", to: output)
                }
                let answer = try await hold.release()
                try await blocking {
                    switch ending {
                    case .commits: try producer.value.commit()
                    case .aborts: try producer.value.abort()
                    }
                    #expect(producer.value.replacements == 1)
                    producer.value.close(by: Deadline(after: patience))
                }
                #expect(answer.int16(at: 8) != 0, "the broker accepted the late request")
                let expected = ending == .commits ? ["B", "C"] : ["B"]
                #expect(try await broker.read(topic).map(\.text) == expected)
            }
        }

        @Test(arguments: Mishap.allCases, NextEnding.allCases)
        func `with offsets does not set the next ones back`(mishap: Mishap, ending: NextEnding) async throws {
            try await withProxy { broker, proxy in
                let topic = try await broker.makeTopic("late-offsets")
                let input = TopicPartition(try await broker.makeTopic("late-offsets-input"), 0)
                let group = "\(topic).worker"
                let properties = properties(broker)
                let producer = try await blocking {
                    Confined(try TransactionalProducer.ready("\(topic).0-0", properties))
                }
                let consumer = try await blocking { Confined(try onlooker(group, broker.properties)) }
                let hold = proxy.hold(.txnOffsetCommit, client: mishap.clientSide) { $0.contains(topic) }
                try await blocking {
                    let output = try producer.value.topic(topic)
                    try producer.value.begin()
                    try producer.value.sendAndWait("B", to: output)
                    try producer.value.sendOffsets([input: NextOffset(100)], of: consumer.value.groupMetadata())
                    try producer.value.commit()
                    try producer.value.begin()
                    try producer.value.sendAndWait("C", to: output)
                    try producer.value.sendOffsets([input: NextOffset(200)], of: consumer.value.groupMetadata())
                }
                let answer = try await hold.release()
                try await blocking {
                    switch ending {
                    case .commits: try producer.value.commit()
                    case .aborts: try producer.value.abort()
                    }
                    #expect(producer.value.replacements == 1)
                    producer.value.close(by: Deadline(after: patience))
                    consumer.value.close(by: Deadline(after: patience))
                }
                // With flexible encoding the frame ends with an empty set of tags; the partition's error code comes before its
                // own tags and the topic's.
                #expect(answer.int16(at: answer.bytes.count - 5) != 0, "the broker accepted the late request")
                let expected = ending == .commits ? (["B", "C"], NextOffset(200)) : (["B"], NextOffset(100))
                #expect(try await broker.read(topic).map(\.text) == expected.0)
                #expect(try await broker.committed(input, group: group) == expected.1)
            }
        }

        @Test(arguments: Mishap.allCases, NextEnding.allCases)
        func `to add a group's offsets leaves the next transaction whole`(mishap: Mishap, ending: NextEnding)
            async throws
        {
            try await withProxy { broker, proxy in
                let topic = try await broker.makeTopic("late-add")
                let input = TopicPartition(try await broker.makeTopic("late-add-input"), 0)
                let group = "\(topic).worker"
                let properties = properties(broker)
                let producer = try await blocking {
                    Confined(try TransactionalProducer.ready("\(topic).0-0", properties))
                }
                let consumer = try await blocking { Confined(try onlooker(group, broker.properties)) }
                let hold = proxy.hold(.addOffsetsToTxn, client: mishap.clientSide) { $0.contains(topic) }
                try await blocking {
                    let output = try producer.value.topic(topic)
                    try producer.value.begin()
                    try producer.value.sendAndWait("B", to: output)
                    try producer.value.sendOffsets([input: NextOffset(100)], of: consumer.value.groupMetadata())
                    try producer.value.commit()
                    try producer.value.begin()
                    try producer.value.sendAndWait("C", to: output)
                }
                _ = try await hold.release()
                try await blocking {
                    switch ending {
                    case .commits:
                        try producer.value.sendOffsets([input: NextOffset(200)], of: consumer.value.groupMetadata())
                        try producer.value.commit()
                    case .aborts: try producer.value.abort()
                    }
                    #expect(producer.value.replacements == 1)
                    // The late request does not affect the transaction after the next either.
                    try producer.value.begin()
                    try producer.value.sendAndWait("D", to: producer.value.topic(topic))
                    try producer.value.commit()
                    producer.value.close(by: Deadline(after: patience))
                    consumer.value.close(by: Deadline(after: patience))
                }
                let expected = ending == .commits ? (["B", "C", "D"], NextOffset(200)) : (["B", "D"], NextOffset(100))
                #expect(try await broker.read(topic).map(\.text) == expected.0)
                #expect(try await broker.committed(input, group: group) == expected.1)
            }
        }

        /// Far from the broker an ordinary call takes longer than a call with a retry near it. The limit adapts, and stays below
        /// the time of a call with a retry.
        @Test(arguments: Mishap.allCases)
        func `from far away does not touch the next transaction either, and ordinary ones are not suspected`(
            mishap: Mishap
        ) async throws {
            try await withProxy { broker, proxy in
                let topic = try await broker.makeTopic("far")
                let input = TopicPartition(try await broker.makeTopic("far-input"), 0)
                let properties = properties(broker)
                proxy.setDistance(.milliseconds(80))
                defer { proxy.setDistance(.zero) }
                let producer = try await blocking {
                    Confined(try TransactionalProducer.ready("\(topic).0-0", properties))
                }
                let consumer = try await blocking { Confined(try onlooker(topic, broker.properties)) }
                let settled = try await blocking {
                    let output = try producer.value.topic(topic)
                    for number in 0..<12 {
                        try producer.value.begin()
                        try producer.value.sendAndWait("\(number)", to: output)
                        try producer.value.sendOffsets([input: NextOffset(1)], of: consumer.value.groupMetadata())
                        try producer.value.commit()
                    }
                    return producer.value.replacements
                }
                // The very first call also looks up its coordinator.
                #expect(settled <= 2, "it continues with a producer that knows the round-trip time")
                let hold = proxy.hold(.endTxn, client: mishap.clientSide) { $0.contains(topic) }
                try await blocking {
                    let output = try producer.value.topic(topic)
                    try producer.value.begin()
                    try producer.value.sendAndWait("B", to: output)
                    try producer.value.commit()
                    try producer.value.begin()
                    try producer.value.sendAndWait("C", to: output)
                }
                let answer = try await hold.release()
                try await blocking {
                    try producer.value.abort()
                    #expect(producer.value.replacements == settled + 1)
                    producer.value.close(by: Deadline(after: patience))
                    consumer.value.close(by: Deadline(after: patience))
                }
                #expect(answer.int16(at: 8) != 0, "the broker accepted the late request")
                #expect(try await broker.read(topic).map(\.text) == (0..<12).map { "\($0)" } + ["B"])
            }
        }

        /// Waiting for records does not mean that a request was sent twice: produce requests carry sequence numbers.
        @Test func `is not suspected when only records are slow`() async throws {
            try await withProxy { broker, proxy in
                let topic = try await broker.makeTopic("slow-produce")
                let consumerTopic = TopicPartition(try await broker.makeTopic("slow-produce-input"), 0)
                proxy.delay(.produce, by: .milliseconds(400))
                defer { proxy.delay(.produce, by: nil) }
                // The threshold is three quarters of the delay: more than a busy machine adds to a commit, and less than the
                // delay.
                var properties = broker.properties
                properties.set("retry.backoff.ms", "450")
                let settled = properties
                try await blocking {
                    let producer = try TransactionalProducer.ready("\(topic).0-0", settled)
                    let consumer = try onlooker(topic, broker.properties)
                    let output = try producer.topic(topic)
                    for number in 0..<3 {
                        try producer.begin()
                        try producer.send("\(number)", to: output)
                        try producer.sendOffsets([consumerTopic: NextOffset(1)], of: consumer.groupMetadata())
                        try producer.send("\(number) again", to: output)
                        try producer.commit()
                    }
                    #expect(producer.replacements == 0)
                    #expect(producer.suspicion == nil)
                    producer.close(by: Deadline(after: patience))
                    consumer.close(by: Deadline(after: patience))
                }
                #expect(try await broker.read(topic).count == 6)
            }
        }
    }
}

/// One broker behind a proxy, shared by the tests that need one.
enum ProxiedKafka {
    private static let starting = Task {
        var options = KafkaOptions()
        options.throughProxy = true
        return try await KafkaCluster.start(BrokerSource.current.requireDistribution(), options)
    }

    static func cluster() async throws -> KafkaCluster { try await starting.value }
}

/// A client that several `blocking` steps of one test use, one after the other. Unchecked: each step ends before the next begins,
/// so only one thread uses it at a time.
final class Confined<Value>: @unchecked Sendable {
    let value: Value
    init(_ value: Value) { self.value = value }
}
