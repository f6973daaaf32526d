// A log with the notifications of a simulated store about refunds, the backend's usage, and a sender whose answers Apple always
// accepts.

import Consumption
import ConsumptionWorker
import Contract
import JSON
import Log
import LogTestKit
import MakeBelieve
import MemoryLog
import Notices
import Runtime
import Simulation
import Telemetry
import WorkerTestKit

/// Worker processes that may be killed between any two steps.
final class RefundRun {
    /// One record of an input.
    struct Input {
        let at: Int64
        /// 0: notifications, 1: usage, 2: attempts; nil: this is a tick.
        let topic: Int?
        var key: [UInt8] = []
        var value: [UInt8] = []
    }

    static let partitions: Int32 = 3
    static let names = Names(prefix: TopicPrefix("refunds")!, environment: .production)
    private static let headers = [
        [RecordHeader("schema", "notification/1")], [],
        [RecordHeader("schema", "consumption-attempt/1")],
    ]

    let simulation: WorkerSimulation
    private let faults: SeededFaults?
    private var disturbances: Disturbances
    var happened: [String] { disturbances.happened }
    /// Ids of the answered requests, if there is a sender.
    private var answered: Set<String> = []

    static func processor(_ policy: RefundPolicy? = nil) -> ConsumptionProcessor {
        makeProcessor(names, apps: StoreLog.apps.map(\.bundleId), policy: policy, partitions: partitions)
    }

    init(processes: Int = 1, faults seed: UInt64? = nil, policy: RefundPolicy? = nil, end: Int64) throws {
        faults = seed.map(SeededFaults.ofEveryKind)
        simulation = try WorkerSimulation(
            Self.processor(policy), processes: processes, startingAt: end, faults: faults, seed: seed ?? 1)
        disturbances = Disturbances(seed: (seed ?? 0) &+ 1, simulation, start: simulation.start)
        for process in simulation.processes { simulation.start(process) }
    }

    // MARK: Input

    func feed(_ input: Input) throws {
        guard let topic = input.topic else { return try simulation.tick(at: input.at) }
        try simulation.feed(
            input: topic, partition: Partitioner.partition(of: input.key, count: Self.partitions), key: input.key,
            value: input.value, headers: Self.headers[topic], timestamp: input.at)
    }

    /// Feeds everything at once, and processes it to the end.
    func play(_ inputs: [Input]) throws {
        for input in inputs { try feed(input) }
        try finish()
    }

    /// Feeds everything at once; processes that faults of the log have ended are restarted.
    func playQuietly(_ inputs: [Input]) throws {
        for input in inputs { try feed(input) }
        try disturbances.comeToEnd()
    }

    /// Processes each input before the next; what is decided then is answered with 202 before time passes.
    func playWithSender(_ inputs: [Input]) throws {
        for input in inputs {
            try feed(input)
            try finish()
            for value in try decided() {
                guard let id = value["id"]?.string, let key = value["originalTransactionId"]?.string,
                    answered.insert(id).inserted
                else { continue }
                let row = Attempt(id: Text(id), number: 1, at: input.at, httpStatus: 202, errorCode: nil, retryAt: nil)
                try feed(Input(at: input.at, topic: 2, key: Array(key.utf8), value: row.value))
            }
        }
        try finish()
    }

    private func decided() throws -> [JSONValue] {
        try simulation.read(Self.names.topic(.consumption)).compactMap { seen in
            let value = try JSONValue.read(seen.value ?? [])
            return value["kind"]?.string == "decided" ? value : nil
        }
    }

    private func finish() throws {
        guard try simulation.runToEnd() else {
            throw Disturbances.NoProgress(simulation)
        }
    }

    /// While processes are killed, suspended, stopped and started, disks are lost and the log refuses requests.
    func struggle(_ inputs: [Input]) throws {
        var rest = inputs[...]
        while !rest.isEmpty {
            for input in rest.prefix(Int.random(in: 1...6, using: &disturbances.dice)) {
                try feed(input)
                rest = rest.dropFirst()
            }
            disturbances.disturb()
        }
        faults?.heal()
        try disturbances.comeToEnd()
    }

