// The members of an answer other than state and access.

internal import Contract
internal import Notices
internal import Records
import SubscriptionHistory

/// The answer at an instant as plain values. `Entitlement` says what its members mean; the runs are those of the course.
struct Answer: Equatable {
    var bundleId: TextNumber
    var productId: TextNumber
    var type: TextNumber
    var subscriptionGroup: TextNumber
    var ownership: TextNumber
    var currency: TextNumber
    /// What the rules say about the product; nil: nothing.
    var product: EntitlementRules.Product?
    var appAccountToken: TextNumber
    var state: Entitlement.State
    var reason: Entitlement.Reason?
    var access: Bool
    var accessUntil: Int64?
    var since: Int64
    var autoRenew: Bool?
    var pendingProductId: TextNumber
    var pendingBillingPlan: TextNumber
    var priceConsent: Entitlement.PriceConsent?
    /// none: it is a one-time purchase.
    var billingPlan: TextPlace?
    var commitment: Entitlement.Commitment?
    var graceUntil: Int64?
    var retry: Entitlement.Retry?
    var offer: Particulars.Offer?
    var introOfferUsed: Bool
    var price: Int64?
    var renewsAt: Int64?
    var renewalPrice: Int64?
}

extension Course {
    /// The answer at an instant. A change at an instant is already in effect at that instant.
    func answer(at instant: Int64) -> Answer {
        let verdict = verdict(at: instant)
        let row = rows[place(at: instant)]
        let terms = terms(of: row)
        let info = info(of: row)
        let renews = info?.autoRenewStatus.flatMap(isOn)
        let isRetrying = info.map(row.isRetrying) ?? false
        return Answer(
            bundleId: terms.bundleId, productId: terms.productId, type: terms.type,
            subscriptionGroup: terms.subscriptionGroup, ownership: terms.ownership, currency: terms.currency,
            product: rules.product(of: terms, history.texts), appAccountToken: account(of: row, info),
            state: verdict.state, reason: verdict.reason, access: verdict.access, accessUntil: verdict.accessUntil,
            since: row.since, autoRenew: renews, pendingProductId: pendingProduct(of: row, info),
            pendingBillingPlan: pendingPlan(of: row, info), priceConsent: priceConsent(info),
            billingPlan: billingPlan(of: row), commitment: commitment(of: row, info),
            graceUntil: graceUntil(of: row, info, verdict, at: instant),
            retry: isRetrying ? retry(of: row, verdict, at: instant) : nil, offer: history.offer(of: row.purchase),
            introOfferUsed: history.introOfferUsed, price: row.purchase.price,
            renewsAt: renews == true ? info?.renewalDate : nil,
            renewalPrice: renews == true ? info?.renewalPrice : nil)
    }

    /// A family member's transaction may carry the purchaser's token, which is not the member's.
    private func account(of row: Row, _ info: Info?) -> TextNumber {
        if row.meaning.isFamilyShared { return .none }
        let token = terms(of: row).appAccountToken
        return token.isNone ? info?.appAccountToken ?? .none : token
    }

    private func billingPlan(of row: Row) -> TextPlace? {
        row.isOneTime ? nil : history.texts[terms(of: row).billingPlan] ?? TextPlace(AppleWord.billedUpfront)
    }

    private func commitment(of row: Row, _ info: Info?) -> Entitlement.Commitment? {
        guard row.isCommitment, let commitment = commitment(of: row) else { return nil }
        return Entitlement.Commitment(
            period: commitment.period, of: commitment.of, endsAt: commitment.endsAt, price: commitment.price,
            renews: info?.commitment?.autoRenewStatus.flatMap(isOn))
    }

    private func priceConsent(_ info: Info?) -> Entitlement.PriceConsent? {
        switch info?.priceIncreaseStatus {
        case 0: .waiting
        case 1: .settled
        default: nil
        }
    }

    // MARK: What is to come

    /// A change of a commitment takes effect at its end, all others at the next renewal. A purchase that does not renew
    /// has none.
    private func pendingProduct(of row: Row, _ info: Info?) -> TextNumber {
        guard let info else { return .none }
        let pending: TextNumber
        if row.isCommitment, let commitment = info.commitment, !commitment.autoRenewProductId.isNone {
            pending = commitment.autoRenewStatus == 0 ? .none : commitment.autoRenewProductId
        } else {
            pending = info.autoRenewStatus == 0 ? .none : info.autoRenewProductId
        }
        return pending == terms(of: row).productId ? .none : pending
    }

    private func pendingPlan(of row: Row, _ info: Info?) -> TextNumber {
        guard let info else { return .none }
        let pending: TextNumber
        if row.isCommitment, let commitment = info.commitment, !commitment.renewalBillingPlan.isNone {
            pending = commitment.autoRenewStatus == 0 ? .none : commitment.renewalBillingPlan
        } else {
            pending = info.autoRenewStatus == 0 ? .none : info.renewalBillingPlan
        }
        return history.texts[pending] == billingPlan(of: row) ? .none : pending
    }

    // MARK: Failed payments

    func graceUntil(of row: Row, _ info: Info?, _ verdict: Verdict, at instant: Int64) -> Int64? {
        guard verdict.state == .active || verdict.state == .grace, let info, let grace = row.grace(info),
            instant < grace
        else { return nil }
        return grace
    }

    /// For a row whose payment is being retried.
    func retry(of row: Row, _ verdict: Verdict, at instant: Int64) -> Entitlement.Retry? {
        guard verdict.state.isTried, case .period(let expires, _) = row.term,
            let window = rules.retryWindow(isCommitment: row.isCommitment), instant < adding(expires, window)
        else { return nil }
        return Entitlement.Retry(since: expires, until: adding(expires, window))
    }
}

extension Entitlement.State {
    /// Apple may be trying to bill the next period.
    var isTried: Bool { self == .active || self == .grace || self == .billingRetry }
}

/// Apple's 0 and 1; any other number is unknown.
private func isOn(_ status: Int64) -> Bool? {
    switch status {
    case 0: false
    case 1: true
    default: nil
    }
}
