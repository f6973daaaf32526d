// A subscription's life: its rows, and the states it went through. metrics.md 2.

internal import Notices

enum Reason: Equatable {
    case voluntary, billing, price, unavailable, refund, other
}

enum State: Equatable {
    case paid, free, grace, retry
    case lapsed(Reason)

    var hasAccess: Bool {
        switch self {
        case .paid, .free, .grace: true
        case .retry, .lapsed: false
        }
    }
}

/// The time in one state on one row. An empty one stands for a row that was replaced at the instant it began.
struct Visit: Equatable {
    var row: Int
    var state: State
    var from: Int64
    /// nil: until now.
    var to: Int64?
}

/// What the facts amount to at one instant: what is dated after it does not exist.
struct Timeline {
    let facts: Facts
    let clock: Int64
    /// Of the subscription, those that have begun: in order, and the starts as well.
    private(set) var rows: [Row] = []
    /// Of each row.
    private(set) var failures: [Failure?] = []
    private(set) var visits: [Visit] = []
    /// Purchases that do not renew.
    private(set) var oneTime: [Row] = []
    /// When the next notification, row or one-time purchase that is known begins to exist.
    private var nextBeginning: Int64?

    init(_ facts: Facts, at clock: Int64) {
        self.facts = facts
        self.clock = clock
        let existing = facts.notices.firstIndex { $0.signedDate > clock } ?? facts.notices.count
        if existing < facts.notices.count { nextBeginning = facts.notices[existing].signedDate }
        let all = Row.all(of: facts, existing: existing, at: clock).filter(\.transaction.isPurchased)
        oneTime = all.filter { !$0.transaction.isRenewing }
        for row in oneTime where row.transaction.purchaseDate > clock { begins(at: row.transaction.purchaseDate) }
        oneTime.removeAll { $0.transaction.purchaseDate > clock }
        setRows(all.filter(\.transaction.isRenewing).sorted { $0.precedes($1) })
        for place in rows.indices {
            failures.append(Failure(rows[place], next: next(after: place), facts, at: clock))
        }
        for place in rows.indices { visit(place) }
    }

    private mutating func begins(at instant: Int64) { nextBeginning = min(nextBeginning ?? .max, instant) }

    func next(after place: Int) -> Row? { place + 1 < rows.count ? rows[place + 1] : nil }

    // MARK: Rows

    private mutating func setRows(_ sorted: [Row]) {
        for var row in sorted {
            row.isRenewal = isRenewal(row, after: rows.last)
            row.start = start(of: row, after: rows.last)
            guard row.start <= clock else {
                begins(at: row.start)
                break
            }
            rows.append(row)
        }
    }

    private func isRenewal(_ row: Row, after before: Row?) -> Bool {
        if row.firstRenewal != nil { return true }
        if row.isSubscribed || row.cameByUpgrade { return false }
        switch row.transaction.reason {
        case .renewal: return true
        case .purchase: return false
        case .unknown:
            guard let before else { return false }
            return isSamePlan(row, before) || row.transaction.purchaseDate >= before.expires
        }
    }

    private func start(of row: Row, after before: Row?) -> Int64 {
        guard let before else { return row.transaction.purchaseDate }
        var start = row.transaction.purchaseDate
        // The cycle is kept: the day it is counted from says nothing of when it was paid.
        if row.isRenewal, start <= before.expires, let told = row.firstRenewal,
            Failure.exists(before, next: row, facts)
        {
            start = told
        }
        return max(start, before.start)
    }

    func isSamePlan(_ left: Row, _ right: Row) -> Bool {
        let (left, right) = (facts.parts[left.transaction.parts], facts.parts[right.transaction.parts])
        return left.product == right.product && left.plan == right.plan
    }

    func isCommitment(_ row: Row) -> Bool { facts.parts[row.transaction.parts].isCommitment }

    // MARK: States

    private mutating func visit(_ place: Int) {
        let row = rows[place]
        let end = next(after: place)?.start
        let judge = Judge(self, place)
        visits.append(Visit(row: place, state: judge.state(at: row.start), from: row.start, to: end))
        for boundary in judge.boundaries.sorted() where boundary > row.start {
            guard end.map({ boundary < $0 }) ?? (boundary <= clock) else { break }
            let state = judge.state(at: boundary)
            guard state != visits[visits.count - 1].state else { continue }
            visits[visits.count - 1].to = boundary
            visits.append(Visit(row: place, state: state, from: boundary, to: end))
        }
    }

