import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

extension RealBroker {
    @Suite(
        .serialized, .enabled(if: BrokerSource.current.canStartBrokers, Comment(rawValue: BrokerSource.privateSkipLine))
    )
    struct `A transaction that nobody ends` {
        @Test func `stops a restore with words, and the call that they name ends it`() async throws {
            let cluster = try await KafkaCluster.start(BrokerSource.current.requireDistribution())
            let installation = try await Installation.make(
                "held", Broker(bootstrap: cluster.bootstrapServers), partitions: 2)
            let changelog = installation.topic("churn.changelog")
            let properties = installation.broker.properties
            // This transaction stays open for longer than any wait in this test.
            let producer = try await blocking {
                var options = TransactionalProducer.Configuration(
                    transactionalID: "\(installation.prefix).hangs", properties: properties)
                options.transactionTimeout = .seconds(600)
                options.properties.set("socket.timeout.ms", "10000")
                var isWritten = false
                let producer = try TransactionalProducer(options) { isWritten = $0.failure == nil }
                try producer.start(by: Deadline(after: patience))
                try producer.begin()
                let topic = try producer.topic(changelog)
                try producer.send(to: topic, partition: 1, key: [1].span, value: [1].span)
                let deadline = Deadline(after: patience)
                while !isWritten, !deadline.hasPassed { producer.poll(.milliseconds(20)) }
                return Handed(producer)
            }
            let disk = try ScratchDirectory("held")
            let worker = try ServiceProcess(
                ["churn", "--worker.slot", "0", "--state.directory", "\(disk.path)/disk"] + installation.settings)
            let advice = "kafka-transactions.sh abort --topic \(changelog) --partition 1 --start-offset 0"
            try await waitUntil("the transaction is reported", within: patience * 3) {
                let reasons = try await worker.reasons()
                return reasons.contains("\(changelog)[1] from offset 0 on") && reasons.contains(advice)
            }
            #expect(worker.log.contains("an open transaction blocks the readers of a partition"))
            #expect(worker.log.contains(advice))
            try await cluster.tool("kafka-transactions.sh", advice.split(separator: " ").dropFirst().map(String.init))
            try await waitUntil("the records are not held back any more", within: patience) {
                worker.log.contains("an open transaction no longer blocks the readers of a partition")
            }
            try await worker.waitUntilReady()
            try await worker.stop()
            try await blocking { _ = producer.producer.close(by: Deadline(after: patience)) }
            await cluster.close()
        }
    }
}

/// Passed from thread to thread; only one thread uses it at a time.
private final class Handed: @unchecked Sendable {
    let producer: TransactionalProducer

    init(_ producer: TransactionalProducer) { self.producer = producer }
}
