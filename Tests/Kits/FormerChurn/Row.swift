// Rows: each purchase, combined from its notifications.

internal import Contract
internal import Notices

/// The time during which a refund was in force.
struct Refund: Equatable {
    var date: Int64
    /// In thousandths of a percent.
    var share: Int64
    /// nil: the refund is still in force.
    var reversal: Int64?

    func holds(at instant: Int64) -> Bool { date <= instant && reversal.map { instant < $0 } ?? true }
}

/// One purchase, or one period of a subscription.
struct Row {
    static let limit = 1_000

    /// From the newest version.
    var transaction: Transaction
    /// The places of the notifications that contain it, oldest first.
    var notices: Places
    /// From the plan of the newest version.
    var isCommitment: Bool
    var refunds: [Refund] = []
    /// The first instant after the clock at which one of its refunds begins or is reversed.
    var nextRefundChange: Int64?
    /// The smallest over all versions: free extra time does not extend the paid period.
    var smallestExpiresDate: Int64
    /// What the notifications with this row say about how it began.
    var firstRenewal: Int64?
    var isFlagged = false
    var cameByUpgrade = false
    var isSubscribed = false
    var isInitialBuy = false
    var hasExpired = false
    /// A failed payment is known for it, whatever followed.
    var hasFailed = false

    // Derived from the neighbouring rows.
    var isRenewal = false
    var start: Int64 = 0

    var expires: Int64 { transaction.expiresDate ?? transaction.purchaseDate }
    var isFree: Bool { transaction.isFree }

    /// nil if no notification contains it.
    init?(_ places: Places, of facts: Facts, at clock: Int64) {
        guard let first = places.first, let transaction = facts.notices[first].transaction else { return nil }
        notices = places
        self.transaction = transaction
        isCommitment = false
        smallestExpiresDate = transaction.expiresDate ?? .max
        // Access by place: copying a whole notice just to look at it is too slow.
        for place in places {
            if place != first, let version = facts.notices[place].transaction {
                if self.transaction.version < version.version { self.transaction = version }
                smallestExpiresDate = min(smallestExpiresDate, version.expiresDate ?? .max)
            }
            let (type, subtype) = (facts.notices[place].type, facts.notices[place].subtype)
            if type == .didRenew {
                firstRenewal = firstRenewal ?? facts.notices[place].signedDate
                isFlagged = isFlagged || facts.notices[place].isRecovery
            }
            if facts.notices[place].isUpgrade { cameByUpgrade = true }
            if type == .expired { hasExpired = true }
            if facts.notices[place].provesFailure { hasFailed = true }
            if type == .subscribed {
                isSubscribed = true
                isInitialBuy = isInitialBuy || subtype == .initialBuy
            }
        }
        isCommitment = facts.parts[self.transaction.parts].isCommitment
        if hasRevocation(facts) { setRefunds(facts, clock) }
    }

    /// Few rows have one.
    private func hasRevocation(_ facts: Facts) -> Bool {
        notices.contains { facts.notices[$0].transaction?.revocationDate != nil }
    }

    /// Consecutive versions with a revocation are one refund; the next version without one reverses it.
    private mutating func setRefunds(_ facts: Facts, _ clock: Int64) {
        var versions = notices.compactMap { facts.notices[$0].transaction }
        versions.sort { $0.version < $1.version }
        var isRevoked = false
        for version in versions {
            if let date = version.revocationDate {
                let refund = Refund(date: date, share: version.revocationPercentage ?? 100_000)
                if isRevoked { refunds[refunds.count - 1] = refund } else { refunds.append(refund) }
                isRevoked = true
            } else {
                if isRevoked { refunds[refunds.count - 1].reversal = version.version.signedDate }
                isRevoked = false
            }
        }
        nextRefundChange = refunds.flatMap { [$0.date, $0.reversal ?? .min] }.filter { $0 > clock }.min()
        // What is dated after the clock has not happened yet.
        refunds.removeAll { $0.date > clock }
        for place in refunds.indices where refunds[place].reversal ?? .min > clock { refunds[place].reversal = nil }
    }
}

extension Row {
    /// The refunded part of the price.
    func amount(_ refund: Refund) -> Int64 {
        rounded(transaction.price ?? 0, times: refund.share, over: 100_000)
    }

    /// Rows are ordered by purchase date. If two dates are equal, an upgraded row comes first, then the row that expires first, then
    /// the row with the lower transaction id.
    func precedes(_ other: Row, _ facts: Facts) -> Bool {
        if transaction.purchaseDate != other.transaction.purchaseDate {
            return transaction.purchaseDate < other.transaction.purchaseDate
        }
        if transaction.isUpgraded != other.transaction.isUpgraded { return transaction.isUpgraded }
        let (end, otherEnd) = (transaction.expiresDate ?? 0, other.transaction.expiresDate ?? 0)
        if end != otherEnd { return end < otherEnd }
        return facts.transactionId(transaction.id) < facts.transactionId(other.transaction.id)
    }

    /// The rows of the first `existing` notifications, one for each transaction, unsorted.
    static func all(of facts: Facts, existing: Int, at clock: Int64) -> [Row] {
        var places: [(id: RowId, notices: Places)] = []
        places.reserveCapacity(existing)
        // Maps all ids so far. It is built only when needed: ids usually grow, and an id greater than all others is
        // new.
        var numbers: [RowId: Int]?
        var greatest: UInt64?
        let least = leastKey(of: facts, existing: existing)
        for place in 0..<existing {
            guard let id = facts.notices[place].transaction?.id else { continue }
            if let least, let transaction = facts.notices[place].transaction, RowKey(transaction, facts) < least {
                continue
            }
            // Notifications about one purchase usually follow each other.
            if !places.isEmpty, places[places.count - 1].id == id {
                places[places.count - 1].notices.append(place)
                continue
            }
            if case .number(let number) = id, greatest.map({ $0 < number }) ?? true {
                greatest = number
            } else {
                if numbers == nil {
                    numbers = Dictionary(uniqueKeysWithValues: places.indices.map { (places[$0].id, $0) })
                }
                if let number = numbers?[id] {
                    places[number].notices.append(place)
                    continue
                }
            }
            numbers?[id] = places.count
            places.append((id, Places(place)))
        }
        var rows: [Row] = []
        rows.reserveCapacity(places.count)
        for (_, notices) in places {
            if let row = Row(notices, of: facts, at: clock) { rows.append(row) }
        }
        return rows
    }

    private struct RowKey: Hashable, Comparable {
        let purchaseDate: Int64
        let id: TransactionId

        init(_ transaction: Transaction, _ facts: Facts) {
            purchaseDate = transaction.purchaseDate
            id = facts.transactionId(transaction.id)
        }

        static func < (left: RowKey, right: RowKey) -> Bool {
            left.purchaseDate == right.purchaseDate ? left.id < right.id : left.purchaseDate < right.purchaseDate
        }
    }

    /// The smallest of the greatest `limit` keys; rows below it do not count. nil: all rows count.
    private static func leastKey(of facts: Facts, existing: Int) -> RowKey? {
        guard existing > limit else { return nil }
        let keys = Set(facts.notices[..<existing].compactMap { $0.transaction.map { RowKey($0, facts) } })
        guard keys.count > limit else { return nil }
        return keys.sorted()[keys.count - limit]
    }
}
