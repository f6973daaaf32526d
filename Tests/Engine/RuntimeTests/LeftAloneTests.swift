import Log
import MemoryLog
import Platform
import Store
import Synchronization
import Testing
import WorkerTestKit

@testable import Runtime

/// Workers of four partitions, whose topics get more partitions.
@Suite struct `A topic that has grown` {
    private static let events = "events now has 6 partitions, but the setting partitions is 4"

    private func simulation(processes: Int = 1) throws -> WorkerSimulation {
        try WorkerSimulation(Script(partitions: 4), processes: processes)
    }

    private func feed(_ simulation: WorkerSimulation, _ text: String) throws {
        for partition in Int32(0)..<4 {
            try simulation.feed(
                partition: partition, key: Array("k".utf8), value: Array("tell \(text)".utf8),
                headers: [RecordHeader("type", "word")])
        }
    }

    private func pass(_ simulation: WorkerSimulation, seconds: Int = 10) {
        for _ in 0..<(20 * seconds) {
            for process in simulation.processes { simulation.step(process) }
            simulation.clock.advance(by: .milliseconds(50))
        }
    }

    /// The partitions from which a text was read.
    private func told(_ simulation: WorkerSimulation, _ text: String) throws -> [Int32] {
        try simulation.read("told").filter { $0.valueText.hasPrefix("\(text) ") }.map(\.partition)
    }

    @Test(arguments: ["events", "rows", "told", "script.changelog", "script.dead-letters"])
    func `is worked on as before, and its new partitions are left alone, loudly`(_ topic: String) throws {
        let simulation = try simulation()
        simulation.start(simulation.processes[0])
        try feed(simulation, "before")
        #expect(try simulation.runToEnd())
        #expect(simulation.stop(simulation.processes[0]))

        try simulation.log.grow(topic, to: 6)
        if topic == "events" {
            try simulation.feed(
                partition: 5, key: Array("k".utf8), value: Array("tell stray".utf8),
                headers: [RecordHeader("type", "word")])
        }
        simulation.start(simulation.processes[0])
        try feed(simulation, "after")
        pass(simulation)
        #expect(try told(simulation, "after") == [0, 1, 2, 3])
        #expect(try told(simulation, "stray") == [])
        let troubles = simulation.processes[0].troubles
        #expect(troubles.count == 1)
        #expect(
            troubles.first?.hasPrefix(
                "the topic \(topic) now has 6 partitions, but the setting partitions is 4: the records of partition 4 "
                    + "and above are ignored. Do not change the setting") == true, "\(troubles)")
    }

    @Test func `while a session lasts disturbs nobody either`() throws {
        let simulation = try simulation(processes: 3)
        let processes = simulation.processes
        for process in processes.prefix(2) { simulation.start(process) }
        try feed(simulation, "before")
        #expect(try simulation.runToEnd())
        // All inputs grow, so that the group assigns them alike; and a member joins and leaves, so that it assigns them.
        for topic in ["events", "rows"] { try simulation.log.grow(topic, to: 6) }
        simulation.start(processes[2])
        pass(simulation)
        simulation.stop(processes[2])
        try feed(simulation, "after")
        pass(simulation)
        #expect(try told(simulation, "after") == [0, 1, 2, 3])
        #expect(processes[0].troubles == [])
        #expect(processes[1].troubles.count == 2, "\(processes[1].troubles)")
        #expect(processes[1].troubles.first?.contains(Self.events) == true)
    }

    @Test func `leaves alone only the partitions whose inputs the group has split, until the others grow as well`()
        throws
    {
        let simulation = try simulation(processes: 2)
        try simulation.log.grow("events", to: 6)
        for process in simulation.processes { simulation.start(process) }
        try feed(simulation, "split")
        pass(simulation)
        // Of the events 0 to 2 and 3 to 5, of the rows 0 and 1, and 2 and 3.
        #expect(try told(simulation, "split") == [0, 1, 3])
        #expect(simulation.processes.allSatisfy { $0.isRunning })
        #expect(
            simulation.processes[0].troubles.contains {
                $0.hasPrefix("partitions 2 are not processed: events and rows have different numbers of partitions")
            }, "\(simulation.processes[0].troubles)")

        try simulation.log.grow("rows", to: 6)
        for process in simulation.processes { simulation.stop(process) }
        pass(simulation, seconds: 7)
        for process in simulation.processes { simulation.start(process) }
        pass(simulation)
        #expect(try told(simulation, "split") == [0, 1, 2, 3])
        let isSplit = simulation.processes.contains { process in
            process.troubles.contains { $0.contains("are not processed") }
        }
        #expect(!isSplit)
    }

    @Test func `as all the others is a wrong setting`() throws {
        let simulation = try simulation()
        for topic in ["events", "rows", "told", "cells", "script.changelog", "script.dead-letters"] {
            try simulation.log.grow(topic, to: 6)
        }
        simulation.start(simulation.processes[0])
        pass(simulation, seconds: 1)
        #expect(simulation.processes[0].end?.description.contains("Set it back if it was changed") == true)
    }

    @Test func `does not make a restore of one partition answer for another`() throws {
        let simulation = try simulation()
        let replies = Mutex<[Int32: RestoreReply.Outcome]>([:])
        let restorer = Restorer(
            Script(partitions: 4).definition, log: simulation.log, name: "r", wallClock: { 0 }, remaining: { _ in })
        let stores = MemoryStores()
        for partition: Int32 in [0, 7, 1, 9, 3] {
            restorer.restore(
                RestoreOrder(
                    store: try stores.open(partition), partition: partition, token: UInt64(partition), note: nil,
                    committed: [:], reply: { reply in replies.withLock { $0[reply.order.partition] = reply.outcome } }))
        }
        for _ in 0..<30 { restorer.step(wait: .zero) }
        let found = replies.withLock { $0 }
        #expect(found.count == 5)
        for (partition, outcome) in found {
            switch outcome {
            case .restored: #expect(partition < 4)
            case .refused(let words):
                #expect(partition > 4 && words.contains("script.changelog[\(partition)]"), "\(words)")
            default: Issue.record("\(partition): \(outcome)")
            }
        }
    }
}
