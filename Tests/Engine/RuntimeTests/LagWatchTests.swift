import Log
import MemoryLog
import Platform
import Telemetry
import Testing

@testable import Runtime

@Suite struct `The lag of a worker` {
    private let log = MemoryLog(clock: .manual(startingAt: 5000))
    private let metrics = Metrics()
    private let board = PositionBoard()
    private let records = "perennial_lag_records{worker=\"script\",topic=\"events\",partition=\"0\"}"
    private let seconds = "perennial_lag_seconds{worker=\"script\",partition=\"0\"}"
    private let stall = "perennial_lso_stall_seconds{worker=\"script\"}"

    init() throws {
        try log.create(
            [
                NewTopic("events", partitions: 1), NewTopic("rows", partitions: 1),
                NewTopic(Script().definition.changelog, partitions: 1, isCompacted: true),
            ], by: Deadline(after: .seconds(1)))
        let writer = try log.openWriter(WriterOptions(name: "w", topics: ["events"]))
        let batch = OutputBatch()
        for _ in 0..<10 { batch.append(topic: 0, partition: 0, timestamp: 1000, key: nil, value: []) }
        _ = try writer.append(batch, by: Deadline(after: .seconds(1)))
    }

    private func watch() -> LagWatch {
        LagWatch(Script().definition, log: log, board: board, metrics: metrics)
    }

    @Test func `is what is committed and not dealt with, and nothing at the end`() {
        var watch = watch()
        board.set(.init(next: [NextOffset(4), NextOffset(0)], clock: 1000), of: 0)
        watch.look(elapsed: .zero, wallClock: 5000)
        #expect(reading(records, of: metrics) == "6")
        #expect(reading(seconds, of: metrics) == "4")
        board.set(.init(next: [NextOffset(10), NextOffset(0)], clock: 1000), of: 0)
        watch.look(elapsed: .zero, wallClock: 50_000)
        #expect(reading(records, of: metrics) == "0")
        #expect(reading(seconds, of: metrics) == "0")
    }

    @Test func `is gone with the partition`() {
        var watch = watch()
        board.set(.init(next: [NextOffset(4), NextOffset(0)], clock: 1000), of: 0)
        watch.look(elapsed: .zero, wallClock: 5000)
        board.remove(0)
        watch.look(elapsed: .zero, wallClock: 5000)
        #expect(reading(records, of: metrics) == "0")
        #expect(reading(seconds, of: metrics) == "0")
    }

    @Test func `says for how long an open transaction has held readers back`() throws {
        var watch = watch()
        board.set(.init(next: [NextOffset(10), NextOffset(0)], clock: 1000), of: 0)
        var options = SessionOptions(group: "g", identity: "i", inputs: ["rows"], outputs: ["events"])
        options.transactionTimeout = .seconds(3600)
        let session = try log.openSession(options, by: Deadline(after: .seconds(1)))
        let batch = OutputBatch()
        batch.append(topic: 0, partition: 0, timestamp: 1000, key: nil, value: [])
        try session.append(batch)
        watch.look(elapsed: .seconds(100), wallClock: 5000)
        #expect(reading(stall, of: metrics) == "0")
        watch.look(elapsed: .seconds(170), wallClock: 5000)
        #expect(reading(stall, of: metrics) == "70")
        #expect(reading(records, of: metrics) == "0")
        try session.commit([:])
        watch.look(elapsed: .seconds(180), wallClock: 5000)
        #expect(reading(stall, of: metrics) == "0")
    }

    /// A transaction that nobody ends. Kafka sometimes leaves one by itself.
    private func hang(in topic: String) throws -> any LogSession {
        var options = SessionOptions(group: "g", identity: "i", inputs: ["rows"], outputs: [topic])
        options.transactionTimeout = .seconds(3600)
        let session = try log.openSession(options, by: Deadline(after: .seconds(1)))
        let batch = OutputBatch()
        batch.append(topic: 0, partition: 0, timestamp: 1000, key: [1], value: [])
        try session.append(batch)
        return session
    }

    @Test(arguments: [0, 10])
    func `names after half a minute what an open transaction hides, and how to end it`(_ place: Int64) throws {
        let topic = place == 0 ? Script().definition.changelog : "events"
        var watch = watch()
        // Assigned but not open: its restore waits for the open transaction.
        board.give([0], to: 0)
        let session = try hang(in: topic)
        watch.look(elapsed: .seconds(100), wallClock: 5000)
        watch.look(elapsed: .seconds(129), wallClock: 5000)
        #expect(watch.held.isEmpty)
        watch.look(elapsed: .seconds(131), wallClock: 5000)
        #expect(reading(stall, of: metrics) == "31")
        let held = try #require(watch.held.first)
        #expect(held.partition == HeldPartition(partition: TopicPartition(topic, 0), offset: NextOffset(place)))
        #expect(held.partition.words(after: held.time).contains("\(topic)[0] from offset \(place) on for 31 s"))
        #expect(
            held.partition.words(after: held.time).hasSuffix(
                "kafka-transactions.sh abort --topic \(topic) --partition 0 --start-offset \(place)"))
        try session.commit([:])
        watch.look(elapsed: .seconds(135), wallClock: 5000)
        #expect(watch.held.isEmpty)
        #expect(reading(stall, of: metrics) == "0")
    }

    @Test func `says nothing of a partition that others have now`() throws {
        var watch = watch()
        board.give([0], to: 0)
        let session = try hang(in: "events")
        watch.look(elapsed: .zero, wallClock: 5000)
        watch.look(elapsed: .seconds(40), wallClock: 5000)
        #expect(watch.held.count == 1)
        board.give([], to: 0)
        watch.look(elapsed: .seconds(45), wallClock: 5000)
        #expect(watch.held.isEmpty)
        #expect(reading(stall, of: metrics) == "0")
        try session.abort()
    }

    @Test func `is looked at again after a log that did not answer`() throws {
        let empty = MemoryLog(clock: .manual())
        var watch = LagWatch(Script().definition, log: empty, board: board, metrics: metrics)
        board.set(.init(next: [NextOffset(0), NextOffset(0)], clock: .min), of: 0)
        watch.look(elapsed: .zero, wallClock: 5000)
        try empty.create(
            [
                NewTopic("events", partitions: 1), NewTopic("rows", partitions: 1),
                NewTopic(Script().definition.changelog, partitions: 1, isCompacted: true),
            ], by: Deadline(after: .seconds(1)))
        watch.look(elapsed: .zero, wallClock: 5000)
        #expect(reading(records, of: metrics) == "0")
        #expect(reading(seconds, of: metrics) == "0")
    }
}
