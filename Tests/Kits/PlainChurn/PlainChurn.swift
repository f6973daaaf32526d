// A second implementation of the counters of churn, for tests: slow, and evaluated instant by instant. It computes the state of a
// chain at every instant that a fact names, and counts the differences between one instant and the next. It contains no code of
// the product.
//
// Texts in quotation marks, here and in the other files, are the exact definitions, each beside the code that follows it. At more
// length they are explained in docs/explanation/churn-rules.md.

import Foundation

public struct PlainCell: Sendable, Equatable {
    public var counts: [String: Int64]
    public var money: [String: Int64]

    public init(counts: [String: Int64] = [:], money: [String: Int64] = [:]) {
        self.counts = counts
        self.money = money
    }
}

/// A chain at one instant.
public struct PlainStanding: Sendable, Equatable {
    /// PAID, FREE, GRACE, RETRY, LAPSED; none before its first row.
    public let state: String
    /// The key of its row's cell without the day; nil before its first row.
    public let key: String?
    /// MRR of a paying chain, otherwise 0.
    public let mrr: Int64
    /// MRR of its row in GRACE and RETRY, otherwise 0.
    public let atRisk: Int64
    public let rowsBegun: Int64
}

public struct PlainChurn {
    private let facts: [PlainFact]
    private let chain: String
    private let zone: TimeZone
    private let partition: Int32

    /// - Parameter records: values of topic `notifications`, of one chain.
    /// - Parameter zone: its IANA name.
    public init(records: [[UInt8]], chain: String, zone: String, partition: Int32) {
        self.init(
            facts: records.compactMap(PlainFact.init(record:)), chain: chain, zone: zone, partition: partition)
    }

    /// - Parameter facts: the facts read from records, in any order, possibly with repetitions. A caller that asks often reads
    ///   the records once.
    public init(facts: [PlainFact], chain: String, zone: String, partition: Int32) {
        guard let known = TimeZone(identifier: zone) else { preconditionFailure("no zone \(zone)") }
        self.facts = PlainFact.distinct(facts)
        self.chain = chain
        self.zone = known
        self.partition = partition
    }

    /// C(facts, clock), by cell key. Zeros and empty cells are left out.
    public func cells(at clock: Int64) -> [String: PlainCell] { cells(of: life(at: clock)) }

    /// The stock at the clock.
    public func standing(at clock: Int64) -> PlainStanding { standing(of: life(at: clock), at: clock) }

    /// The stock at the end of a day, as known at the clock.
    public func standing(atEndOf day: String, clock: Int64) -> PlainStanding {
        standing(of: life(at: clock), at: end(of: day))
    }

    /// All of these at once: the life, which takes most of the time, is computed once.
    func told(at clock: Int64, endsOf days: [String]) -> (
        cells: [String: PlainCell], now: PlainStanding, then: [PlainStanding]
    ) {
        let life = life(at: clock)
        return (
            cells(of: life), standing(of: life, at: clock), days.map { standing(of: life, at: end(of: $0)) }
        )
    }

    private func life(at clock: Int64) -> PlainLife { PlainLife(facts, chain: chain, clock: clock) }

    private func cells(of life: PlainLife) -> [String: PlainCell] {
        var ledger = PlainLedger(zone: zone, partition: partition)
        life.postRows(&ledger)
        life.postCharges(&ledger)
        life.postTrials(&ledger)
        life.postFailures(&ledger)
        life.postRetries(&ledger)
        life.postLapses(&ledger)
        life.postNotifications(&ledger)
        life.postRefunds(&ledger)
        life.postCommitments(&ledger)
        life.postDeltas(&ledger)
        life.postUnpaidGrace(&ledger)
        life.postRevenueChanges(&ledger)
        life.postRiskChanges(&ledger)
        return ledger.cells
    }

    private func standing(of life: PlainLife, at t: Int64) -> PlainStanding {
        let place = life.visits.lastIndex { $0.from <= t } ?? 0
        let ledger = PlainLedger(zone: zone, partition: partition)
        return PlainStanding(
            state: life.visits[place].state.name,
            key: life.row(ofVisit: place).map { PlainLedger.withoutDay(ledger.key($0)) },
            mrr: life.monthlyRevenue(atVisit: place), atRisk: life.revenueAtRisk(atVisit: place),
            rowsBegun: Int64(life.rows.count { $0.start <= t }))
    }

    /// The last instant of a day.
    private func end(of day: String) -> Int64 {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = zone
        let parts = day.split(separator: "-").compactMap { Int($0) }
        let noon = calendar.date(from: DateComponents(year: parts[0], month: parts[1], day: parts[2], hour: 12))
        guard let noon, let next = calendar.date(byAdding: .day, value: 1, to: noon) else {
            preconditionFailure("no day \(day)")
        }
        return Int64(calendar.startOfDay(for: next).timeIntervalSince1970) * 1_000 - 1
    }
}

/// Where counters are posted: "dated by the fact, in `churn.zone`, under the key of one row".
struct PlainLedger {
    private let zone: TimeZone
    private let partition: Int32
    private var posted: [String: PlainCell] = [:]
    private var days: [Int64: String] = [:]

    init(zone: TimeZone, partition: Int32) {
        self.zone = zone
        self.partition = partition
    }

    mutating func count(_ name: String, _ at: Int64, _ row: PlainRow, _ number: Int64 = 1) {
        guard number != 0 else { return }
        posted[key(row, day: day(of: at)), default: PlainCell()].counts[name, default: 0] += number
    }

    mutating func pay(_ name: String, _ amount: Int64, _ at: Int64, _ row: PlainRow) {
        guard amount != 0 else { return }
        posted[key(row, day: day(of: at)), default: PlainCell()].money[name, default: 0] += amount
    }

    private mutating func day(of instant: Int64) -> String {
        if let day = days[instant] { return day }
        let day = plainDay(of: instant, in: zone)
        days[instant] = day
        return day
    }

    /// "`<partition>|<day>|<bundleId>|<productId>|<billingPlan>|<storefront>|<currency>`, absent parts empty", "parts of the
    /// row's newest version, plan BILLED_UPFRONT if absent"; "one-time: plan part is empty".
    func key(_ row: PlainRow, day: String = "") -> String {
        let newest = row.newest
        let parts = [
            newest.bundle, newest.product, newest.isRenewing ? row.plan : nil, newest.storefront, newest.currency,
        ]
        return (["\(partition)", day] + parts.map { $0 ?? "" }).joined(separator: "|")
    }

    static func withoutDay(_ key: String) -> String {
        var parts = key.split(separator: "|", omittingEmptySubsequences: false)
        parts.remove(at: 1)
        return parts.joined(separator: "|")
    }

    /// "Zeros left out; a cell without any is a tombstone."
    var cells: [String: PlainCell] {
        posted.mapValues { cell in
            PlainCell(counts: cell.counts.filter { $0.value != 0 }, money: cell.money.filter { $0.value != 0 })
        }.filter { $0.value != PlainCell() }
    }
}
