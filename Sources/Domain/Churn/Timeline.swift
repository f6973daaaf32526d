// The life of a subscription: its rows, and the states it went through.

internal import Notices
internal import Records
internal import SubscriptionHistory
internal import Zone

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
struct Visit {
    var row: Int
    var state: State
    var from: Int64
    /// nil: it lasts until now.
    var to: Int64?
}

/// What the facts mean at one instant. Facts dated later are ignored.
///
/// All of it is plain values, in memory that is used again for the next subscription.
struct Timeline: ~Copyable {
    var facts = Facts()
    private(set) var clock = Int64.min
    /// The rows of the subscription that have begun, sorted; their starts are sorted as well.
    var rows = Scratch<Row>(capacity: 32)
    /// One for each row.
    private(set) var failures = Scratch<Failure?>(capacity: 32)
    private(set) var visits = Scratch<Visit>(capacity: 32)
    /// How each row was entered.
    var entries = Scratch<Entry>(capacity: 32)
    /// Purchases that do not renew.
    private(set) var oneTime = Scratch<Row>()
    /// The refunds of all rows.
    var refunds = Scratch<Refund>()
    /// The next instant at which the result may change without a new notification. It is nil if no such instant follows.
    private(set) var nextChange: Int64?
    /// What all this adds to the cells.
    var ledger: Ledger

    // While rows are collected.
    var nextOfRow = Scratch<Int32>(capacity: 64)
    var places = RowPlaces()
    var versions = Scratch<RefundVersion>()
    private var boundaries = Scratch<Int64>()

    init(_ days: DayFinder) { ledger = Ledger(days) }

    /// Sets everything but the entries and the ledger.
    /// - Parameters:
    ///   - from: the place of the first notice that counts: see `Timeline+Tail.swift`.
    ///   - without: the place of a notice that does not count.
    mutating func reckon(at clock: Int64, from: Int = 0, without: Int? = nil) {
        self.clock = clock
        nextChange = nil
        rows.removeAll()
        failures.removeAll()
        visits.removeAll()
        oneTime.removeAll()
        refunds.removeAll()
        var existing = facts.notices.count
        while existing > from, facts.notices[existing - 1].signedDate > clock { existing -= 1 }
        if existing < facts.notices.count { changes(at: facts.notices[existing].signedDate) }
        collectRows(from..<existing, without: without)
        keepPurchased()
        sortRows()
        setNeighbours()
        // Few rows have one.
        for place in rows.indices { failures.append(hasFailure(place) ? failure(place) : nil) }
        for place in rows.indices { visit(place) }
    }

    private mutating func changes(at instant: Int64?) {
        if let instant, instant > clock { nextChange = min(nextChange ?? .max, instant) }
    }

    func next(after place: Int) -> Row? { place + 1 < rows.count ? rows[place + 1] : nil }

    // MARK: Rows

    /// Removes what does not count, and puts apart what does not renew.
    private mutating func keepPurchased() {
        var end = 0
        for place in rows.indices where rows[place].transaction.isPurchased {
            changes(at: rows[place].nextRefundChange)
            if rows[place].transaction.isRenewing {
                if end < place { rows[end] = rows[place] }
                end += 1
            } else if rows[place].transaction.purchaseDate <= clock {
                oneTime.append(rows[place])
            } else {
                changes(at: rows[place].transaction.purchaseDate)
            }
        }
        rows.keepFirst(end)
    }

    private mutating func sortRows() {
        // They usually are sorted. Access by place: copying whole rows just to look at their dates is slow.
        var place = 1
        while place < rows.count,
            rows[place - 1].transaction.purchaseDate < rows[place].transaction.purchaseDate
                || precedes(rows[place - 1], rows[place])
        {
            place += 1
        }
        if place >= rows.count { return }
        var values = rows.values
        values.sort { precedes($0, $1) }
    }

