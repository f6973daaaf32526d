// One fact: what one notification says, as far as the counts depend on it.

internal import Notices
internal import Records
internal import SubscriptionHistory

/// Apple's notification types that affect the counts.
enum NoticeType: UInt8 {
    case other = 0, subscribed, didRenew, didFailToRenew, gracePeriodExpired, expired, didChangeRenewalPref
    case offerRedeemed, didChangeRenewalStatus, refund, refundDeclined, refundReversed, consumptionRequest, revoke

    /// For these types the transaction may be an old one, but the renewal info is the current one.
    var isAboutOldRows: Bool {
        switch self {
        case .refund, .refundDeclined, .refundReversed, .consumptionRequest, .revoke: true
        default: false
        }
    }
}

enum NoticeSubtype: UInt8 {
    case other = 0, initialBuy, upgrade, downgrade, billingRecovery, billingRetry, voluntary, priceIncrease
    case productNotForSale, autoRenewEnabled, autoRenewDisabled
}

/// 16 bytes, ordered. Without a UUID it is the beginning of a hash of the content.
struct NoticeId: Equatable {
    var high: UInt64
    var low: UInt64

    static func < (left: NoticeId, right: NoticeId) -> Bool {
        left.high == right.high ? left.low < right.low : left.high < right.high
    }
}

/// The id of a transaction: a number, or the number of its text in the facts' table.
enum RowId: Hashable {
    case number(UInt64)
    case text(UInt32)
}

/// A transaction as one notification shows it.
struct Transaction {
    enum Reason: UInt8 {
        case unknown = 0, purchase, renewal
    }

    var id = RowId.number(0)
    var version = Version(signedDate: 0, hash: 0)
    var purchaseDate: Int64 = 0
    var originalPurchaseDate: Int64?
    var expiresDate: Int64?
    var revocationDate: Int64?
    /// In thousandths of a percent; nil: the whole amount is refunded.
    var revocationPercentage: Int64?
    var price: Int64?
    /// The number of the period within a commitment.
    var period: Int64?
    var periods: Int64?
    var reason = Reason.unknown
    var isUpgraded = false
    var isFreeTrial = false
    var isPurchased = true
    var isRenewing = true
    /// The subscription began under another id, whose facts may be in another partition.
    var continuesAnother = false
    /// Its place in the facts' table of parts.
    var parts: Int32 = 0

    var isFree: Bool { isFreeTrial || price == 0 }
}

/// A renewal info as one notification shows it.
struct Info {
    var version = Version(signedDate: 0, hash: 0)
    var autoRenewStatus: Int64?
    var expirationIntent: Int64?
    var gracePeriodExpiresDate: Int64?
    var priceIncreaseStatus: Int64?
    var commitmentAutoRenewStatus: Int64?
    var product = TextNumber.none
    var plan = TextNumber.none
    var commitmentProduct = TextNumber.none
    var commitmentPlan = TextNumber.none
}

/// A plain value: its texts are numbers in the facts' tables, so it owns no memory.
struct Notice {
    struct Key: Equatable {
        var signedDate: Int64
        var id: NoticeId

        static func < (left: Key, right: Key) -> Bool {
            left.signedDate == right.signedDate ? left.id < right.id : left.signedDate < right.signedDate
        }
    }

    /// Where it lies in the kept bytes. All of it except its head says the same behind any other notice.
    struct Kept {
        var from: Int32 = 0
        var body: Int32 = 0
        var to: Int32 = 0

        var isEmpty: Bool { from == to }
    }

    var signedDate: Int64
    var id: NoticeId
    var type: NoticeType
    var subtype: NoticeSubtype
    var transaction: Transaction?
    var info: Info?
    /// Empty: it is new.
    var kept = Kept()

    var key: Key { Key(signedDate: signedDate, id: id) }

    /// Decides between notifications with one key. If the precedences are equal, so are the payloads.
    var precedence: (UInt64, UInt64, UInt64, UInt64, UInt8, UInt8) {
        (
            transaction.map { UInt64(bitPattern: $0.version.signedDate) } ?? 0, transaction?.version.hash ?? 0,
            info.map { UInt64(bitPattern: $0.version.signedDate) } ?? 0, info?.version.hash ?? 0, type.rawValue,
            subtype.rawValue
        )
    }

    var isRecovery: Bool { type == .didRenew && subtype == .billingRecovery }
}

/// The parts that tell cells apart, as numbers of texts.
struct PartNumbers: Equatable {
    var bundle = TextNumber.none
    var product = TextNumber.none
    var plan = TextNumber.none
    var storefront = TextNumber.none
    var currency = TextNumber.none
    /// The plan is `MONTHLY`, which makes it a commitment.
    var isCommitment = false
}

// MARK: Apple's words

extension NoticeType {
    private static let words: [(word: StaticString, type: NoticeType)] = [
        (AppleWord.didRenew, .didRenew), (AppleWord.subscribed, .subscribed), (AppleWord.expired, .expired),
        (AppleWord.didFailToRenew, .didFailToRenew), (AppleWord.gracePeriodExpired, .gracePeriodExpired),
        (AppleWord.didChangeRenewalStatus, .didChangeRenewalStatus),
        (AppleWord.didChangeRenewalPref, .didChangeRenewalPref),
        (AppleWord.offerRedeemed, .offerRedeemed), (AppleWord.refund, .refund),
        (AppleWord.refundDeclined, .refundDeclined),
        (AppleWord.refundReversed, .refundReversed), (AppleWord.consumptionRequest, .consumptionRequest),
        (AppleWord.revoke, .revoke),
    ]

    init(_ text: TextPlace?) {
        self = .other
        guard let text else { return }
        for (word, type) in Self.words where text.isWord(word) {
            self = type
            return
        }
    }
}

extension NoticeSubtype {
    /// nil: it stands for more than one word.
    var word: StaticString? { Self.words.first { $0.subtype == self }?.word }

    private static let words: [(word: StaticString, subtype: NoticeSubtype)] = [
        (AppleWord.initialBuy, .initialBuy), (AppleWord.upgrade, .upgrade), (AppleWord.downgrade, .downgrade),
        (AppleWord.billingRecovery, .billingRecovery), (AppleWord.billingRetry, .billingRetry),
        (AppleWord.voluntary, .voluntary),
        (AppleWord.priceIncrease, .priceIncrease), (AppleWord.productNotForSale, .productNotForSale),
        (AppleWord.autoRenewEnabled, .autoRenewEnabled), (AppleWord.autoRenewDisabled, .autoRenewDisabled),
    ]

    init(_ text: TextPlace?) {
        self = .other
        guard let text else { return }
        for (word, subtype) in Self.words where text.isWord(word) {
            self = subtype
            return
        }
    }
}
