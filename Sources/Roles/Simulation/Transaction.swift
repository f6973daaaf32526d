// A purchase, a renewal or a failed renewal, as Apple's payloads show them.

internal import JSON

/// Who buys, where and in which app: what all payloads of one customer share.
final class Customer: Sendable {
    let app: SimulatedApp
    let pace: Pace
    let storefront: Storefront
    let appTransactionId: Int64
    let isFamilyMember: Bool
    /// Whether `appAppleId` is present: Apple's pages say that it is absent in sandbox, yet real sandbox notifications
    /// contain it.
    let namesApp: Bool

    init(
        app: SimulatedApp, pace: Pace, storefront: Storefront, appTransactionId: Int64, isFamilyMember: Bool,
        namesApp: Bool
    ) {
        self.app = app
        self.pace = pace
        self.storefront = storefront
        self.appTransactionId = appTransactionId
        self.isFamilyMember = isFamilyMember
        self.namesApp = namesApp
    }

    var environment: String {
        switch pace {
        case .production: "Production"
        case .sandbox: "Sandbox"
        }
    }
}

enum Plan: String, Sendable {
    case upfront = "BILLED_UPFRONT"
    case monthly = "MONTHLY"
}

struct Offer: Sendable {
    enum Kind: Int, Sendable {
        case introductory = 1
        case promotional, code, winBack
    }
    enum Discount: String, Sendable {
        case freeTrial = "FREE_TRIAL"
        case payAsYouGo = "PAY_AS_YOU_GO"
        case payUpFront = "PAY_UP_FRONT"
        case oneTime = "ONE_TIME"
    }

    let kind: Kind
    let discount: Discount
    /// nil for introductory offers.
    let identifier: String?
    /// How long one price of the offer lasts; nil for one-time products.
    let length: PlanLength?
    /// The number of periods: more than one only for pay-as-you-go offers.
    var periods = 1

    func write(to json: inout JSONWriter) {
        json.member("offerType", kind.rawValue)
        if let identifier { json.member("offerIdentifier", identifier) }
        json.member("offerDiscountType", discount.rawValue)
        if let length { json.member("offerPeriod", length.text) }
    }
}

struct Revocation: Sendable {
    enum Kind: String, Sendable {
        case full = "REFUND_FULL"
        case prorated = "REFUND_PRORATED"
        case family = "FAMILY_REVOKE"
    }

    let date: Int64
    let kind: Kind
    let reason: Int
    /// 100000 is 100 percent; nothing is refunded to family members.
    let percentage: Int?
}

/// The position of one billing period in a commitment of twelve.
struct Commitment: Sendable {
    static let periods = 12

    var period = 1
    var ends: Int64
    let price: Int64
}

struct Transaction: Sendable {
    var id: Int64
    var original: Int64
    var product: Product
    var purchaseDate: Int64
    var originalPurchaseDate: Int64
    /// nil for one-time purchases.
    var expiresDate: Int64?
    var quantity = 1
    var accountToken: UUIDText?
    var isRenewal = false
    var price: Int64
    var plan: Plan?
    var commitment: Commitment?
    var offer: Offer?
    var revocation: Revocation?
    var isUpgraded = false
    var previousOriginal: Int64?
    var isAdvancedCommerce = false

    func json(of customer: Customer, signedDate: Int64) -> [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.member("transactionId", String(id))
            json.member("originalTransactionId", String(original))
            // The same purchase in Apple's order system: another number for the same event.
            if expiresDate != nil { json.member("webOrderLineItemId", String(id + 1_000_000_000_000)) }
            json.member("bundleId", customer.app.bundleId)
            json.member("productId", product.id)
            if expiresDate != nil { json.member("subscriptionGroupIdentifier", customer.app.group) }
            json.member("purchaseDate", purchaseDate)
            json.member("originalPurchaseDate", originalPurchaseDate)
            if let expiresDate { json.member("expiresDate", expiresDate) }
            json.member("quantity", quantity)
            json.member("type", product.kind.rawValue)
            if let accountToken { json.member("appAccountToken", accountToken.description) }
            json.member("inAppOwnershipType", customer.isFamilyMember ? "FAMILY_SHARED" : "PURCHASED")
            json.member("signedDate", signedDate)
            json.member("environment", customer.environment)
            json.member("transactionReason", isRenewal ? "RENEWAL" : "PURCHASE")
            json.member("storefront", customer.storefront.country)
            json.member("storefrontId", customer.storefront.id)
            json.member("price", price)
            json.member("currency", customer.storefront.currency)
            if let revocation { write(revocation, to: &json) }
            if isUpgraded { json.member("isUpgraded", true) }
            offer?.write(to: &json)
            json.member("appTransactionId", String(customer.appTransactionId))
            if let plan { json.member("billingPlanType", plan.rawValue) }
            if let commitment { write(commitment, to: &json) }
            if let previousOriginal { json.member("previousOriginalTransactionId", String(previousOriginal)) }
            if isAdvancedCommerce { writeAdvancedCommerce(of: product, to: &json) }
        }
        return json.bytes
    }

    private func write(_ revocation: Revocation, to json: inout JSONWriter) {
        json.member("revocationDate", revocation.date)
        json.member("revocationReason", revocation.reason)
        json.member("revocationType", revocation.kind.rawValue)
        if let percentage = revocation.percentage { json.member("revocationPercentage", percentage) }
    }

    private func write(_ commitment: Commitment, to json: inout JSONWriter) {
        json.name("commitmentInfo")
        json.object { json in
            json.member("billingPeriodNumber", commitment.period)
            json.member("totalBillingPeriods", Commitment.periods)
            json.member("commitmentExpiresDate", commitment.ends)
            json.member("commitmentPrice", commitment.price)
        }
    }
}

