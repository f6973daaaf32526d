// One seed: workers, input and everything that can go wrong.

import Log
import MemoryLog
import Runtime
import WorkerTestKit

/// Feeds a ledger while processes are killed, frozen, stopped and started, disks are lost and the log refuses; then lets everything
/// heal and compares what readers see with the oracle.
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

    init(seed: UInt64, faultsPerMillion: UInt64 = 4000) throws {
        self.seed = seed
        dice = SplitMix64(seed: seed &+ 1)
        var rates = SeededFaults.Rates(everyKind: faultsPerMillion)
        rates[.slow] = faultsPerMillion * 10
        faults = SeededFaults(seed: seed, rates: rates)
        simulation = try WorkerSimulation(
            Ledger(partitions: Self.partitions), processes: 3, faults: faults, seed: seed)
        simulation.commitInterval = .milliseconds(Int.random(in: 1...50, using: &dice))
        simulation.cacheBytes = Int.random(in: 500...5000, using: &dice)
    }

    /// What is wrong with what the workers have written; empty when nothing is.
    mutating func run() throws -> [String] {
        for process in simulation.processes { simulation.start(process) }
        for round in 0..<Self.rounds { try play(round) }
        faults.heal()
        frozenUntil = [:]
        for process in simulation.processes where !process.isRunning { simulation.start(process) }
        // Far enough that every timer fires, and those that they set again.
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
            // One whose slot was taken over twice has ended itself, as it should; somebody starts it again.
            for process in simulation.processes where !process.isRunning { simulation.start(process) }
        }
        return false
    }

    // MARK: What happens

    private mutating func play(_ round: Int) throws {
        try feed()
        for process in simulation.processes where frozenUntil[process.slot, default: 0] <= round {
            for _ in 0..<Int.random(in: 0...6, using: &dice) { simulation.step(process) }
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
        case 40: simulation.log.compact()
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
            var headers = [RecordHeader("type", "word"), RecordHeader("schema", "word/1")]
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
                headers = [RecordHeader("type", "something-new")]
                text = "add 1"
            case 20:
                headers = []
                text = "add 2"
            default:
                let strays = Int.random(in: 0..<4, using: &dice) == 0
                try simulation.feed(
                    input: 1, partition: strays ? (home + 1) % Self.partitions : home, key: Array(key.utf8),
                    value: Array((number < 20 ? "no row" : "row \(number)").utf8), headers: [])
                continue
            }
            // The clock of a partition does not go back with a record that is late.
            let late = Int.random(in: 0..<8, using: &dice) == 0 ? Int64(number) : 0
            try simulation.feed(
                partition: home, key: Array(key.utf8), value: Array(text.utf8), headers: headers,
                timestamp: simulation.clock.now - late)
        }
    }

    // MARK: What readers see

    private func check() throws -> [String] {
        let definition = simulation.processor.definition
        let events = try simulation.read("events")
        let rows = try simulation.read("rows")
        let oracle = LedgerOracle(events: events, rows: rows, partitions: Self.partitions)
        let told = try simulation.read("told")
        var wrong: [String] = []
        for partition in 0..<Self.partitions {
            let mine = told.filter { $0.partition == partition }
            let isOfRow = { (seen: WorkerSimulation.Seen) in seen.header("id")?.hasPrefix("rows-") == true }
            compare(mine.filter { !isOfRow($0) }, oracle.told[partition] ?? [], "partition \(partition)", &wrong)
            compare(mine.filter(isOfRow), oracle.rowsTold[partition] ?? [], "rows of \(partition)", &wrong)
        }
        wrong += rowsGoBack(told)
        let letters = try simulation.read(definition.deadLetters).map { letter in
            ["source", "reason"].map { letter.header($0) ?? "" } + [letter.keyText, letter.valueText]
        }
        let expected = oracle.letters.sorted { $0.lexicographicallyPrecedes($1) }
        if letters.sorted(by: { $0.lexicographicallyPrecedes($1) }) != expected {
            wrong.append("dead letters: \(letters.count) of \(expected.count)")
        }
        wrong += misplaced(rows, oracle)
        return wrong
    }

    private func compare(
        _ seen: [WorkerSimulation.Seen], _ expected: [Expected], _ what: String, _ wrong: inout [String]
    ) {
        let found = seen.map { seen in
            Expected(
                id: seen.header("id") ?? "", key: seen.keyText, text: Self.withoutRow(seen.valueText),
                timestamp: seen.timestamp, source: seen.header("source") ?? "")
        }
        for seen in seen where seen.headers.map(\.name) != ["id", "type", "schema", "app", "rules", "source"] {
            wrong.append("\(what): headers of \(seen): \(seen.headers.map(\.name))")
        }
        guard found != expected else { return }
        let place =
            zip(found, expected).enumerated().first { $0.element.0 != $0.element.1 }?.offset
            ?? min(found.count, expected.count)
        wrong.append(
            "\(what): \(found.count) outputs, expected \(expected.count); the first difference is at \(place): "
                + "\(place < found.count ? "\(found[place])" : "nothing") instead of "
                + "\(place < expected.count ? "\(expected[place])" : "nothing")")
    }

    private static func withoutRow(_ text: String) -> String {
        guard text.hasPrefix("sum "), let place = text.firstRange(of: " row ") else { return text }
        return text[..<place.upperBound] + "?"
    }

    /// The row that a sum carries is one that was told before for its key, the newest.
    private func rowsGoBack(_ told: [WorkerSimulation.Seen]) -> [String] {
        var newest: [String: String] = [:]
        var wrong: [String] = []
        for seen in told {
            let words = seen.valueText.split(separator: " ").map(String.init)
            if words[0] == "row" { newest[seen.keyText] = words[1] }
            if words[0] == "sum", words[6] != newest[seen.keyText] ?? "0" {
                wrong.append("\(seen) carries another row than \(newest[seen.keyText] ?? "0")")
            }
        }
        return wrong
    }

    /// Each row in a wrong partition was sent on to the right one, once.
    private func misplaced(_ rows: [WorkerSimulation.Seen], _ oracle: LedgerOracle) -> [String] {
        var copies: [String: [Int32]] = [:]
        for row in rows { if let source = row.header("rerouted") { copies[source, default: []].append(row.partition) } }
        let expected = oracle.misplaced.mapValues { [$0] }
        return copies == expected ? [] : ["rows sent on: \(copies.count), expected \(expected.count)"]
    }

    /// For the one who looks into a failure.
    var trace: [String] { faults.trace + happened }
}
