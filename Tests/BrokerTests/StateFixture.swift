// What old builds have left in Kafka, kept as files.

import Foundation
import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

/// Everything that an installation has in Kafka after the workers of some build have stopped, and the input that follows. It can
/// be written into new topics at its old offsets, so that offsets in notes and in groups stay right.
struct StateFixture: Sendable {
    struct Topic: Sendable, Codable, Equatable {
        /// As `Installation.topic` expects it.
        var name: String
        var cleanup: String
        /// For each partition.
        var ends: [Int64]
    }

    struct Header: Sendable, Codable, Equatable {
        var name: String
        var value: FixtureBytes?
    }

    struct Record: Sendable, Codable, Equatable {
        var topic: String
        var partition: Int32
        /// 0 for the input that follows.
        var offset: Int64 = 0
        var time: Int64
        var key: FixtureBytes?
        var value: FixtureBytes?
        var headers: [Header] = []
    }

    struct Position: Sendable, Codable, Equatable {
        var group: String
        var topic: String
        var partition: Int32
        var next: Int64
    }

    var prefix: String
    var partitions: Int
    /// The output of the program's `version`.
    var build: String
    var topics: [Topic] = []
    var positions: [Position] = []
    var records: [Record] = []
    /// In the order in which it is written, step by step.
    var later: [[Record]] = []

    func records(of topic: String) -> [Record] { records.filter { $0.topic == topic } }
}

/// Bytes as text if they are text, so that files are readable and small.
struct FixtureBytes: Sendable, Codable, Equatable {
    private static let mark = "base64:"

    var bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        guard text.hasPrefix(Self.mark) else {
            bytes = Array(text.utf8)
            return
        }
        bytes = [UInt8](try #require(Data(base64Encoded: String(text.dropFirst(Self.mark.count)))))
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        let isText = bytes.allSatisfy { $0 >= 0x20 }
        guard isText, let text = String(validating: bytes, as: UTF8.self), !text.hasPrefix(Self.mark) else {
            return try container.encode(Self.mark + Data(bytes).base64EncodedString())
        }
        try container.encode(text)
    }

    /// Both names are equally long, so no byte after a length moves.
    func renamed(_ old: [UInt8], _ new: [UInt8]) -> FixtureBytes {
        var (bytes, place) = (bytes, 0)
        while place + old.count <= bytes.count {
            if bytes[place] == old[0], bytes[place..<(place + old.count)].elementsEqual(old) {
                bytes.replaceSubrange(place..<(place + old.count), with: new)
            }
            place += 1
        }
        return FixtureBytes(bytes)
    }
}

// MARK: Files

extension StateFixture {
    private struct About: Codable {
        var prefix: String
        var partitions: Int
        var build: String
    }

    /// One of them is there.
    private struct Line: Codable {
        var about: About?
        var topic: Topic?
        var position: Position?
        var record: Record?
        var step: Int?
    }

    static var directory: URL {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Fixtures")
    }

    static func file(_ name: String) -> String { directory.appendingPathComponent("\(name).jsonl.gz").path }

    static var names: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? [])
            .filter { $0.hasSuffix(".jsonl.gz") }.map { String($0.dropLast(".jsonl.gz".count)) }.sorted()
    }

    static func read(_ name: String) async throws -> StateFixture {
        let unpacked = try await run("gzip", ["--decompress", "--stdout", file(name)])
        try #require(unpacked.code == 0, "\(unpacked.standardError)")
        var fixture = StateFixture(prefix: "", partitions: 0, build: "")
        for text in unpacked.standardOutput.split(separator: "\n") {
            let line = try JSONDecoder().decode(Line.self, from: Data(text.utf8))
            if let about = line.about {
                (fixture.prefix, fixture.partitions, fixture.build) = (about.prefix, about.partitions, about.build)
            }
            if let topic = line.topic { fixture.topics.append(topic) }
            if let position = line.position { fixture.positions.append(position) }
            guard let record = line.record else { continue }
            guard let step = line.step else {
                fixture.records.append(record)
                continue
            }
            while fixture.later.count <= step { fixture.later.append([]) }
            fixture.later[step].append(record)
        }
        return fixture
    }

    func write(_ name: String) async throws {
        var lines = [Line(about: About(prefix: prefix, partitions: partitions, build: build))]
        lines += topics.map { Line(topic: $0) } + positions.map { Line(position: $0) }
        lines += records.map { Line(record: $0) }
        for (step, records) in later.enumerated() { lines += records.map { Line(record: $0, step: step) } }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let texts = try lines.map { String(decoding: try encoder.encode($0), as: UTF8.self) }
        let file = Self.directory.appendingPathComponent("\(name).jsonl")
        try Data((texts.joined(separator: "\n") + "\n").utf8).write(to: file)
        let packed = try await run("gzip", ["--best", "--no-name", "--force", file.path])
        try #require(packed.code == 0, "\(packed.standardError)")
    }
}

