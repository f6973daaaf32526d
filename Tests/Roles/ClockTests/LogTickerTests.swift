import Contract
import KafkaTestKit
import Log
import MemoryLog
import Platform
import Synchronization
import Telemetry
import TestTraits
import Testing

@testable import Clock

/// A ticker over a log in memory, with a clock that the test moves.
private final class TickerRig: Sendable {
    static let topic = "t.production.notifications"
    static let start: Int64 = 1_000_000

    struct Tick: Equatable {
        let partition: Int32
        let timestamp: Int64
        let value: String
        let headers: [String]
    }

    let log = MemoryLog()
    let metrics = Metrics()
    private let time = Mutex(TickerRig.start)
    private let ticker = Mutex<LogTicker?>(nil)

    init() throws {
        try log.create([NewTopic(Self.topic, partitions: 2)], by: Deadline(after: patience))
        var configuration = LogTicker.Configuration(
            prefix: TopicPrefix("t")!, partitions: 2, interval: .seconds(30), app: "perennial/test")
        configuration.environments = [.production]
        configuration.lookInterval = .milliseconds(2)
        let made = LogTicker(
            configuration, log: log, now: { [self] in time.withLock { $0 } }, metrics: metrics, logger: Logger { _ in })
        ticker.withLock { $0 = made }
        try made.start { _ in }
    }

    func pass(_ milliseconds: Int64) { time.withLock { $0 += milliseconds } }

    func stop() throws { try ticker.withLock { $0 }?.stop(by: Deadline(after: patience)) }

    func append(at timestamp: Int64, to partition: Int32) throws {
        let writer = try log.openWriter(WriterOptions(name: "test", topics: [Self.topic]))
        let batch = OutputBatch()
        batch.append(topic: 0, partition: partition, timestamp: timestamp, key: [1], value: [2])
        _ = try writer.append(batch, by: Deadline(after: patience))
    }

    /// In the order of the partition.
    func ticks(of partition: Int32) throws -> [Tick] {
        let reader = try log.openReader(ReaderOptions(name: "test", group: "test", topics: [Self.topic]))
        try reader.read(from: [TopicPartition(Self.topic, partition): NextOffset(0)])
        let batch = RecordBatch()
        try reader.poll(into: batch, limit: 10_000, wait: .zero)
        return (0..<batch.count).compactMap { index in
            guard batch[index].copyOfKey() == nil else { return nil }
            return Tick(
                partition: batch[index].partition, timestamp: batch[index].timestamp,
                value: String(decoding: batch[index].copyOfValue() ?? [], as: UTF8.self),
                headers: batch[index].headers.map { "\($0.name)=\(String(decoding: $0.value ?? [], as: UTF8.self))" })
        }
    }
}

@Suite(.ownThreads) struct `A ticker over a log in memory` {
    @Test func `ticks at once what never had a record, and again when an interval has passed`() async throws {
        let rig = try TickerRig()
        try await waitUntil("both partitions have a tick") {
            try rig.ticks(of: 0).count == 1 && rig.ticks(of: 1).count == 1
        }
        rig.pass(29_999)
        rig.pass(1)
        try await waitUntil("both have another") { try rig.ticks(of: 0).count == 2 && rig.ticks(of: 1).count == 2 }
        #expect(try rig.ticks(of: 0).map(\.timestamp) == [TickerRig.start, TickerRig.start + 30_000])
        try rig.stop()
        rig.pass(1_000_000)
        #expect(try rig.ticks(of: 0).count == 2)
    }

    @Test func `writes ticks as readers expect them`() async throws {
        let rig = try TickerRig()
        defer { try? rig.stop() }
        try await waitUntil("a tick") { try rig.ticks(of: 1).count == 1 }
        let expected = TickerRig.Tick(
            partition: 1, timestamp: TickerRig.start, value: #"{"v":1,"tick":1000000}"#,
            headers: ["id=tick-1-1000000", "schema=tick/1", "app=perennial/test"])
        #expect(try rig.ticks(of: 1) == [expected])
        #expect(
            String(decoding: rig.metrics.exposition(), as: UTF8.self)
                .contains(#"perennial_clock_ticks_total{environment="production"} 2"#))
    }

    @Test func `counts the silence from the last record, whoever wrote it`() async throws {
        let rig = try TickerRig()
        defer { try? rig.stop() }
        try await waitUntil("both have a tick") { try rig.ticks(of: 0).count == 1 && rig.ticks(of: 1).count == 1 }
        rig.pass(20_000)
        try rig.append(at: TickerRig.start + 20_000, to: 0)
        rig.pass(10_000)
        try await waitUntil("the quiet one has another") { try rig.ticks(of: 1).count == 2 }
        #expect(try rig.ticks(of: 0).count == 1)
        rig.pass(30_000)
        try await waitUntil("the other one, later") { try rig.ticks(of: 0).count == 2 }
        #expect(try rig.ticks(of: 0).last?.timestamp == TickerRig.start + 60_000)
    }

    @Test func `says that it cannot work when a topic is missing`() async throws {
        let failures = Mutex<[String]>([])
        let ticker = LogTicker(
            LogTicker.Configuration(prefix: TopicPrefix("t")!, partitions: 2, interval: .seconds(30), app: "a"),
            log: MemoryLog(), now: { 0 }, metrics: Metrics(), logger: Logger { _ in })
        try ticker.start { error in failures.withLock { $0.append("\(error)") } }
        try await waitUntil("it fails") { failures.withLock { $0.count } == 1 }
        #expect(failures.withLock { $0[0] }.contains("t.production.notifications"))
        try ticker.stop(by: Deadline(after: patience))
    }
}
