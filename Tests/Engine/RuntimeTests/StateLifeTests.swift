import Log
import MemoryLog
import Platform
import Store
import Synchronization
import Testing
import WorkerTestKit

@testable import Runtime

@Suite struct `The life of a changelog` {
    /// A store that was restored to the end of a changelog of this life, and its note.
    private func begun(_ bench: RestoreBench, life: UInt64? = 1, keys: [String] = ["a", "b", "c"]) throws -> Note {
        bench.life = life
        try bench.commit(keys.map { ($0, "1") }, events: 1)
        _ = try bench.order(group: ["events": 1, "rows": 0])
        #expect(next(try bench.outcome()) == [1, 0])
        return try #require(bench.stored)
    }

    @Test(arguments: [0, 1, 9])
    func `tells a store of topics that were made anew, wherever the new changelog ends`(more: Int) throws {
        let bench = try RestoreBench()
        let note = try begun(bench)
        try bench.makeAnew()
        bench.life = 2
        // Just as long as the old one, or longer.
        try bench.commit((0..<(more + 3)).map { ("d\($0)", "1") }, events: 1)
        #expect(bench.end == note.changelog.value + Int64(more))
        _ = try bench.order(note, group: ["events": 1, "rows": 0])
        #expect(useless(try bench.outcome())?.contains("an earlier life of script.changelog") == true)
    }

    /// The records after its position alone would give the same sum. So the refusal does not depend on luck, or on what
    /// compaction has left.
    @Test func `tells a store from before the state of a replay took its place`() throws {
        let bench = try RestoreBench()
        let note = try begun(bench)
        bench.epoch = 1
        try bench.commit([("a", "2")], events: 1)
        _ = try bench.order(note, group: ["events": 1, "rows": 0])
        #expect(useless(try bench.outcome())?.contains("is of epoch 0") == true)
        // Rebuilt from the beginning it has the new epoch, and continues.
        _ = try bench.order(group: ["events": 1, "rows": 0])
        #expect(next(try bench.outcome()) == [1, 0])
        let anew = try #require(bench.stored)
        #expect(anew.epoch == 1 && bench.values == ["a": "2", "b": "1", "c": "1"])
        _ = try bench.order(anew, group: ["events": 1, "rows": 0])
        #expect(next(try bench.outcome()) == [1, 0])
    }

    @Test func `that has no note where the store has seen one is another`() throws {
        let bench = try RestoreBench()
        let note = try begun(bench)
        try bench.makeAnew()
        for _ in 0..<9 { try bench.append(2, key: [1, 2], value: [3, 0]) }
        _ = try bench.order(note, group: ["events": 1, "rows": 0])
        #expect(useless(try bench.outcome())?.contains("does not have the note") == true)
    }

