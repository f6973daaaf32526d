import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

extension RealBroker {
    @Suite(.serialized) struct `Topics and groups` {
        private func withAdmin<T: Sendable>(
            _ body: @escaping @Sendable (Admin, Broker) throws -> T
        ) async throws -> T {
            let broker = try await Broker.shared()
            return try await blocking {
                let admin = try Admin(clientID: "test", properties: broker.properties)
                defer { admin.close(by: Deadline(after: patience)) }
                return try body(admin, broker)
            }
        }

        @Test func `a topic is made with its settings, and a change leaves the others alone`() async throws {
            let broker = try await Broker.shared()
            let name = try await broker.makeTopic(
                "settings", partitions: 3, settings: [("cleanup.policy", "compact"), ("segment.bytes", "67108864")])
            try await withAdmin { admin, _ in
                let deadline = Deadline(after: patience)
                #expect(try own(admin, name) == ["cleanup.policy": "compact", "segment.bytes": "67108864"])
                try admin.change([("cleanup.policy", "delete"), ("retention.ms", "-1")], of: name, by: deadline)
                let expected = ["cleanup.policy": "delete", "segment.bytes": "67108864", "retention.ms": "-1"]
                try settle { try own(admin, name) == expected }
                #expect(try own(admin, name) == expected)
                let inherited = try admin.settings(of: [name], by: deadline)[name, default: []]
                #expect(inherited.contains { $0.name == "max.message.bytes" && !$0.isOwn })
                #expect(try admin.settings(of: ["no-such-topic"], by: deadline).isEmpty)
            }
        }

        private func own(_ admin: Admin, _ topic: String) throws -> [String: String] {
            let settings = try admin.settings(of: [topic], by: Deadline(after: patience))[topic, default: []]
            return Dictionary(uniqueKeysWithValues: settings.filter(\.isOwn).map { ($0.name, $0.value) })
        }

        /// Brokers apply a change shortly after the controller has accepted it.
        private func settle(_ condition: () throws -> Bool) throws {
            let deadline = Deadline(after: patience)
            while try !condition() && !deadline.hasPassed { pause(for: .milliseconds(20)) }
        }

        @Test func `each topic has its own outcome, in plain words`() async throws {
            let broker = try await Broker.shared()
            let existing = try await broker.makeTopic("outcome")
            try await withAdmin { admin, _ in
                let new = "\(existing)-new"
                let outcomes = try admin.create(
                    [
                        .init(name: existing, partitions: 1, replicationFactor: 1),
                        .init(name: new, partitions: 1, replicationFactor: 1),
                        .init(name: "\(existing)-wide", partitions: 1, replicationFactor: 9),
                        .init(
                            name: "\(existing)-odd", partitions: 1, replicationFactor: 1,
                            settings: [("cleanup.policy", "sometimes")]),
                    ], by: Deadline(after: patience))
                #expect(outcomes.count == 4)
                #expect((outcomes[existing] ?? nil)?.code == .topicAlreadyExists)
                #expect(outcomes[new] != nil && (outcomes[new] ?? nil) == nil)
                #expect((outcomes["\(existing)-wide"] ?? nil)?.code.name == "INVALID_REPLICATION_FACTOR")
                #expect((outcomes["\(existing)-odd"] ?? nil)?.detail.contains("cleanup.policy") == true)
                let dry = try admin.create(
                    [.init(name: "\(existing)-dry", partitions: 1, replicationFactor: 1)], validateOnly: true,
                    by: Deadline(after: patience))
                #expect(dry.values.allSatisfy { $0 == nil })
                try settle { try admin.cluster(by: Deadline(after: patience)).topics.contains { $0.name == new } }
                #expect(
                    try !admin.cluster(by: Deadline(after: patience)).topics.contains { $0.name == "\(existing)-dry" })
            }
        }

        @Test func `a topic goes`() async throws {
            let broker = try await Broker.shared()
            let name = try await broker.makeTopic("goes", partitions: 2)
            try await withAdmin { admin, _ in
                func partitions() throws -> Int? {
                    try admin.cluster(by: Deadline(after: patience)).topics.first { $0.name == name }?.partitions.count
                }
                try settle { try partitions() == 2 }
                #expect(try partitions() == 2)
                let outcomes = try admin.delete(topics: [name, "no-such-topic"], by: Deadline(after: patience))
                #expect((outcomes["no-such-topic"] ?? nil)?.code == .unknownTopicOrPartition)
                try settle { try partitions() == nil }
                #expect(try partitions() == nil)
            }
        }

