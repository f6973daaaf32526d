// The purchase that a refund is requested for.

internal import Contract
public import Notices

/// A purchase as the transaction in the request describes it.
public struct Purchase: Sendable, Equatable {
    public var transactionId: Text
    public var purchaseDate: Int64
    public var productType: Text?
    public var bundleId: Text?
    public var productId: Text?
    public var storefront: Text?
    public var ownership: Text?
    public var currency: Text?
    public var billingPlan: Text?
    public var appAccountToken: Text?
    /// In milliunits.
    public var price: Int64?
    public var quantity: Int64?
    public var offerType: Int64?
    /// The month of a commitment that it pays for.
    public var commitmentPeriod: Int64?
    /// Apple's V2 endpoint rejects such purchases: they are answered at V1.
    public var isAdvancedCommerce = false

    public init(transactionId: Text, purchaseDate: Int64) {
        self.transactionId = transactionId
        self.purchaseDate = purchaseDate
    }

    var isAutoRenewable: Bool { productType == .autoRenewable }
    var isNonRenewing: Bool { productType == .nonRenewing }

    /// The word for the offer type in the output records. An unknown number is written as text.
    var offerWord: Text? {
        switch offerType {
        case nil: nil
        case 1: "introductory"
        case 2: "promotional"
        case 3: "code"
        case 4: "win_back"
        case let other?: Text(String(other))
        }
    }

    /// In whole days from the purchase to `instant`.
    func days(until instant: Int64) -> Int64 {
        max(0, adding(instant, purchaseDate == .min ? .max : -purchaseDate).floorDivided(by: millisecondsPerDay))
    }
}

extension Text {
    static let autoRenewable: Text = "Auto-Renewable Subscription"
    static let nonRenewing: Text = "Non-Renewing Subscription"

    static let purchased: Text = "PURCHASED"
    static let familyShared: Text = "FAMILY_SHARED"
    static let familyRevoke: Text = "FAMILY_REVOKE"
    static let assignmentRevoke: Text = "ASSIGNMENT_REVOKE"
    static let freeTrial: Text = "FREE_TRIAL"

    static let consumptionRequest: Text = "CONSUMPTION_REQUEST"
    static let refund: Text = "REFUND"
    static let refundDeclined: Text = "REFUND_DECLINED"
    static let refundReversed: Text = "REFUND_REVERSED"
}
