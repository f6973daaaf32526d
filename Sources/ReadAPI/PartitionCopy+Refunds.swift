// Refund requests in the local copy of one partition.

internal import Consumption
internal import Contract
internal import Follow
internal import Log
internal import Store

/// Records of refund requests that were read and are not written yet. The follower's thread only.
struct HeldRefunds {
    struct Record {
        let refund: ArrivingRefund
        let bytes: [UInt8]
    }

    private(set) var records: [Record] = []
    private(set) var byteCount = 0

    mutating func add(_ refund: ArrivingRefund, _ bytes: [UInt8]) {
        records.append(Record(refund: refund, bytes: bytes))
        byteCount += bytes.count
    }

    mutating func removeAll() {
        records.removeAll(keepingCapacity: true)
        byteCount = 0
    }
}

/// Requests of one subscription, as they are kept.
struct CopiedRefunds {
    /// Of one answer. A subscription has a handful; the worker knows 256 open ones at most.
    static let limit = 1_000
    static let limitBytes = 8 << 20

    private(set) var values: [[UInt8]] = []
    private(set) var isCut = false
    private var byteCount = 0

    /// false: no more are taken.
    mutating func take(_ value: Span<UInt8>) -> Bool {
        guard values.count < Self.limit, byteCount + value.count <= Self.limitBytes else {
            isCut = true
            return false
        }
        byteCount += value.count
        values.append(value.withUnsafeBufferPointer { Array($0) })
        return true
    }
}

enum RefundStore {
    /// Adds to the changes what the records make of the requests.
    static func merge(
        _ held: HeldRefunds, into changes: StoreChanges, of store: any PartitionStore
    ) throws(StoreFault) {
        if held.records.isEmpty { return }
        var kept: [[UInt8]: (value: KeptRefund, refund: ArrivingRefund)] = [:]
        var value: [UInt8] = []
        for record in held.records {
            let key = RefundKeys.story(record.refund)
            if kept[key] == nil {
                let isThere = try store.read(key.span, into: &value)
                kept[key] = ((isThere ? KeptRefund(value) : nil) ?? KeptRefund(), record.refund)
            }
            kept[key]?.value.append(record.refund.kind, record.bytes)
        }
        for (key, story) in kept {
            changes.put(key.span, story.value.bytes.span)
            changes.put(RefundKeys.id(story.refund.id).span, key.span)
            changes.addTimer(
                due: adding(story.refund.deadline, KeptRefund.keptFor), key: key.span, kind: RefundKeys.end)
        }
    }
}

extension PartitionCopy {
    /// Old ones that go with one write: their number is that of the new ones, in the long run.
    private static let limitEnded = 1_000

    /// Takes away what is too old to be told: of refund requests and of events, whose topics keep their records as long. What is
    /// written again with the same changes stays.
    func end(into changes: StoreChanges, _ note: CopyNote) throws(StoreFault) {
        guard let clock = [FollowedTopic.consumption, .events].compactMap({ note[$0].clock }).max() else { return }
        for ended in try dueTimers(by: clock, limit: Self.limitEnded) {
            changes.removeTimer(due: ended.due, key: ended.key.span, kind: ended.kind)
            changes.delete(ended.key.span)
            guard ended.kind == RefundKeys.end, let id = RefundKeys.id(inStory: ended.key) else { continue }
            changes.delete(RefundKeys.id(id).span)
        }
    }

    /// The requests of a subscription, and whether the copy knows it otherwise. nil: there is no copy to ask now.
    func refunds(ofSubscription id: [UInt8]) -> Reading<(refunds: CopiedRefunds, isKnown: Bool)>? {
        asking(.consumption) { store throws(StoreFault) in
            var refunds = CopiedRefunds()
            try store.scan(RefundKeys.prefix(of: id).span) { _, value in refunds.take(value) }
            var value: [UInt8] = []
            let isKnown = try store.read(KeySpace.entitlements.key(id).span, into: &value)
            return (refunds, isKnown)
        }
    }

    /// nil inside: there is no such request here. nil: there is no copy to ask now.
    func refund(_ id: [UInt8]) -> Reading<[UInt8]?>? {
        asking(.consumption) { store throws(StoreFault) in
            var key: [UInt8] = []
            guard try store.read(RefundKeys.id(id).span, into: &key) else { return nil }
            var value: [UInt8] = []
            return try store.read(key.span, into: &value) ? value : nil
        }
    }
}
