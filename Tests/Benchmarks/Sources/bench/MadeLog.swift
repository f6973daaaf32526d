// A log whose records are made as they are read: nothing of it is in memory, so what is resident is the worker's.

import Log
import Platform
import Synchronization

/// One worker's changelog of so many subscriptions, and an input that never ends. What is appended is forgotten.
struct MadeLog: RecordLog {
    /// Which subscriptions the input is about: of all the first so many.
    final class Choice: Sendable {
        private let count: Atomic<Int>
        init(_ count: Int) { self.count = Atomic(count) }
        var value: Int {
            get { count.load(ordering: .relaxed) }
            set { count.store(newValue, ordering: .relaxed) }
        }
    }

    let subscriptions: Int
    let choice: Choice

    func topics(_ names: [String], by deadline: Deadline) throws(LogFault) -> [String: TopicShape] { [:] }
    func create(_ topics: [NewTopic], by deadline: Deadline) throws(LogFault) {}
    func openWriter(_ options: WriterOptions) throws(LogFault) -> any LogWriter {
        throw LogFault(.stop, .misuse, "nobody writes to a log that is made up")
    }
    func openReader(_ options: ReaderOptions) throws(LogFault) -> any LogReader { MadeReader(subscriptions) }
    func openSession(_ options: SessionOptions, by deadline: Deadline) throws(LogFault) -> any LogSession {
        MadeSession(options, choice)
    }
}

/// When the twelfth periods end: long after the last notification.
private let madeEnd = Notifications.usualEnd

/// Records of one partition, one behind the other in a buffer: the addresses are good until the next are made.
private final class MadeRecords: RecordAccess {
    private static let limit = 1000
    private let keyBytes: Int
    private let valueBytes: Int
    private let buffer: UnsafeMutableRawBufferPointer
    private let headers: [RecordHeader]
    /// Names and values as C strings would be: good for the whole run.
    private let headerValues: [(name: String, value: UnsafeRawBufferPointer)]

    init(keyBytes: Int, valueBytes: Int, headers: [RecordHeader]) {
        self.keyBytes = keyBytes
        self.valueBytes = valueBytes
        self.headers = headers
        buffer = .allocate(byteCount: (keyBytes + valueBytes) * Self.limit, alignment: 16)
        headerValues = headers.map { header in
            let value = UnsafeMutableRawBufferPointer.allocate(byteCount: header.value?.count ?? 0, alignment: 1)
            value.copyBytes(from: header.value ?? [])
            return (header.name, UnsafeRawBufferPointer(value))
        }
    }

    deinit {
        buffer.deallocate()
        for header in headerValues { header.value.deallocate() }
    }

    func add(
        _ key: [UInt8], _ value: [UInt8], partition: Int32, offset: Int64, timestamp: Int64, to batch: RecordBatch
    ) {
        let start = batch.count * (keyBytes + valueBytes)
        let place = UnsafeMutableRawBufferPointer(rebasing: buffer[start..<start + keyBytes + valueBytes])
        place.copyBytes(from: key)
        UnsafeMutableRawBufferPointer(rebasing: place[keyBytes...]).copyBytes(from: value)
        batch.append(
            RawRecord(
                topic: 0, partition: partition, offset: offset, timestamp: timestamp,
                key: UnsafeRawBufferPointer(rebasing: place[..<keyBytes]),
                value: UnsafeRawBufferPointer(rebasing: place[keyBytes...]), handle: buffer.baseAddress!))
    }

    func header(_ name: StaticString, of handle: UnsafeMutableRawPointer) -> UnsafeRawBufferPointer? {
        headerValues.last { entry in
            entry.name.utf8.count == name.utf8CodeUnitCount
                && name.withUTF8Buffer { entry.name.utf8.elementsEqual($0) }
        }?.value
    }
    func headers(of handle: UnsafeMutableRawPointer) -> [RecordHeader] { headers }
    func release(_ handle: UnsafeMutableRawPointer) {}
}

