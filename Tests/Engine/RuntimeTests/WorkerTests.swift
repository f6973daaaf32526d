import Log
import MemoryLog
import Platform
import Store
import Synchronization
import Telemetry
import Testing
import WorkerTestKit

@testable import Runtime

/// Injects faults at certain times that a step is reached.
private final class Plan: LogFaults {
    private let left: Mutex<[(step: LogStep, kind: InjectedFault.Kind)]>

    init() { left = Mutex([]) }

    /// The next time that the step is reached.
    func add(_ step: LogStep, _ kind: InjectedFault.Kind) { left.withLock { $0.append((step, kind)) } }

    func fault(at step: LogStep, of identity: String) -> InjectedFault? {
        left.withLock { left in
            guard let place = left.firstIndex(where: { $0.step == step }) else { return nil }
            return InjectedFault(left.remove(at: place).kind)
        }
    }
}

/// Workers of scripts whose cycles end when a test says so.
private struct WorkerBench {
    let plan = Plan()
    let simulation: WorkerSimulation

    /// - Parameter storeInterval: by default committed changes are in the store at once.
    init(
        processes: Int = 1, partitions: Int32 = 1, storeInterval: Duration = .zero, bytesPerAppend: Int = 0,
        sessionTimeout: Duration = .seconds(6), keepsPlace: Bool = true
    ) throws {
        simulation = try WorkerSimulation(Script(partitions: partitions), processes: processes, faults: plan)
        simulation.sessionTimeout = sessionTimeout
        simulation.keepsPlace = keepsPlace
        simulation.bytesPerAppend = bytesPerAppend
        // A drained input is committed at once, and a cycle of several polls takes no time.
        simulation.commitInterval = .zero
        simulation.storeInterval = storeInterval
        simulation.cacheBytes = 1 << 20
        for process in simulation.processes { simulation.start(process) }
        for _ in 0..<20 {
            for process in simulation.processes { simulation.step(process) }
        }
        precondition(simulation.processes.allSatisfy { $0.troubles.isEmpty }, "the partitions run")
    }

    var first: WorkerSimulation.Process { simulation.processes[0] }

    /// Enough that one poll does not return all of it, so that the cycle stays open.
    func feed(_ count: Int = Worker.recordsPerPoll + 200) throws {
        for number in 0..<count { try feed("put n \(number);tell \(number)") }
    }

    func feed(_ text: String) throws {
        try simulation.feed(
            partition: 0, key: Array("k".utf8), value: Array(text.utf8), headers: [RecordHeader("schema", "word/1")])
    }

    var committed: Int64? { simulation.log.committed(group: "script")[TopicPartition("events", 0)]?.value }

    /// The position of the events in the first partition, as found when the store was closed and opened again; nil: nothing
    /// was written.
    func stored() throws -> (next: NextOffset?, value: String?)? {
        let store = try MemoryStores(disk: first.disk.copy { $0 }).open(0)
        guard let note = try store.note().flatMap({ Note(decoding: $0) }) else { return nil }
        var bytes: [UInt8] = []
        let key = Array("n".utf8)
        _ = try store.read(key.span, into: &bytes)
        let value = EntryCoding.decode(bytes.span)?.value
        return (note.positions["events"], value.map { String(decoding: $0, as: UTF8.self) })
    }

    func told() throws -> [String] {
        try simulation.read("told").map { seen in
            String(seen.valueText.split(separator: " ").dropLast().joined(separator: " "))
        }
    }
}

@Suite struct `A worker` {
    private let all = (0..<(Worker.recordsPerPoll + 200)).map { "\($0)" }

    @Test func `shows nothing of a cycle before its commit, and all of it then`() throws {
        let bench = try WorkerBench()
        try bench.feed()
        bench.simulation.step(bench.first)
        #expect(try bench.told() == [])
        #expect(bench.committed == nil)
        bench.simulation.step(bench.first)
        #expect(try bench.told() == all)
    }

