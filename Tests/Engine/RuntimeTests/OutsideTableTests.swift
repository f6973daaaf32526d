import Log
import LogTestKit
import MemoryLog
import Platform
import Testing
import WorkerTestKit

@testable import Runtime

@Suite struct `A table from outside` {
    private static func script(partitions: Int32 = 1) -> Script {
        var script = Script(partitions: partitions)
        script.definition.tables = [
            InputTopic("rows", kinds: [.init("row", version: 1)], withoutHeader: .init("row", version: 1))
        ]
        script.definition.tables[0].isFromOutside = true
        // `tell NAME ...`: the row is of NAME.
        script.identity = { value in
            let words = value.split(separator: " ")
            return words.count > 1 && words[0] != "whose" ? String(words[1]) : nil
        }
        return script
    }

    private static func key(in partition: Int32, of count: Int32) -> String {
        (0..<1_000).map { "key-\($0)" }.first { Partitioner.partition(of: Array($0.utf8), count: count) == partition }!
    }

    @Test(arguments: [
        ([RecordHeader("type", "row"), RecordHeader("schema", "row/2")], "schema"),
        ([RecordHeader("type", "row"), RecordHeader("schema", "row/999999999999999999999")], "schema"),
        ([RecordHeader("type", "row"), RecordHeader("schema", "\u{0}")], "schema"),
        ([RecordHeader("type", "word"), RecordHeader("schema", "word/1")], "type"),
        ([RecordHeader("type", "tick")], "type"), ([RecordHeader("schema", "tick/1")], "schema"),
        ([RecordHeader("schema", "row/2")], "schema"), ([RecordHeader("schema", "word/1")], "schema"),
        ([RecordHeader("schema", "row")], "schema"),
    ])
    func `goes on behind what only a table of ours may stop at`(_ headers: [RecordHeader], _ reason: String) throws {
        let bench = try TaskBench(Self.script())
        #expect(try bench.handle("tell bad", topic: 1, at: 1, headers: headers) == .done)
        #expect(try bench.handle("tell good", topic: 1, at: 2) == .done)
        try bench.commit()
        #expect(bench.told.map { $0.split(separator: " ")[0] } == ["good"])
        #expect(bench.letters.map { $0.header("reason") } == [reason])
        #expect(bench.letters.map(\.value) == ["tell bad"])
        #expect(bench.task.next[1] == NextOffset(2))
    }

