// The states of one chain, evaluated at one instant after the other.

enum PlainReason {
    case voluntary, billing, price, unavailable, refund, other

    var counter: String {
        switch self {
        case .voluntary: "lapsedVoluntary"
        case .billing: "lapsedBilling"
        case .price: "lapsedPrice"
        case .unavailable: "lapsedUnavailable"
        case .refund: "lapsedRefund"
        case .other: "lapsedOther"
        }
    }
}

enum PlainState: Equatable {
    case none, paid, free, grace, retry
    case lapsed(PlainReason)

    /// "*Access*: PAID, FREE, GRACE."
    var hasAccess: Bool { self == .paid || self == .free || self == .grace }

    var name: String {
        switch self {
        case .none: "none"
        case .paid: "PAID"
        case .free: "FREE"
        case .grace: "GRACE"
        case .retry: "RETRY"
        case .lapsed: "LAPSED"
        }
    }
}

/// An interval in one state of one row.
struct PlainVisit {
    /// Index in `rows`; nil before the first row.
    let row: Int?
    let state: PlainState
    let from: Int64
    /// nil: the interval has not ended.
    var to: Int64?
}

/// Everything that follows for one chain from the facts known at a clock.
struct PlainLife {
    let chain: String
    let clock: Int64
    let facts: [PlainFact]
    let rows: [PlainRow]
    let oneTime: [PlainRow]
    private(set) var failures: [PlainFailure?] = []
    /// The first is the time before all rows.
    private(set) var visits: [PlainVisit] = []
    /// MRR of each row.
    private(set) var revenues: [Int64] = []

    /// - Parameter known: the whole set, of which "what is dated after the clock does not exist yet".
    init(_ known: [PlainFact], chain: String, clock: Int64) {
        self.chain = chain
        self.clock = clock
        facts = known.filter { $0.signed <= clock }
        let all = PlainRow.all(of: facts)
        rows = PlainRow.timeline(all, clock: clock)
        oneTime = all.filter { !$0.newest.isRenewing && $0.newest.purchase <= clock }
        failures = rows.indices.map { rows[$0].failure(next: next($0), clock: clock) }
        visits = walk()
        revenues = rows.indices.map(monthlyRevenue(ofRow:))
    }

    func next(_ row: Int) -> PlainRow? { row + 1 < rows.count ? rows[row + 1] : nil }

    /// "Of the newest row with start <= t, alone"; of several rows that start at once the last one, but each is also evaluated at
    /// its start.
    func state(of place: Int, at t: Int64) -> PlainState {
        let row = rows[place]
        let failure = failures[place]
        // "Refunded at t, by a refund dated before the end of the row (its grace end)."
        let end = failure?.graceEnd ?? row.due
        if !row.hasUpgradeRefunds(next: next(place)),
            row.refunds(at: clock).contains(where: { $0.holds(at: t) && $0.date < end })
        {
            return .lapsed(.refund)
        }
        let current: PlainState = row.isFree ? .free : .paid
        guard let failure else {
            // "No failure: t < `expiresDate`, or the next row is RENEWAL and the row has no `EXPIRED`."
            let isBridged = (next(place)?.isRenewal ?? false) && !row.isCarried { $0.type == "EXPIRED" }
            return t < row.due || isBridged ? current : .lapsed(reason(of: row))
        }
        // "Failure: t < cut; not decided and t < grace; not decided."
        if t < failure.cut { return current }
        if !failure.isDecided(at: t) {
            return failure.graceEnd.map { t < $0 } ?? false ? .grace : .retry
        }
        // "After a failure: voluntary if cancelled, else billing."
        return .lapsed(failure.decision?.outcome == .cancelled ? .voluntary : .billing)
    }

