// Helpers for the checks.

import Log
import Platform
import Synchronization

/// A copied record.
struct Seen: Equatable, CustomStringConvertible {
    var topic = 0
    var partition: Int32 = 0
    var offset: Int64
    var timestamp: Int64
    var key: [UInt8]?
    var value: [UInt8]?
    var headers: [RecordHeader]

    init(_ record: borrowing RecordView) {
        topic = record.topic
        partition = record.partition
        offset = record.offset
        timestamp = record.timestamp
        key = record.copyOfKey()
        value = record.copyOfValue()
        headers = record.headers
    }

    var text: String { value.map { String(decoding: $0, as: UTF8.self) } ?? "<null>" }
    var description: String { "\(partition)/\(offset) \(text)" }
}

/// One check's view of the log under test.
struct Bench {
    let under: LogUnderTest
    var log: any RecordLog { under.log }
    var deadline: Deadline { Deadline(after: under.patience) }

    private static let names = Atomic<Int>(0)

    init(_ under: LogUnderTest) {
        self.under = under
    }

    /// Unique in this process and in others.
    func name(_ label: String) -> String {
        "\(label)-\(Self.names.add(1, ordering: .relaxed).newValue)-\(WallClock.milliseconds())"
    }

    func topic(_ label: String, partitions: Int32 = 1, isCompacted: Bool = false) throws -> String {
        try under.makeTopic(label, partitions, isCompacted)
    }

    // MARK: Judging

    func expect(
        _ isKept: Bool, _ words: @autoclosure () -> String, line: Int = #line, file: StaticString = #fileID
    ) throws {
        if !isKept { throw BrokenPromise(description: "\(words()) (\(file):\(line))") }
    }

    func expect<Value: Equatable>(
        _ found: Value, is wanted: Value, line: Int = #line, file: StaticString = #fileID
    ) throws {
        try expect(found == wanted, "\(found) instead of \(wanted)", line: line, file: file)
    }

    /// Waits for something that may take a moment.
    func expect(
        soon words: String, line: Int = #line, file: StaticString = #fileID, _ condition: () throws -> Bool
    ) throws {
        let deadline = deadline
        while !(try condition()) {
            try expect(!deadline.hasPassed, "timed out waiting for: \(words)", line: line, file: file)
        }
    }

    /// The fault that `body` throws.
    func fault(line: Int = #line, file: StaticString = #fileID, in body: () throws -> Void) throws -> LogFault {
        do {
            try body()
        } catch let fault as LogFault {
            return fault
        }
        throw BrokenPromise(description: "a fault was expected, but none was thrown (\(file):\(line))")
    }

    /// Retries as long as the log asks for a retry.
    func patiently<Value>(_ body: () throws -> Value) throws -> Value {
        let deadline = deadline
        while true {
            do {
                return try body()
            } catch let fault as LogFault where fault.remedy == .retrySameCall && !deadline.hasPassed {
                if under.pollWait > .zero { pause(for: .milliseconds(50)) }
            }
        }
    }

    // MARK: Writing

    func outputs(_ texts: [String], partition: Int32 = 0, timestamp: Int64 = 1_000) -> OutputBatch {
        let outputs = OutputBatch()
        for text in texts {
            outputs.append(topic: 0, partition: partition, timestamp: timestamp, key: nil, value: Array(text.utf8))
        }
        return outputs
    }

    @discardableResult
    func write(_ texts: [String], to topic: String, partition: Int32 = 0) throws -> [Int64] {
        try write(outputs(texts, partition: partition), to: topic)
    }

    @discardableResult
    func write(_ outputs: OutputBatch, to topic: String) throws -> [Int64] {
        let writer = try log.openWriter(WriterOptions(name: name("writer"), topics: [topic]))
        defer { writer.close(by: deadline) }
        return try writer.append(outputs, by: deadline)
    }

    // MARK: Reading

    func reader(_ topic: String) throws -> any LogReader {
        let name = name("reader")
        return try log.openReader(ReaderOptions(name: name, group: name, topics: [topic]))
    }

    /// All committed records, from the beginning to the end.
    func read(_ topic: String, partition: Int32 = 0) throws -> [Seen] {
        let reader = try reader(topic)
        defer { reader.close(by: deadline) }
        let partition = TopicPartition(topic, partition)
        let starts = try reader.beginnings(of: [partition], by: deadline)
        try reader.read(from: starts)
        return try readOn(reader, partition)
    }

