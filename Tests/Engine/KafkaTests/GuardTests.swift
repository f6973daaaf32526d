import KafkaTestKit
import Log
import Platform
import RDKafkaTestKit
import Synchronization
import Testing

@testable import Kafka

/// Guarding lines, each tested alone, so that no second guard hides that one is missing.
@Suite(.serialized) struct `The commit path` {
    private func withCluster(_ body: @escaping @Sendable (MockCluster, ClientProperties) throws -> Void) async throws {
        try await blocking {
            let cluster = try MockCluster()
            defer { cluster.close() }
            try cluster.createTopic("left", partitions: 3)
            try body(cluster, ClientProperties(bootstrapServers: cluster.bootstrapServers))
        }
    }

    private func fill(_ topic: String, count: Int, _ properties: ClientProperties) throws {
        let producer = try Producer(.init(clientID: "fill", properties: properties)) { #expect($0.failure == nil) }
        let target = try producer.topic(topic)
        for _ in 0..<count { try producer.send(to: target, partition: 0, key: nil, value: [1].span) }
        try producer.flush(by: Deadline(after: soon))
        producer.close(by: Deadline(after: soon))
    }

    // MARK: Remedies

    /// Today's library sets only one flag at a time, so no broker can show the order.
    @Test func `asks first whether a person is needed, then whether the client is broken, then for an abort`() {
        func remedy(_ code: KafkaCode, isFatal: Bool) -> KafkaFault.Remedy {
            KafkaFault.remedy(for: code, isFatal: isFatal, wantsAbort: true, isRetriable: true)
        }
        let forbidden = KafkaCode(rawValue: 30)
        #expect(remedy(forbidden, isFatal: true) == .stopProcess)
        #expect(remedy(.timedOut, isFatal: true) == .rebuildClient)
        #expect(remedy(.timedOut, isFatal: false) == .abortTransaction)
    }

    // MARK: Requests sent twice

    @Test func `pauses before retries as long as its limit for calls says, also when that has followed them`()
        async throws
    {
        try await withCluster { cluster, properties in
            let producer = try TransactionalProducer(.init(transactionalID: "g.0-0", properties: properties))
            let topic = try producer.topic("left")
            try producer.start(by: Deadline(after: soon))
            for _ in 0..<5 { producer.times.note(.commit, took: .milliseconds(80)) }
            try producer.rebuild(by: Deadline(after: soon))
            #expect(producer.times.limit > .milliseconds(300))
            // Refused once: only the duration of the call shows that it was sent twice.
            cluster.fail(.endTransaction, with: [KafkaCode(rawValue: 14)])
            try producer.begin()
            try producer.send(to: topic, partition: 0, key: nil, value: [1].span)
            try producer.commit()
            #expect(producer.suspicion?.contains("it may have been sent twice") == true)
            producer.close(by: Deadline(after: soon))
        }
    }

    @Test func `replaces a producer that lost a connection, though every call was quick`() async throws {
        var suspicion: String?
        // librdkafka 2.8 sometimes sends the commit again, too, so the call is not quick.
        for _ in 0..<10 {
            suspicion = try await suspicionAfterLostConnection()
            if suspicion?.hasPrefix("commit took") != true { break }
        }
        #expect(suspicion == "a request timed out, a connection was lost, or a record was refused")
    }

    private func suspicionAfterLostConnection() async throws -> String? {
        let suspicion = Mutex<String?>(nil)
        try await withCluster { cluster, properties in
            // A longer pause before retries: a commit that takes three quarters of it is a sign of its own.
            var properties = properties
            properties.set("retry.backoff.ms", "500")
            let producer = try TransactionalProducer(.init(transactionalID: "g.0-0", properties: properties))
            let topic = try producer.topic("left")
            try producer.start(by: Deadline(after: soon))
            try producer.begin()
            // The connection is cut while a record is in flight, which is sent again over a new connection. After that nothing is
            // slow.
            cluster.fail(.produce, with: [.transport])
            let deadline = Deadline(after: soon)
            try producer.send(to: topic, partition: 0, key: nil, value: [1].span)
            while producer.outstanding > 0 && !deadline.hasPassed { producer.poll(.milliseconds(10)) }
            try producer.commit()
            suspicion.withLock { $0 = producer.suspicion }
            try producer.begin()
            #expect(producer.replacements == 1)
            try producer.abort()
            producer.close(by: Deadline(after: soon))
        }
        return suspicion.withLock { $0 }
    }

    @Test(arguments: ["REQTMOUT", "TIMEOUT", "FAIL", "ERROR", "DISCONN", "CONNERR"])
    func `takes these log lines for signs of a request sent twice`(facility: String) {
        let context = ClientContext(events: { _ in })
        context.noteLog(6, facility, "of a broker")
        #expect(context.signs.load(ordering: .relaxed) == 1)
    }

    @Test func `takes an error of a broker for such a sign, and an ordinary log line for none`() {
        let context = ClientContext(events: { _ in })
        context.noteLog(6, "INIT", "of the client")
        #expect(context.signs.load(ordering: .relaxed) == 0)
        context.noteError(.transport, "of a broker")
        #expect(context.signs.load(ordering: .relaxed) == 1)
    }

    @Test func `takes a refused transaction back at once, and not when its time is over`() async throws {
        try await withCluster { cluster, properties in
            var options = TransactionalProducer.Configuration(transactionalID: "g.0-0", properties: properties)
            options.transactionTimeout = soon
            let producer = try TransactionalProducer(options)
            let consumer = try Consumer(.init(clientID: "c", groupID: "g", properties: properties))
            try producer.start(by: Deadline(after: soon))
            cluster.fail(.transactionOffsetCommit, with: [.illegalGeneration])
            try producer.begin()
            let start = ContinuousClock.now
            #expect(throws: KafkaFault.self) {
                try producer.sendOffsets([TopicPartition("left", 0): NextOffset(1)], of: consumer.groupMetadata())
            }
            #expect(start.duration(to: .now) < soon / 2)
            try producer.abort()
            producer.close(by: Deadline(after: soon))
            consumer.close(by: Deadline(after: soon))
        }
    }

