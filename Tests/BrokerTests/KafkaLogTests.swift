import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

/// The shortest session timeout that brokers accept.
private let sessionTimeout: Duration = .seconds(6)

/// A session that reacts to rebalances as a worker would, unless told not to.
final class Member {
    let session: any LogSession
    let batch = RecordBatch()
    var heard: [SessionEvent] = []
    var owned: [TopicPartition] = []
    var texts: [String] = []
    var answersRevocations = true
    /// What happens to the open transaction before partitions are revoked.
    var beforeGivingBack: () throws -> Void = {}

    init(
        _ properties: ClientProperties, group: String, slot: Int, inputs: [String], outputs: [String] = [],
        transactionTimeout: Duration = .seconds(10)
    ) throws {
        var options = SessionOptions(group: group, identity: "\(group).\(slot)-0", inputs: inputs, outputs: outputs)
        options.sessionTimeout = sessionTimeout
        options.transactionTimeout = transactionTimeout
        session = try KafkaLog(properties).openSession(options, by: Deadline(after: patience))
    }

    func step(_ wait: Duration = .milliseconds(20)) throws {
        let event = try session.poll(into: batch, limit: 100, wait: wait)
        if event == .nothing { return }
        if heard.last != event { heard.append(event) }
        switch event {
        case .assigned(let partitions):
            let positions = try session.committed(partitions, by: Deadline(after: patience))
            var starts: [TopicPartition: NextOffset] = [:]
            for partition in partitions { starts[partition] = positions[partition] ?? NextOffset(0) }
            try session.take(starts, paused: [])
            owned = partitions
        case .revoked where !answersRevocations: break
        case .revoked, .lost:
            try beforeGivingBack()
            try session.giveBack()
            owned = []
        case .records:
            texts += batch.texts()
        case .nothing, .positionGone: break
        }
    }

    /// Appends to the session's only output.
    func append(_ texts: String...) throws(LogFault) {
        let outputs = OutputBatch()
        for text in texts {
            outputs.append(topic: 0, partition: 0, timestamp: 1, key: nil, value: Array(text.utf8))
        }
        try session.append(outputs)
    }

    /// Steps until the condition holds; the test fails if that takes too long.
    func step(with others: Member..., until isDone: () -> Bool) throws {
        let deadline = Deadline(after: patience)
        while !isDone() {
            if deadline.hasPassed { throw NotInTime("the condition", limit: patience, detail: "\(heard)") }
            for member in [self] + others { try member.step() }
        }
    }

    @discardableResult func close() -> Bool { session.close(by: Deadline(after: patience)) }
}

extension RecordBatch {
    func texts() -> [String] {
        (0..<count).map { index in
            let record = self[index]
            return String(decoding: record.copyOfValue() ?? [], as: UTF8.self)
        }
    }
}

private func reader(_ properties: ClientProperties, _ topic: String) throws -> any LogReader {
    try KafkaLog(properties).openReader(ReaderOptions(name: "reader", group: "reader", topics: [topic]))
}

/// Returns the fault that `body` throws; nil, and a failed test, if it throws none.
private func logFault(in body: () throws(LogFault) -> Void) -> LogFault? {
    do throws(LogFault) {
        try body()
        Issue.record("no fault where one was expected")
        return nil
    } catch {
        return error
    }
}

extension RealBroker {
    /// Promises of Kafka only. The conformance suite tests what every log promises.
    @Suite(.serialized) struct `The Kafka log` {
        // MARK: Groups

        @Test func `commits inside a revocation what the next owner goes on from`() async throws {
            let broker = try await Broker.shared()
            let input = try await broker.makeTopic("log-share", partitions: 4)
            let output = try await broker.makeTopic("log-share-out")
            try await blocking {
                let first = try Member(broker.properties, group: input, slot: 0, inputs: [input], outputs: [output])
                try first.step { first.owned.count == 4 }
                try first.append("of the revoked")
                first.beforeGivingBack = { [unowned first] in
                    try first.session.commit(
                        Dictionary(uniqueKeysWithValues: first.owned.map { ($0, NextOffset(0)) }))
                }
                let second = try Member(broker.properties, group: input, slot: 1, inputs: [input], outputs: [output])
                try first.step(with: second) { first.owned.count == 2 && second.owned.count == 2 }
                #expect(
                    first.heard.contains(.revoked((0..<4).map { TopicPartition(input, $0) })), "\(first.heard)")
                #expect(Set(first.owned).isDisjoint(with: second.owned))
                let positions = try second.session.committed(second.owned, by: Deadline(after: patience))
                #expect(positions.values.allSatisfy { $0 == NextOffset(0) } && positions.count == 2)
                first.close()
                second.close()
            }
            #expect(try await broker.readEnded(output).map(\.text) == ["of the revoked"])
        }

