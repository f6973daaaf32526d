// What one record of `notifications` says, as far as the counts depend on it.

internal import Crypto
public import JSON
internal import Notices
internal import Records
public import SubscriptionHistory

/// One fact before it is known: its texts are still where they lie, in the document, so it is valid until the document
/// reads another record.
public struct ChurnNews {
    /// Its transaction lacks what is needed to use it. This is counted, because Apple does not send such transactions.
    public let hasUnusableTransaction: Bool

    /// Without the numbers of its texts.
    private(set) var notice: Notice
    // Texts of the transaction.
    var bundle: TextPlace?
    var product: TextPlace?
    var plan: TextPlace?
    var storefront: TextPlace?
    var currency: TextPlace?
    var isCommitment = false
    /// The id of the transaction; nil: it is a number.
    var id: TextPlace?
    // Texts of the renewal info.
    var nextProduct: TextPlace?
    var nextPlan: TextPlace?
    var nextCommitmentProduct: TextPlace?
    var nextCommitmentPlan: TextPlace?

    /// It says something about a subscription.
    public var saysAnything: Bool { notice.transaction != nil || notice.info != nil }

    /// Apple's prices are below a hundredth of it. A higher price is an error, and must not overflow the sums of other
    /// customers.
    static let limitPrice: Int64 = 10_000_000_000_000
    /// In thousandths of a percent: the whole amount.
    static let limitShare: Int64 = 100_000

    /// nil if the notification has no date: then nobody can say when it holds.
    /// - Parameter record: the document that `news` was read from.
    public init?(_ news: NoticeNews, of record: borrowing JSONDocument) {
        guard let signedDate = news.signedDate else { return nil }
        notice = Notice(
            signedDate: signedDate, id: NoticeId(news, record), type: NoticeType(news.type),
            subtype: NoticeSubtype(news.subtype))
        let isUsable = news.hasTransaction && news.transaction.id.isUsable
        hasUnusableTransaction = news.hasUnusableTransaction || news.hasTransaction && !isUsable
        if isUsable {
            let purchase = PurchaseId(news.transaction.id)
            let isRenewing = Self.isRenewing(news.transaction)
            notice.transaction = Self.transaction(news.transaction, .number(purchase.number), isRenewing: isRenewing)
            id = purchase.text
            bundle = news.transaction.bundleId.usable
            product = news.transaction.productId.usable
            if isRenewing {
                plan = news.transaction.billingPlan.usable ?? TextPlace(AppleWord.billedUpfront)
                isCommitment = news.transaction.billingPlan?.isWord(AppleWord.monthly) ?? false
            }
            storefront = news.transaction.storefront.usable
            currency = news.transaction.currency.usable
        }
        if news.hasRenewal {
            notice.info = Self.info(news.renewal)
            nextProduct = news.renewal.autoRenewProductId.usable
            nextPlan = news.renewal.renewalBillingPlan.usable
            nextCommitmentProduct = news.renewal.commitmentProductId.usable
            nextCommitmentPlan = news.renewal.commitmentBillingPlan.usable
        }
    }

    // The parts of a notification are large. The compiler would copy them for a call, so these functions are inlined.

    @inline(__always) private static func transaction(
        _ told: NoticeNews.Transaction, _ id: RowId, isRenewing: Bool
    ) -> Transaction {
        var transaction = Transaction(id: id, version: told.version, purchaseDate: told.purchaseDate)
        transaction.originalPurchaseDate = told.originalPurchaseDate
        transaction.expiresDate = told.expiresDate
        transaction.revocationDate = told.revocationDate
        transaction.revocationPercentage = told.revocationPercentage.map { min(max($0, 0), limitShare) }
        transaction.price = told.price.flatMap { (0...limitPrice).contains($0) ? $0 : nil }
        transaction.period = told.commitment?.period
        transaction.periods = told.commitment?.of
        if let reason = told.reason {
            transaction.reason =
                reason.isWord(AppleWord.renewal)
                ? .renewal : reason.isWord(AppleWord.purchase) ? .purchase : .unknown
        }
        transaction.isUpgraded = told.isUpgraded
        transaction.isFreeTrial = told.offerDiscount?.isWord(AppleWord.freeTrial) ?? false
        transaction.isPurchased = told.isPurchased
        transaction.isRenewing = isRenewing
        transaction.continuesAnother = told.previousOriginalTransactionId.usable != nil
        return transaction
    }

    @inline(__always) private static func isRenewing(_ told: NoticeNews.Transaction) -> Bool {
        guard let type = told.type else { return told.expiresDate != nil }
        if type.isWord(AppleWord.autoRenewable) { return true }
        let isOneTime =
            type.isWord(AppleWord.nonConsumable) || type.isWord(AppleWord.consumable)
            || type.isWord(AppleWord.nonRenewing)
        return !isOneTime && told.expiresDate != nil
    }

    @inline(__always) private static func info(_ told: NoticeNews.Renewal) -> Info {
        var info = Info(version: told.row.version)
        info.autoRenewStatus = told.row.autoRenewStatus
        info.expirationIntent = told.row.expirationIntent
        info.gracePeriodExpiresDate = told.row.gracePeriodExpiresDate
        info.priceIncreaseStatus = told.row.priceIncreaseStatus
        info.commitmentAutoRenewStatus = told.row.commitment?.autoRenewStatus
        return info
    }
}

extension TextPlace {
    private static let limit = 256

    /// Longer values, and values that would break the key of a cell, are ignored.
    fileprivate var isUsable: Bool { count > 0 && count <= Self.limit && !contains(CellKey.divider) }
}

extension TextPlace? {
    fileprivate var usable: TextPlace? { flatMap { $0.isUsable ? $0 : nil } }
}

extension NoticeId {
    fileprivate init(_ news: NoticeNews, _ record: borrowing JSONDocument) {
        if let uuid = news.notificationUUID.usable {
            self = Self.uuid(uuid.bytes) ?? Self.hash(SHA256.Prefix(Span(_unsafeElements: uuid.bytes)))
            return
        }
        // The fetcher wrote this record: each answer from Apple is a fact of its own.
        var hash = SHA256.Prefix(Array("fetched".utf8).span)
        for name in [MemberName.notificationType, .subtype] {
            if let value = record.member(name.text, of: record.root)?.value { hash.add(record.raw(value)) }
        }
        for name in [MemberName.transaction, .renewalInfo] {
            if let object = record.object(name, of: record.root) { hash.add(record.raw(object)) }
        }
        self = Self.hash(hash)
    }

    private static func hash(_ hash: SHA256.Prefix) -> NoticeId {
        let digest = hash.digest()
        var (high, low): (UInt64, UInt64) = (0, 0)
        for index in 0..<8 {
            high = high << 8 | UInt64(digest[index])
            low = low << 8 | UInt64(digest[index + 8])
        }
        return NoticeId(high: high, low: low)
    }

    /// 32 hexadecimal digits with hyphens between the groups, in upper or lower case.
    private static func uuid(_ text: UnsafeBufferPointer<UInt8>) -> NoticeId? {
        guard text.count == 36 else { return nil }
        var (high, low): (UInt64, UInt64) = (0, 0)
        var digits = 0
        for index in text.indices {
            let byte = text[index]
            if index == 8 || index == 13 || index == 18 || index == 23 {
                guard byte == UInt8(ascii: "-") else { return nil }
                continue
            }
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
            default: return nil
            }
            if digits < 16 { high = high << 4 | UInt64(digit) } else { low = low << 4 | UInt64(digit) }
            digits += 1
        }
        return NoticeId(high: high, low: low)
    }
}