    @Test func `does not take a commit of unknown outcome back`() async throws {
        try await withCluster { cluster, properties in
            var options = TransactionalProducer.Configuration(transactionalID: "g.0-0", properties: properties)
            options.transactionTimeout = .seconds(3)
            let producer = try TransactionalProducer(options)
            let topic = try producer.topic("left")
            try producer.start(by: Deadline(after: soon))
            try producer.begin()
            try producer.send(to: topic, partition: 0, key: nil, value: [1].span)
            // The coordinator answers no attempt during the seconds that the call may take.
            cluster.fail(.endTransaction, with: Array(repeating: KafkaCode(rawValue: 14), count: 100))
            do throws(KafkaFault) {
                try producer.commit()
                Issue.record("a commit without an answer succeeded")
            } catch {
                #expect(error.remedy == .rebuildClient)
            }
            #expect(producer.state == .failed)
            producer.close(by: Deadline(after: soon))
        }
    }

    // MARK: Reading

    @Test func `drops and counts records below the position`() async throws {
        try await withCluster { _, properties in
            try fill("left", count: 20, properties)
            let consumer = try Consumer(.init(clientID: "c", groupID: "g", properties: properties))
            let left = TopicPartition("left", 0)
            try consumer.assign([left: NextOffset(0)])
            // The library starts at 0 all the same, as 2.0.2 does after some resumes.
            consumer.readings.place(at: [left: NextOffset(7)])
            var offsets: [Int64] = []
            let deadline = Deadline(after: soon)
            while !consumer.isAtEnd && !deadline.hasPassed {
                if let record = try consumer.poll(.milliseconds(50)) { offsets.append(record.offset) }
            }
            #expect(offsets == Array(7..<20))
            #expect(consumer.droppedRepeats == 7)
            consumer.close(by: Deadline(after: soon))
        }
    }

    @Test func `resumes only what was paused`() async throws {
        try await withCluster { _, properties in
            try fill("left", count: 50, properties)
            let left = TopicPartition("left", 0)
            let consumer = try Consumer(.init(clientID: "c", groupID: "g", properties: properties))
            try consumer.assign([left: NextOffset(0)])
            let deadline = Deadline(after: soon)
            var seen = 0
            while !consumer.isAtEnd && !deadline.hasPassed {
                if try consumer.poll(.milliseconds(50)) != nil { seen += 1 }
                try consumer.resume([left])
            }
            #expect(seen == 50)
            #expect(consumer.droppedRepeats == 0)
            consumer.close(by: Deadline(after: soon))
        }
    }

    @Test func `commits nothing because a record was read`() async throws {
        try await withCluster { _, properties in
            try fill("left", count: 5, properties)
            func member() throws -> Consumer {
                try Consumer(.init(clientID: "c", groupID: "g", properties: properties))
            }
            let first = try member()
            try first.subscribe(to: ["left"])
            let deadline = Deadline(after: soon)
            var seen = 0
            while seen < 5 && !deadline.hasPassed { if try first.poll(.milliseconds(50)) != nil { seen += 1 } }
            #expect(seen == 5)
            // A consumer with automatic commits makes its last commit when it leaves.
            first.close(by: Deadline(after: soon))
            let second = try member()
            #expect(try second.committed([TopicPartition("left", 0)], by: Deadline(after: soon)).isEmpty)
            second.close(by: Deadline(after: soon))
        }
    }
}
