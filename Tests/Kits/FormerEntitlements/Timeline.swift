// The meaning of facts at any instant.

internal import Contract
internal import Notices

/// The sorted rows of one subscription with their ends. Built once, queried for many instants.
struct Timeline: Sendable {
    static let limitRuns = 100

    let rules: EntitlementRules
    /// Never empty.
    let rows: [Row]
    /// The newest renewal info, whatever row it is about.
    let newestInfo: RenewalInfo?
    let runs: [Run]
    let runsTruncated: Bool
    let introOfferUsed: Bool

    /// nil if no transaction is known: then there is no answer.
    init?(_ facts: Facts, _ rules: EntitlementRules) {
        guard !facts.purchases.isEmpty else { return nil }
        var rows = Self.newestOfEach(facts.purchases).map { Row($0, rules) }
        // Usually the rows are sorted already.
        if !rows.neighboursSatisfy({ $0.precedes($1) }) { rows.sort { $0.precedes($1) } }
        for info in facts.renewalInfos {
            guard let owner = Self.owner(of: info, among: rows) else { continue }
            rows[owner].infos.append(info)
        }
        for place in rows.indices {
            rows[place].setEnd(startOfNext: place + 1 < rows.count ? rows[place + 1].start : nil)
        }
        Self.setSince(of: &rows)
        let runs = Self.runs(of: rows)
        self.rules = rules
        self.rows = rows
        newestInfo = facts.renewalInfos.last
        self.runs = Array(runs.suffix(Self.limitRuns))
        runsTruncated = facts.isTruncated || runs.count > Self.limitRuns
        introOfferUsed = facts.introOfferUsed
    }

    /// One purchase for each transaction: facts of one transaction with different purchase dates are merged.
    private static func newestOfEach(_ purchases: [PurchaseFacts]) -> [PurchaseFacts] {
        // Ids usually grow with the dates, and then each transaction appears once.
        if purchases.neighboursSatisfy({ $0.transaction.id < $1.transaction.id }) { return purchases }
        var places: [TransactionId: Int] = [:]
        var merged: [PurchaseFacts] = []
        for purchase in purchases {
            if let place = places[purchase.transaction.id] {
                merged[place] = merged[place].merged(with: purchase)
            } else {
                places[purchase.transaction.id] = merged.count
                merged.append(purchase)
            }
        }
        return merged
    }

    /// The newest row that the info is about. An info is not about rows that begin at its renewal date or later. A
    /// binary search skips them, so only a few rows are checked.
    static func owner(of info: RenewalInfo, among rows: [Row]) -> Int? {
        var (low, high) = (0, rows.count)
        while let renewalDate = info.renewalDate, low < high {
            let middle = low + (high - low) / 2
            if rows[middle].start < renewalDate { low = middle + 1 } else { high = middle }
        }
        return rows[..<high].lastIndex { $0.isTold(by: info) }
    }

    /// Rows belong together if one starts no later than the latest end so far.
    private static func setSince(of rows: inout [Row]) {
        var since = rows[0].start
        var latest: Int64? = since
        for place in rows.indices {
            let end = rows[place].endOrRevocation
            if let before = latest, rows[place].start > before {
                since = rows[place].start
                latest = end
            } else {
                latest = laterEnd(latest, end)
            }
            rows[place].since = since
        }
    }

    private static func runs(of rows: [Row]) -> [Run] {
        var runs: [Run] = []
        for place in rows.indices {
            // A refunded purchase counts as never bought; an upgrade refunds only the unused rest.
            if rows[place].isRefunded { continue }
            let (start, end) = (rows[place].start, rows[place].endOrRevocation)
            if let end, end <= start { continue }
            if let last = runs.last, last.end.map({ start <= $0 }) ?? true {
                runs[runs.count - 1].end = laterEnd(last.end, end)
            } else {
                runs.append(Run(start: start, end: end))
            }
        }
        return runs
    }

    // MARK: At one instant

    /// The last row that has begun; if none has, the first row.
    func place(at instant: Int64) -> Int {
        // The number of rows that have begun is the index of the first one that has not.
        max(rows.firstPlace { $0.start > instant } - 1, 0)
    }

    /// The newest renewal info, if it is about this row. One-time purchases have none.
    func info(of row: Row) -> RenewalInfo? {
        guard !row.isOneTime, let newestInfo, row.isTold(by: newestInfo) else { return nil }
        return newestInfo
    }

    /// The first later instant at which time alone changes the answer; nil: it never changes.
    func nextChange(after instant: Int64) -> Int64? {
        let answer = entitlement(at: instant)
        var now = instant
        while let step = nextStep(after: now) {
            if entitlement(at: step) != answer { return step }
            now = step
        }
        return nil
    }

    /// The first later instant at which time alone may cause a record: the answer changes, or it is based on another
    /// purchase and may be equal.
    func nextStep(after instant: Int64) -> Int64? {
        var now = instant
        while let boundary = nextBoundary(after: now) {
            if isOther(at: boundary, than: instant) { return boundary }
            now = boundary
        }
        return nil
    }

    private func isOther(at instant: Int64, than before: Int64) -> Bool {
        let place = place(at: before)
        guard self.place(at: instant) == place else { return true }
        // For one purchase, time changes only these.
        let (now, then) = (verdict(at: instant), verdict(at: before))
        guard now == then else { return true }
        let row = rows[place]
        guard let info = info(of: row), row.isRetrying(info) else { return false }
        return graceUntil(of: row, info, now, at: instant) != graceUntil(of: row, info, then, at: before)
            || retry(of: row, now, at: instant) != retry(of: row, then, at: before)
    }

    /// Nothing can change between two boundaries: every rule compares the time with one of them.
    private func nextBoundary(after instant: Int64) -> Int64? {
        let place = place(at: instant)
        var next = rows[place...].first { $0.start > instant }?.start
        for boundary in boundaries(of: rows[place]) where boundary > instant {
            next = next.map { min($0, boundary) } ?? boundary
        }
        return next
    }

    /// The boundaries of one row while it is the current one, unsorted.
    func boundaries(of row: Row) -> [Int64] {
        switch row.term {
        case .oneTime(let until?): return [until]
        case .oneTime(nil): return []
        case .period(let expires, let isCommitment):
            var boundaries = [expires, adding(expires, rules.leeway)]
            if let grace = info(of: row)?.gracePeriodExpiresDate { boundaries.append(grace) }
            if let window = rules.retryWindow(isCommitment: isCommitment) { boundaries.append(adding(expires, window)) }
            return boundaries
        }
    }
}

/// nil counts as the latest of all.
private func laterEnd(_ left: Int64?, _ right: Int64?) -> Int64? {
    guard let left, let right else { return nil }
    return max(left, right)
}
