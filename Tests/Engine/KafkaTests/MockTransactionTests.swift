import Kafka
import Log
import Platform
import RDKafkaTestKit
import Testing

/// Transactions as far as the mock supports them: the calls, their order, and injected errors.
extension `On the mock cluster` {
    private func withTransactions(
        _ body: @escaping @Sendable (MockCluster, TransactionalProducer, ProducerTopic, Consumer) throws -> Void
    ) async throws {
        try await withCluster { cluster in
            let properties = ClientProperties(bootstrapServers: cluster.bootstrapServers)
            let consumer = try Consumer(.init(clientID: "c", groupID: "g", properties: properties))
            let producer = try TransactionalProducer(.init(transactionalID: "g.0-0", properties: properties))
            let topic = try producer.topic("out")
            try producer.start(by: Deadline(after: soon))
            // The first answers of the mock are slow enough to look like a retry: start with a producer that is not suspect.
            try body(cluster, producer, topic, consumer)
            producer.close(by: Deadline(after: soon))
            consumer.close(by: Deadline(after: soon))
        }
    }

    @Test func `an ordinary transaction commits, and its producer goes on`() async throws {
        try await withTransactions { _, producer, topic, consumer in
            for _ in 0..<3 {
                try producer.begin()
                try producer.send(to: topic, partition: 0, key: nil, value: [1].span)
                try producer.sendOffsets([TopicPartition("in", 0): NextOffset(5)], of: consumer.groupMetadata())
                try producer.commit()
            }
            #expect(producer.state == .idle)
            try producer.begin()
            try producer.abort()
            #expect(producer.state == .idle)
        }
    }

    @Test func `a record without a place in the log asks for an abort, although the library takes it for written`()
        async throws
    {
        try await withTransactions { cluster, producer, topic, _ in
            try producer.begin()
            try producer.send(to: topic, partition: 0, key: nil, value: [1].span)
            // The answer says that the record was a duplicate: the library believes it, and nothing is there.
            cluster.fail(.produce, with: [.duplicateSequence])
            do throws(KafkaFault) {
                try producer.commit()
                Issue.record("a transaction was committed without its record")
            } catch {
                #expect(error.remedy == .abortTransaction)
                #expect(error.code == .unconfirmed)
            }
            try producer.abort()
            try producer.begin()
            try producer.send(to: topic, partition: 0, key: nil, value: [1].span)
            try producer.commit()
        }
    }

    @Test func `a stale generation asks for an abort, and the next transaction commits`() async throws {
        try await withTransactions { cluster, producer, topic, consumer in
            cluster.fail(.transactionOffsetCommit, with: [.illegalGeneration])
            try producer.begin()
            try producer.send(to: topic, partition: 0, key: nil, value: [1].span)
            do throws(KafkaFault) {
                try producer.sendOffsets([TopicPartition("in", 0): NextOffset(5)], of: consumer.groupMetadata())
                Issue.record("a stale generation was accepted")
            } catch {
                #expect(error.remedy == .abortTransaction)
                #expect(error.code == .illegalGeneration)
            }
            try producer.abort()
            try producer.begin()
            try producer.send(to: topic, partition: 0, key: nil, value: [1].span)
            try producer.commit()
        }
    }

    @Test func `a fenced producer asks to be rebuilt, and a rebuilt one commits`() async throws {
        try await withTransactions { cluster, producer, topic, _ in
            cluster.fail(.endTransaction, with: [KafkaCode(rawValue: 90)])
            try producer.begin()
            try producer.send(to: topic, partition: 0, key: nil, value: [1].span)
            do throws(KafkaFault) {
                try producer.commit()
                Issue.record("a fenced producer committed")
            } catch {
                #expect(error.remedy == .rebuildClient)
                #expect(error.code == .fenced)
            }
            #expect(producer.state == .failed)
            try producer.rebuild(by: Deadline(after: soon))
            try producer.begin()
            try producer.send(to: topic, partition: 0, key: nil, value: [1].span)
            try producer.commit()
        }
    }

