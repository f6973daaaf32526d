import AppStore
import Contract
import Crypto
import HTTP
import HTTPClient
import HTTPTestKit
import KafkaTestKit
import Log
import MemoryLog
import Platform
import Service
import Synchronization
import Telemetry
import TestTraits
import Testing

@testable import Ingest

private let destination = IngestService.Destination(
    prefix: TopicPrefix("t")!, partitions: 4, topics: [.notifications, .rejected])

private func makeTopics(in log: MemoryLog) throws {
    for environment in Contract.Environment.allCases {
        let names = Names(prefix: destination.prefix, environment: environment)
        try log.create(
            destination.topics.map { NewTopic(names.topic($0), partitions: destination.partitions) },
            by: Deadline(after: patience))
    }
}

private struct Stored: Equatable {
    let topic: String
    let partition: Int32
    let key: String
    let value: String
    let timestamp: Int64
    let headers: [String]
}

private func everything(in log: MemoryLog) throws -> [Stored] {
    let names = Contract.Environment.allCases.flatMap { environment in
        destination.topics.map { Names(prefix: destination.prefix, environment: environment).topic($0) }
    }
    let reader = try log.openReader(ReaderOptions(name: "test", group: "test", topics: names))
    let partitions = names.flatMap { name in (0..<destination.partitions).map { TopicPartition(name, $0) } }
    try reader.read(from: Dictionary(uniqueKeysWithValues: partitions.map { ($0, NextOffset(0)) }))
    let batch = RecordBatch()
    try reader.poll(into: batch, limit: 10_000, wait: .zero)
    return (0..<batch.count).map { index in
        Stored(
            topic: names[batch[index].topic], partition: batch[index].partition,
            key: String(decoding: batch[index].copyOfKey() ?? [], as: UTF8.self),
            value: String(decoding: batch[index].copyOfValue() ?? [], as: UTF8.self),
            timestamp: batch[index].timestamp, headers: batch[index].headers.map(\.name))
    }
}

private func outgoing(
    _ key: String, _ topic: TopicID = .notifications, _ environment: Contract.Environment = .production
) -> OutgoingRecord {
    OutgoingRecord(
        topic: topic, environment: environment, key: Array(key.utf8), value: Array("value of \(key)".utf8),
        headers: [RecordHeader("id", key)], timestamp: 77)
}

/// Outcomes and endings in the order of arrival.
private final class Outcomes: Sendable {
    private let heard = Mutex<(outcomes: [PublishOutcome], endings: [Bool])>(([], []))
    var outcomes: [PublishOutcome] { heard.withLock { $0.outcomes } }
    var endings: [Bool] { heard.withLock { $0.endings } }

    func publication(_ records: [OutgoingRecord], within time: Duration = patience) -> Publication {
        Publication(
            records, by: Deadline(after: time),
            completion: { outcome in self.heard.withLock { $0.outcomes.append(outcome) } },
            ending: { wasSent in self.heard.withLock { $0.endings.append(wasSent) } })
    }
}

@Suite(.ownThreads) struct `Publishing into a log in memory` {
    @Test func `writes each record to its topic and partition as it is`() async throws {
        let log = MemoryLog()
        try makeTopics(in: log)
        let publisher = LogPublisher(log, destination)
        try publisher.start { _ in }
        let outcomes = Outcomes()
        publisher.publish(outcomes.publication([outgoing("a"), outgoing("b", .rejected, .sandbox)]))
        try await waitUntil("it is written") { outcomes.outcomes == [.written] && outcomes.endings == [true] }
        let expected = [("a", "t.production.notifications"), ("b", "t.sandbox.rejected")].map { key, topic in
            Stored(
                topic: topic, partition: Partitioner.partition(of: Array(key.utf8), count: 4), key: key,
                value: "value of \(key)", timestamp: 77, headers: ["id"])
        }
        #expect(try everything(in: log) == expected)
        try publisher.stop(by: Deadline(after: patience))
    }

    @Test func `writes everything that was taken before the stop, and refuses what comes later`() throws {
        let log = MemoryLog()
        try makeTopics(in: log)
        let publisher = LogPublisher(log, destination)
        try publisher.start { _ in }
        let outcomes = Outcomes()
        for number in 0..<500 { publisher.publish(outcomes.publication([outgoing("\(number)")])) }
        try publisher.stop(by: Deadline(after: patience))
        #expect(outcomes.outcomes.count == 500 && outcomes.outcomes.allSatisfy { $0 == .written })
        #expect(try everything(in: log).count == 500)
        publisher.publish(outcomes.publication([outgoing("late")]))
        #expect(outcomes.outcomes.last == .failed(.stopping) && outcomes.endings.last == false)
    }

