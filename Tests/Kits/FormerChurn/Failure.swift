// A failed payment and its outcome.

internal import Contract

struct Failure: Equatable {
    enum Outcome: Equatable {
        case recovered, cancelled, lost, other
    }

    struct Decision: Equatable {
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

    /// Whether the payment for the period after this row is known to have failed; the next row may be the only proof.
    static func exists(_ place: Int, of rows: [Row]) -> Bool {
        if rows[place].hasFailed { return true }
        return place + 1 < rows.count && rows[place + 1].provesFailure(of: rows[place])
    }

    /// nil if no failure is known.
    init?(_ place: Int, of rows: [Row], _ facts: Facts, at clock: Int64) {
        guard Self.exists(place, of: rows) else { return nil }
        let row = rows[place]
        let next = place + 1 < rows.count ? rows[place + 1] : nil
        let due = row.expires
        let notices = row.notices.lazy.map { facts.notices[$0] }
        let first =
            notices.first { $0.type == .didFailToRenew }?.signedDate
            ?? notices.first(where: \.provesFailure)?.signedDate
        self.due = due
        failedAt = max(min(first ?? due, due, next?.start ?? .max), row.start)
        window = Self.window(of: row)
        cut = row.isCommitment ? failedAt : due
        if !row.isCommitment {
            var infos = Array(notices.filter(\.provesFailure).compactMap(\.info))
            if let next, next.provesFailure(of: row) {
                infos += next.notices.lazy.map { facts.notices[$0] }.filter(\.isRecovery).compactMap(\.info)
            }
            let newest = infos.filter { $0.gracePeriodExpiresDate.map { $0 > due } ?? false }
                .max { $0.version < $1.version }
            grace = newest?.gracePeriodExpiresDate
        }
        decision = decide(row, next: next, facts, at: clock)
    }

    /// The earliest candidate after the failure decides; of candidates at the same instant, the first in the list.
    private func decide(_ row: Row, next: Row?, _ facts: Facts, at clock: Int64) -> Decision? {
        if let next, next.isFlagged { return Decision(outcome: .recovered, at: next.start) }
        let notices = row.notices.lazy.map { facts.notices[$0] }
        var candidates: [Decision] = []
        if let next { candidates.append(Decision(outcome: next.isRenewal ? .recovered : .other, at: next.start)) }
        // Apple has said that billing was the cause: turning off renewal as well did not decide it.
        if !notices.contains(where: { $0.type == .expired && $0.subtype == .billingRetry }) {
            for date in cancellations(row, facts) {
                candidates.append(Decision(outcome: .cancelled, at: date))
            }
        }
        for expired in notices where expired.type == .expired {
            candidates.append(
                Decision(
                    outcome: expired.subtype == .voluntary ? .cancelled : .lost, at: max(expired.signedDate, cut)))
        }
        if !row.cameToBeReplaced(by: next) {
            for refund in row.refunds where refund.reversal == nil && refund.date < accessEnd {
                candidates.append(Decision(outcome: .other, at: refund.date))
            }
        }
        candidates.append(Decision(outcome: .lost, at: window))
        return candidates.filter { (failedAt...max(clock, failedAt)).contains($0.at) }.enumerated()
            .min { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }?.element
    }

    /// When the customer turned off renewal without turning it on again before the payment was due.
    private func cancellations(_ row: Row, _ facts: Facts) -> [Int64] {
        var dates: [Int64] = []
        for place in row.notices where facts.notices[place].type == .didChangeRenewalStatus {
            let notice = facts.notices[place]
            switch notice.nextRenewal(isCommitment: row.isCommitment) {
            case false?: dates.append(notice.signedDate)
            case true? where notice.signedDate <= due: dates.removeAll()
            default: break
            }
        }
        return dates
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