        @Test func `a record two minutes ahead of the broker is refused by name`() async throws {
            let broker = try await Broker.shared()
            let topic = try await broker.makeTopic(
                "clock",
                settings: [("message.timestamp.type", "CreateTime"), ("message.timestamp.after.max.ms", "60000")])
            let failures = try await blocking {
                var reports: [DeliveryReport] = []
                let producer = try Producer(.init(clientID: "fast-clock", properties: broker.properties)) {
                    reports.append($0)
                }
                let target = try producer.topic(topic)
                let now = WallClock.milliseconds()
                try producer.send(to: target, partition: 0, key: nil, value: [1].span, timestamp: now, token: 1)
                try producer.flush(by: Deadline(after: patience))
                try producer.send(
                    to: target, partition: 0, key: nil, value: [2].span, timestamp: now + 120_000, token: 2)
                try producer.flush(by: Deadline(after: patience))
                try producer.send(to: target, partition: 0, key: nil, value: [3].span, timestamp: now, token: 3)
                try producer.flush(by: Deadline(after: patience))
                producer.close(by: Deadline(after: patience))
                return reports.map { ($0.token, $0.failure) }
            }
            #expect(failures.map(\.0) == [1, 2, 3])
            #expect(failures.map(\.1) == [nil, .invalidTimestamp, nil])
            #expect(KafkaCode.invalidTimestamp.explanation.contains("clock probably runs ahead"))
            #expect(try await broker.read(topic).map(\.text) == ["\u{1}", "\u{3}"])
        }

        @Test func `offsets are found by time, and the end where there is nothing as late`() async throws {
            let broker = try await Broker.shared()
            let topic = try await broker.makeTopic("by-time", partitions: 2)
            let start: Int64 = 1_771_000_000_000
            let found = try await blocking {
                let producer = try Producer(.init(clientID: "p", properties: broker.properties)) { _ in }
                let target = try producer.topic(topic)
                for number in 0..<Int64(100) {
                    try producer.send(
                        to: target, partition: 0, key: nil, value: [1].span, timestamp: start + number * 1_000)
                }
                try producer.flush(by: Deadline(after: patience))
                producer.close(by: Deadline(after: patience))
                let consumer = try onlooker("by-time", broker.properties)
                defer { consumer.close(by: Deadline(after: patience)) }
                let partitions = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
                return try [start - 1, start + 49_001, start + 99_000, start + 99_001].map { time in
                    let found = try consumer.offsets(at: time, in: partitions, by: Deadline(after: patience))
                    return partitions.map { found[$0]?.value }
                }
            }
            #expect(found == [[0, 0], [50, 0], [99, 0], [100, 0]])
        }

        @Test func `a group's positions are set, listed and forgotten while it is empty, and refused while it is not`()
            async throws
        {
            let broker = try await Broker.shared()
            let topic = try await broker.makeTopic("group", partitions: 2)
            // A committed offset beyond the end would be a fault for the member below.
            try await fill(broker, topic, partitions: 2, count: 10)
            try await withAdmin { admin, broker in
                let group = "\(topic).worker"
                let deadline = Deadline(after: patience)
                let positions = [TopicPartition(topic, 0): NextOffset(7), TopicPartition(topic, 1): NextOffset(9)]
                try admin.setOffsets(ofGroup: group, to: positions, by: deadline)
                #expect(try admin.offsets(ofGroup: group, by: deadline) == positions)
                #expect(try admin.describe(group: group, by: deadline).state == "Empty")
                let consumer = try Consumer(
                    .init(clientID: "member", groupID: group, instanceID: "slot-0", properties: broker.properties))
                try consumer.subscribe(to: [topic])
                try consumer.poll(until: { consumer.assignment.count == 2 })
                let described = try admin.describe(group: group, by: deadline)
                #expect(described.state == "Stable")
                #expect(described.members.map(\.instanceID) == ["slot-0"])
                #expect(described.members.first?.partitions == positions.keys.sorted())
                #expect(throws: KafkaFault.self) { try admin.setOffsets(ofGroup: group, to: positions, by: deadline) }
                #expect(throws: KafkaFault.self) { try admin.delete(group: group, by: deadline) }
                consumer.close(by: deadline)
            }
        }

