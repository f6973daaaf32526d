// The Kafka log, compared with the same worker loop written directly on its clients.

import CLoops
import Glibc
import Kafka
import KafkaTestKit
import Log
import Platform

private let partitions: Int32 = 12
/// A run takes a few seconds, most of them the broker's. Starting and joining the group are not counted.
private let records = 200_000
private let valueBytes = 500
private let recordsPerTransaction = 1_000
/// A few hundred, as the interface is meant to be used: a call for each record would cost much, and more records leave the
/// processor's cache.
private let recordsPerPoll = 200
/// Alternating runs of each side; the median counts.
private let rounds = 7
/// The interface may cost nothing measurable.
private let reach = 1.05

private let headers = [
    RecordHeader("id", "0123456789abcdef"), RecordHeader("schema", "entitlement/1"),
    RecordHeader("source", "appstore.production.notifications:0:0"), RecordHeader("app", "perennial/1"),
]

/// `log-interface|log-clients BOOTSTRAP INPUT OUTPUT`: one output with headers per input, in transactions.
func logLoop(_ arguments: [String]) throws -> Int64 {
    guard arguments.count == 4 else {
        printMessage("usage: bench run log-interface|log-clients BOOTSTRAP INPUT OUTPUT")
        exitProcess(2)
    }
    let properties = ClientProperties(bootstrapServers: arguments[1])
    let group = "bench-\(arguments[0])-\(getpid())"
    return arguments[0] == "log-interface"
        ? try copyOverInterface(properties, group, from: arguments[2], to: arguments[3])
        : try copyOverClients(properties, group, from: arguments[2], to: arguments[3])
}

func measureLog(_ report: inout Report) async throws {
    let bootstrap = try await requireKafka()
    let (input, output) = ("bench.log.in.\(getpid())", "bench.log.out.\(getpid())")
    try await onThread {
        let admin = try Admin(clientID: "bench", properties: ClientProperties(bootstrapServers: bootstrap))
        defer { admin.close(by: Deadline(after: .seconds(5))) }
        let settings = [("retention.bytes", "67108864"), ("segment.bytes", "33554432")]
        for fault in try admin.create(
            [
                // The records' timestamps are in the past: without this the broker would delete them at once.
                Admin.NewTopic(
                    name: input, partitions: partitions, replicationFactor: 1, settings: [("retention.ms", "-1")]),
                Admin.NewTopic(name: output, partitions: partitions, replicationFactor: 1, settings: settings),
            ], by: Deadline(after: .seconds(20))
        ).values {
            if let fault { throw fault }
        }
        _ = try produce(
            bootstrap, input, partitions: partitions, records: Int64(records), valueBytes: valueBytes)
    }
    report.note(
        "CPU microseconds per record (getrusage of the process), median [min-max] of \(rounds) alternating runs; "
            + "\(recordsPerTransaction) records a transaction, \(headers.count) headers a record")
    var costs: [String: [Double]] = [:]
    // The first run of each warms the broker's caches.
    for round in 0...rounds {
        let sides = ["log-clients", "log-interface"]
        // The two go first in turn, because work that one leaves to the broker slows the next.
        for side in round % 2 == 0 ? sides : sides.reversed() {
            let cost = try await measureLoop([side, bootstrap, input, output]) / Double(records)
            if round > 0 { costs[side, default: []].append(cost) }
        }
        printMessage("log \(round)/\(rounds)")
    }
    let (clients, interface) = (costs["log-clients"]!, costs["log-interface"]!)
    report.judge(
        "log", "\(valueBytes)-byte records, clients \(figures(clients)), log \(figures(interface))",
        ratio: median(interface) / median(clients), .atMost(reach))
    try await onThread {
        let admin = try Admin(clientID: "bench", properties: ClientProperties(bootstrapServers: bootstrap))
        defer { admin.close(by: Deadline(after: .seconds(5))) }
        _ = try admin.delete(topics: [input, output], by: Deadline(after: .seconds(20)))
    }
}

// MARK: Over the interface

