// A live worker with old rules, replays with new ones, and promotions of them, over a log in memory.

public import Contract
public import JSON
import Log
public import MemoryLog
public import NotificationWorker
import Platform
public import Runtime
import Store
import Synchronization
public import WorkerTestKit

/// The old rules and the new rules.
public enum RuleAge: Sendable { case old, new }

/// Ends a promotion inside the log, as a kill does.
public final class PromotionKiller: LogFaults {
    private let plan = Mutex<(step: LogStep, count: Int)?>(nil)

    public func kill(at step: LogStep, after count: Int) { plan.withLock { $0 = (step, count) } }

    public func fault(at step: LogStep, of identity: String) -> InjectedFault? {
        guard identity.hasSuffix(".promote") || identity.hasSuffix(".keep") else { return nil }
        return plan.withLock { plan in
            guard let (wanted, count) = plan, wanted == step else { return nil }
            plan = count == 0 ? nil : (wanted, count - 1)
            return count == 0 ? InjectedFault(step == .commit ? .crashHalfway : .crashBefore) : nil
        }
    }
}

/// When the stage is ready, the live worker has processed half of the story with the old rules.
public struct PromotionStage {
    public typealias ProcessorMaker = (RuleAge, Names, Shadow?) throws -> any Processor

    public static let replay = ShadowName("better")!
    public static let before = ShadowName("before-better")!

    public let store: StoreLog
    public let names: Names
    public let live: WorkerSimulation
    public let killer = PromotionKiller()
    private let rules: any PromotionRules
    private let make: ProcessorMaker
    private let rest: [StoreLog.Arrival]

    public init(seed: UInt64, rules: any PromotionRules, _ make: @escaping ProcessorMaker) throws {
        store = try StoreLog(
            seed: seed, subscribers: 60, arrival: 40 * StoreLog.day, after: 60 * StoreLog.day)
        names = Names(prefix: TopicPrefix("store")!, environment: store.environment)
        self.rules = rules
        self.make = make
        live = try WorkerSimulation(
            try make(.old, names, nil), processes: 1, startingAt: store.end, faults: killer)
        live.keepsPlace = false
        let arrivals = store.punctual
        rest = Array(arrivals[(arrivals.count / 2)...])
        live.start(live.processes[0])
        for arrival in arrivals[..<(arrivals.count / 2)] { try feed(arrival) }
        try work(live)
        live.stop(live.processes[0])
    }

    public func processor(_ age: RuleAge) throws -> any Processor { try make(age, names, nil) }

    private func feed(_ arrival: StoreLog.Arrival) throws {
        let record = try store.record(of: arrival)
        try live.feed(
            partition: Partitioner.partition(of: record.key, count: StoreRun.partitions), key: record.key,
            value: record.value,
            headers: [RecordHeader("schema", "notification/1")],
            timestamp: record.timestamp)
    }

    private func work(_ simulation: WorkerSimulation) throws {
        if try simulation.runToEnd() { return }
        throw Disturbances.NoProgress(simulation)
    }

    /// Runs a replay to the end of the log.
    public func run(_ name: ShadowName, _ age: RuleAge) throws {
        let simulation = try live.beside(try make(age, names, Shadow(name)))
        simulation.keepsPlace = false
        simulation.start(simulation.processes[0])
        try work(simulation)
        simulation.stop(simulation.processes[0])
    }

    /// The live worker continues with other rules, to the end of the story or only to where it is.
    public func goOn(_ age: RuleAge, tellsRest: Bool = true) throws {
        live.processor = try processor(age)
        live.start(live.processes[0])
        if tellsRest {
            for arrival in rest { try feed(arrival) }
            try live.tick(at: store.end)
        }
        try work(live)
        live.stop(live.processes[0])
    }

    public func promotion(
        _ name: ShadowName, keeps kept: ShadowName? = nil,
        begins: @escaping (PromotionStep) throws(PromotionFault) -> Void = { _ in }
    ) throws -> Promotion {
        let definition = try processor(.old).definition
        if let kept {
            let copy = definition.shadow(Shadow(kept))
            try live.log.create(
                copy.outputs.map { NewTopic($0.topic, partitions: copy.partitions, isCompacted: true) }
                    + [NewTopic(copy.changelog, partitions: copy.partitions, isCompacted: true)],
                by: Deadline(after: .seconds(1)))
        }
        return Promotion(
            live: definition, shadow: definition.shadow(Shadow(name)),
            kept: kept.map { definition.shadow(Shadow($0)) }, name: name.description,
            rules: rules, log: live.log, scratch: MemoryStores(disk: MemoryDisk()), begins: begins)
    }

    @discardableResult
    public func promote(_ name: ShadowName, keeps kept: ShadowName? = nil) throws -> PromotionCounts {
        try promotion(name, keeps: kept).run(by: Deadline(after: .seconds(10)))
    }

    // MARK: What readers see

    public func read(_ topic: TopicID, of name: ShadowName? = nil) throws -> [WorkerSimulation.Seen] {
        let topic = names.topic(topic)
        return try live.read(name?.shadow(of: topic) ?? topic)
    }

    /// The values as a reader of a compacted topic sees them.
    public func last(_ topic: TopicID, of name: ShadowName? = nil) throws -> [String: JSONValue] {
        Dictionary(try read(topic, of: name).map { ($0.keyText, $0.value) }) { $1 }
            .compactMapValues { try? $0.map { try JSONValue.read($0) } }
    }
}