    @Test func `goes on behind a thousand dead letters in a row, and the events' breaker hears nothing of them`() throws
    {
        let bench = try TaskBench(Self.script())
        for number in 0..<1_100 {
            let value = number % 2 == 0 ? "whose is it" : "fail bad"
            #expect(try bench.handle(value, topic: 1, at: 1) == .done)
        }
        for _ in 0..<Breaker.limit { #expect(try bench.handle("fail x", at: 1) == .done) }
        #expect(try bench.handle("tell good", topic: 1, at: 2) == .done)
        guard case .pause(.tooManyLetters) = try bench.handle("fail x", at: 1) else {
            Issue.record("the events' own breaker has to hold")
            return
        }
        try bench.commit()
        #expect(bench.told.count == 1)
        #expect(bench.letters.count == 1_100 + Breaker.limit)
        #expect(Set(bench.letters.map { $0.header("reason") }) == ["nobody", "bad", "x"])
    }

    @Test func `has rows where their identity is at home, whatever their keys say`() throws {
        let bench = try TaskBench(Self.script(partitions: 8))
        let (home, away) = (Self.key(in: 0, of: 8), Self.key(in: 5, of: 8))
        for key in [home, away, nil] {
            _ = try bench.handle("tell \(home)", topic: 1, key: key, at: 3)
            _ = try bench.handle("tell \(away)", topic: 1, key: key, at: 4, headers: [RecordHeader("a", "b")])
        }
        try bench.commit()
        #expect(bench.told.count == 3)
        #expect(bench.told.allSatisfy { $0.hasPrefix(home) })
        let sent = bench.committed.filter { $0.topic == Script.rows }
        #expect(sent.count == 3)
        #expect(sent.allSatisfy { $0.partition == 5 && $0.key == away && $0.value == "tell \(away)" })
        #expect(sent.allSatisfy { $0.timestamp == 4 })
        #expect(sent[0].headers == [RecordHeader("a", "b"), RecordHeader("rerouted", "rows:0:1")])
        #expect(bench.letters.isEmpty)
    }

    @Test func `does not lose in silence a row that is too large to be carried home`() throws {
        let bench = try TaskBench(Self.script(partitions: 8))
        let (home, away) = (Self.key(in: 0, of: 8), Self.key(in: 5, of: 8))
        let filling = String(repeating: "x", count: Turn.limitBytes - 1_000)
        let headers = [RecordHeader("filling", String(repeating: "y", count: 2_000))]
        #expect(try bench.handle("tell \(away) \(filling)", topic: 1, at: 1, headers: headers) == .done)
        #expect(try bench.handle("tell \(home)", topic: 1, at: 1, headers: headers) == .done)
        try bench.commit()
        #expect(bench.told.count == 1)
        #expect(bench.letters.map { $0.header("reason") } == ["too_large"])
        #expect(bench.committed.allSatisfy { $0.topic != Script.rows })
    }

    @Test func `takes a row for poison when the process has trapped at it, and asks it nothing any more`() throws {
        let crashes = CrashPlan()
        crashes.poison = (1, 0)
        crashes.traps = PartitionTask.trapLimit
        var script = Self.script()
        script.identity = { _ in
            Issue.record("a row that ended the process is looked at again")
            return nil
        }
        let bench = try TaskBench(script, crashes: crashes)
        #expect(try bench.handle("tell a", topic: 1, at: 1) == .commitNow)
        try bench.commit()
        #expect(bench.told.isEmpty)
        #expect(bench.letters.map { $0.header("reason") } == ["crash"])
    }

    @Test(arguments: 0..<12)
    func `gives each row once, at home, whatever happens to the workers`(_ seed: Int) throws {
        let partitions: Int32 = 4
        var rates = SeededFaults.Rates(everyKind: 4_000)
        rates[.slow] = 40_000
        let faults = SeededFaults(seed: UInt64(seed), rates: rates)
        let simulation = try WorkerSimulation(
            Self.script(partitions: partitions), processes: 2, faults: faults, seed: UInt64(seed))
        var dice = SplitMix64(seed: UInt64(seed))
        for process in simulation.processes { simulation.start(process) }
        var names: [String] = []
        for number in 0..<150 {
            let garbage = number % 10 == 0
            if !garbage { names.append("row-\(number)") }
            try simulation.feed(
                input: 1, partition: .random(in: 0..<partitions, using: &dice), key: Array("k\(number % 7)".utf8),
                value: Array((garbage ? "whose \(number)" : "tell row-\(number)").utf8), headers: [])
            for process in simulation.processes {
                if !process.isRunning { simulation.start(process) }
                simulation.step(process)
            }
            simulation.clock.advance(by: .milliseconds(20))
        }
        faults.heal()
        for _ in 0..<20 {
            for process in simulation.processes where !process.isRunning { simulation.start(process) }
            if try simulation.runToEnd(limit: 500) { break }
        }
        #expect(try simulation.isAtEnd())
        let told = try simulation.read("told")
        let found = told.map { String($0.valueText.split(separator: " ")[0]) }
        #expect(found.sorted() == names.sorted())
        for (seen, name) in zip(told, found) {
            #expect(seen.partition == Partitioner.partition(of: Array(name.utf8), count: partitions))
        }
        let letters = try simulation.read("script.dead-letters").map(\.valueText)
        #expect(letters.sorted() == (0..<15).map { "whose \($0 * 10)" }.sorted())
    }
}