    // MARK: Output

    /// The values by originalTransactionId, in the order of writing.
    func told() throws -> [String: [String]] {
        try simulation.read(Self.names.topic(.consumption)).reduce(into: [:]) { told, seen in
            told[seen.keyText, default: []].append(seen.valueText)
        }
    }

    func letters() throws -> [String] {
        try simulation.read(Self.names.topic(.deadLetters(.consumption))).compactMap { $0.header("reason") }
    }
}

// MARK: Stories

extension StoreLog {
    /// What Apple and the backend send, in order of time, with a tick at regular intervals.
    func refundInputs(tickEvery interval: Int64) throws -> [RefundRun.Input] {
        var inputs: [RefundRun.Input] = []
        for arrival in punctual {
            let record = try record(of: arrival)
            inputs.append(RefundRun.Input(at: record.timestamp, topic: 0, key: record.key, value: record.value))
        }
        for subscriber in 0..<simulation.configuration.subscribers {
            for usage in simulation.usage(of: subscriber) where usage.environment == environment {
                // With regular ticks no row is read before its time.
                inputs.append(RefundRun.Input(at: usage.at, topic: nil))
                inputs.append(
                    RefundRun.Input(
                        at: usage.at, topic: 1, key: Array(usage.originalTransactionId.utf8), value: usage.json))
            }
        }
        var instant = Self.start
        while instant < end {
            inputs.append(RefundRun.Input(at: instant, topic: nil))
            instant += interval
        }
        inputs.append(RefundRun.Input(at: end, topic: nil))
        return inputs.enumerated().sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }.map(\.element)
    }
}

/// The same inputs, folded without worker, log, bytes or an engine's timers.
func plainFold(_ inputs: [RefundRun.Input], _ rules: ConsumptionRules) throws -> [String: [String]] {
    var states: [[UInt8]: RefundState] = [:]
    var told: [String: [String]] = [:]
    var clocks: [Int32: Int64] = [:]
    func partition(_ key: [UInt8]) -> Int32 { Partitioner.partition(of: key, count: RefundRun.partitions) }
    func step(
        _ key: [UInt8], _ clock: Int64, _ timestamp: Int64, _ body: (inout RefundState, inout RefundStep) throws -> Void
    )
        throws
    {
        var step = RefundStep(originalTransactionId: Text(key), clock: clock, timestamp: timestamp, rules: rules)
        try body(&states[key, default: RefundState()], &step)
        told[String(decoding: key, as: UTF8.self), default: []] += step.records.map {
            String(decoding: $0.value, as: UTF8.self)
        }
    }
    func pass(_ home: Int32, until instant: Int64) throws {
        for key in states.keys where partition(key) == home {
            while let due = states[key]?.nextDue(rules), due <= instant { try step(key, due, due) { $0.wake(&$1) } }
        }
        clocks[home] = max(clocks[home] ?? 0, instant)
    }
    for input in inputs {
        guard let topic = input.topic else {
            for home in 0..<RefundRun.partitions { try pass(home, until: input.at) }
            continue
        }
        let home = partition(input.key)
        if topic == 0 { try pass(home, until: input.at) }
        let clock = clocks[home] ?? 0
        switch topic {
        case 0:
            var json = JSONDocument()
            try json.read(input.value.span)
            let notice = RefundNotice(json)
            try step(input.key, clock, input.at) { try $0.take(notice, &$1) }
        case 1:
            let row = UsageRow(try JSONValue.read(input.value), timestamp: input.at)
            try step(input.key, clock, input.at) { $0.take(row, &$1) }
        default:
            var json = JSONDocument()
            try json.read(input.value.span)
            guard let attempt = Attempt(json) else { continue }
            try step(input.key, clock, input.at) { $0.take(attempt, &$1) }
        }
    }
    return told.filter { !$0.value.isEmpty }
}
