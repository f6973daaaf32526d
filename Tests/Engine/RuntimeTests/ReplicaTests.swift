import KafkaTestKit
import Ledger
import Log
import MemoryLog
import Platform
import Service
import Store
import Telemetry
import TestTraits
import Testing

@testable import Runtime

@Suite(.ownThreads) struct `A dynamic replica` {
    @Test func `has a name that nobody else has, and begins as every identity of its group`() {
        let names = Set((0..<1000).map { _ in Replica.makeDynamic() })
        #expect(names.count == 1000)
        for replica in names {
            let identity = replica.identity(group: "a.b.churn", thread: 3)
            #expect(identity.hasPrefix("a.b.churn.dynamic-") && identity.hasSuffix("-3"))
            #expect(identity.utf8.count == "a.b.churn.dynamic-0123456789abcdef-3".utf8.count)
        }
        #expect(Replica.slot(3).identity(group: "a.b.churn", thread: 0) == "a.b.churn.3-0")
    }

    @Test func `that is gone is found by its lock, one that lives is not`() throws {
        let scratch = try ScratchDirectory("replicas")
        let living = Replica.makeDynamic()
        let first = try WorkerDirectory(
            directory: scratch.path, group: "g", replica: living, threads: 2,
            makeStores: { _ in MemoryStores() })
        #expect(first.leftovers.isEmpty)
        for name in ["dynamic-00.2.lock", "slot-7.lock", "dynamic-00.0.lock", "dynamic-00.x.lock", "0.crash"] {
            _ = try scratch.write("", to: "g/\(name)")
        }
        let second = try WorkerDirectory(
            directory: scratch.path, group: "g", replica: .slot(0), threads: 1,
            makeStores: { _ in MemoryStores() })
        #expect(second.leftovers.map(\.identities) == [["g.dynamic-00-0", "g.dynamic-00-1"]])
        let third = try WorkerDirectory(
            directory: scratch.path, group: "g", replica: .slot(1), threads: 1,
            makeStores: { _ in MemoryStores() })
        #expect(third.leftovers.isEmpty, "another process works on it")
        for leftover in second.leftovers { leftover.forget() }
        let fourth = try WorkerDirectory(
            directory: scratch.path, group: "g", replica: .slot(2), threads: 1,
            makeStores: { _ in MemoryStores() })
        #expect(fourth.leftovers.isEmpty)
    }

    @Test func `that was killed holds nothing up once another has started on its disk`() async throws {
        let scratch = try ScratchDirectory("replicas")
        let ledger = Ledger(partitions: 1)
        let definition = ledger.definition
        let log = MemoryLog()
        let soon = Deadline(after: patience)
        try log.create(
            ([definition.events.topic, definition.tables[0].topic, definition.deadLetters]
                + definition.outputs.map(\.topic)).map { NewTopic($0, partitions: 1) }
                + [NewTopic(definition.changelog, partitions: 1, isCompacted: true)], by: soon)
        // Its open transaction would hold readers back for an hour.
        let told = definition.outputs[0].topic
        var options = SessionOptions(
            group: definition.group, identity: "\(definition.group).dynamic-00-0", inputs: [], outputs: [told])
        options.transactionTimeout = .seconds(3600)
        let gone = try log.openSession(options, by: soon)
        let outputs = OutputBatch()
        outputs.append(topic: 0, partition: 0, timestamp: 1, key: nil, value: [1])
        try gone.append(outputs)
        try makeDirectory("\(scratch.path)/\(definition.group)")
        _ = try scratch.write("", to: "\(definition.group)/dynamic-00.1.lock")

        let replica = Replica.makeDynamic()
        let directory = try WorkerDirectory(
            directory: scratch.path, group: definition.group, replica: replica,
            makeStores: { _ in MemoryStores() })
        var configuration = WorkerService.Configuration()
        configuration.replica = replica
        configuration.leftovers = directory.leftovers
        let service = WorkerService(
            { ledger }, log: log, stores: MemoryStores(), configuration, health: Health(), metrics: Metrics(),
            logger: Logger(level: .error, format: .text) { _ in })
        try service.start { error in Issue.record("\(error)") }
        let reader = try log.openReader(ReaderOptions(name: "r", group: "r", topics: [told]))
        let partition = TopicPartition(told, 0)
        try await waitUntil("readers continue") {
            try reader.ends(.committed, of: [partition], by: soon) == reader.ends(.all, of: [partition], by: soon)
        }
        try await waitUntil("it is forgotten") {
            try WorkerDirectory(
                directory: scratch.path, group: definition.group, replica: .slot(9),
                makeStores: { _ in MemoryStores() }
            ).leftovers.isEmpty
        }
        try service.stop(by: Deadline(after: patience))
    }
}