struct RenewalInfo: Sendable {
    /// What happens when a commitment ends.
    struct CommitmentRenewal: Sendable {
        var isOn = true
        var product: Product
        var plan = Plan.monthly
        var date: Int64
        var price: Int64
    }

    enum Intent: Int, Sendable {
        case cancelled = 1
        case billing, price, unavailable, other
    }

    var original: Int64
    var product: Product
    var nextProduct: Product
    var isOn = true
    var intent: Intent?
    /// Present only while a renewal fails or after it has failed.
    var isRetrying: Bool?
    var graceUntil: Int64?
    var priceIncreaseStatus: Int?
    var renewalDate: Int64
    var renewalPrice: Int64
    var offer: Offer?
    var winBackOffers: [String] = []
    var recentStart: Int64
    var accountToken: UUIDText?
    var plan = Plan.upfront
    var commitment: CommitmentRenewal?
    var isAdvancedCommerce = false

    func json(of customer: Customer, signedDate: Int64) -> [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.member("originalTransactionId", String(original))
            json.member("productId", product.id)
            json.member("autoRenewProductId", nextProduct.id)
            json.member("autoRenewStatus", isOn ? 1 : 0)
            if let intent { json.member("expirationIntent", intent.rawValue) }
            if let isRetrying { json.member("isInBillingRetryPeriod", isRetrying) }
            if let graceUntil { json.member("gracePeriodExpiresDate", graceUntil) }
            if let priceIncreaseStatus { json.member("priceIncreaseStatus", priceIncreaseStatus) }
            json.member("signedDate", signedDate)
            json.member("environment", customer.environment)
            json.member("recentSubscriptionStartDate", recentStart)
            json.member("renewalDate", renewalDate)
            json.member("renewalPrice", renewalPrice)
            json.member("currency", customer.storefront.currency)
            offer?.write(to: &json)
            if !winBackOffers.isEmpty {
                json.name("eligibleWinBackOfferIds")
                json.array { for offer in winBackOffers { $0.string(offer) } }
            }
            if let accountToken { json.member("appAccountToken", accountToken.description) }
            json.member("appTransactionId", String(customer.appTransactionId))
            json.member("renewalBillingPlanType", plan.rawValue)
            if let commitment { write(commitment, to: &json) }
            if isAdvancedCommerce { writeAdvancedCommerce(of: nextProduct, to: &json) }
        }
        return json.bytes
    }

    private func write(_ commitment: CommitmentRenewal, to json: inout JSONWriter) {
        json.name("commitmentInfo")
        json.object { json in
            json.member("commitmentAutoRenewProductId", commitment.product.id)
            json.member("commitmentAutoRenewStatus", commitment.isOn ? 1 : 0)
            json.member("commitmentRenewalBillingPlanType", commitment.plan.rawValue)
            json.member("commitmentRenewalDate", commitment.date)
            json.member("commitmentRenewalPrice", commitment.price)
        }
    }
}

/// The members that transaction and renewal info have in common.
private func writeAdvancedCommerce(of product: Product, to json: inout JSONWriter) {
    json.name("advancedCommerceInfo")
    json.object { json in
        json.name("descriptors")
        json.object { json in
            json.member("description", "Everything, for one seat")
            json.member("displayName", "Subscription")
        }
        json.name("items")
        json.array { json in
            json.object { json in
                json.member("SKU", product.id)
                json.member("description", "Everything, for one seat")
                json.member("displayName", "Subscription")
                json.member("price", product.price)
            }
        }
        json.member("period", product.length.text)
        json.member("taxCode", "C003-00-2")
    }
}
