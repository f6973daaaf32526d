// A log whose records are generated as they are read. None of it is in memory, so all resident memory is the worker's.

import Log
import Platform
import Synchronization

/// One worker's changelog and its input. Appended records are dropped.
struct MadeLog: RecordLog {
    /// The input is about the first `value` of all subscriptions.
    final class Choice: Sendable {
        private let count: Atomic<Int>
        init(_ count: Int) { self.count = Atomic(count) }
        var value: Int {
            get { count.load(ordering: .relaxed) }
            set { count.store(newValue, ordering: .relaxed) }
        }
    }

    enum Input: Sendable {
        /// Endless changes of this many subscriptions.
        case changes(Choice)
        /// Twelve months of this many subscriptions, from their purchases on.
        case year(Int)
    }

    /// nil: the changelog is empty.
    let changelog: Changelog?
    /// Number of subscriptions in the changelog.
    let subscriptions: Int
    let input: Input

    func topics(_ names: [String], by deadline: Deadline) throws(LogFault) -> [String: TopicShape] {
        // Only changelogs are asked about.
        Dictionary(uniqueKeysWithValues: names.map { ($0, TopicShape(partitions: 1, isCompacted: true)) })
    }
    func create(_ topics: [NewTopic], by deadline: Deadline) throws(LogFault) {}
    func openWriter(_ options: WriterOptions) throws(LogFault) -> any LogWriter {
        throw LogFault(.stop, .misuse, "a generated log cannot be written to")
    }
    func openReader(_ options: ReaderOptions) throws(LogFault) -> any LogReader {
        MadeReader(changelog ?? Changelog(.entitlements), count: changelog == nil ? 0 : subscriptions)
    }
    func openSession(_ options: SessionOptions, by deadline: Deadline) throws(LogFault) -> any LogSession {
        switch input {
        case .changes(let choice): MadeSession(options, MadeChanges(choice))
        case .year(let subscriptions): MadeSession(options, MadeYear(subscriptions))
        }
    }
}

/// When the twelfth periods end: long after the last notification.
let madeEnd = Notifications.usualEnd

/// Records of one partition, one after the other in a buffer. Their addresses are valid until the next ones are made.
private final class MadeRecords: RecordAccess {
    private static let limit = 1000
    private let keyBytes: Int
    private let valueBytes: Int
    private let buffer: UnsafeMutableRawBufferPointer
    private let headers: [RecordHeader]
    /// Names and values in the form of C strings; valid for the whole run.
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
        let place = UnsafeMutableRawBufferPointer(rebasing: buffer[start..<start + key.count + value.count])
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
    private var changelog: Changelog
    private let records: MadeRecords

    init(_ changelog: Changelog, count: Int) {
        self.changelog = changelog
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

/// Makes the n-th record of an input, in any order of n.
private protocol MadeSource {
    /// Size of the longest value.
    var limitBytes: Int { get }
    /// The number of records; nil: it is endless.
    var count: Int? { get }
    mutating func withRecord(_ n: Int, _ body: (Notifications) -> Void)
}

private struct MadeChanges: MadeSource {
    private let choice: MadeLog.Choice
    private var notifications = Notifications(.change, end: madeEnd)
    var limitBytes: Int { notifications.value.count }
    var count: Int? { nil }

    init(_ choice: MadeLog.Choice) { self.choice = choice }

    mutating func withRecord(_ n: Int, _ body: (Notifications) -> Void) {
        notifications.make(n, of: scattered(n, of: choice.value))
        body(notifications)
    }
}

/// Subscriptions are bought one after the other in the first month, and renewed in this order in each later month. A renewal is
/// published an hour before it begins, so that its effect needs the clock.
private struct MadeYear: MadeSource {
    private let subscriptions: Int
    private var months: [Notifications]
    var limitBytes: Int { months.map(\.value.count).max()! }
    var count: Int? { subscriptions * months.count }

    init(_ subscriptions: Int) {
        self.subscriptions = subscriptions
        months = (0..<Notifications.periods).map { Notifications(.period($0)) }
    }

    mutating func withRecord(_ n: Int, _ body: (Notifications) -> Void) {
        let (month, place) = n.quotientAndRemainder(dividingBy: subscriptions)
        let year = madeEnd - Int64(months.count) * period
        let start = year + Int64(month) * period + Int64(place) * period / Int64(subscriptions)
        months[month].make(
            of: scattered(place, of: subscriptions), periodFrom: start, told: month == 0 ? start : start - 3_600_000)
        body(months[month])
    }
}

private final class MadeSession: LogSession {
    private let input: TopicPartition
    private let records: MadeRecords
    private var source: any MadeSource
    private var isAssigned = false
    private var isPaused = true
    private var next = 0
    private var appended: Int64 = 0

    init(_ options: SessionOptions, _ source: any MadeSource) {
        input = TopicPartition(options.inputs[0], 0)
        self.source = source
        records = MadeRecords(
            keyBytes: Notifications.key.count, valueBytes: source.limitBytes,
            headers: [RecordHeader("schema", "notification/1")])
    }

    func poll(into batch: RecordBatch, limit: Int, wait: Duration) throws(LogFault) -> SessionEvent {
        batch.begin(records)
        if !isAssigned {
            isAssigned = true
            return .assigned([input])
        }
        let end = min(next + limit, source.count ?? .max)
        guard !isPaused, next < end else {
            Platform.pause(for: min(wait, .milliseconds(1)))
            return .nothing
        }
        while next < end {
            source.withRecord(next) { made in
                records.add(
                    made.key, made.value, partition: 0, offset: Int64(next), timestamp: made.timestamp, to: batch)
            }
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
    var ownedUntil: Duration? { nil }
    func appendedEnd(topic: Int, partition: Int32) -> NextOffset? { NextOffset(appended) }
    func close(by deadline: Deadline) -> Bool { true }
}