// MARK: Kafka

extension StateFixture {
    /// All records of the environment `production`, as readers of committed records see them.
    static func taken(from installation: Installation, build: String) async throws -> StateFixture {
        let (broker, prefix) = (installation.broker, installation.topic(""))
        var fixture = try await blocking {
            let admin = try Admin(clientID: "fixture", properties: broker.properties)
            defer { admin.close(by: Deadline(after: patience)) }
            let deadline = Deadline(after: patience)
            var fixture = StateFixture(prefix: installation.prefix, partitions: installation.partitions, build: build)
            let all = try admin.cluster(by: deadline).topics.filter { $0.name.hasPrefix(prefix) }.sorted {
                $0.name < $1.name
            }
            let settings = try admin.settings(of: all.map(\.name), by: deadline)
            let reader = try KafkaLog(broker.properties).openReader(
                ReaderOptions(name: "fixture", group: "fixture", topics: all.map(\.name)))
            defer { reader.close(by: deadline) }
            func places(_ topic: Admin.Topic) -> [TopicPartition] {
                topic.partitions.indices.map { TopicPartition(topic.name, Int32($0)) }
            }
            let ends = try reader.endsOfAll(all.flatMap { places($0) })
            for topic in all {
                fixture.topics.append(
                    Topic(
                        name: String(topic.name.dropFirst(prefix.count)),
                        cleanup: settings[topic.name]?.first { $0.name == "cleanup.policy" }?.value ?? "delete",
                        ends: places(topic).map { ends[$0]?.value ?? 0 }))
            }
            for group in try admin.groups(by: deadline).sorted() where group.hasPrefix(prefix) {
                for (place, next) in try admin.currentOffsets(ofGroup: group, by: Deadline(after: patience)).sorted(
                    by: { $0.key < $1.key })
                {
                    fixture.positions.append(
                        Position(
                            group: String(group.dropFirst(prefix.count)),
                            topic: String(place.topic.dropFirst(prefix.count)), partition: place.partition,
                            next: next.value))
                }
            }
            return fixture
        }
        for topic in fixture.topics where topic.ends.contains(where: { $0 > 0 }) {
            let name = topic.name
            fixture.records += try await broker.read(prefix + name) { Record($0, topic: name) }.sorted {
                ($0.partition, $0.offset) < ($1.partition, $1.offset)
            }
        }
        return fixture
    }

    /// Unchanged, but under another prefix.
    func renamed(_ prefix: String) -> StateFixture {
        let (old, new) = (Array(self.prefix.utf8), Array(prefix.utf8))
        precondition(old.count == new.count, "a text after a length must keep its length")
        var fixture = self
        fixture.prefix = prefix
        for index in records.indices {
            fixture.records[index].key = records[index].key?.renamed(old, new)
            fixture.records[index].value = records[index].value?.renamed(old, new)
            for place in records[index].headers.indices {
                fixture.records[index].headers[place].value = records[index].headers[place].value?.renamed(old, new)
            }
        }
        return fixture
    }

