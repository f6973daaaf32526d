// All that notifications have said of one subscription or one-time purchase.

/// A set of facts that only grows: merging is commutative, associative and idempotent, so any order and repetition of
/// notifications ends in the same facts. What is forgotten at a limit could never have counted again.
public struct Facts: Sendable, Equatable {
    /// 19 years of weeks.
    public static let limitPurchases = 1_000
    public static let limitRenewalInfos = 256
    /// In bytes, so that what is kept of a subscription stays below a quarter of a MiB whatever texts it is told with: a thousand
    /// purchases with 160 bytes of texts each, a third more than Apple's. Of renewal infos all but the newest are weighed.
    static let limitPurchaseWeight = 200_000
    static let limitInfoWeight = 40_000

    /// By purchase date and id, each pair once.
    public private(set) var purchases: [PurchaseFacts] = []
    /// From the oldest to the newest. All but the newest say more than that renewal is on.
    public private(set) var renewalInfos: [RenewalInfo] = []
    /// Some transaction that was ever told of had an introductory offer, also one beyond the limit.
    public private(set) var introOfferUsed = false
    /// The greatest key of a purchase that was forgotten at a limit. What is not beyond it is not taken any more: else it would
    /// depend on the order whether a light old one stays where a heavy newer one had to go.
    private(set) var forgottenPurchase: PurchaseFacts.Key?
    /// The same of renewal infos.
    private(set) var forgottenInfo: RenewalInfo.Key?
    /// Of all purchases together.
    private var purchaseWeight = 0

    /// Purchases were forgotten.
    public var isTruncated: Bool { forgottenPurchase != nil }

    public init() {}

    /// What one notification says.
    init(purchase: PurchaseFacts?, renewalInfo: RenewalInfo?, introOfferUsed: Bool) {
        if let purchase {
            purchases = [purchase]
            purchaseWeight = purchase.weight
        }
        if let renewalInfo { renewalInfos = [renewalInfo] }
        self.introOfferUsed = introOfferUsed
    }

    /// nil when they are none: unsorted, too many, or more than would be remembered.
    init?(
        purchases: [PurchaseFacts], renewalInfos: [RenewalInfo], introOfferUsed: Bool,
        forgottenPurchase: PurchaseFacts.Key?, forgottenInfo: RenewalInfo.Key?
    ) {
        guard purchases.count <= Self.limitPurchases, renewalInfos.count <= Self.limitRenewalInfos,
            purchases.neighboursSatisfy({ $0.key < $1.key }),
            renewalInfos.neighboursSatisfy({ $0.key < $1.key }),
            renewalInfos.dropLast().allSatisfy(\.saysMore),
            forgottenPurchase.map({ forgotten in purchases.first.map { forgotten < $0.key } ?? false }) ?? true,
            forgottenInfo.map({ forgotten in renewalInfos.first.map { forgotten < $0.key } ?? false }) ?? true
        else { return nil }
        self.purchases = purchases
        purchaseWeight = purchases.reduce(0) { $0 + $1.weight }
        self.renewalInfos = renewalInfos
        self.introOfferUsed = introOfferUsed
        self.forgottenPurchase = forgottenPurchase
        self.forgottenInfo = forgottenInfo
    }

    public var isEmpty: Bool { self == Facts() }

    /// - Returns: whether anything was new.
    @discardableResult
    public mutating func merge(_ other: Facts) -> Bool {
        var isNew = false
        for purchase in other.purchases where add(purchase) { isNew = true }
        for info in other.renewalInfos where add(info) { isNew = true }
        if other.introOfferUsed && !introOfferUsed { isNew = true }
        introOfferUsed = introOfferUsed || other.introOfferUsed
        return isNew
    }

    private mutating func add(_ purchase: PurchaseFacts) -> Bool {
        let key = purchase.key
        if let forgottenPurchase, key <= forgottenPurchase { return false }
        let place = purchases.firstPlace { $0.key >= key }
        if place < purchases.count, purchases[place].key == key {
            let merged = purchases[place].merged(with: purchase)
            if merged == purchases[place] { return false }
            purchaseWeight += merged.weight - purchases[place].weight
            purchases[place] = merged
        } else {
            purchases.insert(purchase, at: place)
            purchaseWeight += purchase.weight
        }
        // What a purchase weighs never becomes less, so none that goes could ever have come back.
        let gone = purchases.removeSmallest(
            beyond: Self.limitPurchases, weight: &purchaseWeight, beyond: Self.limitPurchaseWeight, \.weight)
        if let gone { forgottenPurchase = gone.key }
        return true
    }

    private mutating func add(_ info: RenewalInfo) -> Bool {
        let key = info.key
        if let forgottenInfo, key <= forgottenInfo { return false }
        let place = renewalInfos.firstPlace { $0.key >= key }
        if place < renewalInfos.count, renewalInfos[place].key == key { return false }
        let isNewest = place == renewalInfos.count
        guard isNewest || info.saysMore else { return false }
        if isNewest, let last = renewalInfos.last, !last.saysMore { renewalInfos.removeLast() }
        renewalInfos.insert(info, at: min(place, renewalInfos.count))
        // The newest of all always counts, and is not weighed while it is that.
        var weight = renewalInfos.dropLast().reduce(0) { $0 + $1.weight }
        let gone = renewalInfos.removeSmallest(
            beyond: Self.limitRenewalInfos, weight: &weight, beyond: Self.limitInfoWeight, \.weight)
        if let gone { forgottenInfo = gone.key }
        return true
    }
}

extension Array {
    /// Of elements in order the first go, until neither their number nor their weight is beyond its limit.
    /// - Returns: the last that went.
    fileprivate mutating func removeSmallest(
        beyond limit: Int, weight: inout Int, beyond limitWeight: Int, _ weigh: (Element) -> Int
    ) -> Element? {
        var count = 0
        while self.count - count > limit || weight > limitWeight {
            weight -= weigh(self[count])
            count += 1
        }
        guard count > 0 else { return nil }
        defer { removeFirst(count) }
        return self[count - 1]
    }

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
        if high > 0, !isBehind(self[high - 1]) { return high }
        while low < high {
            let middle = (low + high) / 2
            if isBehind(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
