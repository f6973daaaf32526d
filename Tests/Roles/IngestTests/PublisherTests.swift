import Contract
import Kafka
import KafkaTestKit
import Log
import Platform
import RDKafkaTestKit
import Synchronization
import Telemetry
import TestTraits
import Testing

@testable import Ingest

/// Patience for what takes milliseconds on an idle machine.
let soon = patience

/// A publisher on librdkafka's own mock cluster. Close it before the test ends.
final class PublisherRig {
    let cluster: MockCluster
    let health = Health()
    let metrics = Metrics()
    let lines = Door.Lines()
    let watch: TopicWatch
    let publisher: Publisher

    static let topics: [TopicID] = [.notifications, .signed, .rejected]

    /// - Parameters:
    ///   - partitions: number of partitions of each topic; nil: there are no topics.
    ///   - asksWatch: whether the publisher uses the watch's results.
    init(
        partitions: Int32? = 4, bootstrap: String? = nil, startsPublisher: Bool = true, asksWatch: Bool = true,
        adjust: (inout Publisher.Configuration) -> Void = { _ in }
    ) throws {
        cluster = try MockCluster()
        if let partitions { try Self.create(cluster, partitions) }
        var configuration = Publisher.Configuration(
            properties: ClientProperties(bootstrapServers: bootstrap ?? cluster.bootstrapServers),
            prefix: TopicPrefix("t")!, partitions: 4, topics: Self.topics)
        adjust(&configuration)
        let lines = lines
        let logger = Logger(level: .info) { lines.append($0) }
        let watch = TopicWatch(configuration, health: health, logger: logger)
        self.watch = watch
        publisher = Publisher(
            configuration, metrics: metrics, health: health, logger: logger, refusals: RefusalLog(logger),
            topicsTrouble: { asksWatch ? watch.topicsTrouble : nil })
        try watch.start { _ in }
        // The mock creates a topic when a producer asks for it.
        if startsPublisher { try publisher.start { _ in } }
    }

    static func create(_ cluster: MockCluster, _ partitions: Int32) throws {
        for environment in Contract.Environment.allCases {
            let names = Names(prefix: TopicPrefix("t")!, environment: environment)
            for topic in topics { try cluster.createTopic(names.topic(topic), partitions: partitions) }
        }
    }

    func close() {
        try? publisher.stop(by: Deadline(after: soon))
        try? watch.stop(by: Deadline(after: soon))
        cluster.close()
    }

    func waitUntilReady() async throws {
        try await waitUntil("the publisher is ready", within: soon) {
            self.publisher.brokerTrouble == nil && self.health.readiness.isHealthy
        }
    }

    /// The outcome, however long it takes.
    func publish(_ records: [OutgoingRecord], within limit: Duration = soon) async throws -> PublishOutcome {
        let outcomes = Outcomes()
        publisher.publish(Publication(records, by: Deadline(after: limit)) { outcomes.add($0) })
        try await waitUntil("there is an outcome", within: soon + limit) { outcomes.all.count == 1 }
        return outcomes.all[0]
    }

    final class Outcomes: Sendable {
        private let list = Mutex<[PublishOutcome]>([])
        var all: [PublishOutcome] { list.withLock { $0 } }
        func add(_ outcome: PublishOutcome) { list.withLock { $0.append(outcome) } }
    }
}

func record(
    _ key: String = "2000000123456789", _ topic: TopicID = .notifications,
    _ environment: Contract.Environment = .production
) -> OutgoingRecord {
    OutgoingRecord(
        topic: topic, environment: environment, key: Array(key.utf8), value: Array("value".utf8),
        headers: [RecordHeader("id", "1")], timestamp: 1_772_323_200_123)
}

@Suite(.serialized, .ownThreads) struct `The publisher` {
    @Test func `writes each record to the partition of its key, and says so when all are acknowledged`() async throws {
        let rig = try PublisherRig()
        defer { rig.close() }
        try await rig.waitUntilReady()
        let outcome = try await rig.publish([record(), record("2000000123456789", .signed, .sandbox)])
        #expect(outcome == .written)
        let partition = Partitioner.partition(of: record().key, count: 4)
        for topic in ["t.production.notifications", "t.sandbox.signed"] {
            let properties = ClientProperties(bootstrapServers: rig.cluster.bootstrapServers)
            let consumer = try Consumer(.init(clientID: "c", groupID: "g", properties: properties))
            defer { consumer.close(by: Deadline(after: soon)) }
            try consumer.assign([TopicPartition(topic, partition): NextOffset(0)])
            guard let read = try consumer.poll(soon) else {
                Issue.record("there is no record in \(topic)")
                continue
            }
            #expect(read.copyOfKey() == record().key && read.copyOfValue() == record().value)
            #expect(read.timestamp == 1_772_323_200_123 && read.headers == [RecordHeader("id", "1")])
        }
    }

