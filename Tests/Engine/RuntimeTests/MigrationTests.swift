// A change of the state's format, rehearsed. The Ledger has a second format for this purpose.

import Ledger
import Log
import MemoryLog
import Runtime
import Testing
import WorkerTestKit

@Suite struct `A new format of the state` {
    private let simulation: WorkerSimulation
    private let keys = (0..<12).map { "key-\($0)" }

    init() throws {
        simulation = try WorkerSimulation(Ledger(), processes: 1)
    }

    private var process: WorkerSimulation.Process { simulation.processes[0] }

    private func feed(_ keys: some Sequence<String>, _ words: String...) throws {
        for key in keys {
            let home = Partitioner.partition(of: Array(key.utf8), count: 4)
            for word in words {
                try simulation.feed(
                    partition: home, key: Array(key.utf8), value: Array(word.utf8),
                    headers: [RecordHeader("type", "word"), RecordHeader("schema", "word/1")])
            }
        }
    }

    private func start(format: UInt8, losingDisk: Bool = false) {
        if losingDisk { simulation.loseDisk(of: process) }
        simulation.processor = Ledger(format: format)
        simulation.start(process)
    }

    /// Formats of the values of words in the changelog, as a restore reads them. Totals have no second format.
    private func formats() throws -> Set<UInt8> {
        var entries: [[UInt8]: UInt8] = [:]
        for record in try simulation.read(simulation.processor.definition.changelog) {
            guard let key = record.key, key.first == 1, key.count > 1, key[1] != 0 else { continue }
            entries[key] = record.value?.first
        }
        return Set(entries.values)
    }

    /// Compares what the workers of all builds have written with a plain fold of their input.
    private func wrong() throws -> [String] {
        let definition = simulation.processor.definition
        func read(_ topic: String) throws -> [LedgerRecord] {
            try simulation.read(topic).map { seen in
                LedgerRecord(
                    partition: seen.partition, offset: seen.offset, timestamp: seen.timestamp, key: seen.key,
                    value: seen.value,
                    headers: seen.headers.map { ($0.name, String(decoding: $0.value ?? [], as: UTF8.self)) })
            }
        }
        return LedgerCheck(
            partitions: 4, events: try read(definition.events.topic), rows: try read(definition.tables[0].topic),
            told: try read(definition.outputs[0].topic), totals: try read(definition.outputs[1].topic),
            letters: try read(definition.deadLetters)
        ).wrong
    }

    @Test(arguments: [false, true])
    func `takes over what the build before has kept, and is not given back to it`(losesDisk: Bool) throws {
        start(format: 1)
        try feed(keys, "add 3", "wake 400")
        #expect(try simulation.runToEnd(), "\(process.troubles)")
        simulation.stop(process)
        #expect(try formats() == [1])

        // Half of the keys change: values of both formats are mixed.
        start(format: 2, losingDisk: losesDisk)
        try feed(keys.prefix(6), "add 4")
        #expect(try simulation.runToEnd(), "\(process.troubles)")
        simulation.stop(process)
        #expect(try formats() == [1, 2])

        // A restore of both formats, and timers that the earlier build has set.
        start(format: 2, losingDisk: losesDisk)
        try feed(keys, "add 5")
        simulation.clock.advance(by: .seconds(10))
        try simulation.tick()
        #expect(try simulation.runToEnd(), "\(process.troubles)")
        simulation.stop(process)
        #expect(try formats() == [2])
        #expect(try wrong() == [])

        // Back to the earlier build: it changes nothing, and says what to do.
        let changelog = try simulation.read(simulation.processor.definition.changelog)
        start(format: 1, losingDisk: losesDisk)
        try feed(keys, "add 6")
        #expect(try !simulation.runToEnd(limit: 300))
        #expect(process.troubles.count == 4)
        #expect(process.troubles.allSatisfy { $0.contains("written by a later build (format 2; this one writes 1)") })
        simulation.stop(process)
        #expect(try simulation.read(simulation.processor.definition.changelog) == changelog)

        start(format: 2)
        #expect(try simulation.runToEnd(), "\(process.troubles)")
        #expect(try wrong() == [])
    }
}
