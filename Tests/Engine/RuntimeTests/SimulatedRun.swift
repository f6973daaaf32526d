// One seed: workers, input and all kinds of faults.

import Ledger
import Log
import LogTestKit
import MemoryLog
import Runtime
import WorkerTestKit

/// Feeds a ledger while processes are killed, suspended, stopped and started, disks are lost and the log refuses requests. Then
/// all faults end, and what readers see is compared with the oracle.
struct SimulatedRun {
    private static let partitions: Int32 = 4
    private static let rounds = 120
    private static let keys = (0..<10).map { "key-\($0)" }

    let seed: UInt64
    private let simulation: WorkerSimulation
    private let faults: SeededFaults
    private var dice: SplitMix64
    private var frozenUntil: [Int: Int] = [:]
    private(set) var happened: [String] = []
    private var isCompacted = false

    init(seed: UInt64, faultsPerMillion: UInt64 = 4000) throws {
        self.seed = seed
        dice = SplitMix64(seed: seed &+ 1)
        var rates = SeededFaults.Rates(everyKind: faultsPerMillion)
        rates[.slow] = faultsPerMillion * 10
        faults = SeededFaults(seed: seed, rates: rates)
        simulation = try WorkerSimulation(
            Ledger(partitions: Self.partitions), processes: 3, faults: faults, seed: seed)
        simulation.commitInterval = .milliseconds(Int.random(in: 1...50, using: &dice))
        simulation.bytesPerAppend = [0, 100, 1 << 20].randomElement(using: &dice)!
        // A quarter of it may be committed and not yet in the stores.
        simulation.cacheBytes = Int.random(in: 500...5000, using: &dice) * (Bool.random(using: &dice) ? 1 : 20)
        simulation.storeInterval = .milliseconds([0, 10, 200, 5000].randomElement(using: &dice)!)
        simulation.flush.offsets = [1, 50, 20_000].randomElement(using: &dice)!
        // A store may have flushed any part of its writes when its process is killed.
        var buffers = SplitMix64(seed: seed &+ 2)
        simulation.keptAtCrash = { writes in Int.random(in: 0...writes, using: &buffers) }
    }

    /// What is wrong with the workers' output; empty if nothing is.
    mutating func run() throws -> [String] {
        for process in simulation.processes { simulation.start(process) }
        for round in 0..<Self.rounds { try play(round) }
        faults.heal()
        frozenUntil = [:]
        for process in simulation.processes where !process.isRunning { simulation.start(process) }
        // Far enough that every timer fires, also those that timers set.
        for _ in 0..<3 {
            simulation.clock.advance(by: .seconds(3600))
            try simulation.tick()
        }
        guard try runToEnd() else {
            return ["no progress: \(simulation.processes.map { "\($0.slot): \($0.troubles)" })"]
        }
        return try check()
    }

    private mutating func runToEnd() throws -> Bool {
        for _ in 0..<50 {
            if try simulation.runToEnd(limit: 200) { return true }
            // A worker whose slot was fenced twice has ended itself, as it should; it is started again.
            for process in simulation.processes where !process.isRunning { simulation.start(process) }
        }
        return false
    }

    // MARK: Disturbances

    private mutating func play(_ round: Int) throws {
        try feed()
        for process in simulation.processes where frozenUntil[process.slot, default: 0] <= round {
            for _ in 0..<Int.random(in: 0...6, using: &dice) {
                simulation.step(process, restorerFirst: Bool.random(using: &dice))
            }
        }
        simulation.clock.advance(by: .milliseconds(Int.random(in: 0...60, using: &dice)))
        let process = simulation.processes[Int.random(in: 0..<3, using: &dice)]
        switch Int.random(in: 0..<100, using: &dice) {
        case 0..<4 where process.isRunning:
            note(round, "kill \(process.slot)")
            simulation.crash(process)
        case 4..<6 where process.isRunning:
            note(round, "freeze \(process.slot)")
            frozenUntil[process.slot] = round + Int.random(in: 5...30, using: &dice)
            simulation.clock.advance(by: .seconds(Int.random(in: 0...9, using: &dice)))
        case 6..<8 where process.isRunning:
            note(round, "stop \(process.slot)")
            simulation.stop(process)
        case 8..<40 where !process.isRunning:
            if Int.random(in: 0..<4, using: &dice) == 0 {
                note(round, "lose the disk of \(process.slot)")
                simulation.loseDisk(of: process)
            }
            note(round, "start \(process.slot)")
            simulation.start(process)
        case 40:
            isCompacted = true
            simulation.log.compact()
        case 41 where !simulation.processes.contains(where: \.isRunning):
            note(round, "the group's offsets are forgotten")
            simulation.clock.advance(by: .seconds(20))
            simulation.log.delete(group: simulation.processor.definition.group)
        default: break
        }
    }

