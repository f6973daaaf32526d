import Ledger
import Log
import MemoryLog
import Runtime
import Testing
import WorkerTestKit

@testable import Cluster
@testable import Simulator
@testable import Tools

/// Letters written by the runtime itself, not imitated by these tests.
@Suite struct `A worker's letter` {
    private static let headers = [
        RecordHeader("id", "n-1"), RecordHeader("type", "word"), RecordHeader("schema", "word/1"),
        // Headers with the same names as those that the runtime adds to a letter.
        RecordHeader("detail", "mine"), RecordHeader("source", "elsewhere:0:1"), RecordHeader("app", "perennial/9"),
        RecordHeader("empty", nil as [UInt8]?),
    ]
    private static let inputs = ["events", "rows"]

    private static func simulation() throws -> WorkerSimulation {
        try WorkerSimulation(Ledger(partitions: 2), processes: 1)
    }

    private static func letters(of simulation: WorkerSimulation) throws -> [WorkerSimulation.Seen] {
        if !simulation.processes[0].isRunning { simulation.start(simulation.processes[0]) }
        try #require(try simulation.runToEnd())
        return try simulation.read("ledger.dead-letters")
    }

    private func verdict(_ letter: WorkerSimulation.Seen, inputs: [String] = inputs) -> WorkerRedrive.Verdict {
        WorkerRedrive.verdict(
            LetterMarks(letter.headers, hasValue: letter.value != nil), key: letter.key, value: letter.value,
            written: letter.timestamp + 5000, inputs: inputs, partitions: 2)
    }

    private func redriven(_ letter: WorkerSimulation.Seen) throws -> ToolRecord {
        guard case .back(let record) = verdict(letter) else { throw Unexpected() }
        return record
    }

    private struct Unexpected: Error {}

