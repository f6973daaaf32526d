// What a notification says about refunds.

internal import Contract
public import JSON
public import Notices
internal import Records

/// Apple's final decision on a refund request.
public enum RefundOutcome: UInt8, Sendable, Equatable, CaseIterable {
    case refunded, declined, reversed

    /// The word in the output records.
    public var word: Text {
        switch self {
        case .refunded: "refunded"
        case .declined: "declined"
        case .reversed: "reversed"
        }
    }
}

/// The parts of one record of `notifications` that concern refunds.
public struct RefundNotice: Sendable, Equatable {
    public enum Kind: Sendable, Equatable {
        case request(reason: Text?)
        case outcome(RefundOutcome)
        case other
    }

    public var kind: Kind
    public var notificationUUID: Text?
    public var signedDate: Int64?
    /// nil: the notification has no transaction, or the transaction lacks its id or its purchase date.
    public var purchase: Purchase?
    /// Whether the payload calls the purchase refunded; nil: there is nothing to store.
    var standing: RefundStanding?
    /// The refunded share of the price, in thousandths of a percent; nil: Apple did not say it.
    var refundedShare: Int64?
    /// The purchase is a free trial.
    var isFreeTrial = false

    /// Nothing of it has to be stored.
    public var isSilent: Bool { kind == .other && standing == nil && !isFreeTrial }

    /// - Parameter record: the document with the record's value. A member that is absent, null or of the wrong type is
    ///   ignored.
    public init(_ record: borrowing JSONDocument) {
        let type = record.text(.notificationType, of: record.root)
        signedDate = record.integer(.signedDate, of: record.root)
        notificationUUID = record.text(.notificationUUID, of: record.root)
        kind =
            switch type {
            case .consumptionRequest?: .request(reason: record.text(.consumptionRequestReason, of: record.root))
            case .refund?: .outcome(.refunded)
            case .refundDeclined?: .outcome(.declined)
            case .refundReversed?: .outcome(.reversed)
            default: .other
            }
        guard let transaction = record.object(.transaction, of: record.root) else { return }
        isFreeTrial = Self.isFreeTrial(record, transaction)
        // Most notifications do not concern refunds, and nothing more is read from them.
        let revocation = record.integer(.revocationDate, of: transaction)
        guard kind != .other || revocation != nil else { return }
        purchase = Purchase(record, transaction)
        refundedShare = record.integer(.revocationPercentage, of: transaction).map { min(max($0, 0), 100_000) }
        guard let purchase, revocation != nil || kind == .outcome(.reversed),
            let version = Version(record, transaction, notificationSigned: signedDate)
        else { return }
        let revocationType = record.text(.revocationType, of: transaction)
        let isShareRevoked = revocationType == .familyRevoke || revocationType == .assignmentRevoke
        let isUpgraded = record.bool(.isUpgraded, of: transaction) ?? false
        // Two kinds of revocation are not refunds: the end of a shared purchase, and an upgrade.
        let isOwn = purchase.ownership == nil || purchase.ownership == .purchased
        standing = RefundStanding(
            transactionId: TransactionId(purchase.transactionId), version: version,
            isRefunded: revocation != nil && !isShareRevoked && !isUpgraded && isOwn)
    }

    /// Payloads from before 2024 do not contain the type of the discount.
    private static func isFreeTrial(_ record: borrowing JSONDocument, _ transaction: JSONDocument.Value) -> Bool {
        guard let offerType = record.integer(.offerType, of: transaction) else { return false }
        if let discount = record.text(.offerDiscountType, of: transaction) { return discount == .freeTrial }
        return offerType == OfferType.introductory && record.integer(.price, of: transaction) == 0
    }
}

/// Whether one transaction is refunded, according to its newest payload that says so.
struct RefundStanding: Sendable, Equatable {
    let transactionId: TransactionId
    var version: Version
    var isRefunded: Bool
}

extension Purchase {
    fileprivate init?(_ record: borrowing JSONDocument, _ object: JSONDocument.Value) {
        guard let id = record.text(.transactionId, of: object), !id.bytes.isEmpty,
            let date = record.integer(.purchaseDate, of: object)
        else { return nil }
        self.init(transactionId: id, purchaseDate: date)
        productType = record.text(.type, of: object)
        bundleId = record.text(.bundleId, of: object)
        productId = record.text(.productId, of: object)
        storefront = record.text(.storefront, of: object)
        ownership = record.text(.inAppOwnershipType, of: object)
        currency = record.text(.currency, of: object)
        billingPlan = record.text(.billingPlanType, of: object)
        appAccountToken = record.text(.appAccountToken, of: object)
        price = record.integer(.price, of: object)
        quantity = record.integer(.quantity, of: object)
        offerType = record.integer(.offerType, of: object)
        commitmentPeriod = record.object(.commitmentInfo, of: object).flatMap {
            record.integer(.billingPeriodNumber, of: $0)
        }
        isAdvancedCommerce = record.object(.advancedCommerceInfo, of: object) != nil
    }
}
