// A record of `accounts` as its readers see it.

public import JSON

/// Of one subscription of an account what a screen needs, as it was published.
public struct AccountSubscription: Sendable, Equatable {
    public let originalTransactionId: Text
    public let bundleId: Text?
    public let productId: Text?
    /// Names, as the worker's settings had them.
    public let entitlements: [Text]
    /// nil: one that this version does not know.
    public let state: Entitlement.State?
    public let reason: Entitlement.Reason?
    /// As of `asOf`: a later instant may be beyond its end.
    public let access: Bool
    public let accessUntil: Int64?
    public let autoRenew: Bool?
    public let priceConsent: Entitlement.PriceConsent?
    /// One-time purchases have none, and do not renew.
    public let billingPlan: Text?
    /// Apple cannot bill it.
    public let isFailing: Bool
    /// When Apple gives up; nil when that is not known, or nothing fails.
    public let retryUntil: Int64?
    /// Of a commitment: whether another one follows.
    let commitmentRenews: Bool?
    let isCommitment: Bool

    /// - Parameter record: holds the value of the record.
    /// - Returns: nil when it is none. A member that is not of its kind counts as absent: it may be sealed.
    public init?(_ record: borrowing JSONDocument) {
        guard let id = record.text("originalTransactionId", of: record.root),
            let access = record.bool("access", of: record.root)
        else { return nil }
        originalTransactionId = id
        state = record.text("state", of: record.root).flatMap { Entitlement.State(rawValue: "\($0)") }
        self.access = access
        bundleId = record.text("bundleId", of: record.root)
        productId = record.text("productId", of: record.root)
        var names: [Text] = []
        if let list = record.member("entitlements", of: record.root)?.value, record.kind(of: list) == .array {
            var element = record.firstElement(of: list)
            while let value = element {
                if let name = record.text(value) { names.append(Text(name)) }
                element = record.element(after: value)
            }
        }
        entitlements = names
        reason = record.text("reason", of: record.root).flatMap { Entitlement.Reason(rawValue: "\($0)") }
        accessUntil = record.integer("accessUntil", of: record.root)
        autoRenew = record.bool("autoRenew", of: record.root)
        priceConsent = record.text("priceConsent", of: record.root)
            .flatMap { Entitlement.PriceConsent(rawValue: "\($0)") }
        billingPlan = record.text("billingPlan", of: record.root)
        retryUntil = record.object("retry", of: record.root).flatMap { record.integer("until", of: $0) }
        isFailing = retryUntil != nil || record.integer("graceUntil", of: record.root) != nil
        let commitment = record.object("commitment", of: record.root)
        isCommitment = commitment != nil
        commitmentRenews = commitment.flatMap { record.bool("renews", of: $0) }
    }

    public func hasAccess(at now: Int64) -> Bool { access && accessUntil.map { now < $0 } ?? true }

    /// Whether access lasts longer than another's, or ended later.
    func lasts(longerThan other: AccountSubscription, at now: Int64) -> Bool {
        let (mine, its) = (hasAccess(at: now), other.hasAccess(at: now))
        if mine != its { return mine }
        let (end, otherEnd) = (accessUntil ?? .max, other.accessUntil ?? .max)
        // Of equals always the same one.
        return end == otherEnd ? originalTransactionId < other.originalTransactionId : end > otherEnd
    }

    /// It will be billed again: who has two of them pays twice.
    func isPaidFor(at now: Int64) -> Bool { billingPlan != nil && hasAccess(at: now) && !endsByItself }

    /// The customer has turned renewal off. Within a commitment `autoRenew` speaks of the next payment only.
    private var endsByItself: Bool { isCommitment ? commitmentRenews == false : autoRenew == false }

    /// What its customer should be told, as if it was the only one.
    func advice(at now: Int64) -> Account.Advice.Kind? {
        guard billingPlan != nil else { return nil }
        let isGivenUp = retryUntil.map { now >= $0 } ?? false
        switch state {
        case .grace, .billingRetry: return isGivenUp ? .resubscribe : .fixPayment
        case .active where isFailing: return isGivenUp ? .resubscribe : .fixPayment
        case .active where !hasAccess(at: now): return .resubscribe
        case .active where endsByItself: return .renew
        case .active: return priceConsent == .waiting ? .consentToPrice : nil
        case .expired: return .resubscribe
        // Who got the money back, or went to another product, is not asked to buy this one again.
        case .revoked, .superseded, .owned, nil: return nil
        }
    }
}
