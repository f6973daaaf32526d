// An answer and the purchase it is based on: events are derived from it.

/// The state of a subscription at an instant.
struct Standing: Sendable {
    let entitlement: Entitlement
    let row: Row
    /// The neighbouring rows.
    let rowBefore: Row?
    let rowAfter: Row?
    /// Apple retries a failed payment.
    let isRetrying: Bool
    let leeway: Int64
}

extension Timeline {
    func standing(at instant: Int64) -> Standing {
        let place = place(at: instant)
        let row = rows[place]
        let entitlement = entitlement(at: instant)
        let isTried = [.active, .grace, .billingRetry].contains(entitlement.state)
        return Standing(
            entitlement: entitlement, row: row, rowBefore: place > 0 ? rows[place - 1] : nil,
            rowAfter: place + 1 < rows.count ? rows[place + 1] : nil,
            isRetrying: isTried && info(of: row).map(row.isRetrying) ?? false, leeway: rules.leeway)
    }

    /// Whether Apple's `data.status` agrees at this instant; nil if Apple has no status for the state.
    func agrees(withStatus status: Int64, at instant: Int64) -> Bool? {
        switch verdict(at: instant).state {
        // Apple tries to renew in the last day of a paid period, and the attempt may fail then.
        case .active: status == 1 || status == 3 || status == 4
        case .expired: status == 2
        case .billingRetry: status == 3
        case .grace: status == 4
        case .revoked: status == 5
        case .superseded, .owned: nil
        }
    }
}

extension Standing {
    var plan: Mark { Mark(entitlement.productId, entitlement.billingPlan) }
    var offer: Mark { Mark(entitlement.offer?.type, entitlement.offer?.identifier, entitlement.offer?.discount) }
    var pending: Mark { Mark(entitlement.pendingProductId, entitlement.pendingBillingPlan) }
    var expires: Int64? { if case .period(let until, _) = row.term { until } else { nil } }

    /// Within a commitment `autoRenew` is about the next payment only, which is due in any case.
    var renews: Bool? { row.isCommitment ? entitlement.commitment?.renews : entitlement.autoRenew }

    var lastMonthEnd: Int64? {
        guard row.isCommitment, let commitment = row.transaction.commitment, let period = commitment.period,
            period >= commitment.of ?? 12
        else { return nil }
        return expires
    }
}