    @Test func `answers at the deadline when Kafka is slow, and counts what is written later`() async throws {
        let rig = try PublisherRig()
        defer { rig.close() }
        try await rig.waitUntilReady()
        rig.cluster.fail(.produce, with: Array(repeating: .transport, count: 1000))
        let begin = ContinuousClock.now
        #expect(try await rig.publish([record()], within: .milliseconds(300)) == .failed(.timedOut))
        #expect(begin.duration(to: .now) >= .milliseconds(300))
        rig.cluster.heal(.produce)
        try await waitUntil("the record is written late", within: soon) {
            String(decoding: rig.metrics.exposition(), as: UTF8.self).contains("perennial_ingest_written_late_total 1")
        }
    }

    @Test func `does not call written what is written in part`() async throws {
        let rig = try PublisherRig()
        defer { rig.close() }
        try await rig.waitUntilReady()
        // One request per topic: the first is accepted, the second is refused.
        rig.cluster.fail(.produce, with: [.none, .invalidTimestamp])
        let outcome = try await rig.publish([record(), record("2000000123456789", .signed)])
        #expect(outcome == .failed(.clockAhead))
    }

    @Test func `does not call written what only a later record speaks for`() async throws {
        let rig = try PublisherRig()
        defer { rig.close() }
        try await rig.waitUntilReady()
        rig.cluster.delayAnswers(by: .seconds(3))
        rig.cluster.fail(.produce, with: [.notLeader])
        let outcomes = PublisherRig.Outcomes()
        func post() { rig.publisher.publish(Publication([record()], by: Deadline(after: soon)) { outcomes.add($0) }) }
        post()
        // Its request is in flight. The next one will be accepted before the first is retried.
        try await Task.sleep(for: .milliseconds(500))
        post()
        try await waitUntil("both have an outcome", within: soon) { outcomes.all.count == 2 }
        #expect(outcomes.all == [.failed(.timedOut), .written])
    }

    /// Each request costs a broker and its followers more than further records in it.
    @Test func `makes few requests to a slow Kafka`() async throws {
        let rig = try PublisherRig()
        defer { rig.close() }
        try await rig.waitUntilReady()
        rig.cluster.delayAnswers(by: .milliseconds(500))
        // librdkafka has at most five requests of a partition in flight. The bursts of 60 ms and one late post need four.
        rig.cluster.fail(.produce, with: Array(repeating: .none, count: 4) + [.invalidTimestamp, .invalidTimestamp])
        let outcomes = PublisherRig.Outcomes()
        var posted = 0
        let end = Deadline(after: BurstPace.longestInterval)
        repeat {
            rig.publisher.publish(Publication([record()], by: Deadline(after: soon)) { outcomes.add($0) })
            posted += 1
            pause(for: .milliseconds(3))
        } while !end.hasPassed
        try await waitUntil("all have an outcome", within: soon) { outcomes.all.count == posted }
        #expect(outcomes.all == Array(repeating: .written, count: posted))
    }

    @Test func `refuses what does not fit its queue`() async throws {
        let rig = try PublisherRig { $0.queuedRecords = 3 }
        defer { rig.close() }
        try await rig.waitUntilReady()
        rig.cluster.fail(.produce, with: Array(repeating: .transport, count: 1000))
        let first = PublisherRig.Outcomes()
        for _ in 0..<3 {
            rig.publisher.publish(Publication([record()], by: Deadline(after: soon)) { first.add($0) })
        }
        #expect(try await rig.publish([record()]) == .failed(.queueFull))
        rig.cluster.heal(.produce)
        try await waitUntil("the others are written", within: soon) { first.all == [.written, .written, .written] }
        #expect(try await rig.publish([record()]) == .written)
    }