    /// What remains after topics are compacted, which may happen at any time.
    private var lastRecords: [Record] {
        let compacted = Set(topics.filter { $0.cleanup == "compact" }.map(\.name))
        var last: [String: Int64] = [:]
        func place(_ record: Record) -> String { "\(record.topic) \(record.partition) \(record.key?.bytes ?? [])" }
        for record in records { last[place(record)] = record.offset }
        return records.filter { !compacted.contains($0.topic) || last[place($0)] == $0.offset }
    }

    /// Makes a new installation with all of it.
    func laid() async throws -> Installation {
        let installation = Installation(
            broker: try await Broker.shared(), prefix: Self.makePrefix(), partitions: partitions)
        try await installation.makeTopics()
        let fixture = renamed(installation.prefix)
        try await blocking {
            let admin = try Admin(clientID: "fixture", properties: installation.broker.properties)
            defer { admin.close(by: Deadline(after: patience)) }
            try fixture.makeTopics(admin)
            try fixture.layRecords(installation.broker)
            try fixture.layPositions(admin)
        }
        // The end marker of a transaction is written shortly after its commit returns.
        try await waitUntil("the fixture is written at its old offsets", within: patience) {
            let laid = try await Self.taken(from: installation, build: build)
            let ends = Dictionary(uniqueKeysWithValues: laid.topics.map { ($0.name, $0.ends) })
            return laid.lastRecords == fixture.lastRecords && laid.positions == fixture.positions
                && fixture.topics.allSatisfy { ends[$0.name] == $0.ends }
        }
        return installation
    }

    /// Its length does not depend on chance.
    static func makePrefix() -> String {
        let digits = "\(UInt32.random(in: 0 ... .max))"
        return "state-" + String(repeating: "0", count: 10 - digits.count) + digits
    }

    private func makeTopics(_ admin: Admin) throws {
        let deadline = Deadline(after: patience)
        let there = Set(try admin.cluster(by: deadline).topics.map(\.name))
        let missing = topics.filter { !there.contains("\(prefix).production.\($0.name)") }
        if !missing.isEmpty {
            let made = try admin.create(
                missing.map { topic in
                    Admin.NewTopic(
                        name: "\(prefix).production.\(topic.name)", partitions: Int32(topic.ends.count),
                        replicationFactor: 1,
                        settings: [("cleanup.policy", topic.cleanup)])
                }, by: deadline)
            for case let fault? in made.values { throw fault }
        }
        // Records with a retention time will be older than that one day.
        for topic in topics where topic.cleanup == "delete" && topic.ends.contains(where: { $0 > 0 }) {
            try admin.change([("retention.ms", "-1")], of: "\(prefix).production.\(topic.name)", by: deadline)
        }
    }

    private func layRecords(_ broker: Broker) throws {
        var failure: KafkaCode?
        let plain = try Producer(.init(clientID: "fixture", properties: broker.properties)) {
            failure = $0.failure ?? failure
        }
        defer { plain.close(by: Deadline(after: patience)) }
        let bound = try TransactionalProducer.ready("\(prefix).fixture", broker.properties)
        defer { bound.close(by: Deadline(after: patience)) }
        let reader = try KafkaLog(broker.properties).openReader(
            ReaderOptions(name: "fixture", group: "fixture", topics: topics.map { "\(prefix).production.\($0.name)" }))
        defer { reader.close(by: Deadline(after: patience)) }
        for topic in topics {
            let records = Dictionary(grouping: self.records(of: topic.name), by: \.partition)
            for (number, end) in topic.ends.enumerated() {
                let place = TopicPartition("\(prefix).production.\(topic.name)", Int32(number))
                for run in FixtureRun.runs(records[place.partition] ?? [], to: end) {
                    // The end marker of a transaction is written shortly after its commit returns.
                    if let first = run.records.first, first.offset > 0, !run.isBound {
                        try Self.waitForEnd(first.offset, of: place, reader)
                    }
                    try run.lay(place, plain, bound)
                }
            }
        }
        try plain.flush(by: Deadline(after: patience))
        if let failure { throw KafkaFault(.stopProcess, failure, operation: "lay a fixture") }
    }