/// Reads the changelog, which is all in partition 0.
private final class MadeReader: LogReader {
    private let count: Int
    private var next = 0
    private var changelog = Changelog(end: madeEnd)
    private let records: MadeRecords

    init(_ count: Int) {
        self.count = count
        records = MadeRecords(keyBytes: changelog.key.count, valueBytes: changelog.value.count, headers: [])
    }

    func beginnings(of partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]
    {
        Dictionary(uniqueKeysWithValues: partitions.map { ($0, NextOffset(0)) })
    }
    func ends(_ kind: EndKind, of partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]
    {
        Dictionary(uniqueKeysWithValues: partitions.map { ($0, NextOffset(Int64(count))) })
    }
    func offsets(at timestamp: Int64, in partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]
    {
        try beginnings(of: partitions, by: deadline)
    }
    func read(from starts: [TopicPartition: NextOffset]) throws(LogFault) {
        next = Int(starts.values.first?.value ?? 0)
    }
    func poll(into batch: RecordBatch, limit: Int, wait: Duration) throws(LogFault) {
        batch.begin(records)
        while batch.count < limit, next < count {
            changelog.make(scattered(next, of: count))
            records.add(changelog.key, changelog.value, partition: 0, offset: Int64(next), timestamp: 0, to: batch)
            next += 1
        }
    }
    func position(of partition: TopicPartition) -> NextOffset? { NextOffset(Int64(next)) }
    func close(by deadline: Deadline) -> Bool { true }
}

private final class MadeSession: LogSession {
    private let input: TopicPartition
    private let choice: MadeLog.Choice
    private let records: MadeRecords
    private var notifications = Notifications(.change, end: madeEnd)
    private var isAssigned = false
    private var isPaused = true
    private var next = 0
    private var appended: Int64 = 0

    init(_ options: SessionOptions, _ choice: MadeLog.Choice) {
        input = TopicPartition(options.inputs[0], 0)
        self.choice = choice
        records = MadeRecords(
            keyBytes: notifications.key.count, valueBytes: notifications.value.count,
            headers: [RecordHeader("type", "notification"), RecordHeader("schema", "notification/1")])
    }

    func poll(into batch: RecordBatch, limit: Int, wait: Duration) throws(LogFault) -> SessionEvent {
        batch.begin(records)
        if !isAssigned {
            isAssigned = true
            return .assigned([input])
        }
        guard !isPaused else {
            Platform.pause(for: min(wait, .milliseconds(1)))
            return .nothing
        }
        let count = choice.value
        for _ in 0..<limit {
            notifications.make(next, of: scattered(next, of: count))
            records.add(
                notifications.key, notifications.value, partition: 0, offset: Int64(next),
                timestamp: notifications.timestamp, to: batch)
            next += 1
        }
        return .records
    }
    func committed(_ partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]
    {
        [:]
    }
    func beginnings(of partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]
    {
        Dictionary(uniqueKeysWithValues: partitions.map { ($0, NextOffset(0)) })
    }
    func take(_ starts: [TopicPartition: NextOffset], paused: Set<TopicPartition>) throws(LogFault) {}
    func giveBack() throws(LogFault) {}
    func pause(_ partitions: [TopicPartition]) throws(LogFault) { isPaused = true }
    func resume(_ partitions: [TopicPartition]) throws(LogFault) { isPaused = false }
    func seek(to positions: [TopicPartition: NextOffset]) throws(LogFault) {
        next = Int(positions[input]?.value ?? Int64(next))
    }
    func position(of partition: TopicPartition) -> NextOffset? { NextOffset(Int64(next)) }
    func append(_ outputs: OutputBatch) throws(LogFault) { appended += Int64(outputs.count) }
    func commit(_ positions: [TopicPartition: NextOffset]) throws(LogFault) {}
    func abort() throws(LogFault) {}
    func appendedEnd(topic: Int, partition: Int32) -> NextOffset? { NextOffset(appended) }
    func close(by deadline: Deadline) -> Bool { true }
}
