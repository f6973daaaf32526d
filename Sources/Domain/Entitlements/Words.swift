// Apple's words and numbers that affect an answer. All others are passed through.

internal import Notices

extension Text {
    static let autoRenewable: Text = "Auto-Renewable Subscription"
    static let oneTimeTypes: [Text] = ["Non-Consumable", "Consumable", "Non-Renewing Subscription"]

    static let familyShared: Text = "FAMILY_SHARED"
    /// Seats that an organisation gives out. They end like a family's.
    static let assigned: Text = "ASSIGNED"
    static let familyRevoke: Text = "FAMILY_REVOKE"
    static let assignmentRevoke: Text = "ASSIGNMENT_REVOKE"

    /// A commitment: billed monthly, for a year.
    static let monthly: Text = "MONTHLY"
    static let billedUpfront: Text = "BILLED_UPFRONT"

    static let expired: Text = "EXPIRED"
    static let voluntary: Text = "VOLUNTARY"
    static let billingRetry: Text = "BILLING_RETRY"
    static let priceIncrease: Text = "PRICE_INCREASE"
    static let productNotForSale: Text = "PRODUCT_NOT_FOR_SALE"
}

enum OfferType {
    static let introductory: Int64 = 1

    /// The word for the offer type; an unknown number is written as it is.
    static func name(of type: Int64) -> Text {
        switch type {
        case introductory: "introductory"
        case 2: "promotional"
        case 3: "code"
        case 4: "win_back"
        default: Text(String(type))
        }
    }
}