    @Test func `goes on for a store of its own, which reads nothing twice`() throws {
        let bench = try RestoreBench()
        let note = try begun(bench)
        #expect(note.life == 1 && note.noteOffset == NextOffset(3))
        _ = try bench.order(note, group: ["events": 1, "rows": 0])
        #expect(
            try bench.outcome()
                == .restored(try #require(bench.stored), next: [NextOffset(1), NextOffset(0)], records: 0))
        try bench.commit([("a", "2")], events: 2)
        _ = try bench.order(note, group: ["events": 2, "rows": 0])
        guard case .restored(let reached, _, let records)? = try bench.outcome() else {
            Issue.record("it is restored")
            return
        }
        #expect(records == 2 && reached.life == 1 && reached.sum == bench.sum)
        #expect(bench.values == ["a": "2", "b": "1", "c": "1"])
    }

    @Test func `is taken over from a build that knew none, with a sum that is counted`() throws {
        let bench = try RestoreBench()
        let note = try begun(bench, life: nil)
        #expect(note.life == nil && note.sum == bench.sum)
        // As the earlier build has written it, without the new fields.
        var old = note
        (old.sum, old.noteOffset) = (nil, nil)
        for more in 0..<2 {
            if more == 1 { try bench.commit([("b", nil), ("d", "4")], events: 2) }
            _ = try bench.order(old, group: ["events": 1 + Int64(more), "rows": 0])
            #expect(next(try bench.outcome()) == [1 + Int64(more), 0])
            #expect(bench.stored?.sum == bench.sum && bench.stored?.life == nil)
        }
        // A life has begun since then. An older store belongs to it if its contents show that.
        bench.life = 5
        try bench.commit([("d", "5")], events: 3)
        _ = try bench.order(old, group: ["events": 3, "rows": 0])
        #expect(next(try bench.outcome()) == [3, 0])
        #expect(bench.stored?.life == 5)
    }
}

@Suite struct `A state that lacks something` {
    /// Without a store, and with stores that lack a few records or many.
    @Test(arguments: [0, 1, 9])
    func `is not taken for whole`(keysBefore: Int) throws {
        for isOther in [false, true] {
            let bench = try RestoreBench()
            bench.life = 1
            var note: Note?
            if keysBefore > 0 {
                try bench.commit((0..<keysBefore).map { ("k\($0)", "1") }, events: 1)
                _ = try bench.order(group: ["events": 1, "rows": 0])
                #expect(next(try bench.outcome()) == [1, 0])
                note = bench.stored
            }
            try bench.commit([("a", "1"), ("b", "1")], events: 2, lost: isOther ? [] : ["b"])
            // Another value than the one in the changelog.
            if isOther { try bench.commit([("a", "2")], events: 3, lost: ["a"]) }
            _ = try bench.order(note, group: ["events": isOther ? 3 : 2, "rows": 0])
            let words = try #require(useless(try bench.outcome()))
            let count = keysBefore + 2
            #expect(
                words.contains(isOther ? "contents differ" : "it has \(count - 1) keys, and")
                    && words.contains("cleanup.policy"))
            #expect(isOther || words.contains("says \(count)"))
        }
    }

    @Test func `is found by what is read from the store, whatever became of its keys`() throws {
        let bench = try RestoreBench()
        bench.life = 1
        let keys = (0..<40).map { "k\($0)" }
        try bench.commit(keys.map { ($0, "0") }, events: 1)
        _ = try bench.order(group: ["events": 1, "rows": 0])
        #expect(next(try bench.outcome()) == [1, 0])
        for round in 2..<30 {
            let note = try #require(bench.stored)
            // Fewer changes than there are keys, so that nothing is counted again from the start.
            var changes: [(String, String?)] = []
            for step in 0..<6 {
                let key = keys[(round * 7 + step * step) % keys.count]
                changes.append((key, (round + step) % 4 == 0 ? nil : "\(round)"))
            }
            try bench.commit(changes, events: Int64(round))
            _ = try bench.order(note, group: ["events": Int64(round), "rows": 0])
            #expect(next(try bench.outcome()) == [Int64(round), 0])
            #expect(bench.stored?.sum == bench.sum)
        }
    }
}

@Suite struct `A changelog that has lost its beginning` {
    private func bench(until place: Int64, life: UInt64? = 1) throws -> RestoreBench {
        let bench = try RestoreBench()
        bench.life = life
        try bench.commit([("a", "1"), ("b", "1"), ("c", "1")], events: 1)
        _ = try bench.order(group: ["events": 1, "rows": 0])
        #expect(next(try bench.outcome()) == [1, 0])
        try bench.commit([("d", "1")], events: 2)
        try bench.log.deleteRecords(of: TopicPartition("script.changelog", 0), before: NextOffset(place))
        return bench
    }

    /// Also if its notes do not say what should be there.
    @Test(arguments: [nil, 1] as [UInt64?])
    func `restores no empty store`(life: UInt64?) throws {
        let bench = try bench(until: 2, life: life)
        bench.disk.lose(0)
        _ = try bench.order(group: ["events": 2, "rows": 0])
        let words = try #require(refusal(try bench.outcome()))
        #expect(words.contains("script.changelog[0] begins at offset 2, not at 0"))
        #expect(words.contains("delete both script.changelog and the group script"))
    }