    @Test func `does not write what nobody waits for any more`() throws {
        let log = MemoryLog()
        try makeTopics(in: log)
        let publisher = LogPublisher(log, destination)
        let outcomes = Outcomes()
        publisher.publish(outcomes.publication([outgoing("a")], within: .zero))
        try publisher.start { _ in }
        try publisher.stop(by: Deadline(after: patience))
        #expect(outcomes.outcomes == [.failed(.timedOut)] && outcomes.endings == [false])
        #expect(try everything(in: log).isEmpty)
    }

    @Test func `says that it cannot go on without its topics, and lets nobody wait`() async throws {
        let publisher = LogPublisher(MemoryLog(), destination)
        let failures = Mutex<[String]>([])
        try publisher.start { error in failures.withLock { $0.append("\(error)") } }
        let outcomes = Outcomes()
        publisher.publish(outcomes.publication([outgoing("a")]))
        try await waitUntil("it fails") { failures.withLock { $0.count } == 1 && !outcomes.outcomes.isEmpty }
        #expect(outcomes.outcomes == [.failed(.wrongTopics)])
        publisher.publish(outcomes.publication([outgoing("b")]))
        #expect(outcomes.outcomes.count == 2 && outcomes.outcomes.last != .written)
        try publisher.stop(by: Deadline(after: patience))
    }

    @Test func `answers the others when the log refuses a batch`() async throws {
        let log = MemoryLog()
        try makeTopics(in: log)
        let topic = Names(prefix: destination.prefix, environment: .production).topic(.notifications)
        try log.configure(topic) { $0.maximalBytes = 100 }
        let publisher = LogPublisher(log, destination)
        try publisher.start { _ in }
        let outcomes = Outcomes()
        publisher.publish(outcomes.publication([outgoing(String(repeating: "k", count: 200))]))
        try await waitUntil("it is refused") { outcomes.outcomes == [.failed(.refused)] }
        publisher.publish(outcomes.publication([outgoing("small")]))
        try await waitUntil("the next is written") { outcomes.outcomes.last == .written }
        try publisher.stop(by: Deadline(after: patience))
    }
}

@Suite(.ownThreads) struct `Ingest over a log in memory` {
    @Test func `takes notifications over TLS with a certificate that is in no file, at the time it is given`() throws {
        let log = MemoryLog()
        try makeTopics(in: log)
        let key = SigningKey(.p256)
        let now = WallClock.milliseconds()
        let certificate = try Certificate.make(
            CertificateRequest(
                commonName: "test", serial: [1], validity: (now - 86_400_000)...(now + 86_400_000),
                extensions: [
                    .basicConstraints(isAuthority: true, pathLength: nil),
                    .subjectAlternativeNames(dns: [], addresses: ["127.0.0.1"]),
                ]), key: key)
        var endpoint = Endpoint.Configuration(app: "perennial/test")
        endpoint.archivesSignedPayloads = false
        let ingest = IngestService(
            IngestDoor(
                listen: ListenAddress("127.0.0.1:0")!,
                identity: .inMemory(HTTPServer.Identity(certificate: certificate.pem, key: key.pem))),
            endpoint, judge: VerifierPool(Apple.policy, revocation: nil), to: destination, log: log,
            now: { Apple.now }, metrics: Metrics(), logger: Logger { _ in })
        for part in ingest.parts { try part.start { _ in } }
        defer { for part in ingest.parts.reversed() { try? part.stop(by: Deadline(after: patience)) } }
        var configuration = HTTPClient.Configuration()
        configuration.extraAuthorities = certificate.pem
        let client = try HTTPClient(configuration)
        defer { client.close() }
        let address = try #require(ingest.address)
        let answer = try client.answer(
            to: HTTPClient.Request(
                "POST", "https://\(address)/notifications",
                headers: [HTTPClient.Header("Content-Type", "application/json")], body: Apple.body(uuid: "u-9")))
        #expect(answer.status == 200)
        let stored = try everything(in: log)
        #expect(stored.map(\.topic) == ["t.production.notifications"] && stored.first?.timestamp == Apple.now)
        #expect(stored.first?.value.contains(#""notificationUUID":"u-9""#) == true)
    }
}