        @Test func `does not hang when it is closed with a revocation that has no answer`() async throws {
            let broker = try await Broker.shared()
            let input = try await broker.makeTopic("log-unanswered", partitions: 2)
            try await blocking {
                let first = try Member(broker.properties, group: input, slot: 0, inputs: [input])
                try first.step { first.owned.count == 2 }
                first.answersRevocations = false
                let second = try Member(broker.properties, group: input, slot: 1, inputs: [input])
                try first.step(with: second) {
                    if case .revoked = first.heard.last { true } else { false }
                }
                let start = ContinuousClock.now
                #expect(first.close())
                #expect(start.duration(to: .now) < .seconds(5))
                // When the session of the departed member has timed out, the other member has all partitions.
                try second.step { second.owned.count == 2 }
                second.close()
            }
        }

        @Test func `gives no record of a partition between its revocation and the answer`() async throws {
            let broker = try await Broker.shared()
            let input = try await broker.makeTopic("log-silent", partitions: 2)
            try await blocking {
                let first = try Member(broker.properties, group: input, slot: 0, inputs: [input])
                try first.step { first.owned.count == 2 }
                first.answersRevocations = false
                let second = try Member(broker.properties, group: input, slot: 1, inputs: [input])
                try first.step(with: second) {
                    if case .revoked = first.heard.last { true } else { false }
                }
                try write(["a", "b"], to: input, broker.properties)
                for _ in 0..<5 { try first.step() }
                #expect(first.texts.isEmpty)
                first.answersRevocations = true
                try first.step(with: second) { first.texts.count + second.texts.count == 2 }
                first.close()
                second.close()
            }
        }

        @Test func `is fenced by a second session of its identity, and says so`() async throws {
            let broker = try await Broker.shared()
            let input = try await broker.makeTopic("log-fence")
            let output = try await broker.makeTopic("log-fence-out")
            try await blocking {
                let old = try Member(broker.properties, group: input, slot: 0, inputs: [input], outputs: [output])
                try old.step { old.owned.count == 1 }
                try old.append("of the old")
                let young = try Member(broker.properties, group: input, slot: 0, inputs: [input], outputs: [output])
                let fault = logFault { () throws(LogFault) in
                    try old.session.commit([TopicPartition(input, 0): NextOffset(7)])
                }
                #expect(fault?.remedy == .rebuild)
                #expect(fault?.cause == .fenced)
                #expect(fault?.words.contains("\(input).0-0") == true, "\(fault?.words ?? "")")
                try young.step { young.owned.count == 1 }
                try young.append("of the young")
                try young.session.commit([TopicPartition(input, 0): NextOffset(1)])
                old.close()
                young.close()
            }
            #expect(try await broker.readEnded(output).map(\.text) == ["of the young"])
            #expect(try await broker.committed(TopicPartition(input, 0), group: input) == NextOffset(1))
        }

        @Test func `ends a member whose instance id was taken, though it only reads`() async throws {
            let broker = try await Broker.shared()
            let input = try await broker.makeTopic("log-instance")
            try await blocking {
                let old = try Member(broker.properties, group: input, slot: 0, inputs: [input])
                try old.step { old.owned.count == 1 }
                let young = try Member(broker.properties, group: input, slot: 0, inputs: [input])
                try young.step { young.owned.count == 1 }
                let deadline = Deadline(after: patience)
                var fault: LogFault?
                while fault == nil && !deadline.hasPassed {
                    do { try old.step() } catch let error as LogFault { fault = error }
                }
                #expect(fault?.remedy == .rebuild)
                #expect(fault?.cause == .fenced)
                old.close()
                young.close()
            }
        }

        // MARK: Transactions

