// The Kafka layer, compared with the same loops in C.

import CLoops
import Glibc
import Kafka
import KafkaTestKit
import Platform

private let partitions: Int32 = 12
/// Enough records that the start of a loop does not matter: a run takes about a second.
private let records: Int64 = 1_500_000
private let valueBytes = 500
/// Alternating runs of each side; the median counts.
private let rounds = 7
/// What the layer may cost at most, as a multiple of the C loop.
private let reach = 1.15

/// `produce-c|produce-swift|consume-c|consume-swift BOOTSTRAP TOPIC`
func kafkaLoop(_ arguments: [String]) throws -> Int64 {
    guard arguments.count == 3 else {
        printMessage("usage: bench run produce-c|produce-swift|consume-c|consume-swift BOOTSTRAP TOPIC")
        exitProcess(2)
    }
    let (bootstrap, topic) = (arguments[1], arguments[2])
    return switch arguments[0] {
    case "produce-c": bench_produce(bootstrap, topic, partitions, records, Int64(valueBytes))
    case "consume-c": bench_consume(bootstrap, topic, partitions, records)
    case "produce-swift":
        try produce(bootstrap, topic, partitions: partitions, records: records, valueBytes: valueBytes)
    default: try consume(bootstrap, topic, partitions: partitions, records: records)
    }
}

/// Runs both loops on one broker.
func measureKafka(_ report: inout Report) async throws {
    let bootstrap = try await requireKafka()
    let suffix = "\(getpid())"
    let (written, read) = ("bench.produce.\(suffix)", "bench.consume.\(suffix)")
    try await onThread {
        let admin = try Admin(clientID: "bench", properties: ClientProperties(bootstrapServers: bootstrap))
        defer { admin.close(by: Deadline(after: .seconds(5))) }
        // Old records are deleted soon, because the runs would fill the disk of a small machine.
        let settings = [("retention.bytes", "67108864"), ("segment.bytes", "33554432")]
        for fault in try admin.create(
            [
                Admin.NewTopic(name: written, partitions: partitions, replicationFactor: 1, settings: settings),
                // The records' timestamps are in the past: without this the broker would delete them at once.
                Admin.NewTopic(
                    name: read, partitions: partitions, replicationFactor: 1, settings: [("retention.ms", "-1")]),
            ], by: Deadline(after: .seconds(20))
        ).values {
            if let fault { throw fault }
        }
    }
    printMessage("filling \(read) with \(records) records of \(valueBytes) bytes")
    _ = try await measure("produce-c", bootstrap, read)
    report.note(
        "CPU microseconds per record (getrusage of the process), median [min-max] of \(rounds) alternating runs; "
            + "librdkafka \(Librdkafka.version)")
    try await compare("produce", bootstrap, written, &report)
    try await compare("consume", bootstrap, read, &report)
    try await onThread {
        let admin = try Admin(clientID: "bench", properties: ClientProperties(bootstrapServers: bootstrap))
        defer { admin.close(by: Deadline(after: .seconds(5))) }
        _ = try admin.delete(topics: [written, read], by: Deadline(after: .seconds(20)))
    }
}

private func measure(_ loop: String, _ bootstrap: String, _ topic: String) async throws -> Double {
    try await measureLoop([loop, bootstrap, topic]) / Double(records)
}

private func compare(_ what: String, _ bootstrap: String, _ topic: String, _ report: inout Report) async throws {
    // One run of each warms the broker's caches.
    _ = try await measure("\(what)-c", bootstrap, topic)
    _ = try await measure("\(what)-swift", bootstrap, topic)
    var c: [Double] = []
    var swift: [Double] = []
    for round in 1...rounds {
        c.append(try await measure("\(what)-c", bootstrap, topic))
        swift.append(try await measure("\(what)-swift", bootstrap, topic))
        printMessage("\(what) \(round)/\(rounds)")
    }
    report.judge(
        what, "\(valueBytes)-byte records, C \(figures(c)), Perennial \(figures(swift))",
        ratio: median(swift) / median(c), .atMost(reach))
}
