import Kafka
import KafkaTestKit
import Log
import Platform
import RDKafkaTestKit
import Testing

extension RealBroker {
    @Suite(.serialized) struct `Transactions` {
        @Test func `hide aborted records from readers of committed ones`() async throws {
            let broker = try await Broker.shared()
            let topic = try await broker.makeTopic("hide")
            try await blocking {
                let producer = try TransactionalProducer.ready("\(topic).0-0", broker.properties)
                let output = try producer.topic(topic)
                for (label, commits) in [("a", true), ("b", false), ("c", true), ("d", false)] {
                    try producer.begin()
                    for number in 0..<10 { try producer.sendAndWait("\(label)\(number)", to: output) }
                    if commits { try producer.commit() } else { try producer.abort() }
                }
                producer.close(by: Deadline(after: patience))
            }
            let expected = (0..<10).map { "a\($0)" } + (0..<10).map { "c\($0)" }
            #expect(try await broker.readEnded(topic).map(\.text) == expected)
            #expect(try await broker.read(topic, uncommitted: true).count == 40)
        }

        @Test func `commit offsets and records together, or neither`() async throws {
            let broker = try await Broker.shared()
            let topic = try await broker.makeTopic("together")
            let input = TopicPartition(try await broker.makeTopic("together-input"), 0)
            let group = "\(topic).worker"
            let first = try await blocking {
                let producer = try TransactionalProducer.ready("\(group).0-0", broker.properties)
                let consumer = try onlooker(group, broker.properties)
                let output = try producer.topic(topic)
                // The committed offset is that of the next record: the last processed record is at 9.
                try producer.begin()
                try producer.sendAndWait("first", to: output)
                try producer.sendOffsets([input: NextOffset(after: 9)], of: consumer.groupMetadata())
                try producer.commit()
                let first = try consumer.committed([input], by: Deadline(after: patience))
                try producer.begin()
                try producer.sendAndWait("second", to: output)
                try producer.sendOffsets([input: NextOffset(after: 19)], of: consumer.groupMetadata())
                try producer.abort()
                producer.close(by: Deadline(after: patience))
                consumer.close(by: Deadline(after: patience))
                return first
            }
            #expect(first == [input: NextOffset(10)])
            #expect(try await broker.committed(input, group: group) == NextOffset(10))
            #expect(try await broker.readEnded(topic).map(\.text) == ["first"])
        }

        @Test func `of an older producer are fenced by a second one of the same id`() async throws {
            let broker = try await Broker.shared()
            let topic = try await broker.makeTopic("fence")
            try await blocking {
                let old = try TransactionalProducer.ready("\(topic).0-0", broker.properties)
                try old.begin()
                try old.sendAndWait("of the old", to: old.topic(topic))
                let new = try TransactionalProducer.ready("\(topic).0-0", broker.properties)
                try new.begin()
                try new.sendAndWait("of the new", to: new.topic(topic))
                let fault = fault { () throws(KafkaFault) in try old.commit() }
                #expect(fault?.remedy == .rebuildClient)
                #expect(fault?.code == .fenced)
                #expect(old.state == .failed)
                try new.commit()
                // Rebuilt, the old producer takes the transactional id back and fences the other.
                try old.rebuild(by: Deadline(after: patience))
                try old.begin()
                try old.sendAndWait("of the rebuilt", to: old.topic(topic))
                try old.commit()
                try new.begin()
                let second = BrokerTests.fault { () throws(KafkaFault) in
                    try new.send("too late", to: new.topic(topic))
                    try new.commit()
                }
                #expect(second != nil)
                old.close(by: Deadline(after: patience))
                new.close(by: Deadline(after: patience))
            }
            #expect(try await broker.readEnded(topic).map(\.text) == ["of the new", "of the rebuilt"])
        }

        @Test func `left open by a killed process are ended by its successor`() async throws {
            let broker = try await Broker.shared()
            let input = try await broker.makeTopic("killed-input")
            let topic = try await broker.makeTopic("killed")
            try await fill(broker, input, partitions: 1, count: 10)
            let worker = try ChildProcess(
                productPath("transform-worker"),
                [
                    "--bootstrap", broker.bootstrap, "--group", topic, "--input", input, "--output", topic,
                    "--leave-open", "yes",
                ])
            try await waitUntil("the worker has an open transaction", within: patience) {
                worker.standardOutput.contains("open")
            }
            worker.killNow()
            _ = try await worker.wait()
            let partition = TopicPartition(topic, 0)
            let (stable, all) = try await blocking { try ends(of: partition, broker) }
            #expect(stable == NextOffset(0) && all == NextOffset(10), "its records hold readers back")
            // The worker's transaction would time out only after a minute: the successor ends it sooner.
            let start = ContinuousClock.now
            try await blocking {
                let successor = try TransactionalProducer.ready("\(topic).0-0", broker.properties)
                successor.close(by: Deadline(after: patience))
            }
            try await waitUntil("readers are free", within: .seconds(20)) {
                try await blocking { try ends(of: partition, broker).stable > NextOffset(10) }
            }
            #expect(start.duration(to: .now) < .seconds(30))
            #expect(try await broker.read(topic).isEmpty)
        }