    @Test func `is not ready while the brokers refuse this host's time, loses nothing, and recovers`() async throws {
        let rig = try PublisherRig()
        defer { rig.close() }
        try await rig.waitUntilReady()
        rig.cluster.fail(.produce, with: [.invalidTimestamp])
        #expect(try await rig.publish([record()]) == .failed(.clockAhead))
        let reasons = rig.health.readiness.reasons
        #expect(reasons.map(\.condition) == ["host-clock"])
        #expect(reasons.first?.reason.contains("time synchronisation") == true)
        #expect(rig.lines.all.contains("time synchronisation"))
        #expect(try await rig.publish([record()]) == .written)
        #expect(rig.health.readiness.isHealthy)
    }

    @Test func `says which topics are missing, and works once they are there`() async throws {
        let rig = try PublisherRig(partitions: nil, startsPublisher: false)
        defer { rig.close() }
        try await waitUntil("the topics have been looked for", within: soon) { rig.watch.topicsTrouble != nil }
        #expect(rig.watch.topicsTrouble?.contains("t.sandbox.rejected") == true)
        #expect(rig.watch.topicsTrouble?.contains("perennial topics apply") == true)
        #expect(try await rig.publish([record()]) == .failed(.wrongTopics))
        #expect(!rig.health.readiness.isHealthy)
        try PublisherRig.create(rig.cluster, 4)
        try rig.publisher.start { _ in }
        try await rig.waitUntilReady()
        #expect(try await rig.publish([record()]) == .written)
    }

    @Test func `writes nothing to topics with another number of partitions`() async throws {
        let rig = try PublisherRig(partitions: 3)
        defer { rig.close() }
        try await waitUntil("the topics have been looked at", within: soon) { rig.watch.topicsTrouble != nil }
        #expect(rig.watch.topicsTrouble?.contains("t.production.notifications has 3") == true)
        #expect(rig.lines.all.contains("notifications are refused until the topics are right"))
        #expect(try await rig.publish([record()]) == .failed(.wrongTopics))
    }

    /// Another producer may write to the other partitions; keys keep their partition.
    @Test func `writes on when one topic has grown`() {
        let configuration = Publisher.Configuration(
            properties: ClientProperties(bootstrapServers: "nowhere:1"), prefix: TopicPrefix("t")!, partitions: 4,
            topics: [.notifications, .rejected])
        func trouble(_ notifications: Int, _ rejected: Int) -> String? {
            let counts = configuration.places.map { ($0.name, $0.outlet.topic == .rejected ? rejected : notifications) }
            return configuration.trouble(with: Dictionary(uniqueKeysWithValues: counts))
        }
        #expect(trouble(4, 4) == nil)
        #expect(trouble(6, 4) == nil)
        #expect(trouble(3, 4)?.contains("put it back if it was changed") == true)
        // Then nothing shows whether the setting is still the number with which the topic was made.
        #expect(trouble(6, 6)?.contains("has 6") == true)
    }

    /// Before the watch has seen the topics for the first time, or between two of its looks.
    @Test func `finds by itself that topics have another number of partitions`() async throws {
        let rig = try PublisherRig(partitions: 3, asksWatch: false)
        defer { rig.close() }
        try await waitUntil("the publisher has looked", within: soon) {
            rig.publisher.brokerTrouble?.contains("t.production.notifications has 3") != false
        }
        #expect(rig.publisher.brokerTrouble?.contains("the setting partitions says 4") == true)
        #expect(try await rig.publish([record()]) == .failed(.wrongTopics))
    }

    @Test func `connects although each topic takes a while to be described`() async throws {
        let rig = try PublisherRig(startsPublisher: false)
        defer { rig.close() }
        rig.cluster.delayAnswers(by: .milliseconds(300))
        try rig.publisher.start { _ in }
        try await rig.waitUntilReady()
        #expect(try await rig.publish([record()]) == .written)
    }

    /// Without a producer id nothing is sent, and the first notifications would wait for it until their deadline.
    @Test func `is not ready before Kafka has given its producer an id`() async throws {
        let rig = try PublisherRig(startsPublisher: false)
        defer { rig.close() }
        let coordinatorLoads = KafkaCode(rawValue: 14)
        rig.cluster.fail(.initProducerID, with: Array(repeating: coordinatorLoads, count: 1000))
        try rig.publisher.start { _ in }
        try await waitUntil("the publisher waits for an id", within: soon) {
            rig.publisher.brokerTrouble?.contains("id yet") != false
        }
        #expect(try await rig.publish([record()]) == .failed(.notConnected))
        rig.cluster.heal(.initProducerID)
        try await rig.waitUntilReady()
        #expect(try await rig.publish([record()]) == .written)
    }

