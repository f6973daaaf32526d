// The reasons for an answer, for people who ask why.

public import Notices
import SubscriptionHistory

extension Timeline {
    /// A purchase in its place among the others.
    public struct Purchase: Sendable, Equatable {
        public enum Fate: String, Sendable {
            case kept, refunded
            /// Another purchase replaced it before it was over.
            case upgraded
            /// A family or an organisation no longer shares it.
            case taken
        }

        public let transaction: Transaction
        /// The payload with its newest version.
        public let version: Version
        /// The end of the paid or granted time, without refunds; nil: it has no end.
        public let end: Int64?
        public let fate: Fate
        /// When its fate took effect; nil: it is not known.
        public let fateDate: Int64?

        public var start: Int64 { transaction.purchaseDate }
        /// When its use actually ended.
        public var hadUntil: Int64? { fate == .kept ? end : [end, fateDate].compactMap { $0 }.min() }

        fileprivate init(_ row: Row, of history: borrowing History) {
            transaction = Transaction(row.purchase, of: history)
            version = row.purchase.version
            end = row.end
            let revocation = row.revocationDate
            if revocation != nil, row.isRevokedByFamily {
                fate = .taken
                fateDate = revocation
            } else if row.isUpgraded {
                fate = .upgraded
                fateDate = revocation ?? row.firstUpgraded
            } else {
                fate = revocation == nil ? .kept : .refunded
                fateDate = revocation
            }
        }
    }

    /// The rule that determined the state of an answer.
    public enum Rule: String, Sendable {
        case taken, upgraded, refunded
        case owned
        /// For a product that does not renew and whose length is known.
        case passRuns = "pass_runs", passOver = "pass_over"
        case paid
        /// The period is over, and the renewal may be reported late.
        case renewalExpected = "renewal_expected"
        /// A renewal attempt failed before the period was over.
        case failsEarly = "fails_early"
        case grace, retry
        /// The time in which Apple retries is over.
        case retryOver = "retry_over"
        case ended
    }

    public struct Basis: Sendable, Equatable {
        public let rule: Rule
        public let purchase: Purchase
        /// The next purchase.
        public let next: Purchase?
        /// The info is about the period of a later purchase, but the state function applies it to this one.
        public let isInfoOfLater: Bool
        /// From an `EXPIRED` notification about this purchase.
        public let expiry: PurchaseFacts.Expiry?
        /// If nothing else is reported it renews, and access continues for the leeway.
        public let expectsRenewal: Bool
        /// The last period of a commitment that is not continued.
        public let isLastPeriod: Bool
        /// When the state began; nil: no date shows it.
        public let stateSince: Int64?
        /// The payload that determined the answer: the purchase's or the renewal info's.
        public let decidedBy: Version
    }

    /// Sorted.
    public var purchases: [Purchase] { course.rows.indices.map { Purchase(course.rows[$0], of: course.history) } }

    /// Explains the answer at an instant.
    public func basis(at instant: Int64) -> Basis {
        let place = course.place(at: instant)
        let row = course.rows[place]
        let info = course.info(of: row)
        let rule = rule(of: row, info, at: instant)
        let isToldByInfo: Bool
        switch rule {
        case .renewalExpected, .failsEarly, .grace, .retry, .retryOver: isToldByInfo = true
        case .ended: isToldByInfo = info?.saysMore ?? false
        default: isToldByInfo = false
        }
        return Basis(
            rule: rule, purchase: Purchase(row, of: course.history),
            next: place + 1 < course.rows.count ? Purchase(course.rows[place + 1], of: course.history) : nil,
            isInfoOfLater: info.flatMap { course.owner(of: $0) }.map { $0 > place } ?? false,
            expiry: PurchaseFacts.Expiry(row.purchase, of: course.history),
            expectsRenewal: info.map { course.expectsRenewal(row, $0) } ?? false,
            isLastPeriod: info.map { course.isLastPeriod(row, $0) } ?? false,
            stateSince: course.stateSince(at: instant),
            decidedBy: isToldByInfo ? info?.version ?? row.purchase.version : row.purchase.version)
    }

    private func rule(of row: Row, _ info: Info?, at instant: Int64) -> Rule {
        let isRetrying = info.map(row.isRetrying) ?? false
        switch course.verdict(at: instant).state {
        case .revoked: return row.isRevokedByFamily ? .taken : .refunded
        case .superseded: return .upgraded
        case .owned: return .owned
        case .grace: return .grace
        case .billingRetry: return .retry
        case .expired:
            if row.isOneTime { return .passOver }
            return isRetrying ? .retryOver : .ended
        case .active:
            guard case .period(let expires, _) = row.term else { return .passRuns }
            if isRetrying { return .failsEarly }
            return instant < expires ? .paid : .renewalExpected
        }
    }
}
