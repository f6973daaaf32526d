// A record of `accounts`, as its readers see it.

internal import Contract
public import JSON
public import Notices

/// What a screen needs to show about one subscription of an account, as published.
public struct AccountSubscription: Sendable, Equatable {
    public let originalTransactionId: Text
    public let bundleId: Text?
    /// As Apple writes it; older records do not have it.
    public let environment: Text?
    public let productId: Text?
    /// The names from the worker's settings.
    public let entitlements: [Text]
    /// nil: a state that this version does not know.
    public let state: Entitlement.State?
    public let reason: Entitlement.Reason?
    /// As of `asOf`: at a later instant, access may have ended.
    public let access: Bool
    public let accessUntil: Int64?
    public let autoRenew: Bool?
    public let priceConsent: Entitlement.PriceConsent?
    /// nil for one-time purchases, which do not renew.
    public let billingPlan: Text?
    /// Apple cannot bill the customer.
    public let isFailing: Bool
    /// When Apple stops retrying; nil if that is unknown or no payment fails.
    public let retryUntil: Int64?
    /// nil: it is not a commitment.
    public let commitment: Commitment?

    public struct Commitment: Sendable, Equatable {
        /// No payments of this commitment remain. If the record does not say, payments remain.
        public let isInLastPeriod: Bool
        /// Whether another commitment follows.
        public let renews: Bool?
    }

    /// The clock of the partition when the record was made. The record does not show what held at earlier times.
    public let asOf: Int64?

    /// - Parameter record: the document with the record's value.
    /// - Returns: nil if the record is invalid. A member of the wrong type counts as absent: it may be sealed.
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

    /// Whether access lasts longer than the other's, or ended later. If both give access, production comes before
    /// sandbox.
    func lasts(longerThan other: AccountSubscription, at now: Int64) -> Bool {
        let (mine, its) = (hasAccess(at: now), other.hasAccess(at: now))
        if mine != its { return mine }
        if isOfSandbox != other.isOfSandbox { return other.isOfSandbox }
        let (end, otherEnd) = (accessUntil ?? .max, other.accessUntil ?? .max)
        // On a tie the choice must always be the same.
        return end == otherEnd ? originalTransactionId < other.originalTransactionId : end > otherEnd
    }

    // MARK: What is to come

    public enum Renewal: Sendable, Equatable {
        /// It is over, or never renews.
        case none
        /// Apple cannot bill the customer, and retries.
        case failing
        case renews
        /// It renews only if the customer consents to a higher price.
        case needsConsent
        /// A commitment that is billed until its end, and then ends.
        case committed
        /// The customer has turned off renewal.
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
            // All payments of a commitment are due, whatever the customer chooses: `autoRenew` is about the next
            // payment only.
            return commitment.renews == false ? .committed : priceConsent == .waiting ? .needsConsent : .renews
        }
        switch autoRenew {
        case true? where commitment?.renews != false: return priceConsent == .waiting ? .needsConsent : .renews
        case nil where commitment?.renews != false: return .unknown
        default: return .off
        }
    }

    /// It will be billed again, as far as is known: a customer with two of these pays twice.
    func isPaidFor(at now: Int64) -> Bool {
        guard billingPlan != nil, hasAccess(at: now) else { return false }
        if let commitment, !commitment.isInLastPeriod { return true }
        return autoRenew == true && commitment?.renews != false
    }

    /// Access continues without any action.
    func goesOn(at now: Int64) -> Bool {
        hasAccess(at: now) && (accessUntil == nil || renewal(at: now) == .renews)
    }

    /// The advice for its customer, as if it were the only subscription.
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
        // A customer with a refund or another product is not asked to buy this one again.
        case .revoked, .superseded, .owned, nil: return nil
        }
    }

    private func isGivenUp(at now: Int64) -> Bool { retryUntil.map { now >= $0 } ?? false }
}
