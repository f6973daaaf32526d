// What is known about one subscription: all purchases and renewal infos that its notifications have shown.

internal import Notices

/// The history of one subscription while something is done with it: rows of plain values in memory that is used again
/// for the next one. Its texts stay where they lie, in the kept bytes and in the notification.
///
/// Order, repetition and grouping of notifications do not matter: a history depends only on the set of notifications
/// that were merged.
public struct History: ~Copyable {
    /// Enough for 19 years of weekly purchases.
    public static let limitPurchases = 1_000
    public static let limitRenewals = 256
    /// The limit in bytes keeps the state of a subscription below a quarter of a MiB, whatever texts arrive. It allows
    /// a thousand purchases with 160 bytes of texts each, a third more than Apple's. All renewal infos except the
    /// newest count towards the limit.
    static let limitPurchaseWeight = 200_000
    static let limitRenewalWeight = 40_000

    public internal(set) var texts = KnownTexts()
    public internal(set) var terms = Scratch<Terms>()
    public internal(set) var particulars = Scratch<Particulars>()
    /// Sorted by purchase date and id, without duplicates.
    public internal(set) var purchases = Scratch<Purchase>(capacity: 64)
    /// Ids usually are numbers that grow from purchase to purchase. Then no id occurs with two dates.
    public internal(set) var idsGrow = true
    /// Oldest first. Each one except the newest says more than that renewal is on.
    public internal(set) var renewals = Scratch<RenewalRow>()
    /// True if any known transaction had an introductory offer, including forgotten ones.
    public internal(set) var introOfferUsed = false
    /// The greatest key of a purchase that was forgotten at a limit. Purchases up to this key are rejected: otherwise it
    /// would depend on the order whether a light old one stays where a heavy newer one was dropped.
    var forgottenPurchase: Purchase.Key?
    /// The same for renewal infos.
    var forgottenRenewal: RenewalRow.Key?
    /// The sum over all purchases.
    var purchaseWeight = 0

    // Of the kept bytes: see `History+Reading.swift` and `History+Writing.swift`.
    var kept = KeptReader(UnsafeBufferPointer(start: nil, count: 0))
    var keptTexts = Scratch<TextNumber>()
    var isKeptTextRepeated = false
    var keptPurchasesFrom: Int32 = 0
    var writtenNumbers = Scratch<UInt32>()
    var writtenTexts = Scratch<TextNumber>()
    var body = ByteWriter(capacity: 1024)

    public init() {}

    /// True if purchases were forgotten.
    public var isTruncated: Bool { forgottenPurchase != nil }

    /// Nothing is known.
    public mutating func removeAll() {
        texts.removeAll()
        terms.removeAll()
        particulars.removeAll()
        purchases.removeAll()
        idsGrow = true
        renewals.removeAll()
        introOfferUsed = false
        forgottenPurchase = nil
        forgottenRenewal = nil
        purchaseWeight = 0
        kept = KeptReader(UnsafeBufferPointer(start: nil, count: 0))
        keptTexts.removeAll()
        isKeptTextRepeated = false
        keptPurchasesFrom = 0
    }

    // MARK: What a purchase has

    @inline(__always) public func terms(of purchase: Purchase) -> Terms { terms[Int(purchase.terms)] }

    @inline(__always) public func offer(of purchase: Purchase) -> Particulars.Offer? {
        purchase.particulars < 0 ? nil : particulars[Int(purchase.particulars)].offer
    }

    @inline(__always) public func commitment(of purchase: Purchase) -> Particulars.Commitment? {
        purchase.particulars < 0 ? nil : particulars[Int(purchase.particulars)].commitment
    }

    /// Adds a row of terms, unless the last one is the same.
    mutating func place(of newTerms: Terms) -> Int32 {
        if let last = terms.last, last == newTerms { return Int32(terms.count - 1) }
        terms.append(newTerms)
        return Int32(terms.count - 1)
    }

    mutating func place(of offer: Particulars.Offer?, _ commitment: Particulars.Commitment?) -> Int32 {
        if offer == nil, commitment == nil { return -1 }
        particulars.append(Particulars(offer: offer, commitment: commitment))
        return Int32(particulars.count - 1)
    }

    /// The bytes of its texts plus an estimate for the rest.
    @inline(__always) func weight(of purchase: Purchase) -> Int32 {
        var weight = 40 + Int(terms[Int(purchase.terms)].meaning.textBytes) + (purchase.id.text?.count ?? 0)
        if let offer = offer(of: purchase) {
            weight += texts.byteCount(offer.identifier) + texts.byteCount(offer.discount)
        }
        return Int32(weight)
    }
}
