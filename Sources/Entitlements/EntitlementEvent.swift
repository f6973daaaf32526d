// What has happened between two answers.

/// One change that somebody may want to act on.
public struct EntitlementEvent: Sendable, Equatable {
    /// Words of the records.
    public enum Kind: String, Sendable, CaseIterable {
        case started, purchased, renewed, recovered, resubscribed
        case planChanged = "plan_changed"
        case commitmentCompleted = "commitment_completed"
        case commitmentStarted = "commitment_started"
        case offerRedeemed = "offer_redeemed"
        case extended
        case refundReversed = "refund_reversed"
        case enteredGrace = "entered_grace"
        case enteredBillingRetry = "entered_billing_retry"
        case refunded
        case familyRevoked = "family_revoked"
        case accessEnded = "access_ended"
        case expired
        case renewalTurnedOff = "renewal_turned_off"
        case renewalTurnedOn = "renewal_turned_on"
        case planChangePending = "plan_change_pending"
        case priceConsentChanged = "price_consent_changed"
        case accountBound = "account_bound"
    }

    public var kind: Kind
    /// When it took effect by Apple's dates; where none of them says it, when Apple said so.
    public var at: Int64

    public init(_ kind: Kind, at: Int64) {
        self.kind = kind
        self.at = at
    }

    /// What took effect longer before it is told is history: nobody is to be mailed for it.
    static let historicAfter: Int64 = 86_400_000

    /// - Parameter clock: when it is told.
    public func isHistoric(at clock: Int64) -> Bool { at < adding(clock, -Self.historicAfter) }
}

extension Standing {
    /// What has happened since; in the order of `Kind`, each kind at most once. Of what became known at once the net change.
    /// - Parameters:
    ///   - before: nil when nothing was known.
    ///   - told: when Apple said what changed it; of a change by time alone when that was due.
    public func events(since before: Standing?, told: Int64) -> [EntitlementEvent] {
        Comparison(before: before, after: self, told: told).events
    }
}

/// Each kind follows from the two answers and the two purchases, whatever the notification was called.
private struct Comparison {
    let before: Standing?
    let after: Standing
    let told: Int64

    private var was: Entitlement? { before?.entitlement }
    private var now: Entitlement { after.entitlement }

    var events: [EntitlementEvent] {
        [beginning, planChange].compactMap { $0 } + commitments
            + [offer, lengthening, refundReversal].compactMap { $0 } + troubles
            + [renewalStatus, pendingChange, consent, account].compactMap { $0 }
    }

    // MARK: A purchase has begun

    private var isNewPurchase: Bool { before.map { $0.row.transaction.id != after.row.transaction.id } ?? true }

    private var wasRetrying: Bool {
        guard let was else { return false }
        return was.state == .grace || was.state == .billingRetry || was.retry != nil || was.graceUntil != nil
    }

    private var hasOtherPlan: Bool {
        guard let was else { return false }
        return was.productId != now.productId || was.billingPlan != now.billingPlan
    }

    /// It took the place of one that had not ended.
    private var isChangeInMidst: Bool {
        guard let replaced = after.rowBefore else { return false }
        if replaced.transaction.isUpgraded { return true }
        guard hasOtherPlan, case .period(let expires, _) = replaced.term else { return false }
        return after.row.start < expires
    }

    /// Nothing was had right before it.
    private var isReturn: Bool { now.since == after.row.start && !isChangeInMidst }

    private var beginning: EntitlementEvent? {
        guard isNewPurchase else { return nil }
        let start = after.row.start
        if after.row.isOneTime { return EntitlementEvent(.purchased, at: start) }
        if before == nil { return EntitlementEvent(.started, at: start) }
        if wasRetrying { return EntitlementEvent(.recovered, at: start) }
        if isReturn { return EntitlementEvent(.resubscribed, at: start) }
        return isChangeInMidst ? nil : EntitlementEvent(.renewed, at: start)
    }

    private var planChange: EntitlementEvent? {
        guard hasOtherPlan, !after.row.isOneTime else { return nil }
        return EntitlementEvent(.planChanged, at: isNewPurchase ? after.row.start : told)
    }

