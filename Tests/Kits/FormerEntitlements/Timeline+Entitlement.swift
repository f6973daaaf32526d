// The members of an answer other than state and access.

internal import Contract
internal import Notices
internal import Records

extension Timeline {
    /// The answer at an instant. A change at an instant is already in effect at that instant.
    func entitlement(at instant: Int64) -> Entitlement {
        let verdict = verdict(at: instant)
        let row = rows[place(at: instant)]
        let transaction = row.transaction
        let info = info(of: row)
        let renews = info?.autoRenewStatus.flatMap(isOn)
        let isRetrying = info.map(row.isRetrying) ?? false
        return Entitlement(
            bundleId: transaction.bundleId, productId: transaction.productId, type: transaction.type,
            subscriptionGroup: transaction.subscriptionGroup, appAccountToken: account(of: row, info),
            ownership: transaction.ownership, entitlements: rules.product(of: transaction).entitlements,
            state: verdict.state,
            reason: verdict.reason, access: verdict.access, accessUntil: verdict.accessUntil, since: row.since,
            autoRenew: renews, pendingProductId: pendingProduct(of: row, info),
            pendingBillingPlan: pendingPlan(of: row, info), priceConsent: priceConsent(info),
            billingPlan: billingPlan(of: row), commitment: commitment(of: row, info),
            graceUntil: graceUntil(of: row, info, verdict, at: instant),
            retry: isRetrying ? retry(of: row, verdict, at: instant) : nil, offer: offer(of: transaction),
            introOfferUsed: introOfferUsed, price: transaction.price, currency: transaction.currency,
            renewsAt: renews == true ? info?.renewalDate : nil,
            renewalPrice: renews == true ? info?.renewalPrice : nil, runs: runs, runsTruncated: runsTruncated)
    }

    /// A family member's transaction may carry the purchaser's token, which is not the member's.
    private func account(of row: Row, _ info: RenewalInfo?) -> Text? {
        row.transaction.ownership == .familyShared ? nil : row.transaction.appAccountToken ?? info?.appAccountToken
    }

    private func billingPlan(of row: Row) -> Text? {
        row.isOneTime ? nil : row.transaction.billingPlan ?? .billedUpfront
    }

    private func commitment(of row: Row, _ info: RenewalInfo?) -> Entitlement.Commitment? {
        guard row.isCommitment, let commitment = row.transaction.commitment else { return nil }
        return Entitlement.Commitment(
            period: commitment.period, of: commitment.of, endsAt: commitment.endsAt, price: commitment.price,
            renews: info?.commitment?.autoRenewStatus.flatMap(isOn))
    }

    private func priceConsent(_ info: RenewalInfo?) -> Entitlement.PriceConsent? {
        switch info?.priceIncreaseStatus {
        case 0: .waiting
        case 1: .settled
        default: nil
        }
    }

    private func offer(of transaction: Transaction) -> Entitlement.Offer? {
        transaction.offer.map {
            Entitlement.Offer(
                type: Text(OfferType.word(of: $0.type)), identifier: $0.identifier, discount: $0.discount)
        }
    }

    // MARK: What is to come

    /// A change of a commitment takes effect at its end, all others at the next renewal. A purchase that does not renew
    /// has none.
    private func pendingProduct(of row: Row, _ info: RenewalInfo?) -> Text? {
        guard let info else { return nil }
        let pending: Text?
        if row.isCommitment, let product = info.commitment?.autoRenewProductId {
            pending = info.commitment?.autoRenewStatus == 0 ? nil : product
        } else {
            pending = info.autoRenewStatus == 0 ? nil : info.autoRenewProductId
        }
        return pending == row.transaction.productId ? nil : pending
    }

    private func pendingPlan(of row: Row, _ info: RenewalInfo?) -> Text? {
        guard let info else { return nil }
        let pending: Text?
        if row.isCommitment, let plan = info.commitment?.renewalBillingPlan {
            pending = info.commitment?.autoRenewStatus == 0 ? nil : plan
        } else {
            pending = info.autoRenewStatus == 0 ? nil : info.renewalBillingPlan
        }
        return pending == billingPlan(of: row) ? nil : pending
    }

    // MARK: Failed payments

    func graceUntil(of row: Row, _ info: RenewalInfo?, _ verdict: Verdict, at instant: Int64) -> Int64? {
        guard verdict.state == .active || verdict.state == .grace, let info, let grace = row.grace(info),
            instant < grace
        else { return nil }
        return grace
    }

    /// For a row whose payment is being retried.
    func retry(of row: Row, _ verdict: Verdict, at instant: Int64) -> Entitlement.Retry? {
        guard [.active, .grace, .billingRetry].contains(verdict.state), case .period(let expires, _) = row.term,
            let window = rules.retryWindow(isCommitment: row.isCommitment), instant < adding(expires, window)
        else { return nil }
        return Entitlement.Retry(since: expires, until: adding(expires, window))
    }
}

/// Apple's 0 and 1; any other number is unknown.
private func isOn(_ status: Int64) -> Bool? {
    switch status {
    case 0: false
    case 1: true
    default: nil
    }
}
