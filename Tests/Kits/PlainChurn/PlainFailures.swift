// Failed payments, and how each was decided.

struct PlainFailure {
    enum Outcome { case recovered, lost, cancelled, other }

    let failedAt: Int64
    let graceEnd: Int64?
    /// "*Cut* = due; MONTHLY: failed at."
    let cut: Int64
    fileprivate(set) var decision: (at: Int64, outcome: Outcome)?

    /// "A decision at instant d holds for t >= d."
    func isDecided(at t: Int64) -> Bool { decision.map { t >= $0.at } ?? false }
}

extension PlainFact {
    var isFailure: Bool { type == "DID_FAIL_TO_RENEW" }
    var isBillingRetryEnd: Bool { says("EXPIRED", "BILLING_RETRY") }
    /// "Proof of a lost one."
    var isProof: Bool { type == "GRACE_PERIOD_EXPIRED" || isBillingRetryEnd }
}

extension PlainRow {
    /// "At most one per row: `DID_FAIL_TO_RENEW`, or proof of a lost one: `GRACE_PERIOD_EXPIRED`, `EXPIRED`/`BILLING_RETRY`,
    /// or a flagged next row with `purchaseDate` inside the window."
    func hasFailure(next: PlainRow?) -> Bool {
        if isCarried(by: { $0.isFailure || $0.isProof }) { return true }
        return isProved(by: next)
    }

    private func isProved(by next: PlainRow?) -> Bool {
        guard let next else { return false }
        return next.isFlagged && next.newest.purchase < windowEnd
    }

    func failure(next: PlainRow?, clock: Int64) -> PlainFailure? {
        guard hasFailure(next: next) else { return nil }
        let failedAt = failedAt(next: next)
        var failure = PlainFailure(
            failedAt: failedAt, graceEnd: graceEnd(next: next), cut: isMonthly ? failedAt : due, decision: nil)
        failure.decision = decision(of: failure, next: next, clock: clock)
        return failure
    }

    /// "Failed at = first `signedDate` of the former, else of the proof (flagged row alone: due), but at most due and within
    /// the row's time."
    private func failedAt(next: PlainRow?) -> Int64 {
        let told = carriers.first(where: \.isFailure) ?? carriers.first(where: \.isProof)
        var failedAt = min(told?.signed ?? due, due)
        if let next { failedAt = min(failedAt, next.start) }
        return max(failedAt, start)
    }

    /// "Grace (upfront only) = newest `gracePeriodExpiresDate` after due in these."
    private func graceEnd(next: PlainRow?) -> Int64? {
        guard !isMonthly else { return nil }
        var these = carriers.filter { $0.isFailure || $0.isProof }
        if let next, isProved(by: next) { these += next.carriers.filter { $0.says("DID_RENEW", "BILLING_RECOVERY") } }
        let infos = these.compactMap(\.info)
        let granting = infos.filter { $0.graceEnd.map { $0 > due } ?? false }
        return granting.max { $0.version < $1.version }?.graceEnd
    }

    /// "A flagged next row: *recovered* at its start, whatever else. Otherwise by the earliest since failed at (ties in this
    /// order)."
    private func decision(
        of failure: PlainFailure, next: PlainRow?, clock: Int64
    ) -> (at: Int64, outcome: PlainFailure.Outcome)? {
        if let next, next.isFlagged { return (next.start, .recovered) }
        var candidates: [(at: Int64, outcome: PlainFailure.Outcome)] = []
        // "Next row starts: *recovered* if RENEWAL, else *other*."
        if let next { candidates.append((next.start, next.isRenewal ? .recovered : .other)) }
        candidates += cancellations.map { ($0, .cancelled) }
        candidates += expiries(cut: failure.cut)
        // "Refund, not reversed, before access ends: *other*."
        let accessEnd = failure.graceEnd ?? failure.cut
        if !hasUpgradeRefunds(next: next) {
            for refund in refunds(at: clock) where refund.reversal == nil && refund.date < accessEnd {
                candidates.append((refund.date, .other))
            }
        }
        // "Window: *lost*."
        candidates.append((windowEnd, .lost))
        var earliest: (at: Int64, outcome: PlainFailure.Outcome)?
        for candidate in candidates where candidate.at >= failure.failedAt && candidate.at <= clock {
            if earliest.map({ candidate.at < $0.at }) ?? true { earliest = candidate }
        }
        return earliest
    }

    /// "`DID_CHANGE_RENEWAL_STATUS` with `autoRenewStatus` 0 (absent and upfront: by subtype), not taken back by due, no
    /// `EXPIRED`/`BILLING_RETRY` known: *cancelled*."
    private var cancellations: [Int64] {
        if isCarried(by: \.isBillingRetryEnd) { return [] }
        let changes = carriers.filter { $0.type == "DID_CHANGE_RENEWAL_STATUS" }
        return changes.enumerated().filter { place, change in
            let isTakenBack = changes.dropFirst(place + 1).contains { turnsOn($0) == true && $0.signed <= due }
            return turnsOn(change) == false && !isTakenBack
        }.map(\.element.signed)
    }

    private func turnsOn(_ change: PlainFact) -> Bool? {
        switch (change.info?.autoRenewStatus, change.subtype) {
        case (0, _): false
        case (1, _): true
        case (nil, "AUTO_RENEW_DISABLED") where !isMonthly: false
        case (nil, "AUTO_RENEW_ENABLED") where !isMonthly: true
        default: nil
        }
    }

    /// "`EXPIRED`, not before cut: *cancelled* if `VOLUNTARY`, else *lost*": the first by (max(signedDate, cut), signedDate,
    /// UUID).
    private func expiries(cut: Int64) -> [(at: Int64, outcome: PlainFailure.Outcome)] {
        // In the order of (signedDate, UUID), so the earliest of equals is chosen.
        carriers.filter { $0.type == "EXPIRED" }.map {
            (max($0.signed, cut), $0.subtype == "VOLUNTARY" ? .cancelled : .lost)
        }
    }

    /// "Of a row that is `isUpgraded` or whose next row came by `UPGRADE`: *upgrade refund*, ends nothing."
    func hasUpgradeRefunds(next: PlainRow?) -> Bool { newest.isUpgraded || (next?.isByUpgrade ?? false) }
}
