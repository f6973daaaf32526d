// The answer: may this customer use the product, until when, and why.

public import Notices

/// The members of a record of `entitlements` that follow from Apple's data. The writer adds what describes the change
/// (`sequence`, `asOf`, `cause`) and what the topic knows (id, environment). nil is written as null.
public struct Entitlement: Sendable, Equatable {
    public enum State: String, Sendable, BitwiseCopyable {
        case active, grace, billingRetry = "billing_retry", expired, revoked, superseded, owned
    }

    public enum Reason: String, Sendable, BitwiseCopyable {
        case voluntary, billing, price, unavailable, other, unknown
        case refund, family
    }

    public enum PriceConsent: String, Sendable { case waiting, settled }

    public struct Commitment: Sendable, Equatable {
        public var period: Int64?
        public var of: Int64?
        public var endsAt: Int64?
        public var price: Int64?
        public var renews: Bool?
    }

    public struct Retry: Sendable, Equatable {
        public var since: Int64
        public var until: Int64
    }

    public struct Offer: Sendable, Equatable {
        public var type: Text
        public var identifier: Text?
        public var discount: Text?
    }

    public var bundleId: Text?
    public var productId: Text?
    public var type: Text?
    public var subscriptionGroup: Text?
    public var appAccountToken: Text?
    public var ownership: Text?
    public var entitlements: [String] = []
    public var state: State
    public var reason: Reason?
    public var access: Bool
    /// If there is access: when it ends, or nil if it has no end. Otherwise when it ended.
    public var accessUntil: Int64?
    public var since: Int64
    public var autoRenew: Bool?
    public var pendingProductId: Text?
    public var pendingBillingPlan: Text?
    public var priceConsent: PriceConsent?
    public var billingPlan: Text?
    public var commitment: Commitment?
    public var graceUntil: Int64?
    public var retry: Retry?
    public var offer: Offer?
    public var introOfferUsed: Bool
    public var price: Int64?
    public var currency: Text?
    public var renewsAt: Int64?
    public var renewalPrice: Int64?
    public var runs: [Run]
    public var runsTruncated: Bool
}

/// A time that was paid for or given as grace: its first instant, and the first instant after it.
public struct Run: Sendable, Equatable, BitwiseCopyable {
    public var start: Int64
    /// nil: it has no end.
    public var end: Int64?

    public init(start: Int64, end: Int64?) {
        self.start = start
        self.end = end
    }

    func contains(_ instant: Int64) -> Bool { start <= instant && end.map { instant < $0 } ?? true }
}