    /// The same, after all open transactions have ended: a commit may return before readers see its effect.
    func readEnded(_ topic: String, partition: Int32 = 0) throws -> [Seen] {
        try waitForEnd(of: topic, partition: partition)
        return try read(topic, partition: partition)
    }

    func waitForEnd(of topic: String, partition: Int32 = 0) throws {
        try expect(soon: "the end of what is open in \(topic)") {
            try end(.committed, topic, partition: partition) == end(.all, topic, partition: partition)
        }
    }

    /// From the reader's position to the committed end.
    func readOn(_ reader: any LogReader, _ partition: TopicPartition) throws -> [Seen] {
        guard let end = try reader.ends(.committed, of: [partition], by: deadline)[partition] else {
            throw BrokenPromise(description: "\(partition) has no end")
        }
        var seen: [Seen] = []
        let batch = RecordBatch()
        try expect(soon: "the end of \(partition), \(end), from \(String(describing: reader.position(of: partition)))")
        {
            if let position = reader.position(of: partition), position >= end { return true }
            try reader.poll(into: batch, limit: 100, wait: under.pollWait)
            seen += copies(batch)
            return false
        }
        return seen
    }

    func end(_ kind: EndKind, _ topic: String, partition: Int32 = 0) throws -> NextOffset {
        let reader = try reader(topic)
        defer { reader.close(by: deadline) }
        let partition = TopicPartition(topic, partition)
        guard let end = try reader.ends(kind, of: [partition], by: deadline)[partition] else {
            throw BrokenPromise(description: "\(partition) has no end")
        }
        return end
    }

    func copies(_ batch: RecordBatch) -> [Seen] { (0..<batch.count).map { Seen(batch[$0]) } }

    // MARK: Sessions

    func options(_ group: String, _ identity: String, inputs: [String], outputs: [String]) -> SessionOptions {
        var options = SessionOptions(group: group, identity: identity, inputs: inputs, outputs: outputs)
        options.sessionTimeout = under.sessionTimeout
        options.transactionTimeout = .seconds(60)
        return options
    }

    func member(_ group: String, _ identity: String, inputs: [String], outputs: [String] = []) throws -> Member {
        try Member(self, options(group, identity, inputs: inputs, outputs: outputs))
    }
}

/// A session with the minimum of work that its owner has to do.
final class Member {
    let session: any LogSession
    private let bench: Bench
    private let batch = RecordBatch()
    private(set) var owned: Set<TopicPartition> = []
    private(set) var seen: [Seen] = []
    private(set) var events: [SessionEvent] = []
    private(set) var committedAtTake: [TopicPartition: NextOffset] = [:]

    init(_ bench: Bench, _ options: SessionOptions) throws {
        self.bench = bench
        session = try bench.log.openSession(options, by: bench.deadline)
    }

    /// Polls once and handles the events.
    func step(limit: Int = 100) throws {
        let event = try session.poll(into: batch, limit: limit, wait: bench.under.pollWait)
        switch event {
        case .nothing: return
        case .records: seen += bench.copies(batch)
        case .assigned(let partitions):
            owned = Set(partitions)
            let committed = try bench.patiently { try session.committed(partitions, by: bench.deadline) }
            committedAtTake = committed
            var starts: [TopicPartition: NextOffset] = [:]
            for partition in partitions { starts[partition] = committed[partition] ?? NextOffset(0) }
            try session.take(starts, paused: [])
        case .revoked, .lost:
            owned = []
            try session.giveBack()
        case .positionGone: break
        }
        events.append(event)
    }

    func own(_ count: Int, line: Int = #line, file: StaticString = #fileID) throws {
        try bench.expect(soon: "\(count) partitions", line: line, file: file) {
            if owned.count == count { return true }
            try step()
            return owned.count == count
        }
    }

    func see(_ count: Int, line: Int = #line, file: StaticString = #fileID) throws {
        try bench.expect(soon: "\(count) records, \(seen) so far", line: line, file: file) {
            if seen.count >= count { return true }
            try step()
            return seen.count >= count
        }
    }

    func forgetSeen() { seen = [] }

    var texts: [String] { seen.map(\.text) }

    @discardableResult func close() -> Bool { session.close(by: bench.deadline) }
}
