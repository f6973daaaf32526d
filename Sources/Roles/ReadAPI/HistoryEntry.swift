// A record of `entitlement-events`, with its origin.

internal import Contract
public import JSON
public import Log
internal import Store

/// One event of a subscription.
public struct HistoryEntry: Equatable, Sendable {
    /// Sequence of the value of `entitlements` that the event belongs to; several events may share it.
    public let sequence: Int64
    /// Offset in `entitlement-events`.
    let offset: Int64
    /// `topic:partition:offset` of the record that caused the event.
    let source: [UInt8]
    /// The program that wrote the record, and its rules.
    let app: [UInt8]
    /// The value as it was published.
    let value: [UInt8]

    /// - Parameter json: contains the value of the record.
    /// - Returns: nil if the record is not an event of the key, or cannot be used.
    public init?(_ record: borrowing RecordView, _ json: borrowing JSONDocument) {
        guard let value = record.copyOfValue(), let sequence = Self.sequence(json) else { return nil }
        self.init(sequence, of: record, value)
    }

    init(_ sequence: Int64, of record: borrowing RecordView, _ value: [UInt8]) {
        self.sequence = sequence
        offset = record.offset
        source = Self.header(HeaderName.source, record)
        app = Self.header(HeaderName.app, record)
        self.value = value
    }

    static func sequence(_ json: borrowing JSONDocument) -> Int64? {
        json.member("sequence", of: json.root).flatMap { json.integer($0.value) }
    }

    /// The program writes no longer header.
    private static let limitHeader = 1024

    private static func header(_ name: StaticString, _ record: borrowing RecordView) -> [UInt8] {
        guard let value = record.header(name) else { return [] }
        return value.withUnsafeBufferPointer { Array($0.prefix(limitHeader)) }
    }

    /// Newest first.
    public static func isNewer(_ left: HistoryEntry, _ right: HistoryEntry) -> Bool {
        (left.sequence, left.offset) > (right.sequence, right.offset)
    }

    public func write(to writer: inout JSONWriter) {
        writer.object { entry in
            entry.member("event", json: value)
            entry.member("offset", offset)
            entry.member("source", utf8: source.isEmpty ? nil : source)
            entry.member("app", utf8: app.isEmpty ? nil : app)
        }
    }

    // In a copy: source and app, each with its number of bytes before it, and then the value. Numbers are
    // little-endian; sequence and offset are in the key.

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(4 + source.count + app.count + value.count)
        for header in [source, app] {
            bytes.append(littleEndian: UInt16(header.count))
            bytes += header
        }
        return bytes + value
    }

    /// nil for bytes that are not an event.
    init?(key: Span<UInt8>, _ bytes: Span<UInt8>) {
        var reader = NoteReader(bytes.withUnsafeBufferPointer { Array($0) })
        guard let place = HistoryKeys.place(key), let sourceCount = reader.take(UInt16.self),
            let source = reader.take(count: Int(sourceCount)), let appCount = reader.take(UInt16.self),
            let app = reader.take(count: Int(appCount))
        else { return nil }
        (sequence, offset) = place
        (self.source, self.app, value) = (Array(source), Array(app), Array(reader.remaining))
    }
}

/// The keys of events in a store, the newest event of a subscription first. Part of the format on disk; the other
/// numbers are those of `KeySpace` and `RefundKeys`.
enum HistoryKeys {
    private static let events: UInt8 = 7

    /// The prefix of the keys of one subscription's events, and of no other keys.
    static func prefix(of originalTransactionId: [UInt8]) -> [UInt8] {
        var key = [events]
        key.append(littleEndian: UInt32(originalTransactionId.count))
        return key + originalTransactionId
    }

    static func event(of originalTransactionId: [UInt8], sequence: Int64, offset: Int64) -> [UInt8] {
        var key = prefix(of: originalTransactionId)
        for number in [sequence, offset] { key.append(littleEndian: descending(number).byteSwapped) }
        return key
    }

    /// Sequence and offset in a key; nil: it is not such a key.
    static func place(_ key: Span<UInt8>) -> (sequence: Int64, offset: Int64)? {
        guard key.count >= 16 else { return nil }
        var reader = NoteReader(key.withUnsafeBufferPointer { Array($0.suffix(16)) })
        guard let sequence = reader.take(UInt64.self), let offset = reader.take(UInt64.self) else { return nil }
        return (ascending(sequence.byteSwapped), ascending(offset.byteSwapped))
    }

    /// Orders the greatest number first, as bytes are compared.
    private static func descending(_ number: Int64) -> UInt64 { ~(UInt64(bitPattern: number) ^ (1 << 63)) }
    private static func ascending(_ number: UInt64) -> Int64 { Int64(bitPattern: ~number ^ (1 << 63)) }

    /// The kind of the timer that deletes an event.
    static let end: UInt8 = 1
    /// In milliseconds: the default retention of the topic.
    static let keptFor: Int64 =
        if case .days(let days) = TopicCatalogue.definition(.entitlementEvents).retention {
            Int64(days) * millisecondsPerDay
        } else {
            .max
        }
}

/// A page of stored events of one subscription.
struct CopiedHistory {
    static let page = 100

    /// Newest first. Events with the same sequence are always on the same page: a page continues until the sequence
    /// changes.
    private(set) var entries: [HistoryEntry] = []
    /// true: there are older events.
    private(set) var hasMore = false
    private let before: Int64?

    /// - Parameter before: only events with a smaller sequence.
    init(before: Int64?) { self.before = before }

    /// false: the page is complete.
    mutating func take(_ key: Span<UInt8>, _ value: Span<UInt8>) -> Bool {
        guard let place = HistoryKeys.place(key), before.map({ place.sequence < $0 }) ?? true else { return true }
        if entries.count >= Self.page, entries.last?.sequence != place.sequence {
            hasMore = true
            return false
        }
        if let entry = HistoryEntry(key: key, value) { entries.append(entry) }
        return true
    }

    func body(position: [UInt8]) -> [UInt8] {
        var writer = JSONWriter(capacity: entries.reduce(256) { $0 + $1.value.count + 256 })
        writer.object { writer in
            writer.name("history")
            writer.array { writer in for entry in entries { entry.write(to: &writer) } }
            writer.member("before", orNull: hasMore ? entries.last?.sequence : nil)
            writer.member("position", json: position)
        }
        return writer.bytes
    }
}

extension PartitionCopy {
    /// A page of a subscription's events, and whether the copy knows the subscription from other records. nil: there is
    /// no readable copy now.
    func history(of id: [UInt8], before: Int64?) -> Reading<(history: CopiedHistory, isKnown: Bool)>? {
        asking(.events) { store throws(StoreFault) in
            var history = CopiedHistory(before: before)
            var hasAny = false
            try store.scan(HistoryKeys.prefix(of: id).span) { key, value in
                hasAny = true
                return history.take(key, value)
            }
            if hasAny { return (history, true) }
            var value: [UInt8] = []
            return (history, try store.read(KeySpace.entitlements.key(id).span, into: &value))
        }
    }
}
