// The life of a subscription: its rows, and the states it went through.

internal import Notices
internal import Records

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

/// The time in one state on one row. An empty visit stands for a row that was replaced at the instant it began.
struct Visit: Equatable {
    var row: Int
    var state: State
    var from: Int64
    /// nil: it lasts until now.
    var to: Int64?
}

/// What the facts mean at one instant. Facts dated later are ignored.
struct Timeline {
    let facts: Facts
    let clock: Int64
    /// The rows of the subscription that have begun, sorted; their starts are sorted as well.
    private(set) var rows: [Row] = []
    /// One for each row.
    private(set) var failures: [Failure?] = []
    private(set) var visits: [Visit] = []
    /// Purchases that do not renew.
    private(set) var oneTime: [Row] = []
    /// The next instant at which the result may change without a new notification. It is nil if no such instant follows.
    private(set) var nextChange: Int64?

    init(_ facts: Facts, at clock: Int64) {
        self.facts = facts
        self.clock = clock
        var existing = facts.notices.count
        while existing > 0, facts.notices[existing - 1].signedDate > clock { existing -= 1 }
        if existing < facts.notices.count { changes(at: facts.notices[existing].signedDate) }
        rows = Row.all(of: facts, existing: existing, at: clock)
        rows.removeAll { !$0.transaction.isPurchased }
        for place in rows.indices { changes(at: rows[place].nextRefundChange) }
        if rows.contains(where: { !$0.transaction.isRenewing }) {
            oneTime = rows.filter { !$0.transaction.isRenewing }
            for row in oneTime { changes(at: row.transaction.purchaseDate) }
            oneTime.removeAll { $0.transaction.purchaseDate > clock }
            rows.removeAll { !$0.transaction.isRenewing }
        }
        rows.sort { $0.precedes($1, facts) }
        setNeighbours()
        failures.reserveCapacity(rows.count)
        for place in rows.indices { failures.append(Failure(place, of: rows, facts, at: clock)) }
        visits.reserveCapacity(rows.count + 4)
        for place in rows.indices { visit(place) }
    }

    private mutating func changes(at instant: Int64?) {
        if let instant, instant > clock { nextChange = min(nextChange ?? .max, instant) }
    }

    func next(after place: Int) -> Row? { place + 1 < rows.count ? rows[place + 1] : nil }

    // MARK: Rows

    /// Sets what each row takes from the row before it, which is complete by then.
    private mutating func setNeighbours() {
        for place in rows.indices {
            rows[place].isRenewal = isRenewal(place)
            let start = start(of: place)
            rows[place].start = start
            if start > clock {
                changes(at: start)
                rows.removeSubrange(place...)
                break
            }
        }
    }

    private func isRenewal(_ place: Int) -> Bool {
        if rows[place].firstRenewal != nil { return true }
        if rows[place].isSubscribed || rows[place].cameByUpgrade { return false }
        switch rows[place].transaction.reason {
        case .renewal: return true
        case .purchase: return false
        case .unknown:
            guard place > 0 else { return false }
            return isSamePlan(place, place - 1)
                || max(rows[place].transaction.purchaseDate, rows[place - 1].start) >= rows[place - 1].expires
        }
    }

    private func start(of place: Int) -> Int64 {
        var start = rows[place].transaction.purchaseDate
        guard place > 0 else { return start }
        // A late renewal keeps the billing cycle: its purchase date does not show when it was paid.
        if rows[place].isRenewal, start <= rows[place - 1].expires, let told = rows[place].firstRenewal,
            Failure.exists(place - 1, of: rows)
        {
            start = told
        }
        return max(start, rows[place - 1].start)
    }

    func isSamePlan(_ left: Int, _ right: Int) -> Bool {
        let (left, right) = (rows[left].transaction.parts, rows[right].transaction.parts)
        return left == right
            || facts.parts[left].product == facts.parts[right].product
                && facts.parts[left].plan == facts.parts[right].plan
    }

    // MARK: States