    /// "Otherwise the first known of: subtype of the row's last `EXPIRED`; in the newest renewal info that came with the row:
    /// `expirationIntent`, `autoRenewStatus` 0 (last period of MONTHLY: or `commitmentAutoRenewStatus` 0) = voluntary,
    /// `priceIncreaseStatus` 0 = price; other."
    private func reason(of row: PlainRow) -> PlainReason {
        switch row.carriers.last(where: { $0.type == "EXPIRED" })?.subtype {
        case "VOLUNTARY": return .voluntary
        case "BILLING_RETRY": return .billing
        case "PRICE_INCREASE": return .price
        case "PRODUCT_NOT_FOR_SALE": return .unavailable
        default: break
        }
        // "Not by `REFUND*`, `CONSUMPTION_REQUEST`, `REVOKE`: old row, current info."
        let own = row.carriers.filter {
            let type = $0.type ?? ""
            return !type.hasPrefix("REFUND") && type != "CONSUMPTION_REQUEST" && type != "REVOKE"
        }
        guard let info = own.compactMap(\.info).max(by: { $0.version < $1.version }) else { return .other }
        switch info.intent {
        case 1: return .voluntary
        case 2: return .billing
        case 3: return .price
        case 4: return .unavailable
        case .some: return .other
        case nil: break
        }
        if info.autoRenewStatus == 0 { return .voluntary }
        if row.isMonthly && row.isLastPeriod && info.commitmentStatus == 0 { return .voluntary }
        return info.priceIncreaseStatus == 0 ? .price : .other
    }

    /// Every date that a fact names, and dates that follow from one: between two of these nothing can change.
    private var instants: [Int64] {
        var instants: Set<Int64> = [clock]
        for row in rows {
            instants.formUnion([row.start, row.due, row.windowEnd])
            for version in row.versions {
                instants.formUnion([version.version.signed, version.purchase])
                instants.formUnion([version.revocation, version.expires].compactMap(\.self))
            }
        }
        for fact in facts {
            instants.insert(fact.signed)
            if let graceEnd = fact.info?.graceEnd { instants.insert(graceEnd) }
        }
        for failure in failures.compactMap(\.self) {
            instants.formUnion([failure.failedAt, failure.cut])
            if let decision = failure.decision { instants.insert(decision.at) }
        }
        return instants.sorted()
    }

    /// "For each row in order, the states over [start, start of the next row) (the last: up to and including the clock); a row
    /// with an empty interval is visited once with its state at its start."
    private func walk() -> [PlainVisit] {
        var visits = [PlainVisit(row: nil, state: .none, from: .min)]
        let instants = instants
        for place in rows.indices {
            let start = rows[place].start
            let later = instants.filter { t in
                guard let next = next(place) else { return t > start && t <= clock }
                return t > start && t < next.start
            }
            for t in [start] + later {
                let state = state(of: place, at: t)
                let last = visits[visits.count - 1]
                // "Equal neighbouring states of one row are one visit."
                if last.row == place && last.state == state { continue }
                visits[visits.count - 1].to = t
                visits.append(PlainVisit(row: place, state: state, from: t))
            }
        }
        return visits
    }
}

/// Questions about visits; each visit is named by its index.
extension PlainLife {
    func row(ofVisit place: Int) -> PlainRow? { visits[place].row.map { rows[$0] } }

    /// "*Paying*: PAID, or GRACE of a paid row."
    func isPaying(_ place: Int) -> Bool {
        let state = visits[place].state
        return state == .paid || (state == .grace && row(ofVisit: place)?.isFree == false)
    }

    /// The index of the first visit of a row.
    func entry(of row: Int) -> Int { visits.firstIndex { $0.row == row } ?? 0 }

    /// The index of the last visit of a row.
    func exit(of row: Int) -> Int { visits.lastIndex { $0.row == row } ?? 0 }

    /// "Access at entry of a row = access of the visit before."
    func isEnteredWithAccess(_ row: Int) -> Bool { visits[entry(of: row) - 1].state.hasAccess }

    /// "The failure of the row before is decided recovered."
    func isRecovered(_ row: Int) -> Bool { row > 0 && failures[row - 1]?.decision?.outcome == .recovered }

    /// "A chain that continues another one is adopted"; and a "first row" that is not "started if `purchaseDate` =
    /// `originalPurchaseDate`, or it has the chain's id, or `INITIAL_BUY`".
    func isAdopted(_ place: Int) -> Bool {
        let row = rows[place]
        let isStarted =
            row.newest.purchase == row.newest.originalPurchase || row.id == chain
            || row.isCarried { $0.says("SUBSCRIBED", "INITIAL_BUY") }
        return place == 0 && (!isStarted || row.newest.previous != nil)
    }
}
