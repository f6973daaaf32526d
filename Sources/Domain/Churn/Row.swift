// Rows: each purchase, combined from its notifications.

internal import Contract
internal import Notices
internal import SubscriptionHistory

/// The time during which a refund was in force.
struct Refund {
    var date: Int64
    /// In thousandths of a percent.
    var share: Int64
    /// nil: the refund is still in force.
    var reversal: Int64?

    func holds(at instant: Int64) -> Bool { date <= instant && reversal.map { instant < $0 } ?? true }
}

/// One purchase, or one period of a subscription: a plain value.
struct Row {
    static let limit = 1_000

    /// From the newest version.
    var transaction: Transaction
    /// The places of its first and its last notification: see `RowNotices`.
    var firstNotice: Int32
    var lastNotice: Int32
    /// From the plan of the newest version.
    var isCommitment = false
    /// A version of it shows a refund.
    var isRevoked: Bool
    /// Its refunds are from here to there in the list of the timeline, oldest first.
    var refundsFrom: Int32 = 0
    var refundsTo: Int32 = 0
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
    var isRefunded: Bool { refundsFrom < refundsTo }
    var refunds: Range<Int> { Int(refundsFrom)..<Int(refundsTo) }

    /// The row as its first notification shows it.
    init(_ transaction: Transaction, notice: Int) {
        self.transaction = transaction
        firstNotice = Int32(notice)
        lastNotice = Int32(notice)
        isRevoked = transaction.revocationDate != nil
        smallestExpiresDate = transaction.expiresDate ?? .max
    }

    /// Another notification that is newer than those so far.
    mutating func add(_ version: Transaction, notice: Int) {
        if transaction.version < version.version { transaction = version }
        isRevoked = isRevoked || version.revocationDate != nil
        smallestExpiresDate = min(smallestExpiresDate, version.expiresDate ?? .max)
        lastNotice = Int32(notice)
    }

    /// What the kind of one of its notifications says.
    mutating func note(_ type: NoticeType, _ subtype: NoticeSubtype, at date: Int64) {
        switch type {
        case .didRenew:
            firstRenewal = firstRenewal ?? date
            isFlagged = isFlagged || subtype == .billingRecovery
        case .subscribed:
            isSubscribed = true
            isInitialBuy = isInitialBuy || subtype == .initialBuy
        case .didChangeRenewalPref, .offerRedeemed: cameByUpgrade = cameByUpgrade || subtype == .upgrade
        case .didFailToRenew, .gracePeriodExpired: hasFailed = true
        case .expired:
            hasExpired = true
            hasFailed = hasFailed || subtype == .billingRetry
        default: break
        }
    }

    /// The refunded part of the price.
    func amount(_ refund: Refund) -> Int64 {
        rounded(transaction.price ?? 0, times: refund.share, over: 100_000)
    }
}

/// The places of the notifications that contain a row, oldest first.
struct RowNotices: Sequence, IteratorProtocol {
    /// The next notification of the same row, for each notification.
    fileprivate let following: UnsafePointer<Int32>
    fileprivate var place: Int
    fileprivate let last: Int

    mutating func next() -> Int? {
        if place < 0 { return nil }
        defer { place = place == last ? -1 : Int(following[place]) }
        return place
    }
}

/// What one version of a row says about refunds.
struct RefundVersion {
    var version: Version
    var date: Int64?
    var share: Int64
}

extension Timeline {
    func notices(of row: Row) -> RowNotices {
        RowNotices(
            following: UnsafePointer(nextOfRow.values.baseAddress!), place: Int(row.firstNotice),
            last: Int(row.lastNotice))
    }

    /// Rows are ordered by purchase date. If two dates are equal, an upgraded row comes first, then the row that expires
    /// first, then the row with the lower transaction id.
    func precedes(_ one: Row, _ other: Row) -> Bool {
        let (left, right) = (one.transaction, other.transaction)
        if left.purchaseDate != right.purchaseDate { return left.purchaseDate < right.purchaseDate }
        if left.isUpgraded != right.isUpgraded { return left.isUpgraded }
        let (end, otherEnd) = (left.expiresDate ?? 0, right.expiresDate ?? 0)
        if end != otherEnd { return end < otherEnd }
        return facts.purchaseId(left.id) < facts.purchaseId(right.id)
    }

    // MARK: Collecting rows

    /// Adds the rows of these notifications, one for each transaction, unsorted.
    mutating func collectRows(_ existing: Range<Int>, without: Int?) {
        nextOfRow.fill(-1, count: existing.upperBound)
        places.removeAll()
        // Ids usually grow, and an id greater than all others is new.
        var greatest: UInt64?
        let least = leastKey(existing)
        for place in existing where place != without {
            guard let transaction = facts.notices[place].transaction else { continue }
            if let least, precedes(RowKey(transaction), least) { continue }
            let row = row(of: transaction.id, &greatest)
            if row == rows.count {
                rows.append(Row(transaction, notice: place))
                if !places.isEmpty { places.add(transaction.id, row) }
            } else {
                nextOfRow[Int(rows[row].lastNotice)] = Int32(place)
                rows[row].add(transaction, notice: place)
            }
            rows[row].note(facts.notices[place].type, facts.notices[place].subtype, at: facts.notices[place].signedDate)
        }
        for place in rows.indices {
            rows[place].isCommitment = facts.parts[Int(rows[place].transaction.parts)].isCommitment
            // Few rows have one.
            if rows[place].isRevoked { setRefunds(place) }
        }
    }

