// Numbers by day, for charts and for tables of other tools.

public import Contract

/// One day of a group.
public struct DayRow: Sendable {
    /// The counts of the day; money only if the request groups by currency.
    public let sums: Sums
    public let day: CivilDay
    /// The stocks at the end of the day, as in reports; money only if the request groups by currency.
    public let stocks: [Stock]
    /// What is undecided on that day; nil: nothing is undecided.
    public let open: MetricsReport.OpenDay?
    /// Only refunds, late deliveries and the ends of commitments can still change the day.
    public let isFinal: Bool
}

extension MetricsReport {
    /// Every requested day of one group, then of the next.
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
