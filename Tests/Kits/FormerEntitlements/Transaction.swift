// What signed payloads say about one purchase: only the members that an answer depends on.

internal import Notices

/// A transaction as one payload shows it.
struct Transaction: Sendable, Hashable {
    struct Offer: Sendable, Hashable {
        var type: Int64
        var identifier: Text?
        var discount: Text?
    }

    struct Commitment: Sendable, Hashable {
        var period: Int64?
        var of: Int64?
        var endsAt: Int64?
        var price: Int64?
    }

    let id: TransactionId
    let purchaseDate: Int64
    var expiresDate: Int64?
    var revocationDate: Int64?
    var isUpgraded = false
    var price: Int64?
    var terms: Terms
    var particulars: Particulars?

    var type: Text? { terms.type }
    var bundleId: Text? { terms.bundleId }
    var productId: Text? { terms.productId }
    var subscriptionGroup: Text? { terms.subscriptionGroup }
    /// In lower case.
    var appAccountToken: Text? { terms.appAccountToken }
    var ownership: Text? { terms.ownership }
    var revocationType: Text? { terms.revocationType }
    var currency: Text? { terms.currency }
    var billingPlan: Text? { terms.billingPlan }
    var offer: Offer? { particulars?.offer }
    var commitment: Commitment? { particulars?.commitment }

    init(id: TransactionId, purchaseDate: Int64, _ terms: Terms) {
        self.id = id
        self.purchaseDate = purchaseDate
        self.terms = terms
    }
}

/// Values that rarely change from one period to the next. Periods share one instance: every notification reads, moves
/// and compares hundreds of them.
final class Terms: Sendable, Hashable {
    let type: Text?
    let bundleId: Text?
    let productId: Text?
    let subscriptionGroup: Text?
    let appAccountToken: Text?
    let ownership: Text?
    let revocationType: Text?
    let currency: Text?
    let billingPlan: Text?
    /// According to `type`.
    let isOneTime: Bool
    let textBytes: Int

    init(
        type: Text? = nil, bundleId: Text? = nil, productId: Text? = nil, subscriptionGroup: Text? = nil,
        appAccountToken: Text? = nil, ownership: Text? = nil, revocationType: Text? = nil, currency: Text? = nil,
        billingPlan: Text? = nil
    ) {
        self.type = type
        self.bundleId = bundleId
        self.productId = productId
        self.subscriptionGroup = subscriptionGroup
        self.appAccountToken = appAccountToken
        self.ownership = ownership
        self.revocationType = revocationType
        self.currency = currency
        self.billingPlan = billingPlan
        isOneTime = type.map(Text.oneTimeTypes.contains) ?? false
        func count(_ text: Text?) -> Int { text?.bytes.count ?? 0 }
        textBytes =
            count(type) + count(bundleId) + count(productId) + count(subscriptionGroup) + count(appAccountToken)
            + count(ownership) + count(revocationType) + count(currency) + count(billingPlan)
    }

    static func == (left: Terms, right: Terms) -> Bool {
        left === right
            || left.productId == right.productId && left.appAccountToken == right.appAccountToken
                && left.type == right.type && left.bundleId == right.bundleId
                && left.subscriptionGroup == right.subscriptionGroup && left.ownership == right.ownership
                && left.revocationType == right.revocationType && left.currency == right.currency
                && left.billingPlan == right.billingPlan
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(productId)
        hasher.combine(appAccountToken)
    }
}

/// Values that few transactions have.
final class Particulars: Sendable, Hashable {
    let offer: Transaction.Offer?
    let commitment: Transaction.Commitment?

    init(offer: Transaction.Offer?, commitment: Transaction.Commitment?) {
        self.offer = offer
        self.commitment = commitment
    }

    static func == (left: Particulars, right: Particulars) -> Bool {
        left === right || left.offer == right.offer && left.commitment == right.commitment
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(offer)
        hasher.combine(commitment)
    }
}

