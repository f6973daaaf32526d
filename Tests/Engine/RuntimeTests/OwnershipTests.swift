import Log
import MemoryLog
import Platform
import Synchronization
import Testing
import WorkerTestKit

@testable import Runtime

/// Counts commits, and injects the requested fault at the next step of its kind.
private final class Counting: LogFaults {
    private struct State {
        var commits = 0
        var plan: [LogStep: InjectedFault.Kind] = [:]
    }

    private let state = Mutex(State())

    var commits: Int { state.withLock { $0.commits } }
    func next(_ step: LogStep, _ kind: InjectedFault.Kind) { state.withLock { $0.plan[step] = kind } }

    func fault(at step: LogStep, of identity: String) -> InjectedFault? {
        state.withLock { state in
            if step == .beforeCommit { state.commits += 1 }
            return state.plan.removeValue(forKey: step).map { InjectedFault($0) }
        }
    }
}

@Suite struct `What a worker owns` {
    /// Three quarters of the simulation's session time.
    private static let lease = Duration.milliseconds(4_500)

    private func simulation(
        _ script: Script = Script(partitions: 4), processes: Int = 1, faults: Counting = Counting()
    ) throws -> WorkerSimulation {
        let simulation = try WorkerSimulation(script, processes: processes, faults: faults)
        simulation.showsOwnership = true
        // Longer than the lease.
        simulation.commitInterval = .seconds(6)
        for process in simulation.processes { simulation.start(process) }
        step(simulation, 40)
        return simulation
    }

    private func step(_ simulation: WorkerSimulation, _ count: Int, of pause: Duration = .milliseconds(5)) {
        for _ in 0..<count {
            for process in simulation.processes { simulation.step(process) }
            simulation.clock.advance(by: pause)
        }
    }

    private func held(_ simulation: WorkerSimulation, _ process: Int = 0) -> [Int32: Ownership.Held] {
        simulation.processes[process].ownership?.held ?? [:]
    }

    @Test func `is what it reads, and nothing else`() throws {
        let simulation = try simulation(processes: 2)
        let (first, second) = (held(simulation, 0), held(simulation, 1))
        #expect(Set(first.keys).isDisjoint(with: second.keys))
        #expect(Set(first.keys).union(second.keys) == [0, 1, 2, 3])
        let ownership = try #require(simulation.processes[0].ownership)
        #expect((0..<4).allSatisfy { ownership.isHeld($0) == (first[$0] != nil) })
        // A record that waits for a later build is not read again.
        let mine = try #require(first.keys.min())
        try simulation.feed(
            partition: mine, key: nil, value: [],
            headers: [RecordHeader("type", "word"), RecordHeader("schema", "word/3")])
        step(simulation, 10)
        #expect(Set(held(simulation, 0).keys) == Set(first.keys).subtracting([mine]))
    }

    @Test func `is confirmed by one commit after an assignment, and one after the lease has ended`() throws {
        let counting = Counting()
        let simulation = try simulation(faults: counting)
        #expect(counting.commits == 1)
        let since = held(simulation).mapValues(\.since)
        #expect(since.count == 4)
        step(simulation, 60, of: .milliseconds(500))
        #expect(counting.commits == 1)
        #expect(held(simulation).mapValues(\.since) == since)
        // The process is suspended for longer than its lease, but not as long as the group waits.
        simulation.clock.advance(by: Self.lease + .milliseconds(1))
        #expect(held(simulation).isEmpty)
        let now = Duration.milliseconds(simulation.clock.now)
        step(simulation, 1, of: .zero)
        #expect(counting.commits == 2)
        #expect(held(simulation).mapValues(\.since) == since.mapValues { _ in now })
        step(simulation, 20)
        #expect(counting.commits == 2)
    }

    @Test func `is not confirmed in the middle of a cycle`() throws {
        let counting = Counting()
        let simulation = try simulation(Script(), faults: counting)
        for number in 0..<(Worker.recordsPerPoll * 4) {
            try simulation.feed(
                partition: 0, key: [1], value: Array("tell \(number)".utf8),
                headers: [RecordHeader("schema", "word/1")])
        }
        let before = counting.commits
        simulation.step(simulation.processes[0])
        simulation.clock.advance(by: Self.lease + .milliseconds(1))
        simulation.step(simulation.processes[0])
        #expect(counting.commits == before)
        #expect(try simulation.read("told").isEmpty)
        #expect(held(simulation).isEmpty)
        step(simulation, 10, of: .milliseconds(200))
        #expect(counting.commits == before + 1)
        #expect(held(simulation).count == 1)
    }

