// Worker processes of the runtime on a real Kafka, their input, and the oracle that judges their output.

import Glibc
import Kafka
import KafkaTestKit
import Ledger
import Log
import Platform
import Runtime
import Synchronization
import Testing

/// A group of `ledger-worker` processes on topics of its own.
final class LedgerGroup: Sendable {
    /// The address that the workers connect to. Feeding and judging bypass the proxy.
    let bootstrap: String
    let log: KafkaLog
    let ledger: Ledger
    let prefix: String
    let partitions: Int32
    let scratch: ScratchDirectory
    private let properties: ClientProperties

    private init(
        bootstrap: String, log: KafkaLog, ledger: Ledger, prefix: String, partitions: Int32, scratch: ScratchDirectory,
        properties: ClientProperties
    ) {
        self.bootstrap = bootstrap
        self.log = log
        self.ledger = ledger
        self.prefix = prefix
        self.partitions = partitions
        self.scratch = scratch
        self.properties = properties
    }

    static func make(_ label: String, workers: String, others: String, partitions: Int32 = 12) async throws
        -> LedgerGroup
    {
        let prefix = "\(label)-\(UInt32.random(in: 0 ... .max))."
        let properties = ClientProperties(bootstrapServers: others)
        let log = KafkaLog(properties)
        let ledger = Ledger(prefix: prefix, partitions: partitions)
        let group = LedgerGroup(
            bootstrap: workers, log: log, ledger: ledger, prefix: prefix, partitions: partitions,
            scratch: try ScratchDirectory("ledger"), properties: properties)
        try await group.createTopics()
        return group
    }

    private func createTopics() async throws {
        let (log, definition, partitions) = (log, ledger.definition, partitions)
        let topics = topics.map {
            NewTopic($0, partitions: partitions, isCompacted: $0 == definition.changelog)
        }
        try await blocking { try log.create(topics, by: Deadline(after: patience)) }
    }

    private var topics: [String] {
        let definition = ledger.definition
        return [definition.events, definition.tables[0]].map(\.topic) + definition.outputs.map(\.topic)
            + [definition.deadLetters, definition.changelog]
    }

    // MARK: What an operator does

    /// Deletes and recreates everything, the group's offsets included. No worker may be running.
    func makeAnew() async throws {
        let (topics, name) = (topics, ledger.definition.group)
        // A member that has just left still counts as a member.
        try await waitUntil("the group is deleted", within: patience) {
            do {
                try await self.administrate { admin, deadline in try admin.delete(group: name, by: deadline) }
                return true
            } catch let fault as KafkaFault where fault.code.name == "NON_EMPTY_GROUP" {
                return false
            }
        }
        try await administrate { admin, deadline in
            for case let fault? in try admin.delete(topics: topics, by: deadline).values { throw fault }
        }
        try await waitUntil("the topics are gone", within: patience) {
            try await self.administrate { admin, deadline in
                let known = Set(try admin.cluster(by: deadline).topics.map(\.name))
                return known.isDisjoint(with: topics)
            }
        }
        try await createTopics()
    }

    func setChangelogPolicy(_ policy: String) async throws {
        let changelog = ledger.definition.changelog
        try await administrate { admin, deadline in
            try admin.change([("cleanup.policy", policy)], of: changelog, by: deadline)
        }
    }

    func administrate<Answer: Sendable>(_ body: @escaping @Sendable (Admin, Deadline) throws -> Answer) async throws
        -> Answer
    {
        let properties = properties
        return try await blocking {
            let admin = try Admin(clientID: "operator", properties: properties)
            defer { admin.close(by: Deadline(after: patience)) }
            return try body(admin, Deadline(after: patience))
        }
    }

    // MARK: Processes

    func start(_ slot: Int, directory: String? = nil, _ more: [String] = []) throws -> ChildProcess {
        try ChildProcess(
            productPath("ledger-worker"),
            [
                "--bootstrap", bootstrap, "--prefix", prefix, "--partitions", "\(partitions)", "--slot", "\(slot)",
                "--state", directory ?? self.directory(of: slot),
            ] + more)
    }

    func directory(of slot: Int) -> String { "\(scratch.path)/disk-\(slot)" }

    func loseDisk(of slot: Int) throws {
        let doomed = try ChildProcess("/bin/rm", ["-rf", directory(of: slot)])
        while doomed.isRunning { pause(for: .milliseconds(5)) }
    }

    // MARK: Input

    /// Writes words and rows at about `perSecond` until it is stopped, and a tick into every partition every half second.
    func feed(perSecond: Int, seed: UInt64, until stop: Latch) async throws {
        let (ledger, log, partitions) = (ledger, log, partitions)
        try await blocking {
            var dice = SeededDice(seed)
            let topics = [ledger.definition.events.topic, ledger.definition.tables[0].topic]
            let writer = try log.openWriter(WriterOptions(name: "feeder", topics: topics))
            defer { writer.close(by: Deadline(after: .seconds(10))) }
            var ticked = ContinuousClock.now
            while !stop.wait(for: .milliseconds(50)) {
                let batch = OutputBatch()
                for _ in 0..<max(1, perSecond / 20) { Self.addWord(to: batch, partitions, &dice) }
                if ticked.duration(to: .now) > .milliseconds(500) {
                    ticked = .now
                    Self.addTicks(to: batch, partitions, at: WallClock.milliseconds())
                }
                try Self.append(batch, writer)
            }
            // The last timers are due within a second, and the timers that they set within half a second after that.
            let batch = OutputBatch()
            Self.addTicks(to: batch, partitions, at: WallClock.milliseconds() + 5000)
            try Self.append(batch, writer)
        }
    }