    @Test func `says why, and from where, and goes back as the record was`() throws {
        let simulation = try Self.simulation()
        let (key, value) = (Array("2000000123".utf8), Array("poison".utf8))
        let home = Partitioner.partition(of: key, count: 2)
        try simulation.feed(
            partition: home, key: key, value: value, headers: Self.headers, timestamp: 1_700_000_000_123)
        let letters = try Self.letters(of: simulation)
        try #require(letters.count == 1)
        let marks = LetterMarks(letters[0].headers, hasValue: true)
        #expect(marks.reason == "poison")
        #expect(marks.detail == "on demand")
        #expect(marks.source == "events:\(home):0")
        #expect(marks.firstTimestamp == 1_700_000_000_123)
        #expect(marks.own == Self.headers)
        #expect(
            try redriven(letters[0])
                == ToolRecord(
                    topic: "events", partition: home, key: key, value: value,
                    headers: Self.headers + [RecordHeader("attempt", "1")], timestamp: 1_700_000_000_123))
    }

    @Test func `that comes back counts its attempts, and only those`() throws {
        let simulation = try Self.simulation()
        let key = Array("k".utf8)
        try simulation.feed(
            partition: Partitioner.partition(of: key, count: 2), key: key, value: Array("poison".utf8),
            headers: Self.headers)
        for attempt in 1...3 {
            let letters = try Self.letters(of: simulation)
            try #require(letters.count == attempt)
            let record = try redriven(letters[attempt - 1])
            #expect(record.headers == Self.headers + [RecordHeader("attempt", "\(attempt)")])
            try simulation.feed(
                partition: record.partition, key: record.key, value: record.value, headers: record.headers,
                timestamp: record.timestamp)
        }
    }

    @Test func `without a detail leaves the record its own`() throws {
        let simulation = try Self.simulation()
        // It has no key, so the ledger refuses it. It goes back to the partition that it came from.
        try simulation.feed(partition: 1, key: nil, value: Array("add 1".utf8), headers: Self.headers)
        let letters = try Self.letters(of: simulation)
        try #require(letters.count == 1)
        #expect(LetterMarks(letters[0].headers, hasValue: true).detail == nil)
        let record = try redriven(letters[0])
        #expect(record.key == nil && record.partition == 1)
        #expect(record.headers == Self.headers + [RecordHeader("attempt", "1")])
    }

    @Test func `of a timer names the timer and cannot go back`() throws {
        let simulation = try Self.simulation()
        let key = Array("k".utf8)
        let partition = Partitioner.partition(of: key, count: 2)
        let headers = [RecordHeader("type", "word"), RecordHeader("schema", "word/1")]
        try simulation.feed(partition: partition, key: key, value: Array("wake 10".utf8), headers: headers)
        // Three times out of four it sets itself again, and the seventh firing fails.
        for _ in 0..<4 {
            simulation.clock.advance(by: .seconds(10))
            try simulation.feed(partition: partition, key: key, value: Array("wake 10".utf8), headers: headers)
            simulation.clock.advance(by: .seconds(10))
            try simulation.tick()
        }
        let letters = try Self.letters(of: simulation)
        let letter = try #require(letters.first)
        let marks = LetterMarks(letter.headers, hasValue: letter.value != nil)
        #expect(marks.reason == "seventh")
        #expect(marks.timer == "1")
        #expect(verdict(letter) == .timer)
        #expect(LetterCard.words(of: [], marks) == "none: a timer of the key could not fire")
    }

    @Test func `of a settled key says so and cannot go back`() throws {
        let simulation = try Self.simulation()
        let key = Array("k".utf8)
        try simulation.feed(
            partition: Partitioner.partition(of: key, count: 2), key: key,
            value: Array("add \(Ledger.unsettling + 1)".utf8),
            headers: [RecordHeader("type", "word")])
        let letter = try #require(try Self.letters(of: simulation).first)
        let marks = LetterMarks(letter.headers, hasValue: letter.value != nil)
        #expect(letter.key == Ledger.totalKey(of: Ledger.unsettling + 1) && marks.reason == "unsettling")
        #expect(marks.isOfSettling && marks.timer == nil)
        #expect(verdict(letter) == .settling)
        #expect(LetterCard.words(of: [], marks) == "none: the key could not be settled")
    }

    @Test(arguments: ["events:0:0", "events:1:9223372036854775807"])
    func `goes back to a topic that the worker reads`(source: String) {
        if case .back(let record) = forged(source) { #expect(record.topic == "events") } else { Issue.record() }
    }

    @Test(arguments: [
        "others:0:0", "events", "events:0", "events:x:0", "events:0:x", "events:-1:0", "events:0:0:0", "", ":0:0",
        // Without a key the partition is that of the source, which must exist.
        "events:2:0",
    ])
    func `goes nowhere else, whatever its headers say`(source: String) {
        #expect(forged(source) == .foreign)
    }

    private func forged(_ source: String) -> WorkerRedrive.Verdict {
        let headers = [
            RecordHeader("source", "events:0:0"), RecordHeader("reason", "poison"), RecordHeader("source", source),
        ]
        return WorkerRedrive.verdict(
            LetterMarks(headers, hasValue: true), key: nil, value: [], written: 7, inputs: ["events"], partitions: 2)
    }

    @Test func `keeps what others have added since`() {
        let headers = [
            RecordHeader("id", "1"), RecordHeader("reason", "old"), RecordHeader("reason", "new"),
            RecordHeader("mirrored-from", "a"), RecordHeader("app", "perennial/1"),
        ]
        let marks = LetterMarks(headers, hasValue: true)
        #expect(marks.reason == "new")
        #expect(
            marks.own == [
                RecordHeader("id", "1"), RecordHeader("reason", "old"), RecordHeader("mirrored-from", "a"),
            ])
    }

    @Test(arguments: [
        (#"{"v":1,"a":"b\u0007"}"#, #"{"v":1,"a":"b\u0007"}"#), ("no json", "not JSON; --raw shows the bytes"),
        ("", "not JSON; --raw shows the bytes"), ("{\"a\":\n1}", #"{"a":\u{a}1}"#),
    ])
    func `shows its value when that is JSON`(value: String, words: String) {
        let marks = LetterMarks([RecordHeader("id", "1"), RecordHeader("reason", "x")], hasValue: true)
        #expect(LetterCard.words(of: Array(value.utf8), marks) == words)
    }
}
