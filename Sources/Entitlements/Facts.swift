// All that notifications have said of one subscription or one-time purchase.

/// A set of facts that only grows: merging is commutative, associative and idempotent, so any order and repetition of
/// notifications ends in the same facts. What is forgotten at a limit could never have counted again.
public struct Facts: Sendable, Equatable {
    /// 19 years of weeks.
    public static let limitPurchases = 1_000
    public static let limitRenewalInfos = 256

    /// By purchase date and id, each pair once.
    public private(set) var purchases: [PurchaseFacts] = []
    /// From the oldest to the newest. All but the newest say more than that renewal is on.
    public private(set) var renewalInfos: [RenewalInfo] = []
    /// Some transaction that was ever told of had an introductory offer, also one beyond the limit.
    public private(set) var introOfferUsed = false
    /// There were more purchases than the limit.
    public private(set) var isTruncated = false

    public init() {}

    /// What one notification says.
    init(purchase: PurchaseFacts?, renewalInfo: RenewalInfo?, introOfferUsed: Bool) {
        if let purchase { purchases = [purchase] }
        if let renewalInfo { renewalInfos = [renewalInfo] }
        self.introOfferUsed = introOfferUsed
    }

    /// nil when they are none: unsorted, too many, or more than would be remembered.
    init?(purchases: [PurchaseFacts], renewalInfos: [RenewalInfo], introOfferUsed: Bool, isTruncated: Bool) {
        guard purchases.count <= Self.limitPurchases, renewalInfos.count <= Self.limitRenewalInfos,
            purchases.neighboursSatisfy({ $0.precedes($1) }),
            renewalInfos.neighboursSatisfy({ $0 < $1 }),
            renewalInfos.dropLast().allSatisfy(\.saysMore)
        else { return nil }
        self.purchases = purchases
        self.renewalInfos = renewalInfos
        self.introOfferUsed = introOfferUsed
        self.isTruncated = isTruncated
    }

    public var isEmpty: Bool { self == Facts() }

    /// - Returns: whether anything was new.
    @discardableResult
    public mutating func merge(_ other: Facts) -> Bool {
        var isNew = false
        for purchase in other.purchases where add(purchase) { isNew = true }
        for info in other.renewalInfos where add(info) { isNew = true }
        if other.introOfferUsed && !introOfferUsed || other.isTruncated && !isTruncated { isNew = true }
        introOfferUsed = introOfferUsed || other.introOfferUsed
        isTruncated = isTruncated || other.isTruncated
        return isNew
    }

    private mutating func add(_ purchase: PurchaseFacts) -> Bool {
        let place = purchases.firstPlace { !$0.precedes(purchase) }
        if place < purchases.count, purchases[place].hasKey(of: purchase) {
            let merged = purchases[place].merged(with: purchase)
            if merged == purchases[place] { return false }
            purchases[place] = merged
            return true
        }
        if purchases.count == Self.limitPurchases {
            // The smallest key goes: nothing that comes later can make it one of the greatest again.
            let wasTruncated = isTruncated
            isTruncated = true
            guard place > 0 else { return !wasTruncated }
            purchases.insert(purchase, at: place)
            purchases.removeFirst()
            return true
        }
        purchases.insert(purchase, at: place)
        return true
    }

    private mutating func add(_ info: RenewalInfo) -> Bool {
        let place = renewalInfos.firstPlace { !($0 < info) }
        if place < renewalInfos.count, renewalInfos[place].isSame(as: info) { return false }
        let isNewest = place == renewalInfos.count
        guard isNewest || info.saysMore else { return false }
        if isNewest, let last = renewalInfos.last, !last.saysMore { renewalInfos.removeLast() }
        let isFull = renewalInfos.count == Self.limitRenewalInfos
        if isFull && place == 0 { return false }
        renewalInfos.insert(info, at: min(place, renewalInfos.count))
        if isFull { renewalInfos.removeFirst() }
        return true
    }
}

extension Array {
    /// `holds` for each element and the one after it.
    func neighboursSatisfy(_ holds: (Element, Element) -> Bool) -> Bool {
        var place = 1
        while place < count {
            if !holds(self[place - 1], self[place]) { return false }
            place += 1
        }
        return true
    }

    /// Of an array that `isBehind` parts in two. News mostly belong at the end, where the search begins.
    func firstPlace(where isBehind: (Element) -> Bool) -> Int {
        var low = 0
        var high = count
        if let last, !isBehind(last) { return count }
        while low < high {
            let middle = (low + high) / 2
            if isBehind(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