    @Test func `a coordinator that is still loading is asked again inside the call`() async throws {
        try await withTransactions { cluster, producer, topic, _ in
            cluster.fail(.endTransaction, with: [KafkaCode(rawValue: 14), KafkaCode(rawValue: 14)])
            try producer.begin()
            try producer.send(to: topic, partition: 0, key: nil, value: [1].span)
            try producer.commit()
            // The request was sent more than once, and one may arrive late: so the next transaction uses a new producer.
            #expect(producer.suspicion != nil)
            try producer.begin()
            #expect(producer.replacements == 1)
            try producer.abort()
        }
    }

    @Test func `a slow pause between retries does not hide that offsets were sent twice`() async throws {
        try await withCluster { cluster in
            var properties = ClientProperties(bootstrapServers: cluster.bootstrapServers)
            properties.set("retry.backoff.ms", "2000")
            let consumer = try Consumer(.init(clientID: "c", groupID: "g", properties: properties))
            let producer = try TransactionalProducer(.init(transactionalID: "g.0-0", properties: properties))
            try producer.start(by: Deadline(after: soon))
            cluster.fail(.transactionOffsetCommit, with: [KafkaCode(rawValue: 14)])
            try producer.begin()
            try producer.sendOffsets([TopicPartition("in", 0): NextOffset(5)], of: consumer.groupMetadata())
            #expect(producer.suspicion != nil)
            try producer.commit()
            producer.close(by: Deadline(after: soon))
            consumer.close(by: Deadline(after: soon))
        }
    }

    @Test func `a replacement that finds no broker is tried again by the same call`() async throws {
        try await withTransactions { cluster, producer, topic, _ in
            cluster.fail(.endTransaction, with: [KafkaCode(rawValue: 14), KafkaCode(rawValue: 14)])
            try producer.begin()
            try producer.send(to: topic, partition: 0, key: nil, value: [1].span)
            try producer.commit()
            cluster.fail(.initProducerID, with: Array(repeating: KafkaCode(rawValue: 14), count: 1_000))
            do throws(KafkaFault) {
                try producer.begin(by: Deadline(after: .seconds(1)))
                Issue.record("a producer was replaced without a broker")
            } catch {
                #expect(error.remedy == .retrySameCall)
            }
            cluster.heal(.initProducerID)
            try producer.begin(by: Deadline(after: soon))
            #expect(producer.replacements >= 1)
            try producer.send(to: topic, partition: 0, key: nil, value: [1].span)
            try producer.commit()
        }
    }

    @Test func `a producer closed in a transaction without a broker is gone by the deadline`() async throws {
        try await withTransactions { cluster, producer, topic, _ in
            try producer.begin()
            try producer.send(to: topic, partition: 0, key: nil, value: [1].span)
            while producer.outstanding > 0 { producer.poll(.milliseconds(10)) }
            cluster.fail(.endTransaction, with: Array(repeating: .transport, count: 1_000))
            let start = ContinuousClock.now
            producer.close(by: Deadline(after: .seconds(1)))
            #expect(start.duration(to: .now) < soon / 2)
        }
    }

    @Test func `a record for a transaction that has failed asks for an abort`() async throws {
        try await withTransactions { cluster, producer, topic, _ in
            cluster.fail(.produce, with: [.invalidTimestamp])
            try producer.begin()
            try producer.send(to: topic, partition: 0, key: nil, value: [1].span)
            while producer.outstanding > 0 { producer.poll(.milliseconds(10)) }
            do throws(KafkaFault) {
                // The report comes a moment before the library's transaction fails.
                for _ in 0..<500 {
                    try producer.send(to: topic, partition: 0, key: nil, value: [2].span)
                    pause(for: .milliseconds(10))
                }
                Issue.record("a transaction that cannot be committed accepted records")
            } catch {
                #expect(error.remedy == .abortTransaction)
            }
            try producer.abort()
            #expect(producer.state == .idle)
        }
    }

    @Test func `a right that is missing stops the process`() async throws {
        try await withTransactions { cluster, producer, topic, consumer in
            cluster.fail(.transactionOffsetCommit, with: [KafkaCode(rawValue: 30)])
            try producer.begin()
            try producer.send(to: topic, partition: 0, key: nil, value: [1].span)
            do throws(KafkaFault) {
                try producer.sendOffsets([TopicPartition("in", 0): NextOffset(5)], of: consumer.groupMetadata())
                Issue.record("a missing right was overlooked")
            } catch {
                #expect(error.remedy == .stopProcess)
            }
        }
    }
}
