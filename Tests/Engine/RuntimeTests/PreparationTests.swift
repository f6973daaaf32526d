import Log
import LogTestKit
import MemoryLog
import Platform
import Synchronization
import Testing

@testable import Runtime

/// Keeps what a restorer asks for.
private final class WatchedLog: RecordLog {
    private final class Calls: Sendable {
        let limits = Mutex<[Duration]>([])
        let readers = Atomic(0)
        let ends = Atomic(0)
    }

    private let memory: MemoryLog
    private let readers: BrokenLog
    private let refusesFirst: Bool
    private let calls = Calls()

    /// - Parameter refusesFirst: no broker answers the first question about a topic.
    init(_ memory: MemoryLog, refusesFirst: Bool) {
        self.memory = memory
        self.refusesFirst = refusesFirst
        readers = BrokenLog(memory)
        readers.atEnds = { [calls] in calls.ends.wrappingAdd(1, ordering: .relaxed) }
    }

    /// How long each question about topics might take.
    var limits: [Duration] { calls.limits.withLock { $0 } }
    var countOfReaders: Int { calls.readers.load(ordering: .relaxed) }
    var questionsAboutPartitions: Int { calls.ends.load(ordering: .relaxed) }

    func topics(_ names: [String], by deadline: Deadline) throws(LogFault) -> [String: TopicShape] {
        let count = calls.limits.withLock { limits in
            limits.append(deadline.remaining)
            return limits.count
        }
        if refusesFirst, count == 1 { throw LogFault(.retrySameCall, .timedOut, "no broker answers") }
        return try memory.topics(names, by: deadline)
    }
    func create(_ topics: [NewTopic], by deadline: Deadline) throws(LogFault) {
        try memory.create(topics, by: deadline)
    }
    func openSession(_ options: SessionOptions, by deadline: Deadline) throws(LogFault) -> any LogSession {
        try memory.openSession(options, by: deadline)
    }
    func openReader(_ options: ReaderOptions) throws(LogFault) -> any LogReader {
        calls.readers.wrappingAdd(1, ordering: .relaxed)
        return try readers.openReader(options)
    }
    func openWriter(_ options: WriterOptions) throws(LogFault) -> any LogWriter { try memory.openWriter(options) }
}

@Suite struct `A restorer that prepares itself` {
    @Test(arguments: [false, true])
    func `asks about no partition, for a second at most, and keeps its reader`(refusesFirst: Bool) throws {
        var watched: WatchedLog?
        let bench = try RestoreBench { memory in
            let log = WatchedLog(memory, refusesFirst: refusesFirst)
            watched = log
            return log
        }
        let log = try #require(watched)
        try bench.commit([("a", "1")], events: 1)
        bench.restorer.prepare()
        #expect(log.limits.count == 1 && log.limits[0] <= .seconds(1))
        #expect(log.countOfReaders == 1 && log.questionsAboutPartitions == 0)
        _ = try bench.order(group: ["events": 1, "rows": 0])
        #expect(next(try bench.outcome()) == [1, 0])
        #expect(bench.values == ["a": "1"])
        // What was checked is not asked again, and what was not is.
        #expect(log.limits.count == (refusesFirst ? 2 : 1))
        #expect(log.countOfReaders == 1 && log.questionsAboutPartitions > 0)
    }
}
