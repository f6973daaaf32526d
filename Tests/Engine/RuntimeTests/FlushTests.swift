import Log
import MemoryLog
import Store
import Testing
import WorkerTestKit

@testable import Runtime

@Suite struct `The rule for flushes` {
    private static func note(_ changelog: Int64, at writtenAt: Int64 = 0) -> Note {
        var note = Note(format: 1)
        note.changelog = NextOffset(changelog)
        note.writtenAt = writtenAt
        return note
    }

    @Test(arguments: [(5, 104, false), (5, 105, true), (nil, 99, false), (nil, 100, true)] as [(Int64?, Int64, Bool)])
    func `lets a kill lose only so much of the changelog`(lasting: Int64?, stored: Int64, isDue: Bool) {
        var rule = FlushRule()
        rule.offsets = 100
        #expect(rule.isDue(lasting.map { Self.note($0) }, Self.note(stored)) == isDue)
    }

    @Test(arguments: [(1_000, 60_999, false), (1_000, 61_000, true)] as [(Int64, Int64, Bool)])
    func `lets no file become old: a restore wipes a store that may have missed deletions`(
        lasting: Int64, stored: Int64, isDue: Bool
    ) {
        var rule = FlushRule()
        rule.age = .seconds(60)
        #expect(rule.isDue(Self.note(1, at: lasting), Self.note(2, at: stored)) == isDue)
        // A restore from the beginning misses nothing.
        #expect(!rule.isDue(nil, Self.note(2, at: stored)))
    }

    @Test func `is far within what a changelog keeps`() {
        #expect(FlushRule().offsets == 20_000)
        #expect(FlushRule().age == .seconds(3600))
    }
}

@Suite struct `A worker that is killed` {
    private let simulation: WorkerSimulation
    private var process: WorkerSimulation.Process { simulation.processes[0] }

    /// What was committed is in the store at once, and lost with the process unless it was flushed.
    init() throws {
        simulation = try WorkerSimulation(Script(), processes: 1)
        simulation.storeInterval = .zero
        simulation.flush.offsets = 100
    }

    /// One commit of one key: three offsets of the changelog, with the mark of the transaction.
    private func commit(_ number: Int) throws {
        try simulation.feed(
            partition: 0, key: Array("k".utf8), value: Array("put n \(number);tell \(number)".utf8),
            headers: [RecordHeader("schema", "word/1")])
        #expect(try simulation.runToEnd())
    }

    private func lasting(_ disk: MemoryDisk) throws -> Note? {
        try MemoryStores(disk: disk).open(0).note().flatMap { Note(decoding: $0) }
    }

    @Test func `reads again from where its files end, and that is never far behind`() throws {
        simulation.start(process)
        var distances: [Int64] = []
        for number in 1...200 {
            try commit(number)
            let stored = try #require(try lasting(process.disk.copy { $0 }))
            let left = try lasting(process.disk.copy())
            #expect(left?.positions["events"] ?? NextOffset(0) <= NextOffset(Int64(number)))
            distances.append(stored.changelog.value - (left?.changelog.value ?? 0))
        }
        // It was flushed several times, and not with each write.
        #expect(distances.max()! > 90 && distances.max()! < 100, "\(distances)")
        #expect((2...10).contains(distances.count { $0 == 0 }), "\(distances)")
        simulation.crash(process)
        simulation.start(process)
        try commit(201)
        #expect(
            try simulation.read("told").map { $0.valueText.split(separator: " ")[0] } == (1...201).map { "\($0)" })
    }

    @Test func `reads no more again when its stores wait for long`() throws {
        simulation.storeInterval = .seconds(3600)
        simulation.start(process)
        for number in 1...200 {
            try commit(number)
            let left = try lasting(process.disk.copy())
            // A store lacks less than 100 offsets, and so do its files when it is written. A commit has three.
            #expect(Int64(number) * 3 - (left?.changelog.value ?? 0) < 200)
        }
    }

    @Test func `finds no old files after a long time with few records`() throws {
        simulation.start(process)
        try commit(1)
        simulation.stop(process)
        simulation.start(process)
        try commit(2)
        #expect(try lasting(process.disk.copy())?.positions["events"] == NextOffset(1))
        simulation.clock.advance(by: .seconds(3600))
        try commit(3)
        #expect(try lasting(process.disk.copy())?.positions["events"] == NextOffset(3))
    }

    @Test func `reads nothing again after a clean stop`() throws {
        simulation.start(process)
        try commit(1)
        #expect(try lasting(process.disk.copy()) == nil)
        #expect(simulation.stop(process))
        #expect(try lasting(process.disk.copy())?.positions["events"] == NextOffset(1))
    }
}
