// What has changed between two answers.

internal import Contract
import SubscriptionHistory

/// One change that somebody may want to act on.
public struct EntitlementEvent: Sendable, Equatable, BitwiseCopyable {
    /// The words in the records.
    public enum Kind: String, Sendable, CaseIterable, BitwiseCopyable {
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
        case superseded
        case accessEnded = "access_ended"
        case expired
        case renewalTurnedOff = "renewal_turned_off"
        case renewalTurnedOn = "renewal_turned_on"
        case planChangePending = "plan_change_pending"
        case priceConsentChanged = "price_consent_changed"
        case accountBound = "account_bound"
    }

    public var kind: Kind
    /// When it took effect by Apple's dates; if there is no such date, when Apple reported it.
    public var at: Int64

    public init(_ kind: Kind, at: Int64) {
        self.kind = kind
        self.at = at
    }

    /// An event is historic if it took effect longer ago than this: no mail should be sent for it.
    static let historicAfter: Int64 = 86_400_000

    /// - Parameter clock: when the event is written.
    public func isHistoric(at clock: Int64) -> Bool { at < adding(clock, -Self.historicAfter) }
}

extension Standing {
    /// Adds the changes since `before`, in the order of `Kind`, each kind at most once. If several things became known
    /// at once, this is the net change.
    /// - Parameters:
    ///   - before: the last published state; nil: nothing was published.
    ///   - told: when Apple reported the change; for a change by time alone, when it was due.
    func addEvents(since before: Told?, told: Int64, to events: inout Scratch<EntitlementEvent>) {
        Comparison(before: before, after: self, told: told).addEvents(to: &events)
    }
}

/// Each kind follows from the published state and the current state, whatever the notification was called.
private struct Comparison {
    let before: Told?
    let after: Standing
    let told: Int64

    private var now: Answer { after.answer }

    func addEvents(to events: inout Scratch<EntitlementEvent>) {
        func add(_ kind: EntitlementEvent.Kind, at instant: Int64?) {
            if let instant { events.append(EntitlementEvent(kind, at: instant)) }
        }
        if let beginning { add(beginning.kind, at: beginning.at) }
        add(.planChanged, at: planChanged)
        add(.commitmentCompleted, at: commitmentCompleted)
        add(.commitmentStarted, at: commitmentStarted)
        add(.offerRedeemed, at: offerRedeemed)
        add(.extended, at: extended)
        add(.refundReversed, at: refundReversed)
        add(.enteredGrace, at: enters(.grace) ? after.row.expires : nil)
        add(.enteredBillingRetry, at: enters(.billingRetry) ? ended : nil)
        if enters(.revoked) {
            add(now.reason == .refund ? .refunded : .familyRevoked, at: after.row.revocationDate ?? told)
        }
        add(.superseded, at: superseded)
        add(.accessEnded, at: accessEnded)
        add(.expired, at: expired)
        if let renews = renewalTurned { add(renews ? .renewalTurnedOn : .renewalTurnedOff, at: told) }
        add(.planChangePending, at: planChangePending)
        add(.priceConsentChanged, at: priceConsentChanged)
        add(.accountBound, at: accountBound)
    }

    // MARK: A purchase has begun

    private var isNewPurchase: Bool { before.map { $0.purchase != after.row.id } ?? true }
    private var hasOtherPlan: Bool { before.map { $0.plan != after.plan } ?? false }
    private var start: Int64 { after.row.start }

    /// It replaced a purchase that had not ended.
    private var isChangeInMidst: Bool {
        guard let replaced = after.rowBefore else { return false }
        if replaced.isUpgraded { return true }
        guard hasOtherPlan, case .period(let expires, _) = replaced.term else { return false }
        return start < expires
    }

    /// There was no access right before it. If access ended only because no renewal was reported, the report may have
    /// been late, and the renewal may come up to the leeway later.
    private var isReturn: Bool {
        guard let before, !before.access, now.since == start else { return false }
        guard before.state == .expired, before.reason == .unknown, let end = after.rowBefore?.end else { return true }
        return start > adding(end, after.leeway)
    }

    private var beginning: EntitlementEvent? {
        guard isNewPurchase else {
            // The purchase that recovered the payment begins only when this one ends.
            guard let before, before.isRetrying, !after.isRetrying, now.access, after.hasRowAfter else {
                return nil
            }
            return EntitlementEvent(.recovered, at: told)
        }
        if after.row.isOneTime { return EntitlementEvent(.purchased, at: start) }
        guard let before else { return EntitlementEvent(.started, at: start) }
        if isChangeInMidst || before.isRecovered { return nil }
        if before.isRetrying { return EntitlementEvent(.recovered, at: start) }
        return EntitlementEvent(isReturn ? .resubscribed : .renewed, at: start)
    }

    private var planChanged: Int64? {
        guard hasOtherPlan, !after.row.isOneTime else { return nil }
        return isNewPurchase ? start : told
    }

    private var commitmentCompleted: Int64? {
        guard let before, let end = before.lastMonthEnd, !before.isCompleted, before.state != .revoked else {
            return nil
        }
        let isFollowed = isNewPurchase && start >= end
        let isOver = !isNewPurchase && now.state == .expired
        return isFollowed || isOver ? end : nil
    }

    private var commitmentStarted: Int64? {
        guard after.row.isCommitment, isNewPurchase else { return nil }
        let isFirst = now.commitment?.period.map { $0 == 1 } ?? (before?.isCommitment != true || isReturn)
        return isFirst ? start : nil
    }

    private var offerRedeemed: Int64? {
        guard now.offer != nil, before?.offer != after.offer else { return nil }
        return isNewPurchase ? start : told
    }

    // MARK: The same purchase

    private var extended: Int64? {
        guard !isNewPurchase, let expires = after.row.expires, let expired = before?.expires, expires > expired else {
            return nil
        }
        return told
    }

    private var refundReversed: Int64? {
        guard !isNewPurchase, before?.state == .revoked, after.row.revocationDate == nil else { return nil }
        return told
    }

    // MARK: It fails, or ends

    private var ended: Int64 { now.accessUntil ?? told }

    private func enters(_ state: Entitlement.State) -> Bool {
        now.state == state && (isNewPurchase || before?.state != state)
    }

    /// Another purchase took its place, and nothing about that purchase is known yet.
    private var superseded: Int64? {
        guard enters(.superseded) else { return nil }
        return after.row.revocationDate ?? after.row.firstUpgraded ?? told
    }

    private var accessEnded: Int64? {
        guard before?.access == true, now.state == .billingRetry || now.state == .revoked else { return nil }
        return ended
    }

    private var expired: Int64? {
        guard enters(.expired) else { return nil }
        // Access had ended long before; now the retry ends.
        return before?.state == .billingRetry && !isNewPurchase ? told : ended
    }

    // MARK: What is to come

    private var renewalTurned: Bool? {
        guard let before = before?.renews, let renews = after.renews, before != renews else { return nil }
        // Apple turns renewal off when it gives up, and on when a customer returns. Other events report both already.
        if now.state == .expired && now.reason != .voluntary || isNewPurchase && isReturn { return nil }
        return renews
    }

    private var planChangePending: Int64? {
        let isPending = !now.pendingProductId.isNone || !now.pendingBillingPlan.isNone
        return isPending && before?.pending != after.pending ? told : nil
    }

    private var priceConsentChanged: Int64? {
        now.priceConsent != nil && now.priceConsent != before?.priceConsent ? told : nil
    }

    private var accountBound: Int64? {
        guard let token = after.account, token != before?.account else { return nil }
        return isNewPurchase ? start : told
    }
}
