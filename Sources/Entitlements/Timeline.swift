// What facts amount to, at all times.

internal import Contract
internal import Notices

/// The rows of one subscription in order, with their ends. Made once, asked for many instants.
public struct Timeline: Sendable {
    static let limitRuns = 100

    let rules: EntitlementRules
    /// At least one.
    let rows: [Row]
    /// The newest of all renewal infos, whatever row it speaks of.
    let newestInfo: RenewalInfo?
    let runs: [Run]
    let runsTruncated: Bool
    let introOfferUsed: Bool

    /// nil when no transaction is known: there is nothing to tell of.
    public init?(_ facts: Facts, _ rules: EntitlementRules) {
        guard !facts.purchases.isEmpty else { return nil }
        var rows = Self.newestOfEach(facts.purchases).map { Row($0, rules) }
        // They mostly are in order already.
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

    /// One for each transaction: what was told of it with different dates of purchase is told of one thing.
    private static func newestOfEach(_ purchases: [PurchaseFacts]) -> [PurchaseFacts] {
        // Ids mostly grow with the dates, and then each is there once.
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

    /// The newest row that an info speaks of: of rows that begin when it says that something renews, or later, it does not.
    /// Without them few are looked at, however many there are.
    static func owner(of info: RenewalInfo, among rows: [Row]) -> Int? {
        var (low, high) = (0, rows.count)
        while let renewalDate = info.renewalDate, low < high {
            let middle = low + (high - low) / 2
            if rows[middle].start < renewalDate { low = middle + 1 } else { high = middle }
        }
        return rows[..<high].lastIndex { $0.isTold(by: info) }
    }

    /// Rows join while one starts no later than the latest end so far.
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
            // A refund makes as if it was never bought; an upgrade refunds only what was not used.
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

    /// The last row that has begun; before the first has, that one.
    func place(at instant: Int64) -> Int {
        // Rows are in the order of their beginnings: as many as have begun are before the first that has not.
        max(rows.firstPlace { $0.start > instant } - 1, 0)
    }

    /// The newest renewal info, if it speaks of the row. One-time purchases have none.
    func info(of row: Row) -> RenewalInfo? {
        guard !row.isOneTime, let newestInfo, row.isTold(by: newestInfo) else { return nil }
        return newestInfo
    }

    /// The first instant after this one at which the answer is another although nothing was told; nil: it stays as it is.
    public func nextChange(after instant: Int64) -> Int64? {
        let answer = entitlement(at: instant)
        var now = instant
        while let step = nextStep(after: now) {
            if entitlement(at: step) != answer { return step }
            now = step
        }
        return nil
    }

    /// The first instant after this one at which something may be told although nothing was heard: the answer is another, or it
    /// rests on another purchase, which may say the same.
    public func nextStep(after instant: Int64) -> Int64? {
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
        // Of one purchase the time decides these alone.
        let (now, then) = (verdict(at: instant), verdict(at: before))
        guard now == then else { return true }
        let row = rows[place]
        guard let info = info(of: row), row.isRetrying(info) else { return false }
        return graceUntil(of: row, info, now, at: instant) != graceUntil(of: row, info, then, at: before)
            || retry(of: row, now, at: instant) != retry(of: row, then, at: before)
    }

    /// Between two of these nothing can change: every rule compares the time with one of them.
    private func nextBoundary(after instant: Int64) -> Int64? {
        let place = place(at: instant)
        var next = rows[place...].first { $0.start > instant }?.start
        for boundary in boundaries(of: rows[place]) where boundary > instant {
            next = next.map { min($0, boundary) } ?? boundary
        }
        return next
    }

    /// Of one row, while it is the one that counts: in no order.
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

/// nil is the latest of all.
private func laterEnd(_ left: Int64?, _ right: Int64?) -> Int64? {
    guard let left, let right else { return nil }
    return max(left, right)
}
