// A record of `entitlement-events` as it is told, with where it is from.

internal import Contract
public import JSON
public import Log
internal import Store

/// One thing that has happened to a subscription.
public struct HistoryEntry: Equatable, Sendable {
    /// Of the value of `entitlements` that it tells; several may share it.
    public let sequence: Int64
    /// In `entitlement-events`.
    let offset: Int64
    /// `topic:partition:offset` of the record that made it.
    let source: [UInt8]
    /// Who has written it, and by which rules.
    let app: [UInt8]
    /// As it was published.
    let value: [UInt8]

    /// - Parameter json: holds the value of the record.
    /// - Returns: nil when it is none of the key, or cannot be told.
    public init?(_ record: borrowing RecordView, _ json: borrowing JSONDocument) {
        guard let value = record.copyOfValue(), let sequence = Self.sequence(json) else { return nil }
        self.init(sequence, of: record, value)
    }

    init(_ sequence: Int64, of record: borrowing RecordView, _ value: [UInt8]) {
        self.sequence = sequence
        offset = record.offset
        source = Self.header("source", record)
        app = Self.header("app", record)
        self.value = value
    }

    static func sequence(_ json: borrowing JSONDocument) -> Int64? {
        json.member("sequence", of: json.root).flatMap { json.integer($0.value) }
    }

    /// What is longer was not written by us.
    private static let limitHeader = 1024

    private static func header(_ name: StaticString, _ record: borrowing RecordView) -> [UInt8] {
        guard let value = record.header(name) else { return [] }
        return value.withUnsafeBufferPointer { Array($0.prefix(limitHeader)) }
    }

    /// The order in which they are told.
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

    // In a copy: how many bytes of source and of app there are, each with its count before it, and the value. Numbers are
    // little-endian; sequence and offset stand in the key.

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(4 + source.count + app.count + value.count)
        for header in [source, app] {
            bytes.append(littleEndian: UInt16(header.count))
            bytes += header
        }
        return bytes + value
    }

    /// nil for what no event has.
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

/// Where events are in a store, the newest of a subscription first. Part of the format on disk; other numbers are those of `KeySpace`
/// and `RefundKeys`.
enum HistoryKeys {
    private static let events: UInt8 = 7

    /// What the keys of the events of one subscription begin with, and of no other.
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

    /// Sequence and offset in a key; nil: it is none.
    static func place(_ key: Span<UInt8>) -> (sequence: Int64, offset: Int64)? {
        guard key.count >= 16 else { return nil }
        var reader = NoteReader(key.withUnsafeBufferPointer { Array($0.suffix(16)) })
        guard let sequence = reader.take(UInt64.self), let offset = reader.take(UInt64.self) else { return nil }
        return (ascending(sequence.byteSwapped), ascending(offset.byteSwapped))
    }

    /// The greatest number first, as bytes are ordered.
    private static func descending(_ number: Int64) -> UInt64 { ~(UInt64(bitPattern: number) ^ (1 << 63)) }
    private static func ascending(_ number: UInt64) -> Int64 { Int64(bitPattern: ~number ^ (1 << 63)) }

    /// The kind of the timer that ends an event.
    static let end: UInt8 = 1
    /// In milliseconds: as long as the topic keeps its records, unless its settings are others.
    static let keptFor: Int64 =
        if case .days(let days) = TopicCatalogue.definition(.entitlementEvents).retention {
            Int64(days) * millisecondsPerDay
        } else {
            .max
        }
}

/// Events of one subscription, as they are kept: a page of them.
struct CopiedHistory {
    static let page = 100

    /// The newest first. What shares a sequence is never on two pages: a page goes on to its end.
    private(set) var entries: [HistoryEntry] = []
    /// There are older ones.
    private(set) var hasMore = false
    private let before: Int64?

    /// - Parameter before: only what has a smaller sequence.
    init(before: Int64?) { self.before = before }

    /// false: no more are taken.
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
    /// A page of what has happened to a subscription, and whether the copy knows it otherwise. nil: there is no copy to ask now.
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
