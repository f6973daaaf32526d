// A record of `accounts` as its readers see it.

internal import Contract
public import JSON
public import Notices

/// Of one subscription of an account what a screen needs, as it was published.
public struct AccountSubscription: Sendable, Equatable {
    public let originalTransactionId: Text
    public let bundleId: Text?
    /// As Apple writes it; records of before had none.
    public let environment: Text?
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
    /// nil: it is none.
    public let commitment: Commitment?

    public struct Commitment: Sendable, Equatable {
        /// Nothing is left to be billed of this one. Where the record does not say, payments are to come.
        public let isInLastPeriod: Bool
        /// Whether another one follows.
        public let renews: Bool?
    }

    /// When the record was made, by the clock of its partition: what it says of earlier times is not what was so then.
    public let asOf: Int64?

    /// - Parameter record: holds the value of the record.
    /// - Returns: nil when it is none. A member that is not of its kind counts as absent: it may be sealed.
    public init?(_ record: borrowing JSONDocument) {
        guard let id = record.text("originalTransactionId", of: record.root),
            let access = record.bool("access", of: record.root)
        else { return nil }
        originalTransactionId = id
        state = record.text("state", of: record.root).flatMap { Entitlement.State(rawValue: $0.description) }
        self.access = access
        bundleId = record.text("bundleId", of: record.root)
        environment = record.text("environment", of: record.root)
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
        reason = record.text("reason", of: record.root).flatMap { Entitlement.Reason(rawValue: $0.description) }
        accessUntil = record.integer("accessUntil", of: record.root)
        autoRenew = record.bool("autoRenew", of: record.root)
        priceConsent = record.text("priceConsent", of: record.root)
            .flatMap { Entitlement.PriceConsent(rawValue: $0.description) }
        billingPlan = record.text("billingPlan", of: record.root)
        retryUntil = record.object("retry", of: record.root).flatMap { record.integer("until", of: $0) }
        isFailing = retryUntil != nil || record.integer("graceUntil", of: record.root) != nil
        commitment = record.object("commitment", of: record.root).map { commitment in
            let period = record.integer("period", of: commitment) ?? 0
            return Commitment(
                isInLastPeriod: period >= record.integer("of", of: commitment) ?? 12,
                renews: record.bool("renews", of: commitment))
        }
        asOf = record.integer("asOf", of: record.root)
    }

    public func hasAccess(at now: Int64) -> Bool { access && accessUntil.map { now < $0 } ?? true }

    /// Bought without money: by testers, and in Apple's review.
    var isOfSandbox: Bool { environment == Self.sandbox }
    private static let sandbox = Text(Environment.sandbox.nameOfApple)

    /// Whether access lasts longer than another's, or ended later. What was bought in production goes before all of sandbox, where both
    /// give access.
    func lasts(longerThan other: AccountSubscription, at now: Int64) -> Bool {
        let (mine, its) = (hasAccess(at: now), other.hasAccess(at: now))
        if mine != its { return mine }
        if isOfSandbox != other.isOfSandbox { return other.isOfSandbox }
        let (end, otherEnd) = (accessUntil ?? .max, other.accessUntil ?? .max)
        // Of equals always the same one.
        return end == otherEnd ? originalTransactionId < other.originalTransactionId : end > otherEnd
    }

    // MARK: What is to come

    public enum Renewal: Sendable, Equatable {
        /// It is over, or never renews.
        case none
        /// Apple cannot bill it, and goes on trying.
        case failing
        case renews
        /// It renews only with the customer's consent to a higher price.
        case needsConsent
        /// A commitment that is billed until its end, and then ends.
        case committed
        /// The customer has turned it off.
        case off
        case unknown
    }

    public func renewal(at now: Int64) -> Renewal {
        guard billingPlan != nil, !isGivenUp(at: now) else { return .none }
        switch state {
        case .grace, .billingRetry: return .failing
        case .active where isFailing: return .failing
        case .active where hasAccess(at: now): break
        default: return .none
        }
        if let commitment, !commitment.isInLastPeriod {
            // All its payments come, whatever the customer has said: `autoRenew` speaks of the next one only.
            return commitment.renews == false ? .committed : priceConsent == .waiting ? .needsConsent : .renews
        }
        switch autoRenew {
        case true? where commitment?.renews != false: return priceConsent == .waiting ? .needsConsent : .renews
        case nil where commitment?.renews != false: return .unknown
        default: return .off
        }
    }

    /// It will be billed again, as far as is known: who has two of them pays twice.
    func isPaidFor(at now: Int64) -> Bool {
        guard billingPlan != nil, hasAccess(at: now) else { return false }
        if let commitment, !commitment.isInLastPeriod { return true }
        return autoRenew == true && commitment?.renews != false
    }

    /// Access goes on, and nobody has to do anything for it.
    func goesOn(at now: Int64) -> Bool {
        hasAccess(at: now) && (accessUntil == nil || renewal(at: now) == .renews)
    }

    /// What its customer should be told, as if it was the only one.
    func advice(at now: Int64) -> Account.Advice.Kind? {
        guard billingPlan != nil else { return nil }
        switch renewal(at: now) {
        case .failing: return .fixPayment
        case .needsConsent: return .consentToPrice
        case .committed, .off: return .renew
        case .renews, .unknown: return nil
        case .none: break
        }
        switch state {
        case .grace, .billingRetry, .active, .expired: return .resubscribe
        // Who got the money back, or went to another product, is not asked to buy this one again.
        case .revoked, .superseded, .owned, nil: return nil
        }
    }

    private func isGivenUp(at now: Int64) -> Bool { retryUntil.map { now >= $0 } ?? false }
}
