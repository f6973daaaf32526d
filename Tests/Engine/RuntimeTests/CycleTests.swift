import Log
import MemoryLog
import Platform
import Store
import Synchronization
import Telemetry
import Testing

@testable import Runtime

@Suite struct `The pace of cycles` {
    private static func pace(_ interval: Duration) -> CyclePace {
        CyclePace(interval: interval, backlogInterval: .milliseconds(100), recordLimit: 1000)
    }

    @Test func `lets the first record after a quiet time wait for nothing`() {
        var pace = Self.pace(.milliseconds(20))
        pace.begin(at: .zero)
        #expect(pace.isDue(at: .zero))
        pace.committed(in: .milliseconds(5), at: .milliseconds(5))
        pace.begin(at: .milliseconds(25))
        #expect(pace.isDue(at: .milliseconds(25)))
    }

    @Test func `lets records that follow a commit wait for the rest of the interval`() {
        var pace = Self.pace(.milliseconds(20))
        pace.committed(in: .milliseconds(5), at: .milliseconds(5))
        pace.begin(at: .milliseconds(8))
        #expect(!pace.isDue(at: .milliseconds(24)))
        #expect(pace.wait(at: .milliseconds(8)) == .milliseconds(17))
        #expect(pace.isDue(at: .milliseconds(25)))
    }

    @Test func `commits a backlog after its time or its number of records, and its rest an interval later`() {
        var pace = Self.pace(.milliseconds(20))
        pace.begin(at: .zero)
        pace.leftRecords(at: .milliseconds(50))
        #expect(!pace.isFull(at: .milliseconds(99)))
        #expect(pace.isFull(at: .milliseconds(100)))
        #expect(!pace.isDue(at: .milliseconds(69)))
        #expect(pace.isDue(at: .milliseconds(70)))
        // However late the last full poll was.
        pace.leftRecords(at: .milliseconds(95))
        #expect(pace.wait(at: .milliseconds(95)) == .milliseconds(5))
        #expect(pace.isDue(at: .milliseconds(100)))
        for _ in 0..<1000 { pace.addRecord() }
        #expect(pace.isFull(at: .milliseconds(51)))
        pace.committed(in: .milliseconds(5), at: .milliseconds(60))
        #expect(!pace.isOpen)
        #expect(!pace.isFull(at: .seconds(60)))
        #expect(pace.records == 0)
    }

    @Test func `lets commits come more seldom while they take longer than they need to`() {
        var pace = Self.pace(.milliseconds(20))
        pace.committed(in: .milliseconds(10), at: .zero)
        // One slow commit changes nothing.
        pace.committed(in: .milliseconds(50), at: .seconds(1))
        pace.begin(at: .seconds(1))
        #expect(pace.isDue(at: .milliseconds(1_020)))
        for _ in 0..<50 { pace.committed(in: .milliseconds(50), at: .seconds(2)) }
        pace.begin(at: .seconds(2))
        #expect(!pace.isDue(at: .milliseconds(2_120)))
        #expect(!pace.isFull(at: .milliseconds(2_120)))
        #expect(pace.isDue(at: .milliseconds(2_160)))
        // They are quick again.
        for _ in 0..<50 { pace.committed(in: .milliseconds(10), at: .seconds(3)) }
        pace.begin(at: .seconds(3))
        #expect(pace.isDue(at: .milliseconds(3_020)))
    }

    @Test func `lets no poll wait longer than 100 ms, however long the interval is`() {
        var pace = Self.pace(.seconds(5))
        #expect(pace.wait(at: .zero) == .milliseconds(100))
        pace.committed(in: .milliseconds(5), at: .zero)
        pace.begin(at: .milliseconds(10))
        #expect(pace.wait(at: .milliseconds(10)) == .milliseconds(100))
        #expect(pace.wait(at: .milliseconds(4_990)) == .milliseconds(10))
        #expect(pace.wait(at: .seconds(9)) == .zero)
        #expect(!pace.isFull(at: .milliseconds(5_009)))
        #expect(pace.isFull(at: .milliseconds(5_010)))
    }
}

