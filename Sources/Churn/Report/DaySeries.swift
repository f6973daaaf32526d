// Day by day: for charts and tables of other tools.

public import Contract

/// A day of a group.
public struct DayRow: Sendable {
    /// What was counted; money only where the request tells currencies apart.
    public let sums: Sums
    public let day: CivilDay
    /// At the end of the day, as reports have them; of money only where the request tells currencies apart.
    public let stocks: [Stock]
    /// What is not decided of it; nil: nothing of that kind.
    public let open: MetricsReport.OpenDay?
    /// Refunds, what is delivered late, and the ends of commitments may still change it.
    public let isFinal: Bool
}

extension MetricsReport {
    /// Every day asked for of one group after the other.
    public static func eachDay(
        _ table: CellTable, _ request: MetricsRequest, dayOf: @escaping @Sendable (Int64) -> CivilDay,
        _ body: (CellParts, DayRow) -> Void
    ) {
        let horizon = Horizon(table.asOf, dayOf: dayOf)
        for group in CellGroup.all(of: table, request) {
            var running = group.before(request.days.lowerBound)
            let hasMoney = request.by.contains(.currency) && !group.currencies.isEmpty
            group.walk(request.days) { day, tally in
                let start = running
                running.add(tally)
                var sums = tally.counts.sums
                if hasMoney { sums.add(tally.money[0].sums) }
                let money = hasMoney ? Stock.ofMoney(start.money[0], running.money[0]) : []
                body(
                    group.name,
                    DayRow(
                        sums: sums, day: CivilDay(number: day),
                        stocks: Stock.ofCounts(start.counts, running.counts) + money,
                        open: OpenDay(day, tally.counts, horizon),
                        isFinal: OpenDay(day, tally.counts, horizon) == nil && horizon.isOver(day)))
            }
        }
    }
}
