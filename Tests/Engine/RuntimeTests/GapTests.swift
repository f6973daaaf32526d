import Log
import MemoryLog
import Platform
import Testing
import WorkerTestKit

@testable import Runtime

/// A worker of two partitions, the first of which is about to lose records.
private struct GapBench {
    let simulation: WorkerSimulation
    let events = TopicPartition("events", 0)

    init() throws {
        simulation = try WorkerSimulation(Script(partitions: 2), processes: 1)
        simulation.keepsPlace = false
        simulation.cacheBytes = 1 << 20
        simulation.start(worker)
        try feed(["put k 1;tell a"], partition: 0)
        try feed(["tell A"], partition: 1)
        #expect(try simulation.runToEnd())
    }

    var worker: WorkerSimulation.Process { simulation.processes[0] }

    func feed(_ texts: [String], partition: Int32) throws {
        for text in texts {
            try simulation.feed(
                partition: partition, key: Array("k".utf8), value: Array(text.utf8),
                headers: [RecordHeader("type", "word")])
        }
    }

    func steps(_ count: Int = 60) {
        for _ in 0..<count {
            simulation.step(worker)
            simulation.clock.advance(by: .milliseconds(50))
        }
    }

    func told(_ partition: Int32) throws -> [String] {
        try simulation.read("told").filter { $0.partition == partition }.map {
            String($0.valueText.split(separator: " ")[0])
        }
    }

    var acceptance: GapAcceptance {
        GapAcceptance(
            .init(
                worker: "script", group: "script", inputs: ["events", "rows"], changelog: "script.changelog",
                deadLetters: "script.dead-letters", app: "test/1"), log: simulation.log)
    }

    func gaps() throws -> [AcceptableGap] {
        try acceptance.look(at: [0, 1], by: Deadline(after: .seconds(1)))
    }

    func committed() -> Int64? { simulation.log.committed(group: "script")[events]?.value }
}

@Suite struct `A gap in an input` {
    private static let words =
        "partition 0: the records of events[0] from offset 1 to 2 were deleted before they were read. This partition is "
        + "paused; the others continue. Restore the records; or stop every process of this worker and run `perennial offsets "
        + "accept-gap script --partition 0`, which continues after the gap"

