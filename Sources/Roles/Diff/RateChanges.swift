// What differing cells mean for the rates of each month. Pure.

import Churn
import Contract
import Notices

/// A rate that the replay reckons otherwise.
struct RateChange {
    /// `2026-10`.
    let month: String
    /// nil: of numbers, whatever the currency.
    let currency: String?
    /// Both of one name; at least one of them has a value.
    let shadow: Rate?
    let live: Rate?

    var title: String { (live ?? shadow)?.title ?? "" }
    var name: String { (live ?? shadow)?.name ?? "" }

    /// `4.10 %` and `3.90 %`; more digits where fewer would show no difference.
    var shown: (live: String, shadow: String) {
        for digits in [2, 4] {
            let (before, after) = (live?.shown(digits: digits), shadow?.shown(digits: digits))
            if before != after { return (before ?? "-", after ?? "-") }
        }
        return (live?.shown(digits: Rate.digits) ?? "-", shadow?.shown(digits: Rate.digits) ?? "-")
    }
}

/// The cells of both sides, added up over everything but the currency: no more than days to keep, however many cells there are.
struct CellSides {
    private(set) var shadow = CellTable()
    private(set) var live = CellTable()
    private var firstDifference: CivilDay?
    private var lastDay: CivilDay?
    private var asOf: Int64?

    /// Cells of days beyond this many years after the first difference are of no month that anybody asks for.
    private static let limitMonths = 1200

    /// A cell as both sides have it; nil: it is not there.
    ///
    /// - Parameter isAlike: nothing can be said of it, so it counts alike on both sides: what it changes is no difference of the
    ///   replay.
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

    /// By month, from the first in which a cell differs: what is there at its end is what the next one begins with.
    func changes(dayOf: @escaping @Sendable (Int64) -> CivilDay) -> [RateChange] {
        guard let firstDifference, let lastDay else { return [] }
        var (shadow, live) = (self.shadow, self.live)
        // One horizon for both: days that are not over must be the same days.
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

    /// Nothing is asked apart: there is one group, or none.
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

    /// As numbers: two of four are one of two. Of nothing there is no share.
    static func isSame(_ left: Ratio?, _ right: Ratio?) -> Bool {
        let mine = left.flatMap { $0.denominator == 0 ? nil : $0 }
        let other = right.flatMap { $0.denominator == 0 ? nil : $0 }
        guard let mine, let other else { return mine == nil && other == nil }
        return mine.numerator.multipliedFullWidth(by: other.denominator)
            == other.numerator.multipliedFullWidth(by: mine.denominator)
    }
}
