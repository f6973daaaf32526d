// One transaction in its place among the others.

internal import Contract
import Notices

/// A transaction, and what renewal infos say of its period.
struct Row: Sendable {
    enum Term: Sendable {
        /// nil: for ever.
        case oneTime(until: Int64?)
        case period(until: Int64, isCommitment: Bool)
    }

    let facts: PurchaseFacts
    /// Of the purchase: here once more, as rows are searched by it.
    let start: Int64
    let term: Term
    /// Those that speak of this row and of no newer one, from the oldest to the newest.
    var infos: [RenewalInfo] = []
    /// Without leeway, and as if nothing was refunded. nil: never.
    private(set) var end: Int64?
    /// The beginning of the unbroken access that this row belongs to.
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

    /// The order of everything: by beginning; the one that was upgraded away from is before the one that took its place.
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

    /// For dates that Apple takes at different moments of one purchase.
    private static let tolerance: Int64 = 5_000

    /// Whether it speaks of this row's period: one from before the row was known, or whose renewal this row is, does not. A row
    /// that came by backfill is signed late, an early renewal begins late: the earlier of the two dates counts.
    func isTold(by info: RenewalInfo) -> Bool {
        info.version.signedDate >= adding(min(facts.firstSigned, start), -Self.tolerance)
            && info.renewalDate.map { $0 > start } ?? true
    }

    /// A commitment is billed whatever the customer says.
    func isRetrying(_ info: RenewalInfo) -> Bool { info.showsRetry && (isCommitment || !info.isCancelled) }

    /// The end of the grace that is granted; nil when none is. Commitments have none.
    func grace(_ info: RenewalInfo) -> Int64? {
        guard case .period(let expires, false) = term, isRetrying(info), let end = info.gracePeriodExpiresDate,
            end > expires
        else { return nil }
        return end
    }

    /// The last of a commitment that the customer does not continue.
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

    /// To be called when the infos are there.
    mutating func setEnd(startOfNext: Int64?) {
        switch term {
        case .oneTime(let until): end = until
        case .period(let expires, _):
            var latest = expires
            for (place, info) in infos.enumerated() {
                // Grace that was not used up ended with the news that followed: paid, cancelled or given up.
                let next = place + 1 < infos.count ? infos[place + 1].version.signedDate : .max
                if let grace = grace(info) { latest = max(latest, min(grace, next)) }
            }
            end = min(latest, startOfNext ?? .max)
        }
    }

    /// When access ended if it has. Of a commitment that is when the first failure was told.
    var ended: Int64? {
        guard isCommitment, let end else { return end }
        return infos.first(where: isRetrying).map { min(end, $0.version.signedDate) } ?? end
    }

    /// What was had of it: a revoked one ends early.
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
