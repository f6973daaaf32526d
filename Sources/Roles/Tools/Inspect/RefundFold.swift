// Takes the records of `consumption`, and keeps the selected requests.

import Consumption
import Notices

/// One thread.
final class RefundFold {
    private let query: RefundsQuery
    private let id: [UInt8]?
    private var stories: [Text: RefundStory] = [:]
    /// Requests up to this one were dropped; their later records are ignored.
    private var floor: (requestedAt: Int64, id: Text)?

    init(_ query: RefundsQuery) {
        self.query = query
        id = query.id.map { Self.folded(Array($0.utf8)) }
    }

    var isEmpty: Bool { stories.isEmpty }
    /// There were more requests than are kept.
    var hasDropped: Bool { floor != nil }

    func add(_ record: ConsumptionRecord) {
        guard isMeant(record) else { return }
        if stories[record.id] == nil, let floor, (record.requestedAt, record.id) <= floor { return }
        stories[record.id, default: RefundStory(of: record)].add(record)
        guard stories.count >= 2 * query.limitKept else { return }
        let sorted = sortedStories
        floor = (sorted[query.limitKept].requestedAt, sorted[query.limitKept].id)
        stories = Dictionary(uniqueKeysWithValues: sorted.prefix(query.limitKept).map { ($0.id, $0) })
    }

    private func isMeant(_ record: ConsumptionRecord) -> Bool {
        guard query.period.contains(record.requestedAt) else { return false }
        guard let id else { return true }
        return record.originalTransactionId.bytes == id || record.transactionId?.bytes == id
            || Self.folded(record.id.bytes) == id
    }

    /// In lower case, because UUIDs may be written in capitals. Apple's other ids are digits.
    private static func folded(_ bytes: [UInt8]) -> [UInt8] {
        bytes.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 + 0x20 : $0 }
    }

    private var sortedStories: [RefundStory] {
        stories.values.sorted { ($0.requestedAt, $0.id) > ($1.requestedAt, $1.id) }
    }

    /// Newest first.
    var found: [RefundStory] { Array(sortedStories.prefix(query.limitKept)) }
    var count: Int { stories.count }
}