    private mutating func note(_ round: Int, _ what: String) { happened.append("round \(round): \(what)") }

    private mutating func feed() throws {
        if Int.random(in: 0..<10, using: &dice) == 0 { try simulation.tick() }
        for _ in 0..<Int.random(in: 0...5, using: &dice) {
            let key = Self.keys[Int.random(in: 0..<Self.keys.count, using: &dice)]
            let number = Int.random(in: 1...500, using: &dice)
            let home = Partitioner.partition(of: Array(key.utf8), count: Self.partitions)
            // Every second record is like those of builds before 0.2.
            let isOld = number % 2 == 0
            let type = RecordHeader("type", "word")
            var headers = (isOld ? [type] : []) + [RecordHeader("schema", "word/1")]
            let text: String
            switch Int.random(in: 0..<24, using: &dice) {
            case 0..<8: text = "add \(number)"
            case 8..<10: text = "twice \(number)"
            case 10..<14: text = "wake \(number)"
            case 14: text = "sleep"
            case 15..<17: text = "toggle"
            case 17: text = "poison"
            case 18: text = "nonsense"
            case 19:
                headers = [isOld ? RecordHeader("type", "something-new") : RecordHeader("schema", "something-new/1")]
                text = "add 1"
            case 20:
                headers = isOld ? [] : [RecordHeader("schema", "word")]
                text = "add 2"
            default:
                let strays = Int.random(in: 0..<4, using: &dice) == 0
                try simulation.feed(
                    input: 1, partition: strays ? (home + 1) % Self.partitions : home, key: Array(key.utf8),
                    value: Array((number < 20 ? "no row" : "row \(number)").utf8), headers: [])
                continue
            }
            // A late record does not turn back the clock of its partition.
            let late = Int.random(in: 0..<8, using: &dice) == 0 ? Int64(number) : 0
            try simulation.feed(
                partition: home, key: Array(key.utf8), value: Array(text.utf8), headers: headers,
                timestamp: simulation.clock.now - late)
        }
    }

    // MARK: What readers see

    private func check() throws -> [String] {
        let definition = simulation.processor.definition
        return LedgerCheck(
            partitions: Self.partitions, events: try read(definition.events.topic),
            rows: try read(definition.tables[0].topic), told: try read(definition.outputs[0].topic),
            totals: try read(definition.outputs[1].topic), letters: try read(definition.deadLetters)
        ).wrong
    }

    private func read(_ topic: String) throws -> [LedgerRecord] {
        try simulation.read(topic).map { seen in
            LedgerRecord(
                partition: seen.partition, offset: seen.offset, timestamp: seen.timestamp, key: seen.key,
                value: seen.value,
                headers: seen.headers.map { ($0.name, String(decoding: $0.value ?? [], as: UTF8.self)) })
        }
    }

    /// Faults by step and kind, and the disturbances of processes by their first words.
    var met: Set<String> {
        var met = Set(
            faults.trace.map { line in
                let words = line.split(separator: " ")
                return "\(words[1]) \(words[3].prefix { $0 != "(" })"
            })
        for line in happened {
            for word in ["kill", "freeze", "stop", "start", "disk", "offsets"] where line.contains(word) {
                met.insert(word)
            }
        }
        if isCompacted { met.insert("compact") }
        return met
    }

    /// Printed to help with a failure.
    var trace: [String] { faults.trace + happened }
}