@Suite struct `A worker in an open cycle` {
    @Test func `commits in an interval what arrives within it, and shows no position before`() throws {
        let rig = try CycleRig(interval: .milliseconds(20))
        try rig.feed("tell 1")
        try rig.step()
        #expect(rig.committed == 1)
        let first = rig.clock.now
        // Nothing more arrives: the poll waits for the rest of the interval, and the next step commits.
        try rig.feed("tell 2")
        try rig.step()
        try rig.feed("tell 3")
        try rig.step()
        #expect(rig.committed == 1)
        #expect(rig.board.next(of: 0)?.first == NextOffset(1))
        try rig.step()
        #expect(rig.committed == 3)
        #expect(rig.clock.now - first == 20)
        #expect(rig.waits.withLock { $0.suffix(3) } == [.milliseconds(100), .milliseconds(20), .milliseconds(20)])
    }

    @Test func `polls every 100 ms, however long its interval is, and shows no position that is not committed`() throws
    {
        let rig = try CycleRig(interval: .seconds(5))
        try rig.feed("tell 1")
        try rig.step()
        try rig.feed("tell 2")
        try rig.step()
        // The session's position moves over it, and so is ahead of the last record.
        try rig.feedNothing()
        rig.waits.withLock { $0 = [] }
        for _ in 0..<3 { try rig.step() }
        #expect(rig.waits.withLock { $0 } == [.milliseconds(100), .milliseconds(100), .milliseconds(100)])
        #expect(rig.committed == 1)
        #expect(rig.board.next(of: 0)?.first == NextOffset(1))
        #expect(rig.worker.stop(by: Deadline(after: .seconds(1))))
        #expect(rig.committed == 2)
    }

    @Test func `makes one transaction of a backlog of 100 ms`() throws {
        let rig = try CycleRig(interval: .milliseconds(20))
        for number in 0..<(Worker.recordsPerPoll * 3) { try rig.feed("tell \(number)") }
        try rig.step()
        rig.clock.advance(by: .milliseconds(60))
        try rig.step()
        #expect(rig.committed == nil)
        rig.clock.advance(by: .milliseconds(40))
        try rig.step()
        #expect(rig.committed == Int64(Worker.recordsPerPoll * 3))
    }
}

/// One worker whose polls wait in virtual time: the clock advances by what a poll that finds nothing waits for.
private struct CycleRig {
    let clock = MemoryLog.Clock.manual(startingAt: 5000)
    let log: MemoryLog
    let board = PositionBoard()
    let worker: Worker
    let waits: Waits

    /// With a partition that runs.
    init(interval: Duration) throws {
        let (clock, deadline) = (clock, Deadline(after: .seconds(1)))
        log = MemoryLog(clock: clock)
        try log.create(
            ["events", "rows", "told", "cells", "script.changelog", "script.dead-letters"].map {
                NewTopic($0, partitions: 1, isCompacted: $0 == "script.changelog")
            }, by: deadline)
        waits = Waits(log, clock)
        let restorer = Restorer(Script().definition, log: log, name: "r", wallClock: { clock.now }, remaining: { _ in })
        var options = WorkerOptions(identity: "script.0-0")
        options.commitInterval = interval
        worker = Worker(
            Script(), log: waits, stores: MemoryStores(), options: options, restorer: restorer,
            environment: WorkerEnvironment(
                elapsed: { .milliseconds(clock.now) }, wallClock: { clock.now }, pause: { clock.advance(by: $0) },
                jitter: { 0 }), logger: Logger(level: .error) { _ in },
            metrics: WorkerMetrics(Metrics(), worker: "script"), board: board)
        for _ in 0..<10 {
            try worker.step()
            restorer.step(wait: .zero)
        }
        #expect(worker.troubles == [])
    }

    func step() throws { try worker.step() }

    func feed(_ text: String) throws {
        let writer = try log.openWriter(WriterOptions(name: "feeder", topics: ["events"]))
        let batch = OutputBatch()
        batch.append(
            topic: 0, partition: 0, timestamp: clock.now, key: [1], value: Array(text.utf8),
            headers: [RecordHeader("schema", "word/1")])
        _ = try writer.append(batch, by: Deadline(after: .seconds(1)))
    }

