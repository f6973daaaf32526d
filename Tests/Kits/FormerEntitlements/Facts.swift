// Everything that notifications have said about one subscription or one-time purchase.

/// A set of facts that only grows. Merging is commutative, associative and idempotent, so any order and repetition of
/// notifications gives the same facts. What is forgotten at a limit could never have counted again.
struct Facts: Sendable, Equatable {
    /// Enough for 19 years of weekly purchases.
    static let limitPurchases = 1_000
    static let limitRenewalInfos = 256
    /// The limit in bytes keeps the state of a subscription below a quarter of a MiB, whatever texts arrive. It allows
    /// a thousand purchases with 160 bytes of texts each, a third more than Apple's. All renewal infos except the
    /// newest count towards the limit.
    static let limitPurchaseWeight = 200_000
    static let limitInfoWeight = 40_000

    /// Sorted by purchase date and id, without duplicates.
    private(set) var purchases: [PurchaseFacts] = []
    /// Oldest first. Each one except the newest says more than that renewal is on.
    private(set) var renewalInfos: [RenewalInfo] = []
    /// True if any known transaction had an introductory offer, including forgotten ones.
    private(set) var introOfferUsed = false
    /// The greatest key of a purchase that was forgotten at a limit. Purchases up to this key are rejected: otherwise
    /// it would depend on the order whether a light old one stays where a heavy newer one was dropped.
    private(set) var forgottenPurchase: PurchaseFacts.Key?
    /// The same for renewal infos.
    private(set) var forgottenInfo: RenewalInfo.Key?
    /// The sum over all purchases.
    private var purchaseWeight = 0

    /// True if purchases were forgotten.
    var isTruncated: Bool { forgottenPurchase != nil }

    init() {}

    /// The facts of one notification.
    init(purchase: PurchaseFacts?, renewalInfo: RenewalInfo?, introOfferUsed: Bool) {
        if let purchase {
            purchases = [purchase]
            purchaseWeight = purchase.weight
        }
        if let renewalInfo { renewalInfos = [renewalInfo] }
        self.introOfferUsed = introOfferUsed
    }

    /// nil if the facts are invalid: unsorted, or beyond the limits.
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

    var isEmpty: Bool { self == Facts() }

    /// - Returns: whether anything was new.
    @discardableResult
    mutating func merge(_ other: Facts) -> Bool {
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
        // The weight of a purchase never decreases, so a dropped one could never have come back.
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
        // The newest info always counts, and has no weight while it is the newest.
        var weight = renewalInfos.dropLast().reduce(0) { $0 + $1.weight }
        let gone = renewalInfos.removeSmallest(
            beyond: Self.limitRenewalInfos, weight: &weight, beyond: Self.limitInfoWeight, \.weight)
        if let gone { forgottenInfo = gone.key }
        return true
    }
}

extension Array {
    /// Removes the first elements of a sorted array until both number and weight are within their limits.
    /// - Returns: the last removed element.
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

    /// True if `holds` is true for each element and the next one.
    func neighboursSatisfy(_ holds: (Element, Element) -> Bool) -> Bool {
        var place = 1
        while place < count {
            if !holds(self[place - 1], self[place]) { return false }
            place += 1
        }
        return true
    }

    /// For an array that `isBehind` splits in two. The search begins at the end, because new elements usually belong
    /// there.
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
