// The answer: may this customer use the product, until when, and why.

internal import Notices

/// The members of a record of `entitlements` that follow from Apple's data. The writer adds what describes the change
/// (`sequence`, `asOf`, `cause`) and what the topic knows (id, environment). nil is written as null.
struct Entitlement: Sendable, Equatable {
    enum State: String, Sendable {
        case active, grace, billingRetry = "billing_retry", expired, revoked, superseded, owned
    }

    enum Reason: String, Sendable {
        case voluntary, billing, price, unavailable, other, unknown
        case refund, family
    }

    enum PriceConsent: String, Sendable { case waiting, settled }

    struct Commitment: Sendable, Equatable {
        var period: Int64?
        var of: Int64?
        var endsAt: Int64?
        var price: Int64?
        var renews: Bool?
    }

    struct Retry: Sendable, Equatable {
        var since: Int64
        var until: Int64
    }

    struct Offer: Sendable, Equatable {
        var type: Text
        var identifier: Text?
        var discount: Text?
    }

    var bundleId: Text?
    var productId: Text?
    var type: Text?
    var subscriptionGroup: Text?
    var appAccountToken: Text?
    var ownership: Text?
    var entitlements: [String] = []
    var state: State
    var reason: Reason?
    var access: Bool
    /// If there is access: when it ends, or nil if it has no end. Otherwise when it ended.
    var accessUntil: Int64?
    var since: Int64
    var autoRenew: Bool?
    var pendingProductId: Text?
    var pendingBillingPlan: Text?
    var priceConsent: PriceConsent?
    var billingPlan: Text?
    var commitment: Commitment?
    var graceUntil: Int64?
    var retry: Retry?
    var offer: Offer?
    var introOfferUsed: Bool
    var price: Int64?
    var currency: Text?
    var renewsAt: Int64?
    var renewalPrice: Int64?
    var runs: [Run]
    var runsTruncated: Bool
}

/// A time that was paid for or given as grace: its first instant, and the first instant after it.
struct Run: Sendable, Equatable {
    var start: Int64
    /// nil: it has no end.
    var end: Int64?

    init(start: Int64, end: Int64?) {
        self.start = start
        self.end = end
    }

    func contains(_ instant: Int64) -> Bool { start <= instant && end.map { instant < $0 } ?? true }
}