    @Test func `of a replay is told with what can be done about a replay`() {
        let gap = InputGap(
            partition: TopicPartition("events", 0), position: NextOffset(1), beginning: NextOffset(3), end: nil)
        var definition = Script(partitions: 2).definition
        #expect("partition 0: \(gap.words(definition))" == Self.words)
        definition.isShadow = true
        #expect(
            gap.words(definition).hasSuffix(
                "Restore the records and start this replay again; or remove it (`perennial replay script --drop NAME`) and "
                    + "run one with --incomplete"))
    }

    @Test func `that is there at the start pauses its partition alone, and says what to do`() throws {
        let bench = try GapBench()
        bench.simulation.stop(bench.worker)
        try bench.feed(["tell lost", "tell lost", "tell b"], partition: 0)
        try bench.simulation.log.deleteRecords(of: bench.events, before: NextOffset(3))
        try bench.feed(["tell B"], partition: 1)
        bench.simulation.start(bench.worker)
        bench.steps()
        #expect(bench.worker.isRunning)
        #expect(bench.worker.troubles == [Self.words])
        #expect(try bench.told(0) == ["a"])
        #expect(try bench.told(1) == ["A", "B"])
        #expect(bench.committed() == 1)
    }

    @Test func `that comes while the worker runs does the same`() throws {
        let bench = try GapBench()
        try bench.feed(["tell lost", "tell lost", "tell b"], partition: 0)
        try bench.simulation.log.deleteRecords(of: bench.events, before: NextOffset(3))
        bench.steps()
        #expect(bench.worker.troubles == [Self.words])
        for text in ["B", "C"] {
            try bench.feed(["tell \(text)"], partition: 1)
            bench.steps()
        }
        #expect(try bench.told(1) == ["A", "B", "C"])
        #expect(try bench.told(0) == ["a"])
        #expect(bench.worker.troubles == [Self.words])
    }

    @Test func `of a topic that was made anew is told as such`() throws {
        let bench = try GapBench()
        try bench.feed(["tell b"], partition: 0)
        bench.steps()
        bench.simulation.stop(bench.worker)
        bench.simulation.log.delete(topic: "events")
        try bench.simulation.log.create([NewTopic("events", partitions: 2)], by: Deadline(after: .seconds(1)))
        try bench.feed(["tell new"], partition: 0)
        bench.simulation.start(bench.worker)
        bench.steps()
        #expect(bench.worker.troubles.first?.contains("lies beyond its end, 1: the topic was created again") == true)
        let gap = try #require(try bench.gaps().first)
        #expect(!gap.isDeletion && gap.lostOffsets == nil)
    }

    @Test func `is closed while nobody is in the group, in state, group and dead letters together`() throws {
        let bench = try GapBench()
        bench.simulation.stop(bench.worker)
        try bench.feed(["tell lost", "tell lost", "tell b"], partition: 0)
        let time = bench.simulation.clock.now
        try bench.simulation.log.deleteRecords(of: bench.events, before: NextOffset(3))
        let gap = try #require(try bench.gaps().first)
        #expect(try bench.gaps().count == 1)
        #expect(gap.input == bench.events && gap.lostOffsets == 2 && gap.firstTimestamp == time)
        #expect(gap.clock != nil)

        try bench.acceptance.accept(gap, at: gap.beginning, by: Deadline(after: .seconds(1)))
        #expect(bench.committed() == 3)
        #expect(try bench.gaps() == [])
        let letter = try #require(try bench.simulation.read("script.dead-letters").first)
        #expect(letter.header("reason") == "gap" && letter.header("gap") == "1-3")
        #expect(letter.header("source") == "events:0:1")
        #expect(letter.header("detail")?.contains("2 offsets of events[0] were lost") == true)

        // From the disk that is behind the changelog, and from no disk.
        for loses in [false, true] {
            if loses { bench.simulation.loseDisk(of: bench.worker) }
            bench.simulation.start(bench.worker)
            try bench.feed(["tell \(loses)"], partition: 0)
            #expect(try bench.simulation.runToEnd())
            #expect(bench.worker.troubles == [])
            bench.simulation.stop(bench.worker)
        }
        #expect(try bench.told(0) == ["a", "b", "false", "true"])
    }

    @Test func `is not closed while somebody is in the group`() throws {
        let bench = try GapBench()
        try bench.feed(["tell lost", "tell b"], partition: 0)
        try bench.simulation.log.deleteRecords(of: bench.events, before: NextOffset(2))
        bench.steps()
        let gap = try #require(try bench.gaps().first)
        let fault = #expect(throws: LogFault.self) {
            try bench.acceptance.accept(gap, at: gap.beginning, by: Deadline(after: .seconds(1)))
        }
        #expect(fault?.cause == .generation)
        #expect(bench.committed() == 1)
        #expect(try bench.simulation.read("script.dead-letters") == [])
    }

    @Test func `that was closed already is not closed again`() throws {
        let bench = try GapBench()
        bench.simulation.stop(bench.worker)
        try bench.feed(["tell lost", "tell b"], partition: 0)
        try bench.simulation.log.deleteRecords(of: bench.events, before: NextOffset(2))
        let gap = try #require(try bench.gaps().first)
        try bench.acceptance.accept(gap, at: gap.beginning, by: Deadline(after: .seconds(1)))
        let fault = #expect(throws: LogFault.self) {
            try bench.acceptance.accept(gap, at: gap.beginning, by: Deadline(after: .seconds(1)))
        }
        #expect(fault?.words.contains("run the command again") == true)
        #expect(try bench.simulation.read("script.dead-letters").count == 1)
    }
}