    @Test func `writes its stores a while after the commit, also when nothing comes any more`() throws {
        let bench = try WorkerBench(storeInterval: .seconds(2))
        try bench.feed("put n 1;tell x")
        #expect(try bench.simulation.runToEnd())
        #expect(bench.committed == 1)
        #expect(try bench.stored()?.next == nil)
        bench.simulation.clock.advance(by: .seconds(2))
        bench.simulation.step(bench.first)
        #expect(try bench.stored()?.next == NextOffset(1))
        #expect(try bench.stored()?.value == "1")
    }

    @Test func `restores what it had not written when it was killed`() throws {
        let bench = try WorkerBench(storeInterval: .seconds(3600))
        try bench.feed()
        #expect(try bench.simulation.runToEnd())
        #expect(try bench.stored()?.next == nil)
        bench.simulation.crash(bench.first)
        bench.simulation.start(bench.first)
        try bench.feed("tell after")
        #expect(try bench.simulation.runToEnd())
        #expect(try bench.told() == all + ["after"])
        #expect(try bench.stored()?.value == all.last)
    }

    @Test func `has everything in the store when it has stopped`() throws {
        let bench = try WorkerBench(storeInterval: .seconds(3600))
        try bench.feed()
        #expect(try bench.simulation.runToEnd())
        #expect(bench.simulation.stop(bench.first))
        #expect(try bench.stored()?.next?.value == bench.committed)
        #expect(try bench.stored()?.value == all.last)
    }

    @Test func `has in the store what it has committed when the restorer gets it`() throws {
        let bench = try WorkerBench(storeInterval: .seconds(3600))
        try bench.feed()
        #expect(try bench.simulation.runToEnd())
        // A store that lacks something is wiped and completely restored.
        let wipes = Mutex(0)
        bench.first.disk.fail { operation, _ in
            if operation == .wipe { wipes.withLock { $0 += 1 } }
            return nil
        }
        bench.plan.add(.poll, .move)
        for _ in 0..<10 { bench.simulation.step(bench.first) }
        #expect(wipes.withLock { $0 } == 0)
        #expect(try bench.stored()?.next?.value == bench.committed)
        #expect(try bench.stored()?.value == all.last)
    }

    @Test(arguments: [true, false])
    func `goes on when a store could not be written`(atHandOver: Bool) throws {
        let bench = try WorkerBench(storeInterval: atHandOver ? .seconds(3600) : .zero)
        if atHandOver {
            try bench.feed()
            #expect(try bench.simulation.runToEnd())
        }
        let failures = Mutex(0)
        bench.first.disk.fail { operation, _ in
            guard operation == .write else { return nil }
            return failures.withLock { count in
                count += 1
                return count == 1 ? StoreFault(.system, "no space left") : nil
            }
        }
        if atHandOver {
            bench.plan.add(.poll, .move)
        } else {
            try bench.feed()
        }
        for _ in 0..<10 { bench.simulation.step(bench.first) }
        #expect(failures.withLock { $0 } >= 1)
        try bench.feed("tell after")
        #expect(try bench.simulation.runToEnd())
        #expect(try bench.told() == all + ["after"])
        #expect(try bench.stored()?.value == all.last)
        #expect(bench.simulation.stop(bench.first))
    }

    @Test func `commits what is open when its partitions go to others`() throws {
        let bench = try WorkerBench()
        try bench.feed()
        bench.simulation.step(bench.first)
        bench.plan.add(.poll, .move)
        bench.simulation.step(bench.first)
        #expect(bench.committed == Int64(Worker.recordsPerPoll))
        #expect(try bench.simulation.runToEnd())
        #expect(try bench.told() == all)
    }

    /// Outputs already in the transaction, or still with the worker.
    @Test(arguments: [0, 1 << 20]) func `drops what is open when its partitions are lost`(bytesPerAppend: Int) throws {
        let bench = try WorkerBench(bytesPerAppend: bytesPerAppend)
        try bench.feed()
        bench.simulation.step(bench.first)
        bench.plan.add(.poll, .lose)
        bench.simulation.step(bench.first)
        #expect(bench.committed == nil)
        #expect(try bench.simulation.runToEnd())
        #expect(try bench.told() == all)
    }