        @Test func `has a position beyond markers, where the partition ends`() async throws {
            let broker = try await Broker.shared()
            let topic = try await broker.makeTopic("log-markers")
            let partition = TopicPartition(topic, 0)
            try await blocking {
                let member = try Member(broker.properties, group: topic, slot: 0, inputs: [topic], outputs: [topic])
                for text in ["a", "b"] {
                    try member.append(text)
                    try member.session.commit([:])
                }
                // Two records and two markers, one after the other.
                #expect(member.session.appendedEnd(topic: 0, partition: 0) == NextOffset(3))
                try member.append("never seen")
                try member.session.abort()
                member.close()
                let reader = try reader(broker.properties, topic)
                // The marker of an aborted transaction may be written after the answer.
                var end = try reader.ends(.committed, of: [partition], by: Deadline(after: patience))
                let limit = Deadline(after: .seconds(5))
                while end != [partition: NextOffset(6)], !limit.hasPassed {
                    pause(for: .milliseconds(20))
                    end = try reader.ends(.committed, of: [partition], by: Deadline(after: patience))
                }
                #expect(end == [partition: NextOffset(6)])
                try reader.read(from: [partition: NextOffset(0)])
                let batch = RecordBatch()
                var count = 0
                let deadline = Deadline(after: patience)
                while reader.position(of: partition) != NextOffset(6) && !deadline.hasPassed {
                    try reader.poll(into: batch, limit: 10, wait: .milliseconds(100))
                    count += batch.count
                }
                #expect(count == 2)
                #expect(reader.close(by: Deadline(after: patience)))
            }
        }

        @Test func `tells the end of what is committed from the end of all`() async throws {
            let broker = try await Broker.shared()
            let topic = try await broker.makeTopic("log-ends")
            let partition = TopicPartition(topic, 0)
            try await blocking {
                let producer = try TransactionalProducer.ready("\(topic).0-0", broker.properties)
                try producer.begin()
                try producer.sendAndWait("open", to: producer.topic(topic))
                let reader = try reader(broker.properties, topic)
                let deadline = Deadline(after: patience)
                #expect(try reader.ends(.committed, of: [partition], by: deadline) == [partition: NextOffset(0)])
                #expect(try reader.ends(.all, of: [partition], by: deadline) == [partition: NextOffset(1)])
                #expect(try reader.beginnings(of: [partition], by: deadline) == [partition: NextOffset(0)])
                reader.close(by: deadline)
                producer.close(by: deadline)
            }
        }

        @Test func `tells that a position is gone`() async throws {
            let broker = try await Broker.shared()
            let topic = try await broker.makeTopic("log-gone")
            try await blocking {
                let reader = try reader(broker.properties, topic)
                try reader.read(from: [TopicPartition(topic, 0): NextOffset(1_000)])
                let batch = RecordBatch()
                let deadline = Deadline(after: patience)
                var fault: LogFault?
                while fault == nil && !deadline.hasPassed {
                    do throws(LogFault) {
                        try reader.poll(into: batch, limit: 10, wait: .milliseconds(100))
                    } catch {
                        fault = error
                    }
                }
                #expect(fault?.cause == .positionGone)
                reader.close(by: Deadline(after: patience))
            }
        }

        @Test func `opens no session on a topic that is missing`() async throws {
            let broker = try await Broker.shared()
            let topic = try await broker.makeTopic("log-there")
            try await blocking {
                for (inputs, outputs) in [(["log-missing"], [topic]), ([topic], ["log-missing"])] {
                    let options = SessionOptions(group: topic, identity: topic, inputs: inputs, outputs: outputs)
                    let fault = logFault { () throws(LogFault) in
                        _ = try KafkaLog(broker.properties).openSession(options, by: Deadline(after: patience))
                    }
                    #expect(fault?.cause == .unknownTopic)
                    #expect(fault?.words.contains("log-missing") == true)
                }
            }
        }

