// What signed payloads say of one purchase: of their members those that an answer rests on.

/// Which of two payloads about one thing counts: Apple's own date decides. Two payloads of one date are rare, and any choice
/// that does not depend on the order of arrival is as good as another: the hash is one that needs no payload to be kept.
public struct Version: Sendable, Hashable, Comparable {
    public var signedDate: Int64
    /// The first 8 bytes of the SHA-256 of the payload, the first one highest.
    public var hash: UInt64

    public init(signedDate: Int64, hash: UInt64) {
        self.signedDate = signedDate
        self.hash = hash
    }

    public static func < (left: Version, right: Version) -> Bool {
        (left.signedDate, left.hash) < (right.signedDate, right.hash)
    }
}

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

    public var id: Text
    public var purchaseDate: Int64
    public var expiresDate: Int64?
    public var type: Text?
    public var bundleId: Text?
    public var productId: Text?
    public var subscriptionGroup: Text?
    /// Lower case.
    public var appAccountToken: Text?
    public var ownership: Text?
    public var revocationDate: Int64?
    public var revocationType: Text?
    public var isUpgraded = false
    public var offer: Offer?
    public var price: Int64?
    public var currency: Text?
    public var billingPlan: Text?
    public var commitment: Commitment?

    public init(id: Text, purchaseDate: Int64) {
        self.id = id
        self.purchaseDate = purchaseDate
    }
}

/// All that was ever told of one transaction with one purchase date.
///
/// The purchase date of a transaction does not change, but nothing promises it. With the date in the key, what is beyond the
/// limit of a subscription follows from the key alone, whatever came first.
public struct PurchaseFacts: Sendable, Hashable {
    /// The word of an `EXPIRED`, and when Apple gave it.
    public struct Expiry: Sendable, Hashable, Comparable {
        public var signedDate: Int64
        /// Empty when it was absent.
        public var subtype: Text

        public static func < (left: Expiry, right: Expiry) -> Bool {
            (left.signedDate, left.subtype) < (right.signedDate, right.subtype)
        }
    }

    /// The newest version, and what it says.
    public private(set) var version: Version
    public private(set) var transaction: Transaction
    /// The smallest date that any version was signed at.
    public private(set) var firstSigned: Int64
    /// The same of the versions that are upgraded away from.
    public private(set) var firstUpgraded: Int64?
    /// The greatest that is known.
    public private(set) var expiry: Expiry?

    /// As one notification tells it.
    init(_ transaction: Transaction, version: Version, expiry: Expiry?) {
        self.init(
            transaction, version: version, firstSigned: version.signedDate,
            firstUpgraded: transaction.isUpgraded ? version.signedDate : nil, expiry: expiry)
    }

    init(
        _ transaction: Transaction, version: Version, firstSigned: Int64, firstUpgraded: Int64?, expiry: Expiry?
    ) {
        self.version = version
        self.transaction = transaction
        self.firstSigned = firstSigned
        self.firstUpgraded = firstUpgraded
        self.expiry = expiry
    }

    /// Every member is a minimum or a maximum, so that order and repetition do not matter.
    mutating func merge(_ other: PurchaseFacts) {
        if version < other.version {
            version = other.version
            transaction = other.transaction
        }
        firstSigned = min(firstSigned, other.firstSigned)
        firstUpgraded = [firstUpgraded, other.firstUpgraded].compactMap { $0 }.min()
        expiry = [expiry, other.expiry].compactMap { $0 }.max()
    }

    /// By the key, which is what the limit counts by.
    func precedes(_ other: PurchaseFacts) -> Bool {
        (transaction.purchaseDate, transaction.id) < (other.transaction.purchaseDate, other.transaction.id)
    }

    func hasKey(of other: PurchaseFacts) -> Bool {
        transaction.purchaseDate == other.transaction.purchaseDate && transaction.id == other.transaction.id
    }
}
