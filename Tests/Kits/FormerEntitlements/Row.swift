// One transaction in its place among the others.

internal import Contract
import Notices

/// A transaction, and the renewal infos about its period.
struct Row: Sendable {
    enum Term: Sendable {
        /// nil: it has no end.
        case oneTime(until: Int64?)
        case period(until: Int64, isCommitment: Bool)
    }

    let facts: PurchaseFacts
    /// The purchase date, copied here because rows are searched by it.
    let start: Int64
    let term: Term
    /// The infos about this row and not about a newer one, oldest first.
    var infos: [RenewalInfo] = []
    /// The end without leeway and without refunds. nil: the row does not end.
    private(set) var end: Int64?
    /// When the continuous access that this row belongs to began.
    var since: Int64 = 0

    var transaction: Transaction { facts.transaction }

    init(_ facts: PurchaseFacts, _ rules: EntitlementRules) {
        self.facts = facts
        start = facts.transaction.purchaseDate
        if let expires = facts.transaction.expiresDate, !facts.transaction.terms.isOneTime {
            term = .period(until: expires, isCommitment: facts.transaction.terms.billingPlan == .monthly)
        } else {
            let period = rules.product(of: facts.transaction).period
            term = .oneTime(until: period.map { adding($0, to: facts.transaction.purchaseDate) })
        }
    }

    /// Rows are sorted by start; an upgraded row comes before the row that replaced it.
    func precedes(_ other: Row) -> Bool {
        if start != other.start { return start < other.start }
        let (left, right) = (transaction, other.transaction)
        let leftUpgrade = left.isUpgraded ? 0 : 1
        let rightUpgrade = right.isUpgraded ? 0 : 1
        return (leftUpgrade, left.expiresDate ?? 0, left.id) < (rightUpgrade, right.expiresDate ?? 0, right.id)
    }

    var isCommitment: Bool { if case .period(_, true) = term { true } else { false } }
    var isOneTime: Bool { if case .oneTime = term { true } else { false } }

    // MARK: Renewal infos

    /// Apple sets the dates of one purchase at slightly different moments.
    private static let tolerance: Int64 = 5_000

    /// Whether the info is about this row's period. It is not if it was signed before the row was known, or if this row
    /// is the renewal that it announces. A backfilled row is signed late and an early renewal begins late, so the
    /// earlier of the two dates counts.
    func isTold(by info: RenewalInfo) -> Bool {
        info.version.signedDate >= adding(min(facts.firstSigned, start), -Self.tolerance)
            && info.renewalDate.map { $0 > start } ?? true
    }

    /// A commitment is billed even if the customer has cancelled.
    func isRetrying(_ info: RenewalInfo) -> Bool { info.showsRetry && (isCommitment || !info.isCancelled) }

    /// The end of the grace period. It is nil without a grace period; commitments never have one.
    func grace(_ info: RenewalInfo) -> Int64? {
        guard case .period(let expires, false) = term, isRetrying(info), let end = info.gracePeriodExpiresDate,
            end > expires
        else { return nil }
        return end
    }

    /// The last period of a commitment that the customer does not continue.
    func isLastPeriod(_ info: RenewalInfo) -> Bool {
        guard isCommitment, info.commitment?.autoRenewStatus == 0, let commitment = transaction.commitment,
            let period = commitment.period
        else { return false }
        return period >= commitment.of ?? 12
    }

    func expectsRenewal(_ info: RenewalInfo) -> Bool {
        info.autoRenewStatus == 1 && !isRetrying(info) && info.expirationIntent == nil && facts.expiry == nil
            && !isLastPeriod(info)
    }

    // MARK: Ends

    /// To be called after the infos have been added.
    mutating func setEnd(startOfNext: Int64?) {
        switch term {
        case .oneTime(let until): end = until
        case .period(let expires, _):
            var latest = expires
            for (place, info) in infos.enumerated() {
                // An unused rest of grace ended with the next info: paid, cancelled or given up.
                let next = place + 1 < infos.count ? infos[place + 1].version.signedDate : .max
                if let grace = grace(info) { latest = max(latest, min(grace, next)) }
            }
            end = min(latest, startOfNext ?? .max)
        }
    }

    /// When access ended, if it has ended. For a commitment this is when the first failure was reported.
    var ended: Int64? {
        guard isCommitment, let end else { return end }
        return infos.first(where: isRetrying).map { min(end, $0.version.signedDate) } ?? end
    }

    /// The actual end of use: a revocation ends it early.
    var endOrRevocation: Int64? {
        guard let revocation = facts.transaction.revocationDate else { return end }
        return end.map { min($0, revocation) } ?? revocation
    }

    var isRefunded: Bool { facts.transaction.revocationDate != nil && !facts.transaction.isUpgraded }

    var isRevokedByFamily: Bool {
        transaction.revocationType == .familyRevoke || transaction.revocationType == .assignmentRevoke
            || transaction.ownership == .familyShared || transaction.ownership == .assigned
    }
}