private func copyOverInterface(
    _ properties: ClientProperties, _ group: String, from input: String, to output: String
) throws -> Int64 {
    let options = SessionOptions(group: group, identity: "\(group).0-0", inputs: [input], outputs: [output])
    let session = try KafkaLog(properties).openSession(options, by: Deadline(after: .seconds(30)))
    let batch = RecordBatch()
    let outputs = OutputBatch()
    let same = EncodedHeaders(headers)
    var owned: [TopicPartition] = []
    var count = 0
    var inTransaction = 0
    var start: Int64 = 0
    func commit() throws {
        var positions: [TopicPartition: NextOffset] = [:]
        for partition in owned { positions[partition] = session.position(of: partition) }
        try session.commit(positions)
        inTransaction = 0
    }
    while count < records {
        switch try session.poll(
            into: batch, limit: min(recordsPerPoll, recordsPerTransaction - inTransaction), wait: .seconds(10))
        {
        case .assigned(let partitions):
            owned = partitions
            start = bench_cpu_microseconds()
            try session.take(
                Dictionary(uniqueKeysWithValues: partitions.map { ($0, NextOffset(0)) }), paused: [])
        case .records:
            for index in 0..<batch.count {
                let record = batch[index]
                outputs.begin(topic: 0, partition: record.partition, timestamp: record.timestamp)
                outputs.headers(same)
                outputs.end(key: record.key, value: record.value)
            }
            try session.append(outputs)
            outputs.removeAll()
            count += batch.count
            inTransaction += batch.count
            if inTransaction == recordsPerTransaction { try commit() }
        default: return -1
        }
    }
    if inTransaction > 0 { try commit() }
    let spent = bench_cpu_microseconds() - start
    session.close(by: Deadline(after: .seconds(10)))
    return count == records ? spent : -1
}

// MARK: Over the clients

/// Starts reading every partition at its beginning.
private final class FromTheBeginning: RebalanceHooks {
    var start: Int64 = 0

    func assigned(_ partitions: [TopicPartition], by consumer: Consumer) -> AssignmentPlan {
        start = bench_cpu_microseconds()
        return AssignmentPlan(starts: Dictionary(uniqueKeysWithValues: partitions.map { ($0, NextOffset(0)) }))
    }
    func revoked(_ partitions: [TopicPartition], by consumer: Consumer) {}
    func lost(_ partitions: [TopicPartition], by consumer: Consumer) {}
}

private func copyOverClients(
    _ properties: ClientProperties, _ group: String, from input: String, to output: String
) throws -> Int64 {
    let producer = try TransactionalProducer(.init(transactionalID: "\(group).0-0", properties: properties))
    let topic = try producer.topic(output)
    try producer.start(by: Deadline(after: .seconds(30)))
    _ = try producer.partitionCounts(by: Deadline(after: .seconds(30)))
    let consumer = try Consumer(
        .init(clientID: group, groupID: group, instanceID: "\(group).0-0", properties: properties))
    let hooks = FromTheBeginning()
    try consumer.subscribe(to: [input], hooks: hooks)
    var count = 0
    var inTransaction = 0
    func copy(_ record: borrowing ConsumedRecord) throws {
        while true {
            do throws(KafkaFault) {
                return try producer.send(
                    to: topic, partition: record.partition, key: record.key, value: record.value, headers: headers,
                    timestamp: record.timestamp)
            } catch {
                if error.code != .queueFull { throw error }
                producer.poll(.milliseconds(10))
            }
        }
    }
    while count < records {
        guard let first = try consumer.poll(.seconds(10)) else { return -1 }
        if producer.state != .inTransaction { try producer.begin() }
        try copy(first)
        var seen = 1
        while seen < recordsPerTransaction - inTransaction, let record = try consumer.poll() {
            seen += 1
            try copy(record)
        }
        producer.poll()
        count += seen
        inTransaction += seen
        if inTransaction == recordsPerTransaction || count == records {
            try producer.sendOffsets(consumer.positions, of: consumer.groupMetadata())
            try producer.commit()
            inTransaction = 0
        }
    }
    let spent = bench_cpu_microseconds() - hooks.start
    consumer.close(by: Deadline(after: .seconds(10)))
    producer.close(by: Deadline(after: .seconds(10)))
    return count == records ? spent : -1
}
