import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

extension RealBroker {
    @Suite(
        .serialized, .enabled(if: BrokerSource.current.canStartBrokers, Comment(rawValue: BrokerSource.privateSkipLine))
    )
    struct `A partition that has a new leader` {
        private func leader(of topic: String, _ admin: Admin) throws -> Int32? {
            try admin.cluster(by: Deadline(after: patience)).topics.first { $0.name == topic }?.partitions.first?.leader
        }

        /// The old leader is back and answers that it is not the leader any more.
        @Test func `answers within seconds those who have asked the old one, and read nothing of it`() async throws {
            var options = KafkaOptions()
            options.nodes = 3
            let cluster = try await KafkaCluster.start(BrokerSource.current.requireDistribution(), options)
            let broker = Broker(bootstrap: cluster.bootstrapServers)
            let topic = try await broker.makeTopic("leader", replicationFactor: 3)
            let partition = TopicPartition(topic, 0)
            let admin = try Admin(clientID: "test", properties: broker.properties)
            let asking = try onlooker("leader", broker.properties)
            let marking = try onlooker("leader", broker.properties)
            let zero = [partition: NextOffset(0)]
            try #require(try asking.ends(of: [partition], by: Deadline(after: patience)) == zero)
            try #require(try marking.watermarks(of: partition, by: Deadline(after: patience)).end == NextOffset(0))

            let first = try #require(try leader(of: topic, admin))
            let old = cluster.brokers[Int(first) - 1]
            try await old.kill9()
            try await waitUntil("another leads") {
                let now = try leader(of: topic, admin)
                return now != nil && now != first
            }
            try await old.start()
            try #require(try leader(of: topic, admin) != first)

            try await waitUntil("the end offsets are answered", within: .seconds(20)) {
                (try? asking.ends(of: [partition], by: Deadline(after: .seconds(2)))) == zero
            }
            try await waitUntil("the watermarks are answered", within: .seconds(20)) {
                (try? marking.watermarks(of: partition, by: Deadline(after: .seconds(2))))?.end == NextOffset(0)
            }
            for consumer in [asking, marking] { consumer.close(by: Deadline(after: patience)) }
            admin.close(by: Deadline(after: patience))
            await cluster.close()
        }
    }
}
