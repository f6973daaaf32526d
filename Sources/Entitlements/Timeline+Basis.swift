// What an answer rests on, for people who ask why.

public import Notices

extension Timeline {
    /// A purchase in its place among the others.
    public struct Purchase: Sendable, Equatable {
        public enum Fate: String, Sendable {
            case kept, refunded
            /// Another one took its place before it was over.
            case upgraded
            /// A family or an organisation shares it no longer.
            case taken
        }

        public let transaction: Transaction
        /// The payload that told of it last.
        public let version: Version
        /// The end of what was paid for or granted, as if nothing was refunded; nil: it has none.
        public let end: Int64?
        public let fate: Fate
        /// When fate struck; nil when nobody said.
        public let fateDate: Int64?

        public var start: Int64 { transaction.purchaseDate }
        /// The end of what was had of it.
        public var hadUntil: Int64? { fate == .kept ? end : [end, fateDate].compactMap { $0 }.min() }

        init(_ row: Row) {
            transaction = row.transaction
            version = row.facts.version
            end = row.end
            let revocation = row.transaction.revocationDate
            if revocation != nil, row.isRevokedByFamily {
                fate = .taken
                fateDate = revocation
            } else if row.transaction.isUpgraded {
                fate = .upgraded
                fateDate = revocation ?? row.facts.firstUpgraded
            } else {
                fate = revocation == nil ? .kept : .refunded
                fateDate = revocation
            }
        }
    }

    /// The rule that gave an answer its state.
    public enum Rule: String, Sendable {
        case taken, upgraded, refunded
        case owned
        /// Of a product that does not renew and whose length is known.
        case passRuns = "pass_runs", passOver = "pass_over"
        case paid
        /// The period is over, and the word of its renewal may be late.
        case renewalExpected = "renewal_expected"
        /// The renewal fails before the period is over.
        case failsEarly = "fails_early"
        case grace, retry
        /// Apple has tried for as long as it does.
        case retryOver = "retry_over"
        case ended
    }

    public struct Basis: Sendable, Equatable {
        public let rule: Rule
        public let purchase: Purchase
        /// The one that begins after it.
        public let next: Purchase?
        /// What counts of the renewal; nil when nothing does.
        public let renewalInfo: RenewalInfo?
        /// It was told of a later purchase's period. The state function takes it for this one's all the same.
        public let isInfoOfLater: Bool
        /// The word of an `EXPIRED` of this purchase.
        public let expiry: PurchaseFacts.Expiry?
        /// Without further word it renews, and access goes on for the leeway.
        public let expectsRenewal: Bool
        /// The last period of a commitment that no other one follows.
        public let isLastPeriod: Bool
        /// When the state began; nil when no date says it.
        public let stateSince: Int64?
        /// The payload that decided: that of the purchase, or that of the renewal info.
        public let decidedBy: Version
    }

    /// In order.
    public var purchases: [Purchase] { rows.map { Purchase($0) } }

    /// Why the answer at an instant is what it is.
    public func basis(at instant: Int64) -> Basis {
        let place = place(at: instant)
        let row = rows[place]
        let info = info(of: row)
        let rule = rule(of: row, info, at: instant)
        let isToldByInfo: Bool
        switch rule {
        case .renewalExpected, .failsEarly, .grace, .retry, .retryOver: isToldByInfo = true
        case .ended: isToldByInfo = info?.saysMore ?? false
        default: isToldByInfo = false
        }
        return Basis(
            rule: rule, purchase: Purchase(row), next: place + 1 < rows.count ? Purchase(rows[place + 1]) : nil,
            renewalInfo: info,
            isInfoOfLater: info.flatMap { Self.owner(of: $0, among: rows) }.map { $0 > place } ?? false,
            expiry: row.facts.expiry,
            expectsRenewal: info.map(row.expectsRenewal) ?? false, isLastPeriod: info.map(row.isLastPeriod) ?? false,
            stateSince: stateSince(at: instant),
            decidedBy: isToldByInfo ? info?.version ?? row.facts.version : row.facts.version)
    }

    private func rule(of row: Row, _ info: RenewalInfo?, at instant: Int64) -> Rule {
        let isRetrying = info.map(row.isRetrying) ?? false
        switch verdict(at: instant).state {
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