        @Test func `creates topics with their shapes, and leaves those that are there`() async throws {
            let broker = try await Broker.shared()
            let name = "log-create-\(UInt32.random(in: 0 ... .max))"
            try await blocking {
                let log = KafkaLog(broker.properties)
                let deadline = Deadline(after: patience)
                try log.create([NewTopic(name, partitions: 3, isCompacted: true)], by: deadline)
                try log.create([NewTopic(name, partitions: 5), NewTopic("\(name)-2", partitions: 1)], by: deadline)
                let shapes = try log.topics([name, "\(name)-2", "\(name)-3"], by: deadline)
                #expect(
                    shapes == [
                        name: TopicShape(partitions: 3, isCompacted: true, deletionsKept: .seconds(86_400)),
                        "\(name)-2": TopicShape(partitions: 1, isCompacted: false),
                    ])
            }
        }
    }

    /// Requests that are slow or lost in transit.
    @Suite(
        .serialized, .enabled(if: BrokerSource.current.canStartBrokers, Comment(rawValue: BrokerSource.privateSkipLine))
    )
    struct `The Kafka log on a bad network` {
        @Test func `leaves a commit of unknown outcome to the next session of the identity`() async throws {
            let cluster = try await ProxiedKafka.cluster()
            let broker = Broker(bootstrap: cluster.bootstrapServers)
            let proxy = try #require(cluster.proxy)
            let input = try await broker.makeTopic("log-unknown")
            let output = try await broker.makeTopic("log-unknown-out")
            let partition = TopicPartition(input, 0)
            try await blocking {
                let old = try Member(
                    broker.properties, group: input, slot: 0, inputs: [input], outputs: [output],
                    transactionTimeout: .seconds(3))
                try old.step { old.owned.count == 1 }
                // No request that ends a transaction arrives while the session waits; all of them arrive later.
                proxy.delay(.endTxn, by: .seconds(6))
                try old.append("of unknown outcome")
                let fault = logFault { () throws(LogFault) in try old.session.commit([partition: NextOffset(1)]) }
                #expect(fault?.remedy == .rebuild)
                #expect(fault?.cause == .timedOut)
                proxy.delay(.endTxn, by: nil)
                old.close()
                // The group's committed offsets and the records agree: this session settles the transaction before anything else.
                let young = try Member(broker.properties, group: input, slot: 0, inputs: [input], outputs: [output])
                try young.step { young.owned.count == 1 }
                let position = try young.session.committed([partition], by: Deadline(after: patience))[partition]
                try young.append("after")
                try young.session.commit([partition: NextOffset(2)])
                young.close()
                let expected = position == nil ? ["after"] : ["of unknown outcome", "after"]
                let seen = try texts(of: output, broker.properties, count: expected.count)
                #expect(seen == expected)
            }
            #expect(try await broker.readEnded(output).map(\.text).last == "after")
        }

        @Test func `tells a lost partition from a revoked one, and commits nothing for it`() async throws {
            let cluster = try await ProxiedKafka.cluster()
            let broker = Broker(bootstrap: cluster.bootstrapServers)
            let proxy = try #require(cluster.proxy)
            let input = try await broker.makeTopic("log-lost")
            let output = try await broker.makeTopic("log-lost-out")
            let partition = TopicPartition(input, 0)
            try await blocking {
                let member = try Member(broker.properties, group: input, slot: 0, inputs: [input], outputs: [output])
                try member.step { member.owned.count == 1 }
                try member.append("of the lost")
                var atTheLoss: LogFault?
                member.beforeGivingBack = { [unowned member] in
                    atTheLoss = logFault { () throws(LogFault) in try member.session.commit([partition: NextOffset(9)])
                    }
                    try member.session.abort()
                }
                // As if the process had been suspended: the group gets no heartbeat for longer than a session lasts.
                proxy.delay(.heartbeat, by: .seconds(20))
                try member.step { member.heard.contains(.lost([partition])) }
                proxy.delay(.heartbeat, by: nil)
                proxy.dropConnections()
                #expect(atTheLoss?.remedy == .rewind)
                #expect(atTheLoss?.cause == .generation)
                // It rejoins by itself.
                member.beforeGivingBack = {}
                try member.step { !member.owned.isEmpty }
                try member.append("after")
                try member.session.commit([partition: NextOffset(1)])
                member.close()
            }
            #expect(try await broker.readEnded(output).map(\.text) == ["after"])
            #expect(try await broker.committed(partition, group: input) == NextOffset(1))
        }
    }
}

private func write(_ texts: [String], to topic: String, _ properties: ClientProperties) throws {
    let writer = try KafkaLog(properties).openWriter(WriterOptions(name: "writer", topics: [topic]))
    let outputs = OutputBatch()
    for text in texts { outputs.append(topic: 0, partition: 0, timestamp: 1, key: nil, value: Array(text.utf8)) }
    _ = try writer.append(outputs, by: Deadline(after: patience))
    writer.close(by: Deadline(after: patience))
}

/// The first records of a topic's only partition.
private func texts(of topic: String, _ properties: ClientProperties, count: Int) throws -> [String] {
    let reader = try reader(properties, topic)
    defer { reader.close(by: Deadline(after: patience)) }
    try reader.read(from: [TopicPartition(topic, 0): NextOffset(0)])
    let batch = RecordBatch()
    var texts: [String] = []
    let deadline = Deadline(after: patience)
    while texts.count < count && !deadline.hasPassed {
        try reader.poll(into: batch, limit: 10, wait: .milliseconds(100))
        texts += batch.texts()
    }
    return texts
}
