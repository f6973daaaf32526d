import Log
import MemoryLog
import Store
import Synchronization
import Testing
import WorkerTestKit

@testable import Runtime

/// Records the calls for its partitions; every record is stored under its key.
private final class Onlooker: Processor, @unchecked Sendable {
    // Unchecked: the simulation uses only one thread.
    let definition = Script(partitions: 2).definition
    var heard: [String] = []
    /// Called while it reads state at an opening.
    let isAsking = Atomic(false)

    func process(_ record: borrowing RecordView, _ turn: Turn) throws(ProcessFailure) {
        let (key, value) = (record.copyOfKey() ?? [], record.copyOfValue() ?? [])
        try turn.state(key.span).put(value.span)
        heard.append("record of \(record.partition)")
    }

    func opened(_ turn: Turn) {
        let key = Array("k".utf8)
        isAsking.store(true, ordering: .relaxed)
        defer { isAsking.store(false, ordering: .relaxed) }
        let value = try? turn.state(key.span).value
        let text = value.map { String(decoding: $0, as: UTF8.self) } ?? "nothing"
        heard.append("opened \(turn.partition) @\(turn.clock): \(text)")
    }

    func closed(_ partition: Int32) { heard.append("closed \(partition)") }
}

/// Does at the opening what is not allowed there.
private final class Intruder: Processor {
    let definition = Script().definition
    let emits: Bool

    init(emits: Bool) { self.emits = emits }

    func process(_ record: borrowing RecordView, _ turn: Turn) throws(ProcessFailure) {}

    func opened(_ turn: Turn) {
        let key = Array("k".utf8)
        if emits { return turn.emit(0, key: key.span, value: nil) }
        try? turn.state(key.span).put(key.span)
    }
}

/// Refuses to continue a state that was begun with another word than its own.
private final class Stickler: Processor {
    let definition = Script(partitions: 2).definition
    let word: String

    init(_ word: String) { self.word = word }

    private static let key = Array("word".utf8)

    func process(_ record: borrowing RecordView, _ turn: Turn) throws(ProcessFailure) {
        try turn.state(Self.key.span).put(Array(word.utf8).span)
        turn.emit(0, key: Self.key.span, value: Array(word.utf8).span)
    }

    func opened(_ turn: Turn) throws(ProcessFailure) {
        guard let begun = try turn.state(Self.key.span).value, begun != Array(word.utf8) else { return }
        throw ProcessFailure("word", "it was begun with \(String(decoding: begun, as: UTF8.self))")
    }
}

/// One fault, the next time that a step is reached.
private final class Blow: LogFaults {
    private let next = Mutex<(step: LogStep, kind: InjectedFault.Kind)?>(nil)

    func strike(_ step: LogStep, _ kind: InjectedFault.Kind) { next.withLock { $0 = (step, kind) } }

    func fault(at step: LogStep, of identity: String) -> InjectedFault? {
        next.withLock { next in
            guard let blow = next, blow.step == step else { return nil }
            next = nil
            return InjectedFault(blow.kind)
        }
    }
}

@Suite struct `The opening of a partition` {
    private let onlooker = Onlooker()
    private let blow = Blow()
    private let simulation: WorkerSimulation

    init() throws {
        simulation = try WorkerSimulation(onlooker, processes: 2, startingAt: 100, faults: blow)
        simulation.storeInterval = .zero
    }

    private var first: WorkerSimulation.Process { simulation.processes[0] }

    private func feed(_ partition: Int32, _ value: String, at timestamp: Int64) throws {
        try simulation.feed(
            partition: partition, key: Array("k".utf8), value: Array(value.utf8),
            headers: [RecordHeader("schema", "word/1")], timestamp: timestamp)
    }

    /// What it has recorded, once there are this many calls and no more come.
    private func hear(_ count: Int) -> [String] {
        for _ in 0..<3_000 where onlooker.heard.count < count {
            for process in simulation.processes { simulation.step(process) }
            simulation.clock.advance(by: .milliseconds(5))
        }
        for _ in 0..<20 { for process in simulation.processes { simulation.step(process) } }
        defer { onlooker.heard = [] }
        return onlooker.heard
    }

    /// Both partitions run, and have records.
    private func begin() throws {
        simulation.start(first)
        #expect(hear(2) == ["opened 0 @0: nothing", "opened 1 @0: nothing"])
        try feed(0, "zero", at: 500)
        try feed(1, "one", at: 600)
        #expect(hear(2).sorted() == ["record of 0", "record of 1"])
    }

