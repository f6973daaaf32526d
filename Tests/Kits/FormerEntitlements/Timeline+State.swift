// The state function: the first matching rule decides.

internal import Contract
internal import Notices
internal import Records

extension Timeline {
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
        let transaction = row.transaction
        if let revocation = transaction.revocationDate, row.isRevokedByFamily {
            return Verdict(state: .revoked, reason: .family, accessUntil: earlier(revocation, row.ended))
        }
        // This comes before refunds: an upgrade refunds the old row but is not a refund.
        if transaction.isUpgraded {
            let date = transaction.revocationDate ?? row.facts.firstUpgraded
            return Verdict(state: .superseded, accessUntil: date.map { earlier($0, row.ended) } ?? row.ended)
        }
        if let revocation = transaction.revocationDate {
            return Verdict(state: .revoked, reason: .refund, accessUntil: earlier(revocation, row.ended))
        }
        switch row.term {
        case .oneTime(nil): return Verdict(state: .owned)
        case .oneTime(let end?): return Verdict(state: instant < end ? .active : .expired, accessUntil: end)
        case .period(let expires, _): return ruling(of: row, expires: expires, info(of: row), at: instant)
        }
    }

    private func ruling(of row: Row, expires: Int64, _ info: RenewalInfo?, at instant: Int64) -> Verdict {
        if let info, row.isRetrying(info) {
            let grace = row.grace(info)
            if !row.isCommitment && instant < expires {
                return Verdict(state: .active, accessUntil: grace ?? expires)
            }
            if let grace, instant < grace { return Verdict(state: .grace, accessUntil: grace) }
            if isInWindow(row, expires: expires, at: instant) {
                return Verdict(state: .billingRetry, accessUntil: row.ended)
            }
            // Nothing was reported for longer than Apple retries: the retry has ended.
            return Verdict(state: .expired, reason: expiryReason(of: row, info), accessUntil: row.ended)
        }
        let expectsRenewal = info.map(row.expectsRenewal) ?? false
        let end = expectsRenewal ? adding(expires, rules.leeway) : expires
        if instant < end { return Verdict(state: .active, accessUntil: end) }
        // The leeway gave access until its end, even if the row's own end was earlier.
        let ended = expectsRenewal ? row.ended.map { max($0, end) } : row.ended
        return Verdict(state: .expired, reason: expiryReason(of: row, info), accessUntil: ended)
    }

    func isInWindow(_ row: Row, expires: Int64, at instant: Int64) -> Bool {
        rules.retryWindow(isCommitment: row.isCommitment).map { instant < adding(expires, $0) } ?? true
    }

    private func expiryReason(of row: Row, _ info: RenewalInfo?) -> Entitlement.Reason {
        if let intent = info?.expirationIntent { return Entitlement.Reason(EndReason(expirationIntent: intent)) }
        if let expiry = row.facts.expiry {
            let reason = expiry.subtype.bytes.withUnsafeBufferPointer { EndReason(expiredSubtype: $0) }
            return reason.map { Entitlement.Reason($0) } ?? .other
        }
        guard let info else { return .unknown }
        if row.isRetrying(info) { return .billing }
        return info.autoRenewStatus == 0 || row.isLastPeriod(info) ? .voluntary : .unknown
    }
}

/// nil counts as the latest of all.
private func earlier(_ left: Int64, _ right: Int64?) -> Int64 { right.map { min(left, $0) } ?? left }