/// Everything known about one transaction with one purchase date.
///
/// The purchase date of a transaction should not change, but nothing guarantees it. Because the date is part of the
/// key, the key alone decides what exceeds the limit of a subscription, whatever came first.
///
/// A value, although it is a class: facts and timelines share the instances that have not changed.
final class PurchaseFacts: Sendable, Hashable {
    /// The content of an `EXPIRED` notification, and when Apple signed it.
    struct Expiry: Sendable, Hashable, Comparable {
        var signedDate: Int64
        /// Empty if it was absent. A subtype longer than any of Apple's is cut off.
        let subtype: Text

        private static let limitSubtypeBytes = 40

        init(signedDate: Int64, subtype: Text) {
            self.signedDate = signedDate
            let isUsual = subtype.bytes.count <= Self.limitSubtypeBytes
            self.subtype = isUsual ? subtype : Text(Array(subtype.bytes.prefix(Self.limitSubtypeBytes)))
        }

        static func < (left: Expiry, right: Expiry) -> Bool {
            (left.signedDate, left.subtype) < (right.signedDate, right.subtype)
        }
    }

    /// The newest version, and its content.
    let version: Version
    let transaction: Transaction
    /// The earliest signing date of all versions.
    let firstSigned: Int64
    /// The earliest signing date of the versions that are marked as upgraded.
    let firstUpgraded: Int64?
    /// The greatest known one.
    let expiry: Expiry?
    /// From the heaviest version: the bytes of its texts plus an estimate for the rest. Used for the limit.
    let weight: Int

    /// The facts from one notification.
    convenience init(_ transaction: Transaction, version: Version, expiry: Expiry?) {
        self.init(
            transaction, version: version, firstSigned: version.signedDate,
            firstUpgraded: transaction.isUpgraded ? version.signedDate : nil, expiry: expiry)
    }

    init(
        _ transaction: Transaction, version: Version, firstSigned: Int64, firstUpgraded: Int64?, expiry: Expiry?,
        leastWeight: Int = 0
    ) {
        weight = max(leastWeight, Self.weight(of: transaction))
        self.version = version
        self.transaction = transaction
        self.firstSigned = firstSigned
        self.firstUpgraded = firstUpgraded
        self.expiry = expiry
    }

    static func weight(of transaction: Transaction) -> Int {
        var weight = 40 + transaction.terms.textBytes
        if case .text(let id) = transaction.id.form { weight += id.bytes.count }
        if let offer = transaction.offer {
            weight += (offer.identifier?.bytes.count ?? 0) + (offer.discount?.bytes.count ?? 0)
        }
        return weight
    }

    /// Every member is a minimum or a maximum, so order and repetition do not matter.
    func merged(with other: PurchaseFacts) -> PurchaseFacts {
        let newest = version < other.version ? other : self
        return PurchaseFacts(
            newest.transaction, version: newest.version, firstSigned: min(firstSigned, other.firstSigned),
            firstUpgraded: [firstUpgraded, other.firstUpgraded].compactMap { $0 }.min(),
            expiry: [expiry, other.expiry].compactMap { $0 }.max(), leastWeight: max(weight, other.weight))
    }

    static func == (left: PurchaseFacts, right: PurchaseFacts) -> Bool {
        left === right
            || left.version == right.version && left.firstSigned == right.firstSigned
                && left.firstUpgraded == right.firstUpgraded && left.expiry == right.expiry
                && left.weight == right.weight && left.transaction == right.transaction
    }

    func hash(into hasher: inout Hasher) { hasher.combine(version) }

    /// The key that the limit uses.
    struct Key: Sendable, Hashable, Comparable {
        let purchaseDate: Int64
        let id: TransactionId

        static func < (left: Key, right: Key) -> Bool {
            left.purchaseDate == right.purchaseDate ? left.id < right.id : left.purchaseDate < right.purchaseDate
        }
    }

    var key: Key { Key(purchaseDate: transaction.purchaseDate, id: transaction.id) }
}
