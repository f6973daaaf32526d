// One transaction in its place among the others.

internal import Contract
internal import Notices
import SubscriptionHistory

/// A transaction, and which renewal infos are about its period.
struct Row: BitwiseCopyable {
    enum Term: BitwiseCopyable {
        /// nil: it has no end.
        case oneTime(until: Int64?)
        case period(until: Int64, isCommitment: Bool)
    }

    /// In the history, which keeps it as long as the rows are used.
    private let place: UnsafePointer<Purchase>
    /// The purchase date, copied here because rows are searched by it.
    let start: Int64
    let term: Term
    let meaning: Terms.Meaning
    /// The infos about this row and not about a newer one are a chain, oldest first: the places of the first and the
    /// last in the history; -1: no info.
    var firstRenewal: Int32 = -1
    var lastRenewal: Int32 = -1
    /// The end without leeway and without refunds. nil: the row does not end.
    var end: Int64?
    /// When the continuous access that this row belongs to began.
    var since: Int64 = 0

    var purchase: Purchase { place.pointee }
    var id: PurchaseId { place.pointee.id }
    var expiresDate: Int64? { place.pointee.expiresDate }
    var revocationDate: Int64? { place.pointee.revocationDate }
    var isUpgraded: Bool { place.pointee.isUpgraded }
    var firstUpgraded: Int64? { place.pointee.firstUpgraded }
    var firstSigned: Int64 { place.pointee.firstSigned }
    var expiry: Purchase.Expiry? { place.pointee.expiry }
    /// In the history.
    var terms: Int { Int(place.pointee.terms) }

    /// - Parameter period: how long a product lasts that does not renew; nil: it has no end.
    init(_ place: UnsafePointer<Purchase>, _ meaning: Terms.Meaning, period: () -> Period?) {
        self.place = place
        self.meaning = meaning
        start = place.pointee.purchaseDate
        if let expires = place.pointee.expiresDate, !meaning.isOneTime {
            term = .period(until: expires, isCommitment: meaning.isMonthly)
        } else {
            let start = start
            term = .oneTime(until: period().map { adding($0, to: start) })
        }
    }

    /// Rows are sorted by start; an upgraded row comes before the row that replaced it.
    func precedes(_ other: Row) -> Bool {
        if start != other.start { return start < other.start }
        if isUpgraded != other.isUpgraded { return isUpgraded }
        let (end, otherEnd) = (expiresDate ?? 0, other.expiresDate ?? 0)
        return end == otherEnd ? id < other.id : end < otherEnd
    }

    var isCommitment: Bool { if case .period(_, true) = term { true } else { false } }
    var isOneTime: Bool { if case .oneTime = term { true } else { false } }

    // MARK: Renewal infos

    /// Apple sets the dates of one purchase at slightly different moments.
    private static let tolerance: Int64 = 5_000

    /// Whether the info is about this row's period. It is not if it was signed before the row was known, or if this row
    /// is the renewal that it announces. A backfilled row is signed late and an early renewal begins late, so the
    /// earlier of the two dates counts.
    func isTold(by info: Info) -> Bool {
        info.version.signedDate >= adding(min(firstSigned, start), -Self.tolerance)
            && info.renewalDate.map { $0 > start } ?? true
    }

    /// A commitment is billed even if the customer has cancelled.
    func isRetrying(_ info: Info) -> Bool { info.showsRetry && (isCommitment || !info.isCancelled) }

    /// The end of the grace period. It is nil without a grace period; commitments never have one.
    func grace(_ info: Info) -> Int64? {
        guard case .period(let expires, false) = term, isRetrying(info), let end = info.gracePeriodExpiresDate,
            end > expires
        else { return nil }
        return end
    }

    // MARK: Ends

    /// The actual end of use: a revocation ends it early.
    var endOrRevocation: Int64? {
        guard let revocation = revocationDate else { return end }
        return end.map { min($0, revocation) } ?? revocation
    }

    var isRefunded: Bool { revocationDate != nil && !isUpgraded }
    var isRevokedByFamily: Bool { meaning.isRevokedByFamily }
}
