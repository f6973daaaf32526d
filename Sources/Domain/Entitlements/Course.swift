// The meaning of a history at any instant.

internal import Contract
internal import Notices
import SubscriptionHistory

/// The sorted rows of one subscription with their ends, in memory that is used again for the next subscription. Rows are
/// set once for a history, and queried for many instants.
struct Course: ~Copyable {
    static let limitRuns = 100

    let rules: EntitlementRules
    var history = History()
    /// Not empty while somebody asks for an answer.
    private(set) var rows = Scratch<Row>(capacity: 64)
    /// Times with access, without gaps; sorted.
    private(set) var runs = Scratch<Run>()
    /// For each renewal info: the place of the next info about the same row. -1: no next info.
    private var nextRenewal = Scratch<Int32>()
    /// Facts of one transaction with different purchase dates, merged.
    private var merged = Scratch<Purchase>()

    init(_ rules: EntitlementRules) { self.rules = rules }

    var runsTruncated: Bool { history.isTruncated || runs.count > Self.limitRuns }
    /// The newest renewal info, whatever row it is about.
    var newestInfo: Info? { history.renewals.isEmpty ? nil : info(at: history.renewals.count - 1) }

    /// To be called when the history has changed.
    /// - Returns: false: no transaction is known. Then there is no answer.
    mutating func setRows() -> Bool {
        rows.removeAll()
        runs.removeAll()
        guard !history.purchases.isEmpty else { return false }
        addRows()
        giveRenewals()
        setEnds()
        return true
    }

    /// One row for each transaction, sorted.
    private mutating func addRows() {
        if history.idsGrow { return addRows(history.purchases.values) }
        merged.removeAll()
        for place in history.purchases.indices { merged.append(history.purchases[place]) }
        var sorted = merged.values
        sorted.sort { $0.id == $1.id ? $0.purchaseDate < $1.purchaseDate : $0.id < $1.id }
        var last = 0
        for place in 1..<merged.count {
            if merged[place].id == merged[last].id {
                merged[last] = history.merged(merged[last], with: merged[place])
            } else {
                last += 1
                merged[last] = merged[place]
            }
        }
        addRows(UnsafeMutableBufferPointer(rebasing: merged.values[...last]))
    }

    private mutating func addRows(_ purchases: UnsafeMutableBufferPointer<Purchase>) {
        guard let start = purchases.baseAddress else { return }
        // Usually they are.
        var areSorted = true
        for place in 0..<purchases.count {
            let terms = Int(purchases[place].terms)
            rows.append(
                Row(start + place, history.terms[terms].meaning) {
                    rules.product(of: history.terms[terms], history.texts)?.period
                })
            if place > 0, !rows[place - 1].precedes(rows[place]) { areSorted = false }
        }
        if areSorted { return }
        var sorted = rows.values
        sorted.sort { $0.precedes($1) }
    }

    private mutating func giveRenewals() {
        nextRenewal.fill(-1, count: history.renewals.count)
        for place in history.renewals.indices {
            guard let owner = owner(of: info(at: place)) else { continue }
            let last = Int(rows[owner].lastRenewal)
            if last < 0 { rows[owner].firstRenewal = Int32(place) } else { nextRenewal[last] = Int32(place) }
            rows[owner].lastRenewal = Int32(place)
        }
    }

    /// The newest row that the info is about. An info is not about rows that begin at its renewal date or later. A
    /// binary search skips them, so only a few rows are checked.
    @inline(__always) func owner(of info: Info) -> Int? {
        var (low, high) = (0, rows.count)
        while let renewalDate = info.renewalDate, low < high {
            let middle = low + (high - low) / 2
            if rows[middle].start < renewalDate { low = middle + 1 } else { high = middle }
        }
        while high > 0 {
            high -= 1
            if rows[high].isTold(by: info) { return high }
        }
        return nil
    }

