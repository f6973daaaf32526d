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
            [NewTopic("events", partitions: 1), NewTopic("rows", partitions: 1)], by: Deadline(after: .seconds(1)))
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

    @Test func `is looked at again after a log that did not answer`() throws {
        let empty = MemoryLog(clock: .manual())
        var watch = LagWatch(Script().definition, log: empty, board: board, metrics: metrics)
        board.set(.init(next: [NextOffset(0), NextOffset(0)], clock: .min), of: 0)
        watch.look(elapsed: .zero, wallClock: 5000)
        try empty.create(
            [NewTopic("events", partitions: 1), NewTopic("rows", partitions: 1)], by: Deadline(after: .seconds(1)))
        watch.look(elapsed: .zero, wallClock: 5000)
        #expect(reading(records, of: metrics) == "0")
        #expect(reading(seconds, of: metrics) == "0")
    }
}
