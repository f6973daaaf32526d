import Glibc
import Kafka
import KafkaTestKit
import Log
import Platform
import RDKafkaTestKit
import Synchronization
import Testing

/// The layer over the wire, against librdkafka's own mock cluster. The promises of transactions need a real broker and are tested
/// there.
@Suite(.serialized) struct `On the mock cluster` {
    /// Runs `body` on a thread of its own, as the layer requires, with a cluster that is destroyed afterwards.
    func withCluster(_ body: @escaping @Sendable (MockCluster) throws -> Void) async throws {
        try await blocking {
            let cluster = try MockCluster()
            defer { cluster.close() }
            try cluster.createTopic("in", partitions: 4)
            try cluster.createTopic("out", partitions: 4)
            try body(cluster)
        }
    }

    @Test func `a record comes back as it was sent`() async throws {
        try await withCluster { cluster in
            let properties = ClientProperties(bootstrapServers: cluster.bootstrapServers)
            var reports: [DeliveryReport] = []
            let producer = try Producer(.init(clientID: "p", properties: properties)) { reports.append($0) }
            let topic = try producer.topic("in")
            #expect(try producer.partitionCounts(by: Deadline(after: soon)) == [4])
            let headers = [
                RecordHeader("a", "1"), RecordHeader("a", [0, 255]), RecordHeader("none", nil), RecordHeader("", ""),
            ]
            try producer.send(
                to: topic, partition: 2, key: Array("key".utf8).span, value: [1, 2, 0, 3].span, headers: headers,
                timestamp: 1_771_000_000_123, token: 77)
            try producer.send(to: topic, partition: 2, key: nil, value: [UInt8]().span)
            try producer.send(to: topic, partition: 2, key: [UInt8]().span, value: nil, token: .max)
            try producer.flush(by: Deadline(after: soon))
            #expect(reports.map(\.token) == [77, 0, .max])
            #expect(reports.map(\.offset) == [0, 1, 2])
            #expect(reports.allSatisfy { $0.failure == nil && $0.partition == 2 })
            #expect(producer.close(by: Deadline(after: soon)))

            let consumer = try Consumer(.init(clientID: "c", groupID: "g", properties: properties))
            try consumer.assign([TopicPartition("in", 2): NextOffset(0)])
            let first = try #require(try consumer.next(within: soon))
            #expect(
                first
                    == Seen(
                        key: Array("key".utf8), value: [1, 2, 0, 3], offset: 0, timestamp: 1_771_000_000_123,
                        headers: headers))
            let second = try #require(try consumer.next(within: soon))
            #expect(second.key == nil && second.value == [])
            let third = try #require(try consumer.next(within: soon))
            #expect(third.key == [] && third.value == nil)
            #expect(consumer.positions == [TopicPartition("in", 2): NextOffset(3)])
            #expect(consumer.close(by: Deadline(after: soon)))
        }
    }

    @Test func `a producer whose broker is away ends in its time, and reports what it had as purged`() async throws {
        try await withCluster { cluster in
            let properties = ClientProperties(bootstrapServers: cluster.bootstrapServers)
            var reports: [DeliveryReport] = []
            let producer = try Producer(.init(clientID: "p", properties: properties)) { reports.append($0) }
            let topic = try producer.topic("in")
            _ = try producer.partitionCounts(by: Deadline(after: soon))
            cluster.fail(.produce, with: Array(repeating: .transport, count: 1000))
            for token: UInt in 1...3 {
                try producer.send(to: topic, partition: 0, key: nil, value: [1].span, token: token)
            }
            #expect(producer.close(by: Deadline(after: .seconds(3))))
            #expect(reports.map(\.token).sorted() == [1, 2, 3])
            #expect(reports.allSatisfy { $0.failure?.isPurge == true }, "\(reports)")
        }
    }

    @Test func `a full queue says so, and the record can be sent after waiting`() async throws {
        try await withCluster { cluster in
            var options = Producer.Configuration(
                clientID: "p", properties: ClientProperties(bootstrapServers: cluster.bootstrapServers))
            options.queuedRecords = 10
            // Long enough that no record is sent before the queue is full.
            options.lingerMilliseconds = 2_000
            var delivered = 0
            let producer = try Producer(options) { if $0.failure == nil { delivered += 1 } }
            let topic = try producer.topic("in")
            var fault: KafkaFault?
            var sent = 0
            while fault == nil && sent < 1_000 {
                do throws(KafkaFault) {
                    try producer.send(to: topic, partition: 0, key: nil, value: [1].span)
                    sent += 1
                } catch { fault = error }
            }
            #expect(sent == 10)
            #expect(fault?.code == .queueFull)
            #expect(fault?.remedy == .retrySameCall)
            try producer.flush(by: Deadline(after: soon))
            try producer.send(to: topic, partition: 0, key: nil, value: [1].span)
            try producer.flush(by: Deadline(after: soon))
            #expect(delivered == 11)
            producer.close(by: Deadline(after: soon))
        }
    }

    @Test func `a record that no broker takes in time is reported, not lost`() async throws {
        try await withCluster { cluster in
            var options = Producer.Configuration(
                clientID: "p", properties: ClientProperties(bootstrapServers: cluster.bootstrapServers))
            options.deliveryTimeout = .milliseconds(600)
            var failures: [KafkaCode] = []
            let producer = try Producer(options) { if let code = $0.failure { failures.append(code) } }
            let topic = try producer.topic("in")
            _ = try producer.partitionCounts(by: Deadline(after: soon))
            cluster.fail(.produce, with: Array(repeating: .transport, count: 1_000))
            try producer.send(to: topic, partition: 0, key: nil, value: [1].span)
            try producer.flush(by: Deadline(after: soon))
            #expect(failures == [.deliveryTimedOut])
            #expect(!producer.recentFaults.isEmpty)
            producer.close(by: Deadline(after: soon))
        }
    }

    @Test func `a record that a broker refused is not written because a later one was`() async throws {
        try await withCluster { cluster in
            let properties = ClientProperties(bootstrapServers: cluster.bootstrapServers)
            var reports: [DeliveryReport] = []
            let producer = try Producer(.init(clientID: "p", properties: properties)) { reports.append($0) }
            let topic = try producer.topic("in")
            // On another broker, so that only the answers below are slow.
            try producer.send(to: topic, partition: 1, key: nil, value: [0].span)
            try producer.flush(by: Deadline(after: soon))
            reports = []
            // Two requests are in flight when the first is answered.
            cluster.delayAnswers(by: .seconds(3))
            cluster.fail(.produce, with: [.notLeader])
            for token: UInt in 1...2 {
                try producer.send(to: topic, partition: 0, key: nil, value: [UInt8(token)].span, token: token)
                pause(for: .milliseconds(500))
            }
            try producer.flush(by: Deadline(after: soon))
            #expect(reports.map(\.token) == [1, 2])
            #expect(reports.map(\.failure) == [.unconfirmed, nil])
            producer.close(by: Deadline(after: soon))
            cluster.delayAnswers(by: .zero)
            let consumer = try Consumer(.init(clientID: "c", groupID: "g", properties: properties))
            try consumer.assign([TopicPartition("in", 0): NextOffset(0)])
            #expect(try consumer.next(within: soon)?.value == [2])
            #expect(consumer.close(by: Deadline(after: soon)))
        }
    }

    @Test func `a partition that does not exist is refused with headers and without`() async throws {
        try await withCluster { cluster in
            let producer = try Producer(
                .init(clientID: "p", properties: ClientProperties(bootstrapServers: cluster.bootstrapServers))
            ) { _ in }
            let topic = try producer.topic("in")
            _ = try producer.partitionCounts(by: Deadline(after: soon))
            for headers in [[], [RecordHeader("h", "v")]] {
                do throws(KafkaFault) {
                    try producer.send(to: topic, partition: 99, key: nil, value: [1].span, headers: headers)
                    Issue.record("partition 99 of 4 was taken")
                } catch { #expect(error.code == .unknownPartition) }
            }
            producer.close(by: Deadline(after: soon))
        }
    }

    @Test func `a paused partition gives nothing, a resumed one goes on where it was, a seek goes back`() async throws {
        try await withCluster { cluster in
            let properties = ClientProperties(bootstrapServers: cluster.bootstrapServers)
            try fill("in", partitions: 2, records: 50, properties)
            let consumer = try Consumer(.init(clientID: "c", groupID: "g", properties: properties))
            let (a, b) = (TopicPartition("in", 0), TopicPartition("in", 1))
            try consumer.assign([a: NextOffset(0), b: NextOffset(0)])
            try consumer.pause([a])
            try consumer.resume([b])  // was not paused: must change nothing
            let withoutA = try consumer.read(until: { consumer.isAtEnd })
            #expect(withoutA.map(\.partition) == Array(repeating: b, count: 50))
            try consumer.resume([a])
            let rest = try consumer.read(until: { consumer.isAtEnd })
            #expect(rest.map(\.offset) == Array(0..<50))
            try consumer.seek(to: [a: NextOffset(40), TopicPartition("in", 3): NextOffset(1)])
            #expect(!consumer.isAtEnd)
            #expect(try consumer.read(until: { consumer.isAtEnd }).map(\.offset) == Array(40..<50))
            #expect(consumer.positions == [a: NextOffset(50), b: NextOffset(50)])
            #expect(try consumer.watermarks(of: a, by: Deadline(after: soon)).end == NextOffset(50))
            consumer.close(by: Deadline(after: soon))
        }
    }

    @Test func `a resumed partition is at its end only when it has said so again`() async throws {
        try await withCluster { cluster in
            let properties = ClientProperties(bootstrapServers: cluster.bootstrapServers)
            try fill("in", partitions: 1, records: 5, properties)
            let consumer = try Consumer(.init(clientID: "c", groupID: "g", properties: properties))
            let partition = TopicPartition("in", 0)
            try consumer.assign([partition: NextOffset(0)])
            _ = try consumer.read(until: { consumer.isAtEnd })
            try consumer.pause([partition])
            try fill("in", partitions: 1, records: 5, properties)
            try consumer.resume([partition])
            #expect(!consumer.isAtEnd)
            #expect(try consumer.read(until: { consumer.isAtEnd }).count == 5)
            try consumer.pause([partition])
            try consumer.resume([partition])
            #expect(try consumer.read(until: { consumer.isAtEnd }).isEmpty)
            consumer.close(by: Deadline(after: soon))
        }
    }

    @Test func `hooks hear of partitions given and taken, and choose where to start`() async throws {
        try await withCluster { cluster in
            let properties = ClientProperties(bootstrapServers: cluster.bootstrapServers)
            try fill("in", partitions: 4, records: 10, properties)
            let consumer = try Consumer(.init(clientID: "c", groupID: "g", properties: properties))
            let hooks = RecordingHooks()
            hooks.plan.starts = [TopicPartition("in", 0): NextOffset(8)]
            hooks.plan.paused = [TopicPartition("in", 1)]
            try consumer.subscribe(to: ["in"], hooks: hooks)
            let seen = try consumer.read(until: { !consumer.assignment.isEmpty && consumer.isAtEnd })
            let expected = [TopicPartition("in", 0): 2, TopicPartition("in", 2): 10, TopicPartition("in", 3): 10]
            #expect(Dictionary(grouping: seen, by: \.partition).mapValues(\.count) == expected)
            #expect(consumer.close(by: Deadline(after: soon)))
            let all = (0..<4).map { TopicPartition("in", $0) }
            #expect(hooks.heard == [.assigned(all), .revoked(all)])
        }
    }

    @Test func `a close that runs out of time calls the hooks on no other thread`() async throws {
        try await withCluster { cluster in
            let hooks = RecordingHooks()
            weak var client: Canary?
            do {
                let canary = Canary()
                client = canary
                var options = Consumer.Configuration(
                    clientID: "c", groupID: "g", properties: .init(bootstrapServers: cluster.bootstrapServers))
                options.onEvent = { _ in withExtendedLifetime(canary) {} }
                let consumer = try Consumer(options)
                try consumer.subscribe(to: ["in"], hooks: hooks)
                _ = try consumer.read(until: { !consumer.assignment.isEmpty })
                consumer.close(by: Deadline(after: .zero))
            }
            // The client continues to close in the background, or waits for ever for a revocation that was lost with the queue.
            let deadline = Deadline(after: .seconds(1))
            while client != nil && !deadline.hasPassed { pause(for: .milliseconds(10)) }
            #expect(hooks.heard == [.assigned((0..<4).map { TopicPartition("in", $0) })])
        }
    }

    /// In a process of its own, because the library would end the process.
    @Test func `positions are asked for again when a broker does not coordinate the group any more`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            try await blocking {
                let cluster = try MockCluster()
                defer { cluster.close() }
                let admin = try Admin(
                    clientID: "a", properties: ClientProperties(bootstrapServers: cluster.bootstrapServers))
                defer { admin.close(by: Deadline(after: soon)) }
                cluster.fail(.offsetFetch, with: [.notCoordinator, .notCoordinator])
                if try admin.currentOffsets(ofGroup: "g", by: Deadline(after: soon)).isEmpty { exit(7) }
            }
        }
    }

    @Test func `an assignment without a place to start asks for a new client`() async throws {
        try await withCluster { cluster in
            let consumer = try Consumer(
                .init(
                    clientID: "c", groupID: "g",
                    properties: ClientProperties(bootstrapServers: cluster.bootstrapServers)))
            cluster.fail(.offsetFetch, with: Array(repeating: .illegalGeneration, count: 20))
            try consumer.subscribe(to: ["in"])
            do throws(KafkaFault) {
                let deadline = Deadline(after: soon)
                while !deadline.hasPassed { _ = try consumer.poll(.milliseconds(50)) }
                Issue.record("the member continues without partitions: \(consumer.assignment)")
            } catch {
                #expect(error.remedy == .rebuildClient)
            }
            #expect(consumer.assignment.isEmpty)
            consumer.close(by: Deadline(after: soon))
        }
    }

    @Test func `a position beyond the end is told, not taken for the end`() async throws {
        try await withCluster { cluster in
            let properties = ClientProperties(bootstrapServers: cluster.bootstrapServers)
            try fill("in", partitions: 1, records: 5, properties)
            let consumer = try Consumer(.init(clientID: "c", groupID: "g", properties: properties))
            try consumer.assign([TopicPartition("in", 0): NextOffset(100)])
            do throws(KafkaFault) {
                let deadline = Deadline(after: soon)
                while !consumer.isAtEnd && !deadline.hasPassed { _ = try consumer.poll(.milliseconds(50)) }
                Issue.record("five records were dropped in silence: \(consumer.droppedRepeats)")
            } catch {
                #expect(error.remedy == .stopProcess)
                #expect(error.description.contains("in[0]"))
            }
            consumer.close(by: Deadline(after: soon))
        }
    }

    @Test func `statistics come when they are ordered`() async throws {
        try await withCluster { cluster in
            let readings = Mutex<[Statistics]>([])
            var properties = ClientProperties(bootstrapServers: cluster.bootstrapServers)
            properties.set("statistics.interval.ms", "100")
            var options = Consumer.Configuration(clientID: "watched", groupID: "g", properties: properties)
            options.onEvent = { event in
                guard case .statistics(let json) = event else { return }
                do { let reading = try Statistics(json: json); readings.withLock { $0.append(reading) } } catch {
                    Issue.record(error)
                }
            }
            try fill("in", partitions: 1, records: 5, properties)
            let consumer = try Consumer(options)
            try consumer.assign([TopicPartition("in", 0): NextOffset(0)])
            _ = try consumer.read(until: {
                readings.withLock { $0.contains { $0.partitions.contains { $0.end == NextOffset(5) } } }
            })
            let last = try #require(readings.withLock { $0.last })
            #expect(last.brokers.contains { $0.isUp })
            #expect(last.client.contains("watched"))
            consumer.close(by: Deadline(after: soon))
        }
    }

    /// The library would abort the process.
    @Test func `a coordinator that is found after somebody has stopped waiting for it harms nobody`() async throws {
        try await withCluster { cluster in
            let admin = try Admin(
                clientID: "a", properties: ClientProperties(bootstrapServers: cluster.bootstrapServers))
            defer { admin.close(by: Deadline(after: soon)) }
            let unavailable = KafkaCode(rawValue: 15)
            cluster.fail(.findCoordinator, with: Array(repeating: unavailable, count: 1000))
            for _ in 0..<5 {
                do throws(KafkaFault) {
                    _ = try admin.currentOffsets(ofGroup: "g", by: Deadline(after: .milliseconds(150)))
                    Issue.record("there was a coordinator")
                } catch {
                    #expect(error.remedy == .retrySameCall)
                }
            }
            cluster.heal(.findCoordinator)
            let deadline = Deadline(after: .seconds(3))
            while !deadline.hasPassed {
                #expect(try admin.currentOffsets(ofGroup: "g", by: Deadline(after: soon)).isEmpty)
                pause(for: .milliseconds(100))
            }
        }
    }

    @Test func `an owner that goes away unclosed says so`() async throws {
        try await withCluster { cluster in
            let heard = Mutex<[String]>([])
            var options = Producer.Configuration(
                clientID: "forgotten", properties: ClientProperties(bootstrapServers: cluster.bootstrapServers))
            options.onEvent = { event in
                if case .log(.error, "CLOSE", let message) = event { heard.withLock { $0.append(message) } }
            }
            do { _ = try Producer(options) { _ in } }
            #expect(heard.withLock { $0 } == ["producer forgotten was not closed before its owner was released"])
        }
    }
}