    /// The first instant after the clock at which something else comes out although nothing was told; nil: none.
    var nextChange: Int64? {
        var next = nextBeginning
        func consider(_ instant: Int64?) {
            if let instant, instant > clock { next = min(next ?? .max, instant) }
        }
        if let last = rows.indices.last {
            for boundary in Judge(self, last).boundaries { consider(boundary) }
        }
        for row in rows + oneTime {
            for refund in row.comingRefunds(facts) { consider(refund) }
        }
        return next
    }
}

/// Says how one row stands.
private struct Judge {
    let row: Row
    let failure: Failure?
    let isFollowedByRenewal: Bool
    let hasExpired: Bool
    let refunds: [Refund]
    let reason: Reason

    init(_ timeline: Timeline, _ place: Int) {
        row = timeline.rows[place]
        let next = timeline.next(after: place)
        let failure = timeline.failures[place]
        self.failure = failure
        isFollowedByRenewal = next?.isRenewal ?? false
        hasExpired = row.notices.contains { timeline.facts.notices[$0].type == .expired }
        let end = failure?.grace ?? row.expires
        refunds = row.cameToBeReplaced(by: next) ? [] : row.refunds.filter { $0.date < end }
        reason = timeline.reason(ofLapse: row, failure)
    }

    var boundaries: [Int64] {
        var boundaries = [row.expires]
        for refund in refunds {
            boundaries.append(refund.date)
            if let reversal = refund.reversal { boundaries.append(reversal) }
        }
        if let failure {
            boundaries += [failure.cut, failure.window]
            if let grace = failure.grace { boundaries.append(grace) }
            if let decision = failure.decision { boundaries.append(decision.at) }
        }
        return boundaries
    }

    /// The first that holds.
    func state(at instant: Int64) -> State {
        let had: State = row.isFree ? .free : .paid
        if refunds.contains(where: { $0.holds(at: instant) }) { return .lapsed(.refund) }
        guard let failure else {
            return instant < row.expires || isFollowedByRenewal && !hasExpired ? had : .lapsed(reason)
        }
        if instant < failure.cut { return had }
        if failure.isDecided(at: instant) { return .lapsed(reason) }
        if let grace = failure.grace, instant < grace { return .grace }
        return .retry
    }
}

extension Row {
    /// Dates of refunds and reversals, those that are still to come as well.
    fileprivate func comingRefunds(_ facts: Facts) -> [Int64] {
        var dates: [Int64] = []
        for place in notices {
            guard let transaction = facts.notices[place].transaction else { continue }
            if let date = transaction.revocationDate { dates.append(date) }
            dates.append(transaction.version.signedDate)
        }
        return dates
    }
}

extension Timeline {
    fileprivate func reason(ofLapse row: Row, _ failure: Failure?) -> Reason {
        if let failure { return failure.decision?.outcome == .cancelled ? .voluntary : .billing }
        let notices = row.notices.lazy.map { facts.notices[$0] }
        if let reason = notices.last(where: { $0.type == .expired }).flatMap({ Reason($0.subtype) }) { return reason }
        let newest = notices.filter { !$0.type.isAboutOldRows }.compactMap(\.info).max { $0.version < $1.version }
        guard let info = newest else { return .other }
        if let intent = info.expirationIntent { return Reason(intent: intent) }
        if info.autoRenewStatus == 0 || isLastPeriod(row) && info.commitmentAutoRenewStatus == 0 { return .voluntary }
        return info.priceIncreaseStatus == 0 ? .price : .other
    }

    /// Of a commitment.
    func isLastPeriod(_ row: Row) -> Bool {
        guard isCommitment(row), let period = row.transaction.period else { return false }
        return period >= row.transaction.periods ?? 12
    }
}

extension Reason {
    /// nil: it says nothing.
    fileprivate init?(_ subtype: NoticeSubtype) {
        switch subtype {
        case .voluntary: self = .voluntary
        case .billingRetry: self = .billing
        case .priceIncrease: self = .price
        case .productNotForSale: self = .unavailable
        default: return nil
        }
    }

    fileprivate init(intent: Int64) {
        switch intent {
        case 1: self = .voluntary
        case 2: self = .billing
        case 3: self = .price
        case 4: self = .unavailable
        default: self = .other
        }
    }
}