    @Test func `is not ready before a broker answers, and refuses at once`() async throws {
        let rig = try PublisherRig(bootstrap: "127.0.0.1:1")
        defer { rig.close() }
        #expect(try await rig.publish([record()]) == .failed(.notConnected))
        try await waitUntil("the reason is known", within: soon) {
            rig.watch.kafkaTrouble?.contains("127.0.0.1:1") == true
        }
    }

    /// A sequence number that the broker does not expect makes an idempotent producer fail for good.
    @Test func `goes on with a new producer when the old one cannot`() async throws {
        let rig = try PublisherRig()
        defer { rig.close() }
        try await rig.waitUntilReady()
        let outOfOrderSequence = KafkaCode(rawValue: 45)
        rig.cluster.fail(.produce, with: [outOfOrderSequence])
        _ = try await rig.publish([record()], within: .seconds(2))
        try await rig.waitUntilReady()
        #expect(try await rig.publish([record()]) == .written)
    }

    /// Also for what is posted at the moment of the replacement, and also if no other producer can be made.
    @Test func `answers everything when its producer goes`() async throws {
        let rig = try PublisherRig()
        defer { rig.close() }
        try await rig.waitUntilReady()
        // No other producer gets beyond this point.
        rig.cluster.failTopic("t.sandbox.rejected", with: .unknownTopicOrPartition)
        let outOfOrderSequence = KafkaCode(rawValue: 45)
        rig.cluster.fail(.produce, with: [outOfOrderSequence])
        let answered = Atomic(0)
        let posted = Atomic(0)
        let publisher = rig.publisher
        let limit = Deadline(after: soon)
        let posters = (0..<4).map { _ in
            WorkerThread.start("posts") {
                var after = 0
                while after < 100, !limit.hasPassed {
                    if publisher.brokerTrouble != nil { after += 1 }
                    posted.add(1, ordering: .relaxed)
                    publisher.publish(
                        Publication([record()], by: Deadline(after: .seconds(600))) { _ in
                            answered.add(1, ordering: .relaxed)
                        })
                }
            }
        }
        for poster in posters { try await poster.join() }
        #expect(!limit.hasPassed)
        try await waitUntil("everything is answered", within: soon) {
            answered.load(ordering: .relaxed) == posted.load(ordering: .relaxed)
        }
        #expect(publisher.brokerTrouble != nil)
    }

    @Test func `finishes what it was given when it stops, and takes nothing more`() async throws {
        let rig = try PublisherRig()
        defer { rig.close() }
        try await rig.waitUntilReady()
        let outcomes = PublisherRig.Outcomes()
        for _ in 0..<100 {
            rig.publisher.publish(Publication([record()], by: Deadline(after: soon)) { outcomes.add($0) })
        }
        try rig.publisher.stop(by: Deadline(after: soon))
        #expect(outcomes.all == Array(repeating: .written, count: 100))
        #expect(try await rig.publish([record()]) == .failed(.stopping))
    }

    /// Without a broker it takes seconds to end, and so does the publisher.
    @Test func `does not wait for the end of the watch, which begins as soon as a stop is near`() async throws {
        let rig = try PublisherRig()
        defer { rig.close() }
        try await rig.waitUntilReady()
        rig.watch.stopIsNear()
        try await Task.sleep(for: .seconds(5))
        // It throws if the watch has not ended by now.
        try rig.watch.stop(by: Deadline(after: .zero))
    }

    @Test func `lets nothing hang when it stops while Kafka is away`() async throws {
        let rig = try PublisherRig()
        defer { rig.close() }
        try await rig.waitUntilReady()
        rig.cluster.fail(.produce, with: Array(repeating: .transport, count: 100_000))
        let outcomes = PublisherRig.Outcomes()
        rig.publisher.publish(Publication([record()], by: Deadline(after: .seconds(60))) { outcomes.add($0) })
        try rig.publisher.stop(by: Deadline(after: soon))
        #expect(outcomes.all.count == 1 && outcomes.all != [.written])
    }
}