    @Test(arguments: [2, 4, 5] as [Int64])
    func `brings a store that goes further to its end, with a warning, or refuses it and does not wipe it`(place: Int64)
        throws
    {
        let bench = try bench(until: place)
        let note = try #require(bench.stored)
        _ = try bench.order(note, group: ["events": 2, "rows": 0])
        let outcome = try bench.outcome()
        if place <= note.changelog.value {
            #expect(next(outcome) == [2, 0])
            #expect(bench.warning?.contains("begins at offset \(place)") == true)
            #expect(bench.values.count == 4)
        } else {
            #expect(refusal(outcome)?.contains("begins after its local state, and cannot be restored") == true)
        }
    }

    @Test func `is told of before its topic is compacted again, too`() throws {
        let bench = try RestoreBench()
        try bench.makeAnew(isCompacted: false)
        try bench.commit([("a", "1")], events: 1)
        _ = try bench.order(group: ["events": 1, "rows": 0])
        #expect(refusal(try bench.outcome())?.contains("script.changelog is not compacted") == true)
        try bench.makeAnew()
        try bench.commit([("a", "1")], events: 1)
        _ = try bench.order(group: ["events": 1, "rows": 0])
        #expect(next(try bench.outcome()) == [1, 0])
    }
}

@Suite struct `A worker with an old disk` {
    private let simulation: WorkerSimulation

    init() throws {
        simulation = try WorkerSimulation(Script(), processes: 2)
        simulation.storeInterval = .zero
    }

    private func feed(_ words: [String]) throws {
        for word in words {
            try simulation.feed(
                partition: 0, key: Array("k".utf8), value: Array(word.utf8), headers: [RecordHeader("type", "word")])
        }
    }

    private func run(_ process: WorkerSimulation.Process, _ words: [String]) throws {
        simulation.start(process)
        try feed(words)
        #expect(try simulation.runToEnd(), "\(process.troubles)")
        simulation.stop(process)
    }

    /// The keys in a store, by their bytes.
    private func keys(of process: WorkerSimulation.Process) throws -> [String] {
        let store = try MemoryStores(disk: process.disk.copy()).open(0)
        var keys: [String] = []
        let all: [UInt8] = []
        try store.scan(all.span) { key, _ in
            keys.append(key.withUnsafeBytes { String(decoding: $0, as: UTF8.self) })
            return true
        }
        return keys
    }

    private func makeTopicsAnew() throws {
        let definition = simulation.processor.definition
        simulation.clock.advance(by: .seconds(60))
        simulation.log.delete(group: definition.group)
        simulation.log.delete(topic: definition.changelog)
        simulation.log.delete(topic: definition.events.topic)
        try simulation.log.create(
            [
                NewTopic(definition.changelog, partitions: 1, isCompacted: true),
                NewTopic(definition.events.topic, partitions: 1),
            ], by: Deadline(after: .seconds(1)))
    }

    @Test func `begins anew when the topics were made anew, and have grown past it`() throws {
        let (old, other) = (simulation.processes[0], simulation.processes[1])
        try run(old, ["put a 1", "put b 1"])
        #expect(try keys(of: old) == ["a", "b"])
        try makeTopicsAnew()
        try run(other, (0..<20).map { "put n\($0) 1" })
        try run(old, ["put last 1"])
        #expect(try keys(of: old) == ((0..<20).map { "n\($0)" } + ["last"]).sorted())
    }

    @Test func `does not work on a part of its state, and says what is to be done`() throws {
        let process = simulation.processes[0]
        try run(process, ["put a 1", "put b 1"])
        // A changelog in which a key is missing: the last record of `a` was written by another program.
        let changelog = simulation.processor.definition.changelog
        let writer = try simulation.log.openWriter(WriterOptions(name: "intruder", topics: [changelog]))
        let batch = OutputBatch()
        batch.append(topic: 0, partition: 0, timestamp: 0, key: [1] + Array("a".utf8), value: nil)
        _ = try writer.append(batch, by: Deadline(after: .seconds(1)))
        simulation.loseDisk(of: process)
        simulation.start(process)
        try feed(["put c 1"])
        #expect(try !simulation.runToEnd(limit: 500))
        let words = process.troubles.joined()
        #expect(words.contains("unusable again after it was deleted and restored"))
        #expect(words.contains("it has 1 keys, and the changelog's last note says 2"))
    }
}
