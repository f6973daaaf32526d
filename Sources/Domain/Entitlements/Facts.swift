// What notifications say about a subscription, as values: for people who ask why.

public import JSON
public import Notices
import SubscriptionHistory

/// The history of a subscription as the bytes that a worker keeps. Two are equal if they say the same.
///
/// The worker itself uses `SubscriptionTeller`, which makes no copies.
public struct Facts: Sendable, Equatable {
    public private(set) var bytes: [UInt8]

    /// Of nothing.
    public init() {
        var history = History()
        bytes = Self.bytes(of: &history)
    }

    /// nil if the bytes are no history.
    public init?(bytes: [UInt8]) {
        let written: [UInt8]? = bytes.withUnsafeBufferPointer { kept in
            var history = History()
            var reader = KeptReader(kept)
            return history.read(&reader) ? Self.bytes(of: &history) : nil
        }
        guard let written else { return nil }
        self.bytes = written
    }

    /// What one notification says. The news are valid while this is called.
    init(_ news: NoticeNews) {
        var history = History()
        _ = history.merge(news)
        bytes = Self.bytes(of: &history)
    }

    private static func bytes(of history: inout History) -> [UInt8] {
        var writer = ByteWriter(capacity: 512)
        history.write(to: &writer)
        return writer.bytes
    }

    /// - Returns: whether anything was new.
    @discardableResult
    public mutating func merge(_ other: Facts) -> Bool {
        let merged: [UInt8]? = withHistory { mine in
            other.withHistory { theirs in mine.merge(theirs) ? Self.bytes(of: &mine) : nil }
        }
        guard let merged else { return false }
        bytes = merged
        return true
    }

    /// The bytes have been read before.
    func withHistory<Result>(_ body: (inout History) -> Result) -> Result {
        bytes.withUnsafeBufferPointer { kept in
            var history = History()
            var reader = KeptReader(kept)
            let isRead = history.read(&reader)
            precondition(isRead, "facts are the bytes of a history")
            return body(&history)
        }
    }

    // MARK: As values

    /// Sorted by purchase date and id.
    public var purchases: [PurchaseFacts] {
        withHistory { history in
            history.purchases.indices.map { PurchaseFacts(history.purchases[$0], of: history) }
        }
    }

    /// Whether a payload of this version is the newest about its purchase or renewal.
    public func contains(_ version: Version) -> Bool {
        withHistory { history in
            history.purchases.values.contains { $0.version == version }
                || history.renewals.values.contains { $0.version == version }
        }
    }
}

/// What one record says about the subscription that its key names.
public struct NotificationReading: Sendable {
    public let facts: Facts
    public let notificationUUID: Text?
    public let type: Text?
    public let subtype: Text?
    public let signedDate: Int64?

    /// - Parameter record: the document with the record's value.
    public init(_ record: borrowing JSONDocument) {
        // It keeps memory that the news refer to.
        let reader = NoticeReader()
        let news = reader.read(record)
        facts = Facts(news)
        notificationUUID = news.notificationUUID?.text
        type = news.type?.text
        subtype = news.subtype?.text
        signedDate = news.signedDate
        withExtendedLifetime(reader) {}
    }
}

/// A transaction as its newest payload shows it.
public struct Transaction: Sendable, Equatable {
    public struct Offer: Sendable, Equatable {
        public let type: Int64
        public let identifier: Text?
        public let discount: Text?
    }

    public struct Commitment: Sendable, Equatable {
        public let period: Int64?
        public let of: Int64?
        public let endsAt: Int64?
        public let price: Int64?
    }

    public let id: TransactionId
    public let purchaseDate: Int64
    public let expiresDate: Int64?
    public let revocationDate: Int64?
    public let isUpgraded: Bool
    public let price: Int64?
    public let productId: Text?
    public let currency: Text?
    public let billingPlan: Text?
    public let offer: Offer?
    public let commitment: Commitment?

    init(_ purchase: Purchase, of history: borrowing History) {
        let terms = history.terms(of: purchase)
        id = purchase.id.copy
        purchaseDate = purchase.purchaseDate
        expiresDate = purchase.expiresDate
        revocationDate = purchase.revocationDate
        isUpgraded = purchase.isUpgraded
        price = purchase.price
        productId = history.texts[terms.productId]?.text
        currency = history.texts[terms.currency]?.text
        billingPlan = history.texts[terms.billingPlan]?.text
        if let known = history.offer(of: purchase) {
            offer = Offer(
                type: known.type, identifier: history.texts[known.identifier]?.text,
                discount: history.texts[known.discount]?.text)
        } else {
            offer = nil
        }
        commitment = history.commitment(of: purchase).map {
            Commitment(period: $0.period, of: $0.of, endsAt: $0.endsAt, price: $0.price)
        }
    }
}

/// Everything known about one transaction with one purchase date.
public struct PurchaseFacts: Sendable, Equatable {
    /// The content of an `EXPIRED` notification, and when Apple signed it.
    public struct Expiry: Sendable, Equatable {
        public let signedDate: Int64
        /// Empty if it was absent.
        public let subtype: Text
    }

    /// The newest version, and its content.
    public let version: Version
    public let transaction: Transaction
    /// The greatest known one.
    public let expiry: Expiry?

    init(_ purchase: Purchase, of history: borrowing History) {
        version = purchase.version
        transaction = Transaction(purchase, of: history)
        expiry = Expiry(purchase, of: history)
    }
}

extension PurchaseFacts.Expiry {
    /// nil: no `EXPIRED` of the purchase is known.
    init?(_ purchase: Purchase, of history: borrowing History) {
        guard let expiry = purchase.expiry, let subtype = history.texts[expiry.subtype] else { return nil }
        self.init(signedDate: expiry.signedDate, subtype: subtype.text)
    }
}