    /// Sets what each row takes from the row before it, which is complete by then.
    private mutating func setNeighbours() {
        for place in rows.indices {
            rows[place].isRenewal = isRenewal(place)
            let start = start(of: place)
            rows[place].start = start
            if start > clock {
                changes(at: start)
                rows.keepFirst(place)
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
            hasFailure(place - 1)
        {
            start = told
        }
        return max(start, rows[place - 1].start)
    }

    // Inlined: a call would copy all of the timeline for each row.

    /// The parts that tell the cells of a row apart.
    @inline(__always) func parts(_ place: Int) -> PartNumbers { facts.parts[Int(rows[place].transaction.parts)] }

    @inline(__always) func hasSameParts(_ left: Int, _ right: Int) -> Bool {
        rows[left].transaction.parts == rows[right].transaction.parts
    }

    @inline(__always) func isSamePlan(_ left: Int, _ right: Int) -> Bool {
        if hasSameParts(left, right) { return true }
        let (left, right) = (parts(left), parts(right))
        return left.product == right.product && left.plan == right.plan
    }

    // MARK: States

    private mutating func visit(_ place: Int) {
        // The usual case: nothing happens before the row ends, and by then the next row has begun.
        if place + 1 < rows.count, rows[place + 1].start <= rows[place].expires,
            rows[place].start < rows[place].expires, failures[place] == nil, !rows[place].isRefunded
        {
            visits.append(
                Visit(
                    row: place, state: rows[place].isFree ? .free : .paid, from: rows[place].start,
                    to: rows[place + 1].start))
            return
        }
        let judge = Judge(self, place)
        let end = next(after: place)?.start
        visits.append(
            Visit(row: place, state: judge.state(at: judge.row.start, of: self), from: judge.row.start, to: end))
        setBoundaries(judge)
        if end == nil { for number in boundaries.indices { changes(at: boundaries[number]) } }
        for number in boundaries.indices where boundaries[number] > judge.row.start {
            let boundary = boundaries[number]
            guard end.map({ boundary < $0 }) ?? (boundary <= clock) else { break }
            let state = judge.state(at: boundary, of: self)
            guard state != visits[visits.count - 1].state else { continue }
            visits[visits.count - 1].to = boundary
            visits.append(Visit(row: place, state: state, from: boundary, to: end))
        }
    }

    /// The instants at which the state of a row may change, sorted.
    private mutating func setBoundaries(_ judge: Judge) {
        boundaries.removeAll()
        boundaries.append(judge.row.expires)
        for number in judge.row.refunds where judge.counts(refunds[number]) {
            boundaries.append(refunds[number].date)
            if let reversal = refunds[number].reversal { boundaries.append(reversal) }
        }
        if let failure = judge.failure {
            boundaries.append(failure.cut)
            boundaries.append(failure.window)
            if let grace = failure.grace { boundaries.append(grace) }
            if let decision = failure.decision { boundaries.append(decision.at) }
        }
        var values = boundaries.values
        values.sort()
    }
}

/// Decides the state of one row.
private struct Judge {
    let row: Row
    let failure: Failure?
    private let isFollowedByRenewal: Bool
    private let isReplaced: Bool

    @inline(__always) init(_ timeline: borrowing Timeline, _ place: Int) {
        row = timeline.rows[place]
        let next = timeline.next(after: place)
        failure = timeline.failures[place]
        isFollowedByRenewal = next?.isRenewal ?? false
        isReplaced = row.cameToBeReplaced(by: next)
    }

    /// It ends the row: it came before the row was over, and no upgrade is the reason.
    func counts(_ refund: Refund) -> Bool { !isReplaced && refund.date < failure?.grace ?? row.expires }

    /// The first condition that is true.
    @inline(__always) func state(at instant: Int64, of timeline: borrowing Timeline) -> State {
        let had: State = row.isFree ? .free : .paid
        for number in row.refunds where counts(timeline.refunds[number]) && timeline.refunds[number].holds(at: instant)
        {
            return .lapsed(.refund)
        }
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
        var told: NoticeSubtype?
        var newest: Info?
        for place in notices(of: row) {
            let type = facts.notices[place].type
            if type == .expired { told = facts.notices[place].subtype }
            guard !type.isAboutOldRows, let info = facts.notices[place].info else { continue }
            if newest.map({ $0.version < info.version }) ?? true { newest = info }
        }
        if let reason = told.flatMap({ Reason($0) }) { return reason }
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
