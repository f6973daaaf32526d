// Shared by the tests on a real broker.

import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

/// One Kafka as a test sees it.
struct Broker: Sendable {
    let bootstrap: String

    var properties: ClientProperties { ClientProperties(bootstrapServers: bootstrap) }

    static func shared() async throws -> Broker { Broker(bootstrap: try await SharedKafka.bootstrapServers()) }

    /// Creates a topic that nobody else uses; returns its name.
    func makeTopic(
        _ label: String, partitions: Int32 = 1, replicationFactor: Int32 = 1,
        settings: [(name: String, value: String)] = []
    ) async throws -> String {
        let name = "\(label)-\(UInt32.random(in: 0 ... .max))"
        try await blocking {
            let admin = try Admin(clientID: "test", properties: properties)
            defer { admin.close(by: Deadline(after: patience)) }
            let topic = Admin.NewTopic(
                name: name, partitions: partitions, replicationFactor: replicationFactor, settings: settings)
            if let fault = try admin.create([topic], by: Deadline(after: patience))[name] ?? nil { throw fault }
            // The topic is usable when every partition has a leader, which may be later than the broker's answer.
            let deadline = Deadline(after: patience)
            while !deadline.hasPassed {
                let described = try admin.cluster(by: deadline).topics.first { $0.name == name }
                if let described, described.partitions.count == partitions,
                    described.partitions.allSatisfy({ $0.leader != nil })
                {
                    return
                }
                pause(for: .milliseconds(20))
            }
            throw KafkaFault(.retrySameCall, .timedOut, operation: "wait for \(name)")
        }
        return name
    }

    /// Reads the topic up to its end, as readers of committed records see it, or with open and aborted records.
    func read(_ topic: String, uncommitted: Bool = false) async throws -> [Copy] {
        try await read(topic, uncommitted: uncommitted) { Copy($0) }
    }

    /// The same of a topic with one partition, when its transactions have ended: a commit may return before readers see
    /// its records. Not so late that a transaction that hangs would have timed out.
    func readEnded(_ topic: String) async throws -> [Copy] {
        let (properties, partitions) = (properties, [TopicPartition(topic, 0)])
        try await waitUntil("the transactions on \(topic) have ended", within: .seconds(5)) {
            try await blocking {
                let reader = try KafkaLog(properties).openReader(
                    ReaderOptions(name: "reader", group: "reader", topics: [topic]))
                defer { reader.close(by: Deadline(after: patience)) }
                // A request may get no answer; the next one does.
                let deadline = Deadline(after: .seconds(10))
                guard let committed = try? reader.ends(.committed, of: partitions, by: deadline) else { return false }
                return (try? reader.ends(.all, of: partitions, by: deadline)) == committed
            }
        }
        return try await read(topic)
    }

    /// The same with keys and values as bytes.
    func readWhole(_ topic: String, from starts: [Int32: Int64] = [:]) async throws -> [WholeRecord] {
        try await read(topic, from: starts) { WholeRecord($0) }
    }

    func read<Taken: Sendable>(
        _ topic: String, uncommitted: Bool = false, from starts: [Int32: Int64] = [:],
        within limit: Duration = patience,
        _ take: @escaping @Sendable (borrowing ConsumedRecord) -> Taken
    ) async throws -> [Taken] {
        try await blocking {
            var options = Consumer.Configuration(clientID: "reader", groupID: "reader", properties: properties)
            options.readsUncommitted = uncommitted
            let consumer = try Consumer(options)
            defer { consumer.close(by: Deadline(after: patience)) }
            let admin = try Admin(clientID: "reader", properties: properties)
            let count = try admin.cluster(by: Deadline(after: patience)).topics.first { $0.name == topic }?
                .partitions.count
            admin.close(by: Deadline(after: patience))
            try #require((count ?? 0) > 0, "topic \(topic) does not exist")
            try consumer.assign(
                Dictionary(
                    uniqueKeysWithValues: (0..<Int32(count ?? 0)).map {
                        (TopicPartition(topic, $0), NextOffset(starts[$0] ?? 0))
                    }))
            var copies: [Taken] = []
            let deadline = Deadline(after: limit)
            while !consumer.isAtEnd {
                if deadline.hasPassed {
                    throw KafkaFault(.retrySameCall, .timedOut, operation: "read \(topic) to its end")
                }
                if let record = try consumer.poll(.milliseconds(100)) { copies.append(take(record)) }
            }
            return copies
        }
    }