    /// The place of the row with this id. Without such a row: the place behind the last row.
    private mutating func row(of id: RowId, _ greatest: inout UInt64?) -> Int {
        // Notifications about one purchase usually follow each other.
        if let last = rows.last, last.transaction.id == id { return rows.count - 1 }
        if case .number(let number) = id, greatest.map({ $0 < number }) ?? true {
            greatest = number
            return rows.count
        }
        if places.isEmpty { for place in rows.indices { places.add(rows[place].transaction.id, place) } }
        return places.place(of: id) ?? rows.count
    }

    private struct RowKey: Hashable {
        let purchaseDate: Int64
        let id: RowId

        init(_ transaction: Transaction) {
            purchaseDate = transaction.purchaseDate
            id = transaction.id
        }
    }

    private func precedes(_ left: RowKey, _ right: RowKey) -> Bool {
        left.purchaseDate == right.purchaseDate
            ? facts.purchaseId(left.id) < facts.purchaseId(right.id) : left.purchaseDate < right.purchaseDate
    }

    /// The smallest of the greatest `limit` keys; rows below it do not count. nil: all rows count.
    private func leastKey(_ existing: Range<Int>) -> RowKey? {
        guard existing.count > Row.limit else { return nil }
        var keys: Set<RowKey> = []
        for place in existing {
            if let transaction = facts.notices[place].transaction { keys.insert(RowKey(transaction)) }
        }
        guard keys.count > Row.limit else { return nil }
        return keys.sorted { precedes($0, $1) }[keys.count - Row.limit]
    }

    // MARK: Refunds of a row

    /// Consecutive versions with a revocation are one refund; the next version without one reverses it.
    private mutating func setRefunds(_ place: Int) {
        versions.removeAll()
        for notice in notices(of: rows[place]) {
            guard let version = facts.notices[notice].transaction else { continue }
            versions.append(
                RefundVersion(
                    version: version.version, date: version.revocationDate,
                    share: version.revocationPercentage ?? 100_000))
        }
        var sorted = versions.values
        sorted.sort { $0.version < $1.version }
        let from = refunds.count
        var isRevoked = false
        for version in sorted {
            if let date = version.date {
                let refund = Refund(date: date, share: version.share)
                if isRevoked { refunds[refunds.count - 1] = refund } else { refunds.append(refund) }
                isRevoked = true
            } else {
                if isRevoked { refunds[refunds.count - 1].reversal = version.version.signedDate }
                isRevoked = false
            }
        }
        keepPastRefunds(of: place, from: from)
    }

    /// What is dated after the clock has not happened yet.
    private mutating func keepPastRefunds(of place: Int, from: Int) {
        var end = from
        for number in from..<refunds.count {
            var refund = refunds[number]
            for instant in [refund.date, refund.reversal ?? .min] where instant > clock {
                rows[place].nextRefundChange = min(rows[place].nextRefundChange ?? .max, instant)
            }
            if refund.date > clock { continue }
            if refund.reversal ?? .min > clock { refund.reversal = nil }
            refunds[end] = refund
            end += 1
        }
        refunds.keepFirst(end)
        (rows[place].refundsFrom, rows[place].refundsTo) = (Int32(from), Int32(end))
    }
}

/// Finds rows by their ids.
struct RowPlaces: ~Copyable {
    struct Slot {
        var id: RowId
        var place: Int32
    }

    /// A table with open addresses; its size is a power of two and at least twice the number of rows.
    private var slots = Scratch<Slot>()
    private var used = 0
    /// Nobody can choose ids that meet in one slot.
    private let seed = UInt64.random(in: .min ... .max)

    var isEmpty: Bool { used == 0 }

    mutating func removeAll() {
        slots.removeAll()
        used = 0
    }

    /// The id must be new.
    mutating func add(_ id: RowId, _ place: Int) {
        if (used + 1) * 2 > slots.count { grow() }
        insert(Slot(id: id, place: Int32(place)))
        used += 1
    }

    func place(of id: RowId) -> Int? {
        guard !slots.isEmpty else { return nil }
        var slot = first(id)
        while slots[slot].place >= 0 {
            if slots[slot].id == id { return Int(slots[slot].place) }
            slot = (slot + 1) & (slots.count - 1)
        }
        return nil
    }

    private mutating func grow() {
        let empty = Slot(id: .number(0), place: -1)
        guard used > 0 else { return slots.fill(empty, count: 64) }
        var larger = Scratch<Slot>(capacity: slots.count * 2)
        larger.fill(empty, count: slots.count * 2)
        swap(&slots, &larger)
        for place in larger.indices where larger[place].place >= 0 { insert(larger[place]) }
    }

    private mutating func insert(_ entry: Slot) {
        var slot = first(entry.id)
        while slots[slot].place >= 0 { slot = (slot + 1) & (slots.count - 1) }
        slots[slot] = entry
    }

    private func first(_ id: RowId) -> Int {
        let value =
            switch id {
            case .number(let number): number
            case .text(let number): ~UInt64(number)
            }
        let product = (value ^ seed).multipliedFullWidth(by: 0x9e37_79b9_7f4a_7c15)
        return Int(truncatingIfNeeded: (product.high ^ product.low) & UInt64(slots.count - 1))
    }
}