    private var commitments: [EntitlementEvent] {
        var events: [EntitlementEvent] = []
        if let before, let commitment = was?.commitment, let period = commitment.period, period >= commitment.of ?? 12,
            let end = before.row.end, was?.state != .revoked
        {
            // Its last month was paid and is over.
            let isFollowed = isNewPurchase && !isChangeInMidst && !wasRetrying
            let isOver = !isNewPurchase && now.state == .expired && now.reason != .billing && was?.state != .expired
            if isFollowed || isOver { events.append(EntitlementEvent(.commitmentCompleted, at: end)) }
        }
        if after.row.isCommitment, isNewPurchase,
            before?.row.isCommitment != true || now.commitment?.period == 1 || isReturn && !wasRetrying
        {
            events.append(EntitlementEvent(.commitmentStarted, at: after.row.start))
        }
        return events
    }

    private var offer: EntitlementEvent? {
        guard let offer = now.offer, offer != was?.offer else { return nil }
        return EntitlementEvent(.offerRedeemed, at: isNewPurchase ? after.row.start : told)
    }

    // MARK: The same purchase

    private var lengthening: EntitlementEvent? {
        guard let before, !isNewPurchase, case .period(let expires, _) = after.row.term,
            case .period(let expired, _) = before.row.term, expires > expired
        else { return nil }
        return EntitlementEvent(.extended, at: told)
    }

    private var refundReversal: EntitlementEvent? {
        guard !isNewPurchase, was?.state == .revoked, now.state != .revoked else { return nil }
        return EntitlementEvent(.refundReversed, at: told)
    }

    // MARK: It fails, or ends

    private var troubles: [EntitlementEvent] {
        var events: [EntitlementEvent] = []
        let isNews = isNewPurchase || was?.state != now.state
        let ended = now.accessUntil ?? told
        switch (now.state, now.reason) {
        case (.grace, _) where isNews:
            if case .period(let expires, _) = after.row.term {
                events.append(EntitlementEvent(.enteredGrace, at: expires))
            }
        case (.billingRetry, _) where isNews: events.append(EntitlementEvent(.enteredBillingRetry, at: ended))
        case (.revoked, .refund) where isNews:
            events.append(EntitlementEvent(.refunded, at: after.row.transaction.revocationDate ?? told))
        case (.revoked, _) where isNews:
            events.append(EntitlementEvent(.familyRevoked, at: after.row.transaction.revocationDate ?? told))
        default: break
        }
        if was?.access == true, !now.access, now.state == .billingRetry || now.state == .revoked {
            events.append(EntitlementEvent(.accessEnded, at: ended))
        }
        if now.state == .expired, isNews {
            // Access may have ended long before: in billing retry it is the retrying that ends now.
            let endsNow = isNewPurchase || was?.access == true
            events.append(EntitlementEvent(.expired, at: endsNow ? ended : told))
        }
        return events
    }

    // MARK: What is to come

    private var renewalStatus: EntitlementEvent? {
        // At its end Apple turns the renewal off; whoever comes back has it on. Both are told already.
        guard let was = was?.autoRenew, let now = now.autoRenew, was != now, after.entitlement.state != .expired,
            !(isNewPurchase && isReturn)
        else { return nil }
        return EntitlementEvent(now ? .renewalTurnedOn : .renewalTurnedOff, at: told)
    }

    private var pendingChange: EntitlementEvent? {
        guard now.pendingProductId != nil || now.pendingBillingPlan != nil,
            now.pendingProductId != was?.pendingProductId || now.pendingBillingPlan != was?.pendingBillingPlan
        else { return nil }
        return EntitlementEvent(.planChangePending, at: told)
    }

    private var consent: EntitlementEvent? {
        guard let consent = now.priceConsent, consent != was?.priceConsent else { return nil }
        return EntitlementEvent(.priceConsentChanged, at: told)
    }

    private var account: EntitlementEvent? {
        guard let token = now.appAccountToken, token != was?.appAccountToken else { return nil }
        return EntitlementEvent(.accountBound, at: told)
    }
}
