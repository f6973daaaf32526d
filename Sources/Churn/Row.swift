// Rows: what is known of each purchase, put together from its notifications.

internal import Contract
internal import Notices

/// A period during which a refund held.
struct Refund: Equatable {
    var date: Int64
    /// Thousandths of a percent.
    var share: Int64
    /// nil: it holds.
    var reversal: Int64?

    func holds(at instant: Int64) -> Bool { date <= instant && reversal.map { instant < $0 } ?? true }
}

/// One purchase, or one period of a subscription.
struct Row {
    static let limit = 1_000

    /// The newest version.
    var transaction: Transaction
    /// Places of the notifications that carry it, the oldest first.
    var notices: Places
    /// By the plan of the newest version.
    var isCommitment: Bool
    var refunds: [Refund] = []
    /// The first instant after the clock at which one of its refunds begins or ends.
    var nextRefundChange: Int64?
    /// Of all its versions: what was paid for is not made longer by a gift.
    var smallestExpiresDate: Int64
    /// What the notifications that carry it say of how it came.
    var firstRenewal: Int64?
    var isFlagged = false
    var cameByUpgrade = false
    var isSubscribed = false
    var isInitialBuy = false
    var hasExpired = false
    /// A failed payment is known of it, whatever followed.
    var hasFailed = false

    // What follows from its neighbours.
    var isRenewal = false
    var start: Int64 = 0

    var expires: Int64 { transaction.expiresDate ?? transaction.purchaseDate }
    var isFree: Bool { transaction.isFree }

    /// nil when no notification carries it.
    init?(_ places: Places, of facts: Facts, at clock: Int64) {
        guard let first = places.first, let transaction = facts.notices[first].transaction else { return nil }
        notices = places
        self.transaction = transaction
        isCommitment = false
        smallestExpiresDate = transaction.expiresDate ?? .max
        // Each by its place: a notice is too large to be copied for a look at it.
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

    /// Few have.
    private func hasRevocation(_ facts: Facts) -> Bool {
        notices.contains { facts.notices[$0].transaction?.revocationDate != nil }
    }

    /// A run of versions with a revocation is one refund; the first without one behind it takes it back.
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
        // What is dated after the clock does not exist yet.
        refunds.removeAll { $0.date > clock }
        for place in refunds.indices where refunds[place].reversal ?? .min > clock { refunds[place].reversal = nil }
    }
}

extension Row {
    /// Of the amount that was paid.
    func amount(_ refund: Refund) -> Int64 {
        rounded(transaction.price ?? 0, times: refund.share, over: 100_000)
    }

    /// E.16 2.
    func precedes(_ other: Row, _ facts: Facts) -> Bool {
        if transaction.purchaseDate != other.transaction.purchaseDate {
            return transaction.purchaseDate < other.transaction.purchaseDate
        }
        if transaction.isUpgraded != other.transaction.isUpgraded { return transaction.isUpgraded }
        let (end, otherEnd) = (transaction.expiresDate ?? 0, other.transaction.expiresDate ?? 0)
        if end != otherEnd { return end < otherEnd }
        return facts.transactionId(transaction.id) < facts.transactionId(other.transaction.id)
    }

    /// By transaction, of the notifications that exist, in no order.
    static func all(of facts: Facts, existing: Int, at clock: Int64) -> [Row] {
        var places: [(id: RowId, notices: Places)] = []
        places.reserveCapacity(existing)
        // Of all ids so far, made when it is needed first: ids mostly grow, and one above all others is new.
        var numbers: [RowId: Int]?
        var greatest: UInt64?
        let least = leastKey(of: facts, existing: existing)
        for place in 0..<existing {
            guard let id = facts.notices[place].transaction?.id else { continue }
            if let least, let transaction = facts.notices[place].transaction, RowKey(transaction, facts) < least {
                continue
            }
            // Notifications about one purchase mostly follow each other.
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

    /// Of the greatest `limit` that count; nil: all do.
    private static func leastKey(of facts: Facts, existing: Int) -> RowKey? {
        guard existing > limit else { return nil }
        let keys = Set(facts.notices[..<existing].compactMap { $0.transaction.map { RowKey($0, facts) } })
        guard keys.count > limit else { return nil }
        return keys.sorted()[keys.count - limit]
    }
}
