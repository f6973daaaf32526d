// The facts that a rule of the refund policy can test.

public import Notices
internal import Records

/// The facts of one request. nil: the fact is not known. A decision stores them, so that another policy can be evaluated
/// later.
public struct RefundFacts: Sendable, Equatable {
    public var productId: Text?
    public var productType: Text?
    public var bundleId: Text?
    public var storefront: Text?
    public var reason: Text?
    public var billingPlan: Text?
    public var offerType: Text?
    public var deliveryStatus: Text?
    public var commitmentPeriod: Int64?
    /// In thousandths of a percent.
    public var consumptionPercentage: Int64?
    public var daysSincePurchase: Int64?
    public var refundsRequested: Int64?
    public var refundsGranted: Int64?

    public init() {}

    public func text(_ fact: TextFact) -> Text? {
        switch fact {
        case .productId: productId
        case .productType: productType
        case .bundleId: bundleId
        case .storefront: storefront
        case .reason: reason
        case .billingPlan: billingPlan
        case .offerType: offerType
        case .deliveryStatus: deliveryStatus
        }
    }

    public func number(_ fact: NumberFact) -> Int64? {
        switch fact {
        case .commitmentPeriod: commitmentPeriod
        case .consumptionPercentage: consumptionPercentage
        case .daysSincePurchase: daysSincePurchase
        case .refundsRequested: refundsRequested
        case .refundsGranted: refundsGranted
        }
    }
}

/// A text fact, with its name in the policy file.
public enum TextFact: String, Sendable, CaseIterable {
    case productId, productType, bundleId, storefront, reason, billingPlan, offerType, deliveryStatus

    /// True if `*` in a test matches any number of characters.
    var takesPatterns: Bool { self == .productId }

    /// All allowed words, where this project defines them. Apple may add words to the other facts.
    var closedWords: [String]? {
        switch self {
        // The words for Apple's numbers 1 to 4. An unknown number is written as text.
        case .offerType: OfferType.words
        case .deliveryStatus: DeliveryStatus.allCases.map(\.rawValue)
        default: nil
        }
    }

    /// The words that Apple uses today: another word is more likely a typing error than a new word.
    var usualWords: [String]? {
        switch self {
        case .productType:
            [AppleWord.autoRenewable, AppleWord.nonConsumable, AppleWord.consumable, AppleWord.nonRenewing].map(
                \.description)
        case .reason: ["UNINTENDED_PURCHASE", "FULFILLMENT_ISSUE", "UNSATISFIED_WITH_PURCHASE", "LEGAL", "OTHER"]
        case .billingPlan: [AppleWord.monthly, AppleWord.billedUpfront].map(\.description)
        default: nil
        }
    }
}

/// A fact that is a whole number.
public enum NumberFact: String, Sendable, CaseIterable {
    case commitmentPeriod, consumptionPercentage, daysSincePurchase, refundsRequested, refundsGranted

    /// The values that the fact can have.
    var possible: NumberRange {
        switch self {
        case .consumptionPercentage: NumberRange(from: 0, to: 100_000)
        case .commitmentPeriod, .refundsRequested: NumberRange(from: 1, to: nil)
        case .refundsGranted: NumberRange(from: 0, to: nil)
        // The two dates come from two clocks of Apple, so the difference can be negative.
        case .daysSincePurchase: NumberRange(from: nil, to: nil)
        }
    }
}
