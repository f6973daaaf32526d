import KafkaTestKit
import Ledger
import Log
import MemoryLog
import Platform
import Service
import Store
import Synchronization
import Telemetry
import TestTraits
import Testing

@testable import Runtime

/// A ledger's log with the real clock, and services that work on it.
private final class ServiceBench: Sendable {
    let log: MemoryLog
    let ledger = Ledger(partitions: 4)
    let failures = Mutex<[String]>([])
    private let fed = Mutex<Int64>(0)

    init(partitions: Int32 = 4) throws {
        log = MemoryLog()
        let definition = ledger.definition
        try log.create(
            ([definition.events.topic, definition.tables[0].topic, definition.deadLetters]
                + definition.outputs.map(\.topic))
                .map { NewTopic($0, partitions: partitions) }
                + [NewTopic(definition.changelog, partitions: partitions, isCompacted: true)],
            by: Deadline(after: .seconds(1)))
    }

    struct Running {
        let service: WorkerService
        let health: Health
        let metrics: Metrics
    }

    func start(_ name: String, slot: Int = 0, threads: Int = 1) throws -> Running {
        var configuration = WorkerService.Configuration()
        configuration.replica = .slot(slot)
        configuration.threads = threads
        let (health, metrics) = (Health(), Metrics())
        let service = WorkerService(
            { [ledger] in ledger }, log: log, stores: MemoryStores(), configuration, health: health, metrics: metrics,
            logger: Logger(level: .error, format: .text) { _ in })
        try service.start { error in self.failures.withLock { $0.append("\(name): \(error)") } }
        return Running(service: service, health: health, metrics: metrics)
    }

    func feed(_ count: Int, schema: String = "word/1") throws {
        let writer = try log.openWriter(WriterOptions(name: "feeder", topics: [ledger.definition.events.topic]))
        let batch = OutputBatch()
        for number in 0..<count {
            let key = Array("key-\(number % 20)".utf8)
            batch.append(
                topic: 0, partition: Partitioner.partition(of: key, count: 4), timestamp: WallClock.milliseconds(),
                key: key, value: Array("add \(number)".utf8),
                headers: [RecordHeader("schema", schema)])
        }
        _ = try writer.append(batch, by: Deadline(after: .seconds(1)))
        fed.withLock { $0 += Int64(count) }
    }

    var isAllDone: Bool {
        let positions = log.committed(group: ledger.definition.group)
        let done = positions.filter { $0.key.topic == ledger.definition.events.topic }.reduce(0) { $0 + $1.value.value }
        return done >= fed.withLock { $0 }
    }

    /// What is wrong with the committed output.
    func wrong() throws -> [String] {
        let definition = ledger.definition
        return LedgerCheck(
            partitions: 4, events: try read(definition.events.topic), rows: try read(definition.tables[0].topic),
            told: try read(definition.outputs[0].topic), totals: try read(definition.outputs[1].topic),
            letters: try read(definition.deadLetters)
        ).wrong
    }

    private func read(_ topic: String) throws -> [LedgerRecord] {
        try log.ledgerRecords(in: [topic], partitions: 4, by: Deadline(after: patience))
    }
}

extension Health {
    fileprivate var words: String { readiness.reasons.map { "\($0.condition): \($0.reason)" }.joined(separator: "; ") }
}

@Suite(.ownThreads) struct `A worker as part of a process` {
    @Test(arguments: [1, 3])
    func `is ready when its partitions run, works, and ends cleanly in time`(threads: Int) async throws {
        let bench = try ServiceBench()
        let running = try bench.start("one", threads: threads)
        #expect(running.health.words.contains("it is starting") || !running.health.words.isEmpty)
        try bench.feed(500)
        try await waitUntil("everything is done") { bench.isAllDone }
        try await waitUntil("it is ready") { running.health.words.isEmpty }
        #expect(running.health.liveness.reasons.isEmpty)
        let begin = ContinuousClock.now
        try running.service.stop(by: Deadline(after: .seconds(10)))
        #expect(begin.duration(to: .now) < .seconds(5))
        #expect(bench.failures.withLock { $0 }.isEmpty)
        #expect(try bench.wrong() == [])
    }

    @Test func `goes on where another has ended`() async throws {
        let bench = try ServiceBench()
        for round in 0..<3 {
            let running = try bench.start("round \(round)")
            try bench.feed(100)
            try await waitUntil("everything is done") { bench.isAllDone }
            try running.service.stop(by: Deadline(after: .seconds(10)))
        }
        #expect(try bench.wrong() == [])
    }

