import Log
import MemoryLog
import Platform
import Store
import Synchronization
import Telemetry
import Testing
import WorkerTestKit

@testable import Runtime

@Suite struct `A shadow` {
    /// Output starts with the third event.
    private static func script(partitions: Int32 = 1, silentBefore events: Int64 = 2, rows: Int64 = 0) -> Script {
        var script = Script(partitions: partitions)
        script.definition.isShadow = true
        script.definition.silentBefore = [
            TopicPartition("events", 0): NextOffset(events), TopicPartition("rows", 0): NextOffset(rows),
        ]
        return script
    }

    @Test func `keeps what it was told in silence, and puts out from its place on what a loud one does`() throws {
        let (quiet, loud) = (try TaskBench(Self.script()), try TaskBench())
        for bench in [quiet, loud] {
            try bench.run("put a 1;tell one", at: 10)
            try bench.run("put a 2;wake a 1 35;tell two;tell too", at: 20)
            try bench.run("put b 3;tell three", at: 30)
            try bench.run("tell four", at: 40)
        }
        #expect(loud.told == ["one @10", "two @20", "too @20", "three @30", "fired a 1 @35", "four @40"])
        #expect(quiet.told == ["three @30", "fired a 1 @35", "four @40"])
        #expect(quiet.ids == Array(loud.ids.suffix(3)))
        for key in ["a", "b"] { #expect(try quiet.value(key) == loud.value(key)) }
    }

    @Test func `is silent of timers that a silent record makes due`() throws {
        let bench = try TaskBench(Self.script())
        try bench.run("put a 1;wake a 1 15", at: 10)
        try bench.run("tell two", at: 20)
        try bench.run("tell three", at: 30)
        #expect(bench.told == ["three @30"])
    }

    @Test(arguments: [true, false])
    func `settles aloud what loud records changed, wherever commits fall`(commitsEach: Bool) throws {
        let bench = try TaskBench(Self.script())
        let values = ["put =a 1;put =b 1", "put =a 2", "put =b 2", "put =c 1"]
        for (index, value) in values.enumerated() {
            var outcome = try bench.handle(value, at: Int64(index))
            if outcome == .commitFirst {
                try bench.commit()
                outcome = try bench.again()
            }
            #expect(outcome == .done)
            if commitsEach { try bench.commit() }
        }
        try bench.commit()
        #expect(Set(bench.cells) == ["=b 2", "=c 1"])
    }

    @Test func `has no dead letters of silent records, and takes back what they did`() throws {
        let bench = try TaskBench(Self.script())
        let huge = "put a 1;fail bad"
        try bench.run(huge, at: 10)
        try bench.run("tell \(String(repeating: "x", count: Turn.limitBytes + 1));put a 2", at: 20)
        #expect(try bench.value("a") == nil)
        try bench.run(huge, at: 30)
        #expect(bench.letters.map { $0.header("source") } == ["events:0:2"])
    }

    @Test func `has a place of its own for each input`() throws {
        let bench = try TaskBench(Self.script(rows: 1))
        try bench.run("tell row one", topic: 1, at: 10)
        try bench.run("tell row two", topic: 1, at: 10)
        try bench.run("tell one", at: 10)
        #expect(bench.told.map { $0.prefix(7) } == ["row two"])
    }

    @Test(arguments: [true, false])
    func `leaves rows in a wrong partition to the live worker, and goes on behind them`(isShadow: Bool) throws {
        var script = Self.script(partitions: 8, silentBefore: 0)
        script.definition.isShadow = isShadow
        let bench = try TaskBench(script)
        let away = (0..<1_000).map { "key-\($0)" }
            .first { Partitioner.partition(of: Array($0.utf8), count: 8) == 5 }!
        try bench.run("tell away", topic: 1, key: away, at: 1)
        #expect(bench.told.isEmpty)
        #expect(bench.committed.count { $0.topic == Script.rows } == (isShadow ? 0 : 1))
        #expect(bench.task.next[1] == NextOffset(1))
        #expect(bench.metric(#"perennial_records_rerouted_total{worker="script"}"#) == "1")
    }

    /// As a promotion needs it: exactly as far as the live worker.
    @Test func `ends at its bound, though there is more`() throws {
        let simulation = try WorkerSimulation(Script(), processes: 1)
        let bounds = [TopicPartition("events", 0): NextOffset(2), TopicPartition("rows", 0): NextOffset(0)]
        simulation.bounds = bounds
        for number in 1...4 {
            try simulation.feed(
                partition: 0, key: [1], value: Array("tell \(number)".utf8),
                headers: [RecordHeader("type", "word")])
        }
        let process = simulation.processes[0]
        simulation.start(process)
        for _ in 0..<200 {
            simulation.step(process)
            simulation.clock.advance(by: .milliseconds(5))
        }
        #expect(try simulation.read("told").count == 2)
        simulation.stop(process)
        // Records that it has not read are there for the next start.
        simulation.bounds = [:]
        simulation.start(process)
        #expect(try simulation.runToEnd())
        #expect(try simulation.read("told").count == 4)
    }

    /// Its user has no right to write to them.
    @Test(arguments: [true, false])
    func `does not ask to write to its tables`(isShadow: Bool) throws {
        var script = Self.script()
        script.definition.isShadow = isShadow
        let simulation = try WorkerSimulation(script, processes: 1)
        let log = OutputsLog(log: simulation.log)
        let restorer = Restorer(
            script.definition, log: log, name: "restore", wallClock: { 0 }, remaining: { _ in })
        let worker = Worker(
            script, log: log, stores: MemoryStores(disk: MemoryDisk()), options: WorkerOptions(identity: "a"),
            restorer: restorer, environment: .real { _ in }, logger: Logger(level: .error, format: .text),
            metrics: WorkerMetrics(Metrics(), worker: "script"), board: PositionBoard())
        try worker.step()
        #expect(log.outputs.withLock { $0 }.contains("rows") == !isShadow)
        _ = worker.stop(by: Deadline(after: .seconds(5)))
    }
}

/// Records with which outputs a session is opened.
private final class OutputsLog: RecordLog {
    let log: MemoryLog
    let outputs = Mutex<[String]>([])

