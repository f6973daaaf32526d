// The state function: the first matching rule decides.

internal import Contract
internal import Notices
internal import Records
import SubscriptionHistory

extension Course {
    struct Verdict: Equatable {
        var state: Entitlement.State
        var reason: Entitlement.Reason?
        /// nil: access does not end.
        var accessUntil: Int64?

        var access: Bool { state == .active || state == .grace || state == .owned }
    }

    /// Takes all known rows into account, including future ones: access continues into a later row, or ends there if
    /// that row gives no access.
    func verdict(at instant: Int64) -> Verdict {
        let current = place(at: instant)
        var verdict = verdict(of: rows[current], at: instant)
        guard verdict.access else { return verdict }
        var next = current + 1
        while next < rows.count, verdict.accessUntil.map({ rows[next].start <= $0 }) ?? true {
            let start = rows[next].start
            let last = place(at: start)
            let later = self.verdict(of: rows[last], at: start)
            guard later.access else {
                verdict.accessUntil = start
                break
            }
            verdict.accessUntil = later.accessUntil
            next = last + 1
        }
        return verdict
    }

    /// The verdict for one row, as if there were no later rows.
    func verdict(of row: Row, at instant: Int64) -> Verdict {
        var verdict = ruling(of: row, at: instant)
        // A date before the purchase would claim access that nobody had.
        verdict.accessUntil = verdict.accessUntil.map { max($0, row.start) }
        return verdict
    }

    private func ruling(of row: Row, at instant: Int64) -> Verdict {
        if let revocation = row.revocationDate, row.isRevokedByFamily {
            return Verdict(state: .revoked, reason: .family, accessUntil: earlier(revocation, ended(row)))
        }
        // This comes before refunds: an upgrade refunds the old row but is not a refund.
        if row.isUpgraded {
            let date = row.revocationDate ?? row.firstUpgraded
            return Verdict(state: .superseded, accessUntil: date.map { earlier($0, ended(row)) } ?? ended(row))
        }
        if let revocation = row.revocationDate {
            return Verdict(state: .revoked, reason: .refund, accessUntil: earlier(revocation, ended(row)))
        }
        switch row.term {
        case .oneTime(nil): return Verdict(state: .owned)
        case .oneTime(let end?): return Verdict(state: instant < end ? .active : .expired, accessUntil: end)
        case .period(let expires, _): return ruling(of: row, expires: expires, info(of: row), at: instant)
        }
    }

    private func ruling(of row: Row, expires: Int64, _ info: Info?, at instant: Int64) -> Verdict {
        if let info, row.isRetrying(info) {
            let grace = row.grace(info)
            if !row.isCommitment && instant < expires {
                return Verdict(state: .active, accessUntil: grace ?? expires)
            }
            if let grace, instant < grace { return Verdict(state: .grace, accessUntil: grace) }
            if isInWindow(row, expires: expires, at: instant) {
                return Verdict(state: .billingRetry, accessUntil: ended(row))
            }
            // Nothing was reported for longer than Apple retries: the retry has ended.
            return Verdict(state: .expired, reason: expiryReason(of: row, info), accessUntil: ended(row))
        }
        let expectsRenewal = info.map { self.expectsRenewal(row, $0) } ?? false
        let end = expectsRenewal ? adding(expires, rules.leeway) : expires
        if instant < end { return Verdict(state: .active, accessUntil: end) }
        // The leeway gave access until its end, even if the row's own end was earlier.
        let ended = expectsRenewal ? ended(row).map { max($0, end) } : ended(row)
        return Verdict(state: .expired, reason: expiryReason(of: row, info), accessUntil: ended)
    }

    func isInWindow(_ row: Row, expires: Int64, at instant: Int64) -> Bool {
        rules.retryWindow(isCommitment: row.isCommitment).map { instant < adding(expires, $0) } ?? true
    }

    private func expiryReason(of row: Row, _ info: Info?) -> Entitlement.Reason {
        if let intent = info?.expirationIntent { return Entitlement.Reason(EndReason(expirationIntent: intent)) }
        if let expiry = row.expiry {
            let reason = history.texts.bytes(expiry.subtype).flatMap { EndReason(expiredSubtype: $0) }
            return reason.map { Entitlement.Reason($0) } ?? .other
        }
        guard let info else { return .unknown }
        if row.isRetrying(info) { return .billing }
        return info.autoRenewStatus == 0 || isLastPeriod(row, info) ? .voluntary : .unknown
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

extension Entitlement.Reason {
    fileprivate init(_ reason: EndReason) {
        switch reason {
        case .voluntary: self = .voluntary
        case .billing: self = .billing
        case .price: self = .price
        case .unavailable: self = .unavailable
        case .other: self = .other
        }
    }
}

/// nil counts as the latest of all.
private func earlier(_ left: Int64, _ right: Int64?) -> Int64 { right.map { min(left, $0) } ?? left }