    /// The group's committed offset in one partition.
    func committed(_ partition: TopicPartition, group: String) async throws -> NextOffset? {
        try await blocking {
            let admin = try Admin(clientID: "test", properties: properties)
            defer { admin.close(by: Deadline(after: patience)) }
            return try admin.offsets(ofGroup: group, by: Deadline(after: patience))[partition]
        }
    }
}

/// A record, copied out of the fetch buffer.
struct Copy: Sendable, Equatable {
    var partition: Int32
    var offset: Int64
    var text: String
    var timestamp: Int64?
    var headers: [RecordHeader]

    init(_ record: borrowing ConsumedRecord) {
        partition = record.partition
        offset = record.offset
        text = record.copyOfValue().map { String(decoding: $0, as: UTF8.self) } ?? "<null>"
        timestamp = record.timestamp
        headers = record.headers
    }

    func header(_ name: String) -> String? {
        headers.first { $0.name == name }?.value.map { String(decoding: $0, as: UTF8.self) }
    }
}

extension TransactionalProducer {
    /// A started producer.
    static func ready(_ id: String, _ properties: ClientProperties) throws -> TransactionalProducer {
        let producer = try TransactionalProducer(.init(transactionalID: id, properties: properties))
        try producer.start(by: Deadline(after: patience))
        return producer
    }

    func send(_ text: String, to topic: ProducerTopic, partition: Int32 = 0) throws(KafkaFault) {
        try send(to: topic, partition: partition, key: nil, value: Array(text.utf8).span)
    }

    /// Sends, and waits until the broker has the record: it belongs to the open transaction and is not visible yet.
    func sendAndWait(_ text: String, to topic: ProducerTopic) throws {
        try send(text, to: topic)
        let deadline = Deadline(after: patience)
        while outstanding > 0 && !deadline.hasPassed { poll(.milliseconds(10)) }
        #expect(outstanding == 0)
    }
}

/// Returns the fault that `body` throws; nil, and a failed test, if it throws none.
func fault(in body: () throws(KafkaFault) -> Void) -> KafkaFault? {
    do {
        try body()
        Issue.record("no fault where one was expected")
        return nil
    } catch {
        return error
    }
}

/// A consumer outside of the group's work, for the metadata that `sendOffsets` needs.
func onlooker(_ group: String, _ properties: ClientProperties) throws -> Consumer {
    try Consumer(.init(clientID: "onlooker", groupID: group, properties: properties))
}

/// Tests on a real broker run one after the other: they measure time, and the machine has two cores.
@Suite(.serialized, .enabled(if: BrokerSource.current.isAvailable, Comment(rawValue: BrokerSource.skipLine)))
enum RealBroker {}

/// A cluster whose only broker dies. If the broker has skipped the markers of a transaction, a wrong result is not the fault of
/// the processes that wrote. Then the run is repeated, at most twice: a fault of the processes shows there.
func withMortalBrokers(_ options: KafkaOptions = KafkaOptions(), _ body: (MortalCluster) async throws -> Void)
    async throws
{
    for attempt in 1...3 {
        let cluster = try await KafkaCluster.start(BrokerSource.current.requireDistribution(), options)
        do {
            try await body(MortalCluster(kafka: cluster, isLast: attempt == 3))
            return await cluster.close()
        } catch {
            let isExcused = cluster.hasSkippedMarkers && (error is MarkersSkipped || error is NotInTime)
            await cluster.close()
            guard isExcused, attempt < 3 else { throw error }
            print("run \(attempt) proves nothing and is repeated: a broker skipped a transaction's markers (\(error))")
        }
    }
}

struct MortalCluster {
    let kafka: KafkaCluster
    fileprivate let isLast: Bool

    /// Call this before reporting that the output is wrong.
    func requireMarkers() throws(MarkersSkipped) {
        if !isLast && kafka.hasSkippedMarkers { throw MarkersSkipped() }
    }
}

struct MarkersSkipped: Error {}
