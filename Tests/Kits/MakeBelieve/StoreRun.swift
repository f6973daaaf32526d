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
    public static let partitions: Int32 = 4

    public let store: StoreLog
    public let simulation: WorkerSimulation
    private let names: Names
    private let faults: SeededFaults?
    private var disturbances: Disturbances
    private var nextTick: Int64
    /// What was done to the processes.
    public var happened: [String] { disturbances.happened }

    /// - Parameters:
    ///   - faults: a seed; nil: nothing fails.
    ///   - makeProcessor: called for each start of a process, and once before.
    public init(
        _ store: StoreLog, processes: Int = 1, faults seed: UInt64? = nil,
        _ makeProcessor: @escaping (_ names: Names, _ partitions: Int32, _ slot: Int) -> any Processor
    ) throws {
        self.store = store
        names = Names(prefix: TopicPrefix("store")!, environment: store.environment)
        faults = seed.map(SeededFaults.ofEveryKind)
        nextTick = StoreLog.start
        let simulation = try WorkerSimulation(
            makeProcessor(names, Self.partitions, 0), processes: processes, startingAt: store.end, faults: faults,
            seed: seed ?? 1)
        simulation.cacheBytes = 40_000
        self.simulation = simulation
        let start = { [names] (process: WorkerSimulation.Process) in
            simulation.processor = makeProcessor(names, Self.partitions, process.slot)
            simulation.start(process)
        }
        disturbances = Disturbances(seed: (seed ?? 0) &+ 1, simulation, start: start)
        for process in simulation.processes { start(process) }
    }

    // MARK: Input

    public func feed(_ arrival: StoreLog.Arrival) throws {
        let record = try store.record(of: arrival)
        try simulation.feed(
            partition: Partitioner.partition(of: record.key, count: Self.partitions), key: record.key,
            value: record.value,
            headers: [RecordHeader("schema", "notification/1")],
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
            for arrival in rest.prefix(Int.random(in: 5...20, using: &disturbances.dice)) {
                try tick(until: arrival.at)
                try feed(arrival)
                rest = rest.dropFirst()
            }
            disturbances.disturb()
        }
        faults?.heal()
        try end()
    }

    private func end() throws {
        try tick(until: store.end)
        try simulation.tick(at: store.end)
        try disturbances.comeToEnd()
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