    /// An aborted record takes two offsets, its own and that of the mark of the abort.
    func feedNothing() throws {
        let session = try log.openSession(
            SessionOptions(group: "other", identity: "other", inputs: [], outputs: ["events"]),
            by: Deadline(after: .seconds(1)))
        let batch = OutputBatch()
        batch.append(topic: 0, partition: 0, timestamp: clock.now, key: nil, value: [])
        try session.append(batch)
        try session.abort()
        _ = session.close(by: Deadline(after: .seconds(1)))
    }

    var committed: Int64? { log.committed(group: "script")[TopicPartition("events", 0)]?.value }
}

/// A log whose sessions note how long each poll may wait.
private final class Waits: RecordLog {
    private let log: MemoryLog
    private let clock: MemoryLog.Clock
    private let all = Mutex<[Duration]>([])

    init(_ log: MemoryLog, _ clock: MemoryLog.Clock) {
        self.log = log
        self.clock = clock
    }

    func withLock<Value: Sendable>(_ body: (inout sending [Duration]) -> sending Value) -> Value { all.withLock(body) }

    func topics(_ names: [String], by deadline: Deadline) throws(LogFault) -> [String: TopicShape] {
        try log.topics(names, by: deadline)
    }
    func create(_ topics: [NewTopic], by deadline: Deadline) throws(LogFault) {
        try log.create(topics, by: deadline)
    }
    func openSession(_ options: SessionOptions, by deadline: Deadline) throws(LogFault) -> any LogSession {
        WaitingSession(try log.openSession(options, by: deadline)) { [self] wait, isEmpty in
            all.withLock { $0.append(wait) }
            if isEmpty { clock.advance(by: wait) }
        }
    }
    func openReader(_ options: ReaderOptions) throws(LogFault) -> any LogReader { try log.openReader(options) }
    func openWriter(_ options: WriterOptions) throws(LogFault) -> any LogWriter { try log.openWriter(options) }
}

private final class WaitingSession: LogSession {
    private let session: any LogSession
    private let polled: (_ wait: Duration, _ isEmpty: Bool) -> Void

    init(_ session: any LogSession, _ polled: @escaping (_ wait: Duration, _ isEmpty: Bool) -> Void) {
        self.session = session
        self.polled = polled
    }

    func poll(into batch: RecordBatch, limit: Int, wait: Duration) throws(LogFault) -> SessionEvent {
        let event = try session.poll(into: batch, limit: limit, wait: wait)
        polled(wait, event == .nothing)
        return event
    }
    func committed(
        _ partitions: [TopicPartition], by deadline: Deadline
    ) throws(LogFault) -> [TopicPartition: NextOffset] { try session.committed(partitions, by: deadline) }
    func beginnings(
        of partitions: [TopicPartition], by deadline: Deadline
    ) throws(LogFault) -> [TopicPartition: NextOffset] { try session.beginnings(of: partitions, by: deadline) }
    func take(_ starts: [TopicPartition: NextOffset], paused: Set<TopicPartition>) throws(LogFault) {
        try session.take(starts, paused: paused)
    }
    func giveBack() throws(LogFault) { try session.giveBack() }
    func pause(_ partitions: [TopicPartition]) throws(LogFault) { try session.pause(partitions) }
    func resume(_ partitions: [TopicPartition]) throws(LogFault) { try session.resume(partitions) }
    func seek(to positions: [TopicPartition: NextOffset]) throws(LogFault) { try session.seek(to: positions) }
    func position(of partition: TopicPartition) -> NextOffset? { session.position(of: partition) }
    func append(_ outputs: OutputBatch) throws(LogFault) { try session.append(outputs) }
    func commit(_ positions: [TopicPartition: NextOffset]) throws(LogFault) { try session.commit(positions) }
    func abort() throws(LogFault) { try session.abort() }
    var ownedUntil: Duration? { session.ownedUntil }
    func appendedEnd(topic: Int, partition: Int32) -> NextOffset? {
        session.appendedEnd(topic: topic, partition: partition)
    }
    func close(by deadline: Deadline) -> Bool { session.close(by: deadline) }
}
