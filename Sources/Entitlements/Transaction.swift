// What signed payloads say of one purchase: of their members those that an answer rests on.

public import Notices

/// A transaction as one payload tells it.
public struct Transaction: Sendable, Hashable {
    public struct Offer: Sendable, Hashable {
        public var type: Int64
        public var identifier: Text?
        public var discount: Text?
    }

    public struct Commitment: Sendable, Hashable {
        public var period: Int64?
        public var of: Int64?
        public var endsAt: Int64?
        public var price: Int64?
    }

    public let id: TransactionId
    public let purchaseDate: Int64
    public var expiresDate: Int64?
    public var revocationDate: Int64?
    public var isUpgraded = false
    public var price: Int64?
    var terms: Terms
    var particulars: Particulars?

    public var type: Text? { terms.type }
    public var bundleId: Text? { terms.bundleId }
    public var productId: Text? { terms.productId }
    public var subscriptionGroup: Text? { terms.subscriptionGroup }
    /// Lower case.
    public var appAccountToken: Text? { terms.appAccountToken }
    public var ownership: Text? { terms.ownership }
    public var revocationType: Text? { terms.revocationType }
    public var currency: Text? { terms.currency }
    public var billingPlan: Text? { terms.billingPlan }
    public var offer: Offer? { particulars?.offer }
    public var commitment: Commitment? { particulars?.commitment }

    init(id: TransactionId, purchaseDate: Int64, _ terms: Terms) {
        self.id = id
        self.purchaseDate = purchaseDate
        self.terms = terms
    }
}

/// What hardly changes from one period to the next. Periods share one: hundreds of them are read, moved and compared for every
/// notification.
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
    /// As `type` says.
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

/// What few transactions have.
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

/// All that was ever told of one transaction with one purchase date.
///
/// The purchase date of a transaction does not change, but nothing promises it. With the date in the key, what is beyond the
/// limit of a subscription follows from the key alone, whatever came first.
///
/// A value, though a class: facts and timelines share what has not changed.
public final class PurchaseFacts: Sendable, Hashable {
    /// The word of an `EXPIRED`, and when Apple gave it.
    public struct Expiry: Sendable, Hashable, Comparable {
        public var signedDate: Int64
        /// Empty when it was absent. Of one that is longer than any of Apple's words the beginning.
        public let subtype: Text

        private static let limitSubtypeBytes = 40

        init(signedDate: Int64, subtype: Text) {
            self.signedDate = signedDate
            let isUsual = subtype.bytes.count <= Self.limitSubtypeBytes
            self.subtype = isUsual ? subtype : Text(Array(subtype.bytes.prefix(Self.limitSubtypeBytes)))
        }

        public static func < (left: Expiry, right: Expiry) -> Bool {
            (left.signedDate, left.subtype) < (right.signedDate, right.subtype)
        }
    }

    /// The newest version, and what it says.
    public let version: Version
    public let transaction: Transaction
    /// The smallest date that any version was signed at.
    public let firstSigned: Int64
    /// The same of the versions that are upgraded away from.
    public let firstUpgraded: Int64?
    /// The greatest that is known.
    public let expiry: Expiry?
    /// Of the heaviest version: bytes of its texts, and of all else about. For the limit.
    let weight: Int

    /// As one notification tells it.
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

    /// Every member is a minimum or a maximum, so that order and repetition do not matter.
    func merged(with other: PurchaseFacts) -> PurchaseFacts {
        let newest = version < other.version ? other : self
        return PurchaseFacts(
            newest.transaction, version: newest.version, firstSigned: min(firstSigned, other.firstSigned),
            firstUpgraded: [firstUpgraded, other.firstUpgraded].compactMap { $0 }.min(),
            expiry: [expiry, other.expiry].compactMap { $0 }.max(), leastWeight: max(weight, other.weight))
    }

    public static func == (left: PurchaseFacts, right: PurchaseFacts) -> Bool {
        left === right
            || left.version == right.version && left.firstSigned == right.firstSigned
                && left.firstUpgraded == right.firstUpgraded && left.expiry == right.expiry
                && left.weight == right.weight && left.transaction == right.transaction
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(version) }

    /// What the limit counts by.
    struct Key: Sendable, Hashable, Comparable {
        let purchaseDate: Int64
        let id: TransactionId

        static func < (left: Key, right: Key) -> Bool {
            left.purchaseDate == right.purchaseDate ? left.id < right.id : left.purchaseDate < right.purchaseDate
        }
    }

    var key: Key { Key(purchaseDate: transaction.purchaseDate, id: transaction.id) }
}