        @Test func `an empty group is forgotten`() async throws {
            let broker = try await Broker.shared()
            let topic = try await broker.makeTopic("forget")
            try await withAdmin { admin, _ in
                let deadline = Deadline(after: patience)
                try admin.setOffsets(ofGroup: topic, to: [TopicPartition(topic, 0): NextOffset(1)], by: deadline)
                try admin.delete(group: topic, by: deadline)
                #expect(try admin.offsets(ofGroup: topic, by: deadline).isEmpty)
                #expect(throws: KafkaFault.self) { try admin.delete(group: topic, by: deadline) }
            }
        }

        @Test func `a group's positions are not told while a transaction may still move them`() async throws {
            let broker = try await Broker.shared()
            let topic = try await broker.makeTopic("pending")
            try await withAdmin { admin, broker in
                let group = "\(topic).worker"
                let partition = TopicPartition(topic, 0)
                try admin.setOffsets(ofGroup: group, to: [partition: NextOffset(1)], by: Deadline(after: patience))
                let consumer = try onlooker(group, broker.properties)
                let producer = try TransactionalProducer.ready("\(group).0-0", broker.properties)
                try producer.begin()
                try producer.sendOffsets([partition: NextOffset(2)], of: consumer.groupMetadata())
                let fault = fault { () throws(KafkaFault) in
                    _ = try admin.offsets(ofGroup: group, by: Deadline(after: .seconds(1)))
                }
                #expect(fault?.remedy == .retrySameCall)
                try producer.commit()
                #expect(try admin.offsets(ofGroup: group, by: Deadline(after: patience)) == [partition: NextOffset(2)])
                producer.close(by: Deadline(after: patience))
                consumer.close(by: Deadline(after: patience))
            }
        }

        @Test(.enabled(if: BrokerSource.current.canStartBrokers, Comment(rawValue: BrokerSource.privateSkipLine)))
        func `a position whose records are gone is told, not jumped over`() async throws {
            let broker = try await Broker.shared()
            let topic = try await broker.makeTopic("gone")
            try await fill(broker, topic, partitions: 1, count: 10)
            let scratch = try ScratchDirectory("gone")
            let orders = try scratch.write(
                #"{"version":1,"partitions":[{"topic":"\#(topic)","partition":0,"offset":5}]}"#, to: "orders.json")
            try await SharedKafka.cluster()?.tool("kafka-delete-records.sh", ["--offset-json-file", orders])
            try await blocking {
                let consumer = try onlooker("gone", broker.properties)
                defer { consumer.close(by: Deadline(after: patience)) }
                try consumer.assign([TopicPartition(topic, 0): NextOffset(2)])
                let fault = fault { () throws(KafkaFault) in
                    let deadline = Deadline(after: patience)
                    while !deadline.hasPassed { _ = try consumer.poll(.milliseconds(100)) }
                }
                #expect(fault?.remedy == .stopProcess)
                #expect(fault?.code == .offsetOutOfRange)
                try consumer.assign([TopicPartition(topic, 0): NextOffset(5)])
                try consumer.poll(until: { consumer.isAtEnd })
                #expect(consumer.positions == [TopicPartition(topic, 0): NextOffset(10)])
            }
        }

        @Test func `a cluster that does not answer says why within the deadline`() async throws {
            try await blocking {
                let admin = try Admin(clientID: "test", properties: ClientProperties(bootstrapServers: "127.0.0.1:1"))
                let start = ContinuousClock.now
                #expect(throws: KafkaFault.self) { try admin.cluster(by: Deadline(after: .seconds(2))) }
                #expect(start.duration(to: .now) < .seconds(10))
                #expect(admin.recentFaults.contains { $0.code == .transport && $0.detail.contains("127.0.0.1:1") })
                admin.close(by: Deadline(after: patience))
            }
        }
    }
}