    private mutating func visit(_ place: Int) {
        // The usual case: nothing happens before the row ends, and by then the next row has begun.
        if place + 1 < rows.count, rows[place + 1].start <= rows[place].expires,
            rows[place].start < rows[place].expires, failures[place] == nil, rows[place].refunds.isEmpty
        {
            visits.append(
                Visit(
                    row: place, state: rows[place].isFree ? .free : .paid, from: rows[place].start,
                    to: rows[place + 1].start))
            return
        }
        let row = rows[place]
        let end = next(after: place)?.start
        let judge = Judge(self, place)
        visits.append(Visit(row: place, state: judge.state(at: row.start, of: self), from: row.start, to: end))
        let boundaries = judge.boundaries.sorted()
        if end == nil { for boundary in boundaries { changes(at: boundary) } }
        for boundary in boundaries where boundary > row.start {
            guard end.map({ boundary < $0 }) ?? (boundary <= clock) else { break }
            let state = judge.state(at: boundary, of: self)
            guard state != visits[visits.count - 1].state else { continue }
            visits[visits.count - 1].to = boundary
            visits.append(Visit(row: place, state: state, from: boundary, to: end))
        }
    }
}

/// Decides the state of one row.
private struct Judge {
    let row: Row
    let failure: Failure?
    let isFollowedByRenewal: Bool
    let refunds: [Refund]

    init(_ timeline: Timeline, _ place: Int) {
        row = timeline.rows[place]
        let next = timeline.next(after: place)
        let failure = timeline.failures[place]
        self.failure = failure
        isFollowedByRenewal = next?.isRenewal ?? false
        let end = failure?.grace ?? row.expires
        refunds = row.cameToBeReplaced(by: next) ? [] : row.refunds.filter { $0.date < end }
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

    /// The first condition that is true.
    func state(at instant: Int64, of timeline: Timeline) -> State {
        let had: State = row.isFree ? .free : .paid
        if refunds.contains(where: { $0.holds(at: instant) }) { return .lapsed(.refund) }
        guard let failure else {
            let isPaidFor = instant < row.expires || isFollowedByRenewal && !row.hasExpired
            return isPaidFor ? had : .lapsed(timeline.reason(ofLapse: row, nil))
        }
        if instant < failure.cut { return had }
        if failure.isDecided(at: instant) { return .lapsed(timeline.reason(ofLapse: row, failure)) }
        if let grace = failure.grace, instant < grace { return .grace }
        return .retry
    }
}

extension Timeline {
    fileprivate func reason(ofLapse row: Row, _ failure: Failure?) -> Reason {
        if let failure { return failure.decision?.outcome == .cancelled ? .voluntary : .billing }
        let notices = row.notices.lazy.map { facts.notices[$0] }
        if let reason = notices.last(where: { $0.type == .expired }).flatMap({ Reason($0.subtype) }) { return reason }
        let newest = notices.filter { !$0.type.isAboutOldRows }.compactMap(\.info).max { $0.version < $1.version }
        guard let info = newest else { return .other }
        if let intent = info.expirationIntent { return Reason(EndReason(expirationIntent: intent)) }
        if info.autoRenewStatus == 0 || isLastPeriod(row) && info.commitmentAutoRenewStatus == 0 { return .voluntary }
        return info.priceIncreaseStatus == 0 ? .price : .other
    }

    /// The last period of a commitment.
    func isLastPeriod(_ row: Row) -> Bool {
        guard row.isCommitment, let period = row.transaction.period else { return false }
        return period >= row.transaction.periods ?? 12
    }
}

extension Reason {
    /// nil: the subtype gives no reason.
    fileprivate init?(_ subtype: NoticeSubtype) {
        guard let reason = subtype.word?.withUTF8Buffer({ EndReason(expiredSubtype: $0) }) else { return nil }
        self.init(reason)
    }

    fileprivate init(_ reason: EndReason) {
        switch reason {
        case .voluntary: self = .voluntary
        case .billing: self = .billing
        case .price: self = .price
        case .unavailable: self = .unavailable
        case .other: self = .other
        }
    }
}
