import Log
import MemoryLog
import Platform
import Store
import Synchronization
import Telemetry
import Testing

@testable import Runtime

/// Refuses the first sessions, and keeps what was asked for.
private final class RefusingLog: RecordLog {
    private let memory: MemoryLog
    private let refusals: Int
    private let all = Mutex<[Bool]>([])

    init(_ memory: MemoryLog, refusals: Int) {
        self.memory = memory
        self.refusals = refusals
    }

    /// Of each session that was asked for: whether it might join early.
    var joinsEarly: [Bool] { all.withLock { $0 } }

    func topics(_ names: [String], by deadline: Deadline) throws(LogFault) -> [String: TopicShape] {
        try memory.topics(names, by: deadline)
    }
    func create(_ topics: [NewTopic], by deadline: Deadline) throws(LogFault) {
        try memory.create(topics, by: deadline)
    }
    func openSession(_ options: SessionOptions, by deadline: Deadline) throws(LogFault) -> any LogSession {
        let count = all.withLock { all in
            all.append(options.joinsEarly)
            return all.count
        }
        if count <= refusals { throw LogFault(.rebuild, .timedOut, "the transactions cannot start") }
        return try memory.openSession(options, by: deadline)
    }
    func openReader(_ options: ReaderOptions) throws(LogFault) -> any LogReader { try memory.openReader(options) }
    func openWriter(_ options: WriterOptions) throws(LogFault) -> any LogWriter { try memory.openWriter(options) }
}

@Suite struct `A worker that starts` {
    @Test func `may join before its transactions start only once, so that a fault does not hold its partitions`() throws
    {
        let (clock, deadline) = (MemoryLog.Clock.manual(startingAt: 5000), Deadline(after: .seconds(1)))
        let memory = MemoryLog(clock: clock)
        try memory.create(
            ["events", "rows", "told", "cells", "script.changelog", "script.dead-letters"].map {
                NewTopic($0, partitions: 1, isCompacted: $0 == "script.changelog")
            }, by: deadline)
        let log = RefusingLog(memory, refusals: 3)
        let restorer = Restorer(
            Script().definition, log: memory, name: "r", wallClock: { clock.now }, remaining: { _ in })
        let worker = Worker(
            Script(), log: log, stores: MemoryStores(), options: WorkerOptions(identity: "script.0-0"),
            restorer: restorer,
            environment: WorkerEnvironment(
                elapsed: { .milliseconds(clock.now) }, wallClock: { clock.now }, pause: { clock.advance(by: $0) },
                jitter: { 0 }), logger: Logger(level: .error) { _ in },
            metrics: WorkerMetrics(Metrics(), worker: "script"), board: PositionBoard())
        for _ in 0..<1_000 where log.joinsEarly.count < 4 { try worker.step() }
        #expect(log.joinsEarly == [true, false, false, false])
        #expect(worker.stop(by: deadline))
    }
}
