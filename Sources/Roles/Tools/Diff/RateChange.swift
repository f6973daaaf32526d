// What differing cells mean for the rates of each month. Pure.

import Churn
import Contract
import Notices

/// A rate that differs between the replay and the live worker.
struct RateChange {
    /// `2026-10`.
    let month: String
    /// nil: a rate of counts, for all currencies.
    let currency: String?
    /// Both rates have the same name; at least one of them has a value.
    let shadow: Rate?
    let live: Rate?

    var title: String { (live ?? shadow)?.title ?? "" }
    var name: String { (live ?? shadow)?.name ?? "" }

    /// `4.10 %` and `3.90 %`, with more digits if fewer would show no difference.
    var shown: (live: String, shadow: String) {
        for digits in [2, 4] {
            let (before, after) = (live?.shown(digits: digits), shadow?.shown(digits: digits))
            if before != after { return (before ?? "-", after ?? "-") }
        }
        return (live?.shown(digits: Rate.digits) ?? "-", shadow?.shown(digits: Rate.digits) ?? "-")
    }
}

/// The cells of both sides, added up over everything but the currency, so that memory depends only on the number of days.
struct CellSides {
    private(set) var shadow = CellTable()
    private(set) var live = CellTable()
    private var firstDifference: CivilDay?
    private var lastDay: CivilDay?
    private var asOf: Int64?

    /// Months after the first difference; nobody asks for later ones.
    private static let limitMonths = 1200

    /// Adds a cell of both sides; nil: the cell does not exist.
    ///
    /// - Parameter isAlike: the cell cannot be compared, so the live value counts on both sides.
    mutating func add(shadow: CellRecord?, live: CellRecord?, isAlike: Bool) {
        let mine = isAlike ? live : shadow
        guard let day = (mine ?? live)?.key.day else { return }
        if let mine { Self.add(mine, to: &self.shadow) }
        if let live { Self.add(live, to: &self.live) }
        lastDay = max(lastDay ?? day, day)
        asOf = max(asOf ?? .min, mine?.mark.asOf ?? .min, live?.mark.asOf ?? .min)
        if mine?.sums != live?.sums { firstDifference = min(firstDifference ?? day, day) }
    }

    private static func add(_ cell: CellRecord, to table: inout CellTable) {
        var cell = cell
        cell.key.parts = CellParts(
            bundleId: "", productId: "", billingPlan: "", storefront: "", currency: cell.key.parts.currency)
        table.add(cell)
    }

    /// By month, from the first month in which a cell differs, because each month begins with the stocks of the month before.
    func changes(dayOf: @escaping @Sendable (Int64) -> CivilDay) -> [RateChange] {
        guard let firstDifference, let lastDay else { return [] }
        var (shadow, live) = (self.shadow, self.live)
        // The same horizon for both, so that the same days are not over.
        if let asOf {
            shadow.see(asOf: asOf)
            live.see(asOf: asOf)
        }
        var changes: [RateChange] = []
        var month = CivilDay(year: firstDifference.year, month: firstDifference.month, day: 1)
        for _ in 0..<Self.limitMonths where month <= lastDay {
            let next =
                month.month == 12
                ? CivilDay(year: month.year + 1, month: 1, day: 1)
                : CivilDay(year: month.year, month: month.month + 1, day: 1)
            if let request = try? MetricsRequest(from: month, to: next) {
                changes += Self.changes(
                    MetricsReport(shadow, request, dayOf: dayOf), MetricsReport(live, request, dayOf: dayOf),
                    in: String(month.description.prefix(7)))
            }
            month = next
        }
        return changes
    }

    /// The request has no grouping, so there is at most one group.
    private static func changes(_ shadow: MetricsReport, _ live: MetricsReport, in month: String) -> [RateChange] {
        let (mine, theirs) = (shadow.groups.first, live.groups.first)
        var changes = compare(mine?.rates ?? [], theirs?.rates ?? [], month, nil)
        let currencies = Set((mine?.money ?? []).map(\.currency) + (theirs?.money ?? []).map(\.currency)).sorted()
        for currency in currencies {
            changes += compare(
                mine?.money.first { $0.currency == currency }?.rates ?? [],
                theirs?.money.first { $0.currency == currency }?.rates ?? [], month, "\(currency)")
        }
        return changes
    }

    private static func compare(_ shadow: [Rate], _ live: [Rate], _ month: String, _ currency: String?) -> [RateChange]
    {
        let names = live.map(\.name) + shadow.map(\.name).filter { name in !live.contains { $0.name == name } }
        return names.compactMap { name in
            let (mine, other) = (shadow.first { $0.name == name }, live.first { $0.name == name })
            guard !isSame(mine?.ratio, other?.ratio) else { return nil }
            return RateChange(month: month, currency: currency, shadow: mine, live: other)
        }
    }

    /// Compares values: 2/4 is 1/2. A ratio with denominator 0 has no value.
    static func isSame(_ left: Ratio?, _ right: Ratio?) -> Bool {
        let mine = left.flatMap { $0.denominator == 0 ? nil : $0 }
        let other = right.flatMap { $0.denominator == 0 ? nil : $0 }
        guard let mine, let other else { return mine == nil && other == nil }
        return mine.numerator.multipliedFullWidth(by: other.denominator)
            == other.numerator.multipliedFullWidth(by: mine.denominator)
    }
}
