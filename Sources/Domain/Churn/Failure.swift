// A failed payment and its outcome.

internal import Contract
internal import SubscriptionHistory

struct Failure {
    enum Outcome {
        case recovered, cancelled, lost, other
    }

    struct Decision {
        var outcome: Outcome
        var at: Int64
    }

    /// When the payment was due.
    var due: Int64
    var failedAt: Int64
    /// The end of the grace period; nil: Apple granted no grace.
    var grace: Int64?
    /// When Apple stops retrying.
    var window: Int64
    /// When access ends if there is no grace period. A commitment billed by the month loses access at the first
    /// failure.
    var cut: Int64
    /// nil: it is not decided yet.
    var decision: Decision?

    func isDecided(at instant: Int64) -> Bool { decision.map { $0.at <= instant } ?? false }

    /// Access lasts until then if nothing else happens.
    var accessEnd: Int64 { grace ?? cut }
}

extension Failure {
    private static let window: Int64 = 60 * millisecondsPerDay
    private static let windowOfCommitment: Int64 = 90 * millisecondsPerDay

    fileprivate static func window(of row: Row) -> Int64 {
        adding(row.expires, row.isCommitment ? windowOfCommitment : window)
    }
}

extension Timeline {
    /// Whether the payment for the period after this row is known to have failed; the next row may be the only proof.
    @inline(__always) func hasFailure(_ place: Int) -> Bool {
        if rows[place].hasFailed { return true }
        return place + 1 < rows.count && rows[place + 1].provesFailure(of: rows[place])
    }

    /// Of a row whose payment is known to have failed.
    func failure(_ place: Int) -> Failure {
        let row = rows[place]
        let next = next(after: place)
        let due = row.expires
        let first = firstFailure(row)
        let failedAt = max(min(first ?? due, due, next?.start ?? .max), row.start)
        var failure = Failure(
            due: due, failedAt: failedAt, window: Failure.window(of: row), cut: row.isCommitment ? failedAt : due)
        if !row.isCommitment {
            failure.grace = grace(after: row, next)
        }
        failure.decision = decision(of: failure, row, next)
        return failure
    }

    /// When the first attempt was told; of failures that were not told, when they were proved.
    private func firstFailure(_ row: Row) -> Int64? {
        var proved: Int64?
        for place in notices(of: row) {
            if facts.notices[place].type == .didFailToRenew { return facts.notices[place].signedDate }
            if facts.notices[place].provesFailure { proved = proved ?? facts.notices[place].signedDate }
        }
        return proved
    }

    /// As the newest info says that came with the failure or with what proves it.
    private func grace(after row: Row, _ next: Row?) -> Int64? {
        var newest: Info?
        func take(_ info: Info?) {
            guard let info, let grace = info.gracePeriodExpiresDate, grace > row.expires else { return }
            if newest.map({ $0.version < info.version }) ?? true { newest = info }
        }
        for place in notices(of: row) where facts.notices[place].provesFailure { take(facts.notices[place].info) }
        if let next, next.provesFailure(of: row) {
            for place in notices(of: next) where facts.notices[place].isRecovery { take(facts.notices[place].info) }
        }
        return newest?.gracePeriodExpiresDate
    }

    /// The earliest candidate after the failure decides; of candidates at the same instant, the first one here.
    private func decision(of failure: Failure, _ row: Row, _ next: Row?) -> Failure.Decision? {
        if let next, next.isFlagged { return Failure.Decision(outcome: .recovered, at: next.start) }
        var earliest: Failure.Decision?
        func take(_ outcome: Failure.Outcome, at instant: Int64) {
            guard failure.failedAt <= instant, instant <= max(clock, failure.failedAt) else { return }
            if earliest.map({ instant < $0.at }) ?? true {
                earliest = Failure.Decision(outcome: outcome, at: instant)
            }
        }
        if let next { take(next.isRenewal ? .recovered : .other, at: next.start) }
        if let cancelled = cancellation(after: failure, row) { take(.cancelled, at: cancelled) }
        for place in notices(of: row) where facts.notices[place].type == .expired {
            let isVoluntary = facts.notices[place].subtype == .voluntary
            take(isVoluntary ? .cancelled : .lost, at: max(facts.notices[place].signedDate, failure.cut))
        }
        if !row.cameToBeReplaced(by: next) {
            for number in row.refunds
            where refunds[number].reversal == nil && refunds[number].date < failure.accessEnd {
                take(.other, at: refunds[number].date)
            }
        }
        take(.lost, at: failure.window)
        return earliest
    }

    /// When the customer first turned off renewal since the failure, without turning it on again before the payment was
    /// due.
    private func cancellation(after failure: Failure, _ row: Row) -> Int64? {
        var first: Int64?
        for place in notices(of: row) {
            let date = facts.notices[place].signedDate
            switch facts.notices[place].type {
            // Apple has said that billing was the cause: turning off renewal as well did not decide it.
            case .expired where facts.notices[place].subtype == .billingRetry: return nil
            case .didChangeRenewalStatus:
                switch facts.notices[place].nextRenewal(isCommitment: row.isCommitment) {
                case false? where date >= failure.failedAt: first = first ?? date
                case true? where date <= failure.due: first = nil
                default: break
                }
            default: break
            }
        }
        return first
    }
}

extension Row {
    /// The payment succeeded within the retry window: so it had failed before, whether or not Apple reported that.
    fileprivate func provesFailure(of before: Row) -> Bool {
        isFlagged && transaction.purchaseDate < Failure.window(of: before)
    }

    /// An upgrade replaced the row: its refund covers the unused rest, and the customer has not left.
    func cameToBeReplaced(by next: Row?) -> Bool { transaction.isUpgraded || next?.cameByUpgrade ?? false }
}

extension Notice {
    /// Reports a failed payment, or proves one that was not reported.
    var provesFailure: Bool {
        type == .didFailToRenew || type == .gracePeriodExpired || type == .expired && subtype == .billingRetry
    }

    /// Whether the next period will be billed, according to this change; nil: it does not say.
    fileprivate func nextRenewal(isCommitment: Bool) -> Bool? {
        switch info?.autoRenewStatus {
        case 0: return false
        case 1: return true
        case nil where !isCommitment:
            // For a commitment the subtype is about what follows the commitment.
            if subtype == .autoRenewDisabled { return false }
            return subtype == .autoRenewEnabled ? true : nil
        default: return nil
        }
    }
}
