// One fact: what one notification says, as far as the counts depend on it.

internal import Notices

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
struct NoticeId: Hashable, Comparable {
    var high: UInt64
    var low: UInt64

    static func < (left: NoticeId, right: NoticeId) -> Bool {
        left.high == right.high ? left.low < right.low : left.high < right.high
    }
}

/// The number of a text in the facts' table; 0: there is no text.
typealias TextNumber = UInt32

/// The id of a transaction: a number, or the number of its text in the facts' table. So a notice owns no memory, and
/// reading, moving and dropping many of them is fast.
enum RowId: Hashable {
    case number(UInt64)
    case text(TextNumber)
}

/// A transaction as one notification shows it.
struct Transaction: Equatable {
    enum Reason: UInt8 {
        case unknown = 0, purchase, renewal
    }

    var id: RowId
    var version: Version
    var purchaseDate: Int64
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
    var parts: Int

    var isFree: Bool { isFreeTrial || price == 0 }
}

/// A renewal info as one notification shows it.
struct Info: Equatable {
    var version: Version
    var autoRenewStatus: Int64?
    var expirationIntent: Int64?
    var gracePeriodExpiresDate: Int64?
    var priceIncreaseStatus: Int64?
    var commitmentAutoRenewStatus: Int64?
    var product: TextNumber = 0
    var plan: TextNumber = 0
    var commitmentProduct: TextNumber = 0
    var commitmentPlan: TextNumber = 0
}

struct Notice: Equatable {
    struct Key: Comparable {
        var signedDate: Int64
        var id: NoticeId

        static func < (left: Key, right: Key) -> Bool {
            left.signedDate == right.signedDate ? left.id < right.id : left.signedDate < right.signedDate
        }
    }

    var signedDate: Int64
    var id: NoticeId
    var type: NoticeType
    var subtype: NoticeSubtype
    var transaction: Transaction?
    var info: Info?

    var key: Key { Key(signedDate: signedDate, id: id) }

    /// Decides between notifications with one key. If the precedences are equal, so are the payloads.
    var precedence: [UInt64] {
        [
            transaction.map { UInt64(bitPattern: $0.version.signedDate) } ?? 0, transaction?.version.hash ?? 0,
            info.map { UInt64(bitPattern: $0.version.signedDate) } ?? 0, info?.version.hash ?? 0,
            UInt64(type.rawValue), UInt64(subtype.rawValue),
        ]
    }

    var isUpgrade: Bool { subtype == .upgrade && (type == .didChangeRenewalPref || type == .offerRedeemed) }
    var isRecovery: Bool { type == .didRenew && subtype == .billingRecovery }
}

/// The parts that tell cells apart, as numbers of texts.
struct PartNumbers: Equatable {
    var bundle: TextNumber
    var product: TextNumber
    var plan: TextNumber
    var storefront: TextNumber
    var currency: TextNumber
    /// The plan is `MONTHLY`, which makes it a commitment.
    var isCommitment: Bool
}