    init(log: MemoryLog) { self.log = log }

    func topics(_ names: [String], by deadline: Deadline) throws(LogFault) -> [String: TopicShape] {
        try log.topics(names, by: deadline)
    }
    func create(_ topics: [NewTopic], by deadline: Deadline) throws(LogFault) {
        try log.create(topics, by: deadline)
    }
    func openSession(_ options: SessionOptions, by deadline: Deadline) throws(LogFault) -> any LogSession {
        outputs.withLock { $0 = options.outputs }
        return try log.openSession(options, by: deadline)
    }
    func openReader(_ options: ReaderOptions) throws(LogFault) -> any LogReader { try log.openReader(options) }
    func openWriter(_ options: WriterOptions) throws(LogFault) -> any LogWriter { try log.openWriter(options) }
}

@Suite struct `A pace` {
    /// Time passes only while something waits.
    private final class Time: Sendable {
        let now = Mutex(Duration.zero)
        let longest = Mutex(Duration.zero)

        var environment: WorkerEnvironment {
            WorkerEnvironment(
                elapsed: { self.now.withLock { $0 } }, wallClock: { 0 },
                pause: { duration in
                    self.now.withLock { $0 += duration }
                    self.longest.withLock { $0 = max($0, duration) }
                }, jitter: { 0 })
        }
    }

    @Test(arguments: [(10, 1), (500, 1), (500, 4), (100_000, 1)])
    func `lets so many records through in a second, and looks often meanwhile`(rate: Int, threads: Int) {
        let (pace, time) = (Pace(recordsPerSecond: rate, threads: threads), Time())
        var count = 0
        let end = Duration.seconds(10)
        while time.now.withLock({ $0 }) < end { count += pace.reserve(upTo: 250, time.environment) }
        #expect(abs(count - 10 * rate) <= max(250, rate / 5))
        #expect(time.longest.withLock { $0 } <= .seconds(1))
    }

    @Test func `takes no time for records that were not there`() {
        let (pace, time) = (Pace(recordsPerSecond: 100, threads: 1), Time())
        for _ in 0..<1_000 { pace.giveBack(pace.reserve(upTo: 250, time.environment)) }
        #expect(time.now.withLock { $0.wholeMilliseconds } < 1_000)
        // It does not accumulate unused budget either.
        time.now.withLock { $0 += .seconds(100) }
        var count = 0
        let (start, end) = (time.now.withLock { $0 }, Duration.seconds(2))
        while time.now.withLock({ $0 }) - start < end { count += pace.reserve(upTo: 250, time.environment) }
        #expect(count <= 220)
    }
}
