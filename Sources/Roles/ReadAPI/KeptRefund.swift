// A refund request as it is stored in a copy: its published records, or the most important ones if there are too many.

internal import Consumption
internal import Contract
internal import Notices
internal import Store

/// A record of `consumption` that is going to be written into the copy.
struct ArrivingRefund: Equatable {
    let kind: ConsumptionRecord.Kind
    let originalTransactionId: [UInt8]
    /// `notificationUUID` of the request.
    let id: [UInt8]
    let deadline: Int64

    init(_ record: ConsumptionRecord) {
        kind = record.kind
        originalTransactionId = record.originalTransactionId.bytes
        id = record.id.bytes
        deadline = record.deadline
    }
}

struct KeptRefund: Equatable {
    /// A request usually has five records. Every new one rewrites the value.
    static let limitRecords = 60
    /// These are never left out.
    private static let keptFirst = 10
    /// In milliseconds after the deadline: the default retention of the topic.
    static let keptFor: Int64 =
        if case .days(let days) = TopicCatalogue.definition(.consumption).retention {
            Int64(days) * millisecondsPerDay
        } else {
            .max
        }

    struct Kept: Equatable {
        let kind: UInt8
        let bytes: [UInt8]
    }

    /// In the order of the topic.
    private(set) var records: [Kept] = []
    private(set) var leftOut: UInt32 = 0

    init() {}

    mutating func append(_ kind: ConsumptionRecord.Kind, _ bytes: [UInt8]) {
        records.append(Kept(kind: Self.number(of: kind), bytes: bytes))
        guard records.count > Self.limitRecords else { return }
        // Left out first are retries, which are the most frequent; then changes of consent. Decisions, ends and
        // outcomes matter most.
        records.remove(at: later(.retrying) ?? later(.withheld) ?? Self.keptFirst)
        leftOut = leftOut == .max ? leftOut : leftOut + 1
    }

    /// The oldest record of a kind that is neither among the first ones nor the newest.
    private func later(_ kind: ConsumptionRecord.Kind) -> Int? {
        records.indices.dropFirst(Self.keptFirst).dropLast().first { records[$0].kind == Self.number(of: kind) }
    }

    /// An answer is on its way, or will be decided: nothing has ended the request, and no answer is withheld for now.
    var isOpen: Bool {
        let steps = records.map(\.kind).filter { ![.outcome, .shadow].map(Self.number).contains($0) }
        return steps.last.map { [.requested, .decided, .retrying].map(Self.number).contains($0) } ?? false
            && !steps.contains { [.sent, .failed, .expired].map(Self.number).contains($0) }
    }

    /// Part of the format on disk.
    private static func number(of kind: ConsumptionRecord.Kind) -> UInt8 {
        switch kind {
        case .requested: 0
        case .decided: 1
        case .withheld: 2
        case .sent: 3
        case .retrying: 4
        case .failed: 5
        case .expired: 6
        case .outcome: 7
        case .shadow: 8
        }
    }

    // How many were left out; then kind, length and bytes of each record. Numbers are little-endian.

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(records.reduce(4) { $0 + 5 + $1.bytes.count })
        bytes.append(littleEndian: leftOut)
        for record in records {
            bytes.append(record.kind)
            bytes.append(littleEndian: UInt32(record.bytes.count))
            bytes += record.bytes
        }
        return bytes
    }

    /// nil for bytes that are not a request.
    init?(_ bytes: [UInt8]) {
        var reader = NoteReader(bytes)
        guard let leftOut = reader.take(UInt32.self) else { return nil }
        self.leftOut = leftOut
        while !reader.isAtEnd {
            guard let kind = reader.take(UInt8.self), let count = reader.take(UInt32.self),
                let record = reader.take(count: Int(count))
            else { return nil }
            records.append(Kept(kind: kind, bytes: Array(record)))
        }
    }
}

/// The keys of requests in a store. Part of the format on disk; the other numbers are those of `KeySpace`.
enum RefundKeys {
    private static let stories: UInt8 = 5
    private static let ids: UInt8 = 6

    /// The prefix of the keys of one subscription's requests, and of no other keys.
    static func prefix(of originalTransactionId: [UInt8]) -> [UInt8] {
        var key = [stories]
        key.append(littleEndian: UInt32(originalTransactionId.count))
        return key + originalTransactionId
    }

    static func story(_ refund: ArrivingRefund) -> [UInt8] { prefix(of: refund.originalTransactionId) + refund.id }

    /// Under this key the key of the story is stored. A UUID is the same in upper case.
    static func id(_ id: [UInt8]) -> [UInt8] {
        [ids] + id.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 + 0x20 : $0 }
    }

    /// The id in the key of a story; nil: it is not such a key.
    static func id(inStory key: [UInt8]) -> [UInt8]? {
        var reader = NoteReader(key)
        guard reader.take(UInt8.self) == stories, let count = reader.take(UInt32.self),
            reader.take(count: Int(count)) != nil
        else { return nil }
        return Array(key.dropFirst(5 + Int(count)))
    }

    /// The kind of the timer that deletes a story.
    static let end: UInt8 = 0
}