    @Test func `is not ready while a partition waits for a later build, and says so`() async throws {
        let bench = try ServiceBench()
        try bench.feed(20, schema: "word/2")
        let running = try bench.start("one")
        try await waitUntil("it says so") { running.health.words.contains("word/2") }
        #expect(running.health.words.contains("upgrade this worker"))
        #expect(running.health.liveness.reasons.isEmpty)
        try running.service.stop(by: Deadline(after: .seconds(10)))
    }

    @Test func `is not ready while a partition is refused, and says why`() async throws {
        let bench = try ServiceBench()
        let first = try bench.start("first")
        try bench.feed(100)
        try await waitUntil("everything is done") { bench.isAllDone }
        try first.service.stop(by: Deadline(after: .seconds(10)))
        // The group's offsets are set by hand.
        let options = SessionOptions(
            group: bench.ledger.definition.group, identity: "\(bench.ledger.definition.group).0-0",
            inputs: bench.ledger.definition.inputs.map(\.topic), outputs: [])
        let session = try bench.log.openSession(options, by: Deadline(after: .seconds(1)))
        let batch = RecordBatch()
        try await waitUntil("partitions are given") {
            guard case .assigned(let partitions) = try session.poll(into: batch, limit: 1, wait: .zero) else {
                return false
            }
            try session.take(
                Dictionary(uniqueKeysWithValues: partitions.map { ($0, NextOffset(0)) }), paused: Set(partitions))
            return true
        }
        try session.commit([TopicPartition(bench.ledger.definition.events.topic, 0): NextOffset(1)])
        session.close(by: Deadline(after: .seconds(1)))

        let second = try bench.start("second")
        try await waitUntil("it says so") {
            second.health.words.contains("partition 0: the group ledger has committed offset 1")
        }
        try await waitUntil("the others run") { !second.health.words.contains("being opened") }
        try second.service.stop(by: Deadline(after: .seconds(10)))
    }

    @Test func `that shares its slot with another ends with words for a person, and the other works on`()
        async throws
    {
        let bench = try ServiceBench()
        let (one, two) = (try bench.start("one"), try bench.start("two"))
        try bench.feed(300)
        try await waitUntil("one of them gives up", within: .seconds(60)) { !bench.failures.withLock { $0 }.isEmpty }
        let words = bench.failures.withLock { $0 }
        #expect(words.count == 1)
        #expect(words[0].contains("another process uses the identity ledger.0-0") && words[0].contains("worker.slot"))
        let (left, right) = words[0].hasPrefix("one") ? (one, two) : (two, one)
        try? left.service.stop(by: Deadline(after: .seconds(10)))
        try bench.feed(300)
        try await waitUntil("everything is done", within: .seconds(60)) { bench.isAllDone }
        try right.service.stop(by: Deadline(after: .seconds(10)))
        #expect(bench.failures.withLock { $0 }.count == 1)
        #expect(try bench.wrong() == [])
    }
}

@Suite struct `The counters of a worker` {
    /// `increase()` of a series that starts with 1 is 0: no alert would fire for the first dead letter.
    @Test func `are there before they count, with every label that is known`() {
        let metrics = Metrics()
        let worker = WorkerMetrics(metrics, worker: "script", reasons: ["json"], hasTables: true)
        let lines = Set(String(decoding: metrics.exposition(), as: UTF8.self).split(separator: "\n").map(String.init))
        for code in ["json", "crash", "no_key", "no_such_timer", "no_type", "schema", "store", "too_large", "type"] {
            for input in ["events", "table"] {
                let labels = #"worker="script",code="\#(code)",input="\#(input)""#
                #expect(lines.contains("perennial_dead_letters_total{\(labels)} 0"))
            }
        }
        for cause in ["generation", "delivery", "fenced", "silence", "lost", "other"] {
            #expect(lines.contains(#"perennial_aborts_total{worker="script",cause="\#(cause)"} 0"#))
        }
        for kind in ["assigned", "revoked", "lost"] {
            #expect(lines.contains(#"perennial_rebalances_total{worker="script",kind="\#(kind)"} 0"#))
        }
        worker.letter("json", isTable: false)
        #expect(
            String(decoding: metrics.exposition(), as: UTF8.self)
                .contains(#"perennial_dead_letters_total{worker="script",code="json",input="events"} 1"#))
    }
}
