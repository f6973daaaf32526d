// The purchase that a refund is requested for.

internal import Contract
public import Notices
internal import Records

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
    var offerWord: Text? { offerType.map { Text(OfferType.word(of: $0)) } }

    /// In whole days from the purchase to `instant`.
    func days(until instant: Int64) -> Int64 {
        max(0, adding(instant, purchaseDate == .min ? .max : -purchaseDate).floorDivided(by: millisecondsPerDay))
    }
}

extension Text {
    static let autoRenewable = Text(AppleWord.autoRenewable)
    static let nonRenewing = Text(AppleWord.nonRenewing)

    static let purchased = Text(AppleWord.purchased)
    static let familyShared = Text(AppleWord.familyShared)
    static let familyRevoke = Text(AppleWord.familyRevoke)
    static let assignmentRevoke = Text(AppleWord.assignmentRevoke)
    static let billedUpfront = Text(AppleWord.billedUpfront)
    static let freeTrial = Text(AppleWord.freeTrial)

    static let consumptionRequest = Text(AppleWord.consumptionRequest)
    static let refund = Text(AppleWord.refund)
    static let refundDeclined = Text(AppleWord.refundDeclined)
    static let refundReversed = Text(AppleWord.refundReversed)
}