    /// Brokers die and come back meanwhile. A record without an acknowledgement may have been written all the same, and is then
    /// in the topic twice, for workers and oracle alike.
    private static func append(_ batch: OutputBatch, _ writer: any LogWriter) throws {
        let deadline = Deadline(after: .seconds(60))
        while true {
            do throws(LogFault) {
                _ = try writer.append(batch, by: Deadline(after: .seconds(30)))
                return
            } catch {
                if deadline.hasPassed || error.remedy == .stop { throw error }
                pause(for: .milliseconds(200))
            }
        }
    }

    private static func addTicks(to batch: OutputBatch, _ partitions: Int32, at time: Int64) {
        for partition in 0..<partitions {
            batch.append(
                topic: 0, partition: partition, timestamp: time, key: nil, value: [],
                headers: [RecordHeader("schema", "tick/1")])
        }
    }

    private static func addWord(to batch: OutputBatch, _ partitions: Int32, _ dice: inout SeededDice) {
        let key = Array("key-\(dice.number(below: 100))".utf8)
        let home = Partitioner.partition(of: key, count: partitions)
        let number = dice.number(below: 500) + 1
        // Every second record is like those of builds before 0.2.
        let isOld = number % 2 == 0
        var headers = (isOld ? [RecordHeader("type", "word")] : []) + [RecordHeader("schema", "word/1")]
        var text = "add \(number)"
        switch dice.number(below: 24) {
        case 0..<8: break
        case 8..<10: text = "twice \(number)"
        case 10..<14: text = "wake \(number)"
        case 14: text = "sleep"
        case 15..<17: text = "toggle"
        case 17: text = "poison"
        case 18: headers = [isOld ? RecordHeader("type", "something-new") : RecordHeader("schema", "something-new/1")]
        default:
            let strays = dice.number(below: 4) == 0
            return batch.append(
                topic: 1, partition: strays ? (home + 1) % partitions : home, timestamp: WallClock.milliseconds(),
                key: key, value: Array("row \(number)".utf8))
        }
        batch.append(
            topic: 0, partition: home, timestamp: WallClock.milliseconds(), key: key, value: Array(text.utf8),
            headers: headers)
    }

    // MARK: Output

    /// Waits until the group has committed its whole input.
    func waitUntilDone() async throws {
        do {
            try await waitUntil("the whole input is processed", within: patience * 3) { try await isDone() }
        } catch let reason {
            do {
                print("behind open transactions: \(try await hidden())")
            } catch {
                print("cannot find out what open transactions hide: \(error)")
            }
            throw reason
        }
    }

    func isDone() async throws -> Bool {
        let (ledger, log, properties) = (ledger, log, properties)
        let isRead = try await blocking {
            let admin = try Admin(clientID: "watch", properties: properties)
            defer { admin.close(by: Deadline(after: patience)) }
            // A broker may be down for a moment, so it is asked again.
            guard
                let committed = try? admin.offsets(ofGroup: ledger.definition.group, by: Deadline(after: .seconds(5)))
            else { return false }
            return try log.ledgerRecords(
                in: [ledger.definition.events.topic, ledger.definition.tables[0].topic],
                partitions: ledger.definition.partitions, from: committed, by: Deadline(after: patience)
            ).isEmpty
        }
        if !isRead { return false }
        // This comes last: committed offsets may become visible before the records of the same transaction.
        return try await hidden().isEmpty
    }

    /// Records that no reader of committed records sees yet, neither the workers nor the judge. Judged now, they would seem to be
    /// missing.
    private func hidden() async throws -> [String] {
        let (definition, log, partitions) = (ledger.definition, log, partitions)
        return try await blocking {
            let topics =
                [definition.events.topic, definition.tables[0].topic, definition.changelog, definition.deadLetters]
                + definition.outputs.map(\.topic)
            let all = topics.flatMap { topic in (0..<partitions).map { TopicPartition(topic, $0) } }
            let reader = try log.openReader(ReaderOptions(name: "judge", group: "judge", topics: topics))
            let deadline = Deadline(after: patience)
            defer { reader.close(by: deadline) }
            let seen = try reader.ends(.committed, of: all, by: deadline)
            let ends = try reader.ends(.all, of: all, by: deadline)
            return all.filter { seen[$0] != ends[$0] }.map { place in
                "\(place) from \(seen[place]?.value ?? -1) to \(ends[place]?.value ?? -1)"
            }
        }
    }

    func records(in topic: String) async throws -> [LedgerRecord] {
        let (log, partitions) = (log, partitions)
        return try await blocking {
            try log.ledgerRecords(in: [topic], partitions: partitions, by: Deadline(after: patience))
        }
    }

    func letters(reason: String) async throws -> [LedgerRecord] {
        try await records(in: ledger.definition.deadLetters).filter { $0.headers["reason"] == reason }
    }

    /// What is wrong with the output; empty if nothing is.
    func judge() async throws -> [String] {
        let definition = ledger.definition
        let events = try await records(in: definition.events.topic)
        let told = try await records(in: definition.outputs[0].topic)
        print("ledger: \(events.count) events, \(told.count) outputs")
        return LedgerCheck(
            prefix: prefix, partitions: partitions, events: events,
            rows: try await records(in: definition.tables[0].topic), told: told,
            totals: try await records(in: definition.outputs[1].topic),
            letters: try await records(in: definition.deadLetters)
        ).wrong
    }
}

/// The generator of `Dice` with a seed of its own, for separate threads.
struct SeededDice: Sendable {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed }

    mutating func number(below bound: UInt64) -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return (mixed ^ mixed >> 31) % bound
    }
}