    private static func waitForEnd(_ offset: Int64, of place: TopicPartition, _ reader: any LogReader) throws {
        let deadline = Deadline(after: patience)
        while true {
            let end = try reader.endsOfAll([place])[place]?.value ?? 0
            if end == offset { return }
            try #require(end < offset && !deadline.hasPassed, "the end of \(place) is \(end), and not \(offset)")
            pause(for: .milliseconds(5))
        }
    }

    private func layPositions(_ admin: Admin) throws {
        for (group, positions) in Dictionary(grouping: positions, by: \.group) {
            let places = positions.map {
                (TopicPartition("\(prefix).production.\($0.topic)", $0.partition), NextOffset($0.next))
            }
            try admin.setOffsets(
                ofGroup: "\(prefix).production.\(group)", to: Dictionary(uniqueKeysWithValues: places),
                by: Deadline(after: patience))
        }
    }
}

extension LogReader {
    /// A request about newly created topics may get no answer; the next one does.
    fileprivate func endsOfAll(_ places: [TopicPartition]) throws -> [TopicPartition: NextOffset] {
        let deadline = Deadline(after: patience)
        while true {
            do throws(LogFault) {
                return try ends(.committed, of: places, by: Deadline(after: .seconds(5)))
            } catch {
                guard error.remedy == .retrySameCall, !deadline.hasPassed else { throw error }
            }
        }
    }
}

extension StateFixture.Record {
    init(_ record: borrowing ConsumedRecord, topic: String) {
        self.init(
            topic: topic, partition: record.partition, offset: record.offset, time: record.timestamp ?? 0,
            key: record.copyOfKey().map { FixtureBytes($0) }, value: record.copyOfValue().map { FixtureBytes($0) },
            headers: record.headers.map { .init(name: $0.name, value: $0.value.map { FixtureBytes($0) }) })
    }

    var recordHeaders: [RecordHeader] { headers.map { RecordHeader($0.name, $0.value?.bytes) } }
}

/// Consecutive records, and how many offsets after them hold no records: ends of transactions and aborted records.
private struct FixtureRun {
    var records: [StateFixture.Record] = []
    var gap: Int64 = 0

    static func runs(_ records: [StateFixture.Record], to end: Int64) -> [FixtureRun] {
        var (runs, run, next) = ([FixtureRun](), FixtureRun(), Int64(0))
        for record in records {
            if record.offset > next {
                run.gap = record.offset - next
                runs.append(run)
                run = FixtureRun()
            }
            run.records.append(record)
            next = record.offset + 1
        }
        run.gap = end - next
        return runs + [run]
    }

    /// Writes them as one transaction.
    var isBound: Bool { gap == 1 && !records.isEmpty }

    /// One offset is the end of this transaction; further ones belong to an aborted transaction.
    func lay(_ place: TopicPartition, _ plain: Producer, _ bound: TransactionalProducer) throws {
        let (topic, partition) = (place.topic, place.partition)
        func send(_ record: StateFixture.Record, isBound: Bool) throws {
            let (key, value) = (record.key?.bytes, record.value?.bytes)
            if isBound {
                try bound.send(
                    to: try bound.topic(topic), partition: partition, key: key?.span, value: value?.span,
                    headers: record.recordHeaders, timestamp: record.time)
            } else {
                try plain.send(
                    to: try plain.topic(topic), partition: partition, key: key?.span, value: value?.span,
                    headers: record.recordHeaders, timestamp: record.time)
            }
        }
        if isBound {
            try bound.begin()
            for record in records { try send(record, isBound: true) }
            return try bound.commit()
        }
        for record in records { try send(record, isBound: false) }
        try plain.flush(by: Deadline(after: patience))
        if gap == 0 { return }
        try #require(gap > 1, "the end of an empty transaction")
        try bound.begin()
        // A compacted topic accepts no record without a key.
        let filling: [UInt8] = [0]
        for _ in 1..<gap {
            try bound.send(to: try bound.topic(topic), partition: partition, key: filling.span, value: filling.span)
        }
        let deadline = Deadline(after: patience)
        while bound.outstanding > 0, !deadline.hasPassed { bound.poll(.milliseconds(10)) }
        try bound.abort()
    }
}