    /// The end of a row without leeway and without refunds.
    @inline(__always) private func end(of place: Int) -> Int64? {
        let row = rows[place]
        switch row.term {
        case .oneTime(let until): return until
        case .period(let expires, _):
            var latest = expires
            var info = Int(row.firstRenewal)
            while info >= 0 {
                let following = Int(nextRenewal[info])
                // An unused rest of grace ended with the next info: paid, cancelled or given up.
                let next = following >= 0 ? history.renewals[following].version.signedDate : .max
                if let grace = row.grace(self.info(at: info)) { latest = max(latest, min(grace, next)) }
                info = following
            }
            return place + 1 < rows.count ? min(latest, rows[place + 1].start) : latest
        }
    }

    /// Sets the ends of all rows, and what follows from them: continuous access, and runs.
    private mutating func setEnds() {
        // Rows belong together if one starts no later than the latest end so far.
        var since = rows[0].start
        var latest: Int64? = since
        for place in rows.indices {
            rows[place].end = end(of: place)
            let end = rows[place].endOrRevocation
            if let before = latest, rows[place].start > before {
                since = rows[place].start
                latest = end
            } else {
                latest = laterEnd(latest, end)
            }
            rows[place].since = since
            // A refunded purchase counts as never bought; an upgrade refunds only the unused rest.
            if !rows[place].isRefunded { addRun(from: rows[place].start, to: end) }
        }
    }

    @inline(__always) private mutating func addRun(from start: Int64, to end: Int64?) {
        if let end, end <= start { return }
        if let last = runs.last, last.end.map({ start <= $0 }) ?? true {
            runs[runs.count - 1].end = laterEnd(last.end, end)
        } else {
            runs.append(Run(start: start, end: end))
        }
    }

    // MARK: What a row has

    @inline(__always) private func info(at place: Int) -> Info { Info(history.renewals.place(of: place)) }
    func terms(of row: Row) -> Terms { history.terms[row.terms] }
    func commitment(of row: Row) -> Particulars.Commitment? { history.commitment(of: row.purchase) }

    /// When access ended, if it has ended. For a commitment this is when the first failure was reported.
    func ended(_ row: Row) -> Int64? {
        guard row.isCommitment, let end = row.end else { return row.end }
        var info = Int(row.firstRenewal)
        while info >= 0 {
            let renewal = self.info(at: info)
            if row.isRetrying(renewal) { return min(end, renewal.version.signedDate) }
            info = Int(nextRenewal[info])
        }
        return end
    }

    /// When Apple was first known to have stopped retrying; nil if it never retried, or there is no newer info.
    func retryEnded(_ row: Row) -> Int64? {
        var ended: Int64?
        var info = Int(row.firstRenewal)
        while info >= 0 {
            let next = Int(nextRenewal[info])
            if row.isRetrying(self.info(at: info)) {
                ended = next >= 0 ? history.renewals[next].version.signedDate : nil
            }
            info = next
        }
        return ended
    }

    /// The last period of a commitment that the customer does not continue.
    func isLastPeriod(_ row: Row, _ info: Info) -> Bool {
        guard row.isCommitment, info.commitment?.autoRenewStatus == 0, let commitment = commitment(of: row),
            let period = commitment.period
        else { return false }
        return period >= commitment.of ?? 12
    }

    func expectsRenewal(_ row: Row, _ info: Info) -> Bool {
        info.autoRenewStatus == 1 && !row.isRetrying(info) && info.expirationIntent == nil && row.expiry == nil
            && !isLastPeriod(row, info)
    }

    // MARK: At one instant

    /// The last row that has begun; if none has, the first row.
    func place(at instant: Int64) -> Int {
        // The number of rows that have begun is the index of the first one that has not.
        max(rows.values.firstPlace { $0.start > instant } - 1, 0)
    }

    /// The newest renewal info, if it is about this row. One-time purchases have none.
    func info(of row: Row) -> Info? {
        guard !row.isOneTime, let newest = newestInfo, row.isTold(by: newest) else { return nil }
        return newest
    }
}

/// nil counts as the latest of all.
private func laterEnd(_ left: Int64?, _ right: Int64?) -> Int64? {
    guard let left, let right else { return nil }
    return max(left, right)
}