    @Test(arguments: [LogStep.append, .beforeCommit])
    func `reads again what the log has refused, and writes it once`(step: LogStep) throws {
        let bench = try WorkerBench()
        bench.plan.add(step, .refuse)
        try bench.feed()
        try bench.feed("put a 1;wake a 1 1")
        try bench.feed("tell last")
        #expect(try bench.simulation.runToEnd())
        try bench.simulation.tick()
        #expect(try bench.simulation.runToEnd())
        #expect(try bench.told() == all + ["last", "fired a 1"])
    }

    @Test(arguments: [InjectedFault.Kind.outcomeUnknownDone, .outcomeUnknownNotDone])
    func `finds out what became of a commit without an answer`(kind: InjectedFault.Kind) throws {
        let bench = try WorkerBench()
        bench.plan.add(.commit, kind)
        try bench.feed()
        #expect(try bench.simulation.runToEnd())
        #expect(try bench.told() == all)
        #expect(bench.first.isRunning)
    }

    @Test func `goes on when it was fenced once, and ends with words for a person the second time`() throws {
        let bench = try WorkerBench()
        bench.plan.add(.poll, .fence)
        try bench.feed()
        #expect(try bench.simulation.runToEnd())
        #expect(try bench.told() == all)
        bench.plan.add(.poll, .fence)
        bench.simulation.step(bench.first)
        #expect(bench.first.end?.description.contains("another process uses the identity script.0-0") == true)
        #expect(!bench.first.isRunning)
    }

    /// The log aborts a transaction that has lasted too long and fences its writer, as a second process would.
    @Test func `whose log stands still again and again for longer than a transaction may last goes on`() throws {
        let bench = try WorkerBench(sessionTimeout: .seconds(30))
        for _ in 0..<4 {
            try bench.feed()
            bench.simulation.step(bench.first)
            bench.simulation.clock.advance(by: .seconds(11))
            bench.simulation.step(bench.first)
            #expect(bench.first.end == nil)
            #expect(bench.first.troubles.contains { $0.contains("opening a new one") })
            #expect(try bench.simulation.runToEnd())
        }
        #expect(bench.first.isRunning)
        // A second process is still recognised.
        bench.simulation.clock.advance(by: .seconds(11))
        bench.simulation.step(bench.first)
        for _ in 0..<2 {
            bench.plan.add(.poll, .fence)
            bench.simulation.step(bench.first)
            guard bench.first.isRunning else { break }
            try bench.feed()
            #expect(try bench.simulation.runToEnd())
        }
        #expect(bench.first.end?.description.contains("another process uses the identity script.0-0") == true)
    }

    @Test func `that keeps no place leaves its partitions to the others when it stops`() throws {
        let bench = try WorkerBench(processes: 2, partitions: 4, keepsPlace: false)
        bench.simulation.stop(bench.first)
        for partition: Int32 in 0..<4 {
            try bench.simulation.feed(
                partition: partition, key: [1], value: Array("tell \(partition)".utf8),
                headers: [RecordHeader("schema", "word/1")])
        }
        let begin = bench.simulation.clock.now
        #expect(try bench.simulation.runToEnd(limit: 400))
        #expect(bench.simulation.clock.now - begin < 2000, "less than the session")
    }

    @Test func `that is fenced seldom goes on for ever`() throws {
        let bench = try WorkerBench()
        for _ in 0..<4 {
            bench.plan.add(.poll, .fence)
            bench.simulation.step(bench.first)
            bench.simulation.clock.advance(by: .seconds(60))
            #expect(try bench.simulation.runToEnd())
        }
        #expect(bench.first.isRunning)
    }

    @Test func `does without a disk that damages whatever it is given, and says so`() throws {
        let bench = try WorkerBench()
        bench.simulation.crash(bench.first)
        bench.first.disk.fail { operation, _ in operation == .read ? StoreFault(.corrupt, "damaged") : nil }
        bench.simulation.start(bench.first)
        for _ in 0..<20 { bench.simulation.step(bench.first) }
        #expect(bench.first.troubles.contains { $0.contains("which is retried: damaged") })
        #expect(bench.first.isRunning)
    }