    @Test func `is confirmed where there is nothing to read yet, and whoever comes next can go on from there`() throws {
        let simulation = try simulation()
        #expect(held(simulation).count == 4)
        let process = simulation.processes[0]
        simulation.crash(process)
        simulation.loseDisk(of: process)
        simulation.start(process)
        step(simulation, 40)
        #expect(process.troubles == [])
        #expect(held(simulation).count == 4)
        try simulation.feed(
            partition: 2, key: [1], value: Array("tell x".utf8), headers: [RecordHeader("schema", "word/1")])
        #expect(try simulation.runToEnd())
        #expect(try simulation.read("told").count == 1)
    }

    @Test func `is asked for only where somebody acts on it`() throws {
        let counting = Counting()
        let simulation = try WorkerSimulation(Script(), processes: 1, faults: counting)
        simulation.start(simulation.processes[0])
        step(simulation, 40)
        #expect(counting.commits == 0)
        #expect(simulation.processes[0].ownership == nil)
    }

    @Test func `is nothing once it has stopped`() throws {
        let simulation = try simulation()
        let ownership = try #require(simulation.processes[0].ownership)
        #expect(ownership.held.count == 4)
        simulation.stop(simulation.processes[0])
        #expect(ownership.held.isEmpty)
    }

    @Test(arguments: [InjectedFault.Kind.lose, .fence, .move])
    func `is nothing when its partitions are lost, its session ends or others are to have them`(
        _ kind: InjectedFault.Kind
    ) throws {
        let counting = Counting()
        let simulation = try simulation(faults: counting)
        let since = held(simulation).mapValues(\.since)
        counting.next(.poll, kind)
        var wasEmpty = false
        for _ in 0..<2_000 {
            step(simulation, 1, of: .milliseconds(5))
            if held(simulation).isEmpty { wasEmpty = true }
            if wasEmpty, held(simulation).count == 4 { break }
        }
        #expect(wasEmpty)
        let process = simulation.processes[0]
        #expect(held(simulation).count == 4, "\(process.troubles)")
        #expect(held(simulation).allSatisfy { $0.value.since > since[$0.key]! })
    }

    @Test(arguments: [InjectedFault.Kind.lose, .move, .fence])
    func `is nothing before the partitions are given back`(_ kind: InjectedFault.Kind) throws {
        let counting = Counting()
        let ownership = Mutex<Ownership?>(nil)
        let closed = Mutex<[Bool]>([])
        var script = Script(partitions: 2)
        script.isClosing = { _ in
            let isHeld = ownership.withLock { $0?.held.isEmpty == false }
            closed.withLock { $0.append(isHeld) }
        }
        let simulation = try simulation(script, faults: counting)
        ownership.withLock { $0 = simulation.processes[0].ownership }
        counting.next(.poll, kind)
        step(simulation, 20)
        #expect(closed.withLock { $0 } == [false, false])
    }

    @Test func `of several threads is what any of them has`() {
        let now = Mutex<Duration>(.zero)
        let ownership = Ownership(threads: 2, bootClock: { now.withLock { $0 } })
        ownership.set([1, 2], until: .seconds(10), thread: 0)
        ownership.set([3], until: .seconds(5), thread: 1)
        #expect(Set(ownership.held.keys) == [1, 2, 3])
        now.withLock { $0 = .seconds(5) }
        #expect(Set(ownership.held.keys) == [1, 2])
        #expect(!ownership.isHeld(3) && ownership.isHeld(2) && !ownership.isHeld(7))
        ownership.set([2], until: .seconds(20), thread: 0)
        #expect(ownership.held == [2: Ownership.Held(until: .seconds(20), since: .zero)])
        ownership.set([2, 3], until: nil, thread: 0)
        #expect(ownership.held.isEmpty)
    }
}