    private let openedAgain = ["opened 0 @500: zero", "opened 1 @600: one"]
    private let bothClosed = ["closed 0", "closed 1"]

    @Test(arguments: [false, true])
    func `shows what was committed last, before the first record, whether the disk is there or not`(losesDisk: Bool)
        throws
    {
        try begin()
        simulation.crash(first)
        if losesDisk { simulation.loseDisk(of: first) }
        try feed(0, "later", at: 700)
        simulation.start(first)
        let heard = hear(3)
        #expect(heard.filter { $0 != "record of 0" } == openedAgain)
        #expect(heard.firstIndex(of: "opened 0 @500: zero")! < heard.firstIndex(of: "record of 0")!)
    }

    @Test func `is followed by its closing when the worker stops`() throws {
        try begin()
        simulation.stop(first)
        #expect(hear(2) == bothClosed)
        simulation.start(first)
        #expect(hear(2) == openedAgain)
    }

    @Test func `is heard by whoever has the partition now, after the other's closing`() throws {
        try begin()
        simulation.start(simulation.processes[1])
        let heard = hear(4)
        #expect(heard.prefix(2) == bothClosed[...])
        #expect(heard.dropFirst(2).sorted() == openedAgain)
    }

    @Test(arguments: [InjectedFault.Kind.move, .lose, .fence])
    func `comes again when the partitions were given back, lost or fenced away`(kind: InjectedFault.Kind) throws {
        try begin()
        blow.strike(.poll, kind)
        #expect(hear(4) == bothClosed + openedAgain)
    }

    @Test func `is not told of when a cycle is only read again`() throws {
        try begin()
        blow.strike(.beforeCommit, .refuse)
        try feed(0, "again", at: 700)
        #expect(hear(2) == ["record of 0", "record of 0"])
    }

    @Test func `begins anew when what it asks for cannot be read`() throws {
        try begin()
        simulation.crash(first)
        let onlooker = onlooker
        let fault = Mutex<StoreFault?>(StoreFault(.system, "no"))
        first.disk.fail { operation, _ in
            guard operation == .read, onlooker.isAsking.load(ordering: .relaxed) else { return nil }
            return fault.withLock { $0.take() }
        }
        simulation.start(first)
        #expect(hear(4) == ["opened 0 @500: nothing", "closed 0"] + openedAgain)
    }

    @Test(arguments: [false, true])
    func `refused by the processor lets no record through, and the others run`(losesDisk: Bool) throws {
        let simulation = try WorkerSimulation(Stickler("one"), processes: 1)
        let process = simulation.processes[0]
        func feed(_ partition: Int32) throws {
            try simulation.feed(
                partition: partition, key: Array("k".utf8), value: [], headers: [RecordHeader("schema", "word/1")])
        }
        func steps(_ count: Int = 400) {
            for _ in 0..<count {
                simulation.step(process)
                simulation.clock.advance(by: .milliseconds(5))
            }
        }
        let topic = simulation.processor.definition.outputs[0].topic
        func written() throws -> [String] { try simulation.read(topic).map { "\($0.partition) \($0.valueText)" } }
        simulation.start(process)
        try feed(0)
        #expect(try simulation.runToEnd())
        simulation.stop(process)
        if losesDisk { simulation.loseDisk(of: process) }

        simulation.processor = Stickler("two")
        simulation.start(process)
        try feed(0)
        try feed(1)
        steps()
        #expect(process.troubles == ["partition 0: it was begun with one"])
        #expect(try written() == ["0 one", "1 two"])
        #expect(process.isRunning && simulation.stop(process))

        // The refused state is unchanged.
        simulation.processor = Stickler("one")
        simulation.start(process)
        steps()
        #expect(process.troubles == ["partition 1: it was begun with two"])
        #expect(try written() == ["0 one", "0 one", "1 two"])
    }

    @Test func `lets a processor change nothing, and emit nothing`() async {
        await #expect(processExitsWith: .failure) {
            let simulation = try WorkerSimulation(Intruder(emits: true), processes: 1)
            simulation.start(simulation.processes[0])
            for _ in 0..<50 { simulation.step(simulation.processes[0]) }
        }
        await #expect(processExitsWith: .failure) {
            let simulation = try WorkerSimulation(Intruder(emits: false), processes: 1)
            simulation.start(simulation.processes[0])
            for _ in 0..<50 { simulation.step(simulation.processes[0]) }
        }
    }
}
