// Refund requests in the local copy of one partition.

internal import Consumption
internal import Contract
internal import Follow
internal import Log
internal import Store

/// Records of refund requests that have been read but not written yet. Used on the follower's thread only.
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

/// Stored requests of one subscription.
struct CopiedRefunds {
    /// Most requests in one answer. A subscription has a handful; the worker knows at most 256 open ones.
    static let limit = 1_000
    static let limitBytes = 8 << 20

    private(set) var values: [[UInt8]] = []
    private(set) var isCut = false
    private var byteCount = 0

    /// false: no more fit.
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
    /// Merges the records into the stored requests and adds the results to the changes.
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
    /// Most old entries that are deleted with one write: over time it is the number of new ones.
    private static let limitEnded = 1_000

    /// Deletes refund requests and events that are older than their topics keep them. Those that the same changes write
    /// again stay.
    func end(into changes: StoreChanges, _ note: CopyNote) throws(StoreFault) {
        guard let clock = [FollowedTopic.consumption, .events].compactMap({ note[$0].clock }).max() else { return }
        for ended in try dueTimers(by: clock, limit: Self.limitEnded) {
            changes.removeTimer(due: ended.due, key: ended.key.span, kind: ended.kind)
            changes.delete(ended.key.span)
            guard ended.kind == RefundKeys.end, let id = RefundKeys.id(inStory: ended.key) else { continue }
            changes.delete(RefundKeys.id(id).span)
        }
    }

    /// The requests of a subscription, and whether the copy knows the subscription from other records. nil: there is no
    /// readable copy now.
    func refunds(ofSubscription id: [UInt8]) -> Reading<(refunds: CopiedRefunds, isKnown: Bool)>? {
        asking(.consumption) { store throws(StoreFault) in
            var refunds = CopiedRefunds()
            try store.scan(RefundKeys.prefix(of: id).span) { _, value in refunds.take(value) }
            var value: [UInt8] = []
            let isKnown = try store.read(KeySpace.entitlements.key(id).span, into: &value)
            return (refunds, isKnown)
        }
    }

    /// Most requests that are looked at, with the nearest deadlines first. More than any partition has within the 12 hours that
    /// Apple gives.
    private static let limitOpen = 10_000

    /// The deadlines of requests that wait for an answer. nil: there is no readable copy now.
    func openRefundDeadlines(after now: Int64) -> [Int64]? {
        let requests = asking(.consumption) { store throws(StoreFault) in
            // The timer that deletes a request follows its deadline.
            let past = TimerEntry(due: adding(adding(now, 1), KeptRefund.keptFor), key: [], kind: 0)
            var requests: [(deadline: Int64, value: [UInt8])] = []
            for timer in try store.timers(after: past, dueBy: .max, limit: Self.limitOpen)
            where timer.kind == RefundKeys.end && RefundKeys.id(inStory: timer.key) != nil {
                var value: [UInt8] = []
                if try store.read(timer.key.span, into: &value) {
                    requests.append((timer.due - KeptRefund.keptFor, value))
                }
            }
            return requests
        }?.found
        return requests?.filter { KeptRefund($0.value)?.isOpen == true }.map(\.deadline)
    }

    /// nil inside: this copy has no such request. nil: there is no readable copy now.
    func refund(_ id: [UInt8]) -> Reading<[UInt8]?>? {
        asking(.consumption) { store throws(StoreFault) in
            var key: [UInt8] = []
            guard try store.read(RefundKeys.id(id).span, into: &key) else { return nil }
            var value: [UInt8] = []
            return try store.read(key.span, into: &value) ? value : nil
        }
    }
}
