// A worker over a log in memory, fed with the notifications of a simulated store.

public import Contract
public import JSON
import Log
import LogTestKit
import MemoryLog
public import Runtime
public import WorkerTestKit

/// Records carry the times of the story; the log's own clock, which decides when a process is missed, hardly moves meanwhile.
public final class StoreRun {
    public struct NoProgress: Error, CustomStringConvertible { public let description: String }

    public static let partitions: Int32 = 4

    public let store: StoreLog
    public let simulation: WorkerSimulation
    private let names: Names
    private let makeProcessor: (_ names: Names, _ partitions: Int32, _ slot: Int) -> any Processor
    private let faults: SeededFaults?
    private var dice: SplitMix64
    private var frozenUntil: [Int: Int] = [:]
    private var nextTick: Int64
    private var round = 0
    /// What was done to the processes, each word as often as it was done.
    public private(set) var happened: [String] = []

    /// - Parameters:
    ///   - faults: a seed; nil: nothing fails.
    ///   - makeProcessor: called for each start of a process, and once before.
    public init(
        _ store: StoreLog, processes: Int = 1, faults seed: UInt64? = nil,
        _ makeProcessor: @escaping (_ names: Names, _ partitions: Int32, _ slot: Int) -> any Processor
    ) throws {
        self.store = store
        names = Names(prefix: TopicPrefix("store")!, environment: store.environment)
        faults = seed.map { seed in
            var rates = SeededFaults.Rates(everyKind: 2_000)
            rates[.slow] = 20_000
            return SeededFaults(seed: seed, rates: rates)
        }
        dice = SplitMix64(seed: (seed ?? 0) &+ 1)
        nextTick = StoreLog.start
        simulation = try WorkerSimulation(
            makeProcessor(names, Self.partitions, 0), processes: processes, startingAt: store.end, faults: faults,
            seed: seed ?? 1)
        simulation.cacheBytes = 40_000
        self.makeProcessor = makeProcessor
        for process in simulation.processes { start(process) }
    }

    private func start(_ process: WorkerSimulation.Process) {
        simulation.processor = makeProcessor(names, Self.partitions, process.slot)
        simulation.start(process)
    }

    // MARK: Input

    public func feed(_ arrival: StoreLog.Arrival) throws {
        let record = try store.record(of: arrival)
        try simulation.feed(
            partition: Partitioner.partition(of: record.key, count: Self.partitions), key: record.key,
            value: record.value,
            headers: [RecordHeader("type", "notification"), RecordHeader("schema", "notification/1")],
            timestamp: record.timestamp)
    }

    /// As the clock does when no other record comes.
    private func tick(
        until instant: Int64, every interval: Int64 = 12 * StoreLog.hour, _ isSilent: (Int64) -> Bool = { _ in false }
    ) throws {
        while nextTick < instant {
            if !isSilent(nextTick) { try simulation.tick(at: nextTick) }
            nextTick += interval
        }
    }

    /// Feeds everything, then moves to the end of the story, and processes all of it.
    /// - Parameter isSilent: whether the process with the clock is down at an instant.
    public func play(
        _ arrivals: [StoreLog.Arrival], tickEvery interval: Int64 = 12 * StoreLog.hour,
        isSilent: (Int64) -> Bool = { _ in false }
    ) throws {
        for arrival in arrivals {
            try tick(until: arrival.at, every: interval, isSilent)
            try feed(arrival)
        }
        try end()
    }

    /// The same while processes are killed, suspended, stopped and started, disks are lost and the log refuses requests.
    public func struggle(_ arrivals: [StoreLog.Arrival]) throws {
        var rest = arrivals[...]
        while !rest.isEmpty {
            for arrival in rest.prefix(Int.random(in: 5...20, using: &dice)) {
                try tick(until: arrival.at)
                try feed(arrival)
                rest = rest.dropFirst()
            }
            try disturb()
        }
        faults?.heal()
        try end()
    }

    private func end() throws {
        try tick(until: store.end)
        try simulation.tick(at: store.end)
        frozenUntil = [:]
        for _ in 0..<100 {
            for process in simulation.processes where !process.isRunning { start(process) }
            if try simulation.runToEnd(limit: 500) { return }
        }
        throw NoProgress(description: "\(simulation.processes.map { "\($0.slot): \($0.troubles)" })")
    }

    private func disturb() throws {
        round += 1
        for process in simulation.processes where frozenUntil[process.slot, default: 0] <= round {
            for _ in 0..<Int.random(in: 0...8, using: &dice) {
                simulation.step(process, restorerFirst: Bool.random(using: &dice))
            }
        }
        simulation.clock.advance(by: .milliseconds(Int.random(in: 0...60, using: &dice)))
        let process = simulation.processes.randomElement(using: &dice)!
        switch Int.random(in: 0..<100, using: &dice) {
        case 0..<8 where process.isRunning:
            happened.append("kill")
            simulation.crash(process)
        case 8..<15 where process.isRunning:
            happened.append("freeze")
            frozenUntil[process.slot] = round + Int.random(in: 5...30, using: &dice)
            simulation.clock.advance(by: .seconds(Int.random(in: 0...9, using: &dice)))
        case 15..<22 where process.isRunning:
            happened.append("stop")
            simulation.stop(process)
        case 22..<70 where !process.isRunning:
            if Int.random(in: 0..<3, using: &dice) == 0 {
                happened.append("lost disk")
                simulation.loseDisk(of: process)
            }
            start(process)
        case 70..<73: simulation.log.compact()
        default: break
        }
    }

    // MARK: Output

    /// - Parameter shadow: the name of a replay whose topic is read.
    public func seen(_ topic: TopicID, of shadow: ShadowName? = nil) throws -> [WorkerSimulation.Seen] {
        let name = names.topic(topic)
        return try simulation.read(shadow?.shadow(of: name) ?? name)
    }

    /// Every value of each key, in order; nil is a tombstone.
    public func read(_ topic: TopicID) throws -> [String: [JSONValue?]] {
        var values: [String: [JSONValue?]] = [:]
        for seen in try seen(topic) {
            values[seen.keyText, default: []].append(try seen.value.map { try JSONValue.read($0) })
        }
        return values
    }

    public func values(_ topic: TopicID) throws -> [String: [JSONValue]] {
        try read(topic).mapValues { $0.compactMap(\.self) }
    }

    /// The values as a reader of a compacted topic sees them.
    public func last(_ topic: TopicID) throws -> [String: JSONValue] {
        try read(topic).compactMapValues { $0.last ?? nil }
    }
}