    @Test func `restores what was damaged once`() throws {
        let bench = try WorkerBench()
        try bench.feed()
        #expect(try bench.simulation.runToEnd())
        bench.simulation.crash(bench.first)
        let isDamaged = Mutex(true)
        bench.first.disk.fail { operation, _ in
            guard operation == .read else { return nil }
            return isDamaged.withLock { $0.take() } ? StoreFault(.corrupt, "damaged") : nil
        }
        bench.simulation.start(bench.first)
        try bench.feed("tell after")
        #expect(try bench.simulation.runToEnd())
        #expect(try bench.told() == all + ["after"])
    }

    @Test func `leaves nothing behind when it ends cleanly, and opens its store again`() throws {
        let bench = try WorkerBench()
        try bench.feed()
        bench.simulation.step(bench.first)
        #expect(bench.simulation.stop(bench.first))
        #expect(bench.committed == Int64(Worker.recordsPerPoll))
        bench.simulation.start(bench.first)
        #expect(try bench.simulation.runToEnd())
        #expect(try bench.told() == all)
    }

    @Test(arguments: ["events", "rows", "told", "cells", "script.changelog", "script.dead-letters"])
    func `ends, with words for a person, where a topic has fewer partitions than the setting says`(_ topic: String)
        throws
    {
        let rig = try LoneWorker(partitions: 3) { $0 == topic ? 2 : 3 }
        #expect(
            throws: WorkerEnd(
                "the topic \(topic) has 2 partitions and the setting partitions says 3: the setting must stay the number with "
                    + "which the topics were created, because it determines the partition of each key. Set it back if it was "
                    + "changed, or set topic.prefix to the prefix of topics with 3 partitions")
        ) {
            for _ in 0..<10 { try rig.worker.step() }
        }
    }

    @Test func `is not behind when its input ends with what is no record`() throws {
        let rig = try LoneWorker()
        let worker = rig.worker
        let session = try rig.log.openSession(
            SessionOptions(group: "other", identity: "other", inputs: [], outputs: ["events"]), by: rig.deadline)
        let batch = OutputBatch()
        batch.append(topic: 0, partition: 0, timestamp: 1, key: nil, value: [])
        try session.append(batch)
        for _ in 0..<10 {
            try worker.step()
            rig.restorer.step(wait: .zero)
        }
        #expect(worker.troubles == [])
        try session.abort()
        for _ in 0..<3 { try worker.step() }
        var watch = LagWatch(Script().definition, log: rig.log, board: rig.board, metrics: rig.metrics)
        watch.look(elapsed: .zero, wallClock: 6000)
        let series = "perennial_lag_records{worker=\"script\",topic=\"events\",partition=\"0\"}"
        #expect(reading(series, of: rig.metrics) == "0")
        #expect(worker.stop(by: rig.deadline))
    }
}

/// One worker on a log of its own, stepped by the test.
private struct LoneWorker {
    let log: MemoryLog
    let restorer: Restorer
    let board = PositionBoard()
    let metrics = Metrics()
    let worker: Worker
    let deadline = Deadline(after: .seconds(1))

    /// - Parameters:
    ///   - partitions: the number that the worker is configured for.
    ///   - count: the number that a topic has.
    init(partitions: Int32 = 1, _ count: (_ topic: String) -> Int32 = { _ in 1 }) throws {
        let clock = MemoryLog.Clock.manual(startingAt: 5000)
        log = MemoryLog(clock: clock)
        try log.create(
            ["events", "rows", "told", "cells", "script.changelog", "script.dead-letters"].map {
                NewTopic($0, partitions: count($0), isCompacted: $0 == "script.changelog")
            }, by: deadline)
        restorer = Restorer(Script().definition, log: log, name: "r", wallClock: { clock.now }, remaining: { _ in })
        worker = Worker(
            Script(partitions: partitions), log: log, stores: MemoryStores(),
            options: WorkerOptions(identity: "script.0-0"),
            restorer: restorer,
            environment: WorkerEnvironment(
                elapsed: { .milliseconds(clock.now) }, wallClock: { clock.now }, pause: { clock.advance(by: $0) },
                jitter: { 0 }), logger: Logger(level: .error) { _ in },
            metrics: WorkerMetrics(metrics, worker: "script"), board: board)
    }
}

extension Bool {
    /// The value; it is false from now on.
    fileprivate mutating func take() -> Bool {
        defer { self = false }
        return self
    }
}