        @Test func `that are aborted with records under way leave the next one whole`() async throws {
            let broker = try await Broker.shared()
            let topic = try await broker.makeTopic("under-way")
            try await blocking {
                let producer = try TransactionalProducer.ready("\(topic).0-0", broker.properties)
                let output = try producer.topic(topic)
                for round in 0..<5 {
                    try producer.begin()
                    for _ in 0..<5_000 { try producer.send("aborted", to: output) }
                    try producer.abort()
                    try producer.begin()
                    try producer.send("\(round)", to: output)
                    try producer.commit()
                }
                producer.close(by: Deadline(after: patience))
            }
            #expect(try await broker.readEnded(topic).map(\.text) == (0..<5).map { "\($0)" })
        }

        @Test func `that fail by a refused record are aborted, and the next one commits`() async throws {
            let broker = try await Broker.shared()
            let topic = try await broker.makeTopic("refused", settings: [("message.timestamp.after.max.ms", "60000")])
            try await blocking {
                let producer = try TransactionalProducer.ready("\(topic).0-0", broker.properties)
                let output = try producer.topic(topic)
                try producer.begin()
                try producer.sendAndWait("good", to: output)
                try producer.send(
                    to: output, partition: 0, key: nil, value: [1].span,
                    timestamp: WallClock.milliseconds() + 120_000)
                let fault = fault { () throws(KafkaFault) in try producer.commit() }
                #expect(fault?.remedy == .abortTransaction)
                try producer.abort()
                try producer.begin()
                try producer.sendAndWait("after", to: output)
                try producer.commit()
                producer.close(by: Deadline(after: patience))
            }
            #expect(try await broker.readEnded(topic).map(\.text) == ["after"])
        }

        @Test func `of a member that the group has left behind are refused`() async throws {
            let broker = try await Broker.shared()
            let topic = try await broker.makeTopic("generation")
            let input = try await broker.makeTopic("generation-input", partitions: 2)
            let group = "\(topic).worker"
            try await blocking {
                let first = try Consumer(.init(clientID: "first", groupID: group, properties: broker.properties))
                try first.subscribe(to: [input])
                try first.poll(until: { first.assignment.count == 2 })
                let stale = try first.groupMetadata()
                let second = try Consumer(.init(clientID: "second", groupID: group, properties: broker.properties))
                try second.subscribe(to: [input])
                try first.poll(until: {
                    _ = try second.poll(.milliseconds(10))
                    return first.assignment.count == 1 && second.assignment.count == 1
                })
                let producer = try TransactionalProducer.ready("\(group).0-0", broker.properties)
                let output = try producer.topic(topic)
                try producer.begin()
                try producer.sendAndWait("stale", to: output)
                let position = [TopicPartition(input, 0): NextOffset(1)]
                let fault = fault { () throws(KafkaFault) in try producer.sendOffsets(position, of: stale) }
                #expect(fault?.remedy == .abortTransaction)
                #expect(fault?.code == .illegalGeneration)
                try producer.abort()
                try producer.begin()
                try producer.sendAndWait("fresh", to: output)
                try producer.sendOffsets(position, of: first.groupMetadata())
                try producer.commit()
                for consumer in [first, second] { consumer.close(by: Deadline(after: patience)) }
                producer.close(by: Deadline(after: patience))
            }
            #expect(try await broker.readEnded(topic).map(\.text) == ["fresh"])
        }
    }
}

/// The last stable offset and the end offset.
private func ends(of partition: TopicPartition, _ broker: Broker) throws -> (stable: NextOffset, all: NextOffset) {
    func end(uncommitted: Bool) throws -> NextOffset {
        var options = Consumer.Configuration(clientID: "ends", groupID: "ends", properties: broker.properties)
        options.readsUncommitted = uncommitted
        let consumer = try Consumer(options)
        defer { consumer.close(by: Deadline(after: patience)) }
        return try consumer.watermarks(of: partition, by: Deadline(after: patience)).end
    }
    return (try end(uncommitted: false), try end(uncommitted: true))
}

extension Consumer {
    /// Polls until the condition holds; throws after a minute.
    func poll(until isDone: () throws -> Bool) throws {
        let deadline = Deadline(after: patience)
        while try !isDone() {
            if deadline.hasPassed { throw KafkaFault(.retrySameCall, .timedOut, operation: "wait for the group") }
            _ = try poll(.milliseconds(20))
        }
    }
}

/// Writes `count` numbered records to each partition.
func fill(_ broker: Broker, _ topic: String, partitions: Int32, count: Int, from first: Int = 0) async throws {
    try await blocking {
        var failure: KafkaCode?
        let producer = try Producer(.init(clientID: "fill", properties: broker.properties)) {
            failure = $0.failure ?? failure
        }
        let target = try producer.topic(topic)
        for number in first..<(first + count) {
            for partition in 0..<partitions {
                try producer.send(to: target, partition: partition, key: nil, value: Array(String(number).utf8).span)
            }
            producer.poll()
        }
        try producer.flush(by: Deadline(after: patience))
        producer.close(by: Deadline(after: patience))
        if let failure { throw KafkaFault(.stopProcess, failure, operation: "fill \(topic)") }
    }
}
