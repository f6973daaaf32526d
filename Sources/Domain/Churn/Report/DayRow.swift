// Numbers by day, or by week or month, for charts and for tables of other tools.

public import Contract

/// One day of a group, or one part of its series.
public struct DayRow: Sendable {
    /// What was counted; money only if the request groups by currency.
    public let sums: Sums
    /// The first day, if the row has several.
    public let day: CivilDay
    /// The stocks at the end, as in reports; money only if the request groups by currency.
    public let stocks: [Stock]
    /// Only refunds, late deliveries and the ends of commitments can still change the row.
    public let isFinal: Bool
}

extension MetricsReport {
    /// Every row of one group, then of the next: the parts of a series, or days.
    public static func eachRow(
        _ table: CellTable, _ request: MetricsRequest, dayOf: @escaping @Sendable (Int64) -> CivilDay,
        _ body: (CellParts, DayRow) -> Void
    ) {
        let horizon = Horizon(table.asOf, dayOf: dayOf)
        let rows = rows(of: request)
        for group in CellGroup.all(of: table, request) {
            var running = group.before(request.days.lowerBound)
            let hasMoney = request.by.contains(.currency) && !group.currencies.isEmpty
            for days in rows {
                var within = GroupTally(currencies: group.currencies.count)
                var isFinal = true
                group.walk(days) { day, tally in
                    within.add(tally)
                    isFinal = isFinal && OpenDay(day, tally.counts, horizon) == nil && horizon.isOver(day)
                }
                let start = running
                running.add(within)
                var sums = within.counts.sums
                if hasMoney { sums.add(within.money[0].sums) }
                let money = hasMoney ? Stock.ofMoney(start.money[0], running.money[0]) : []
                body(
                    group.name,
                    DayRow(
                        sums: sums, day: CivilDay(number: days.lowerBound),
                        stocks: Stock.ofCounts(start.counts, running.counts) + money, isFinal: isFinal))
            }
        }
    }

    /// The number of rows, which is also the number of parts of all series.
    public static func rowCount(of table: CellTable, _ request: MetricsRequest) -> Int {
        CellGroup.all(of: table, request).count * rows(of: request).count
    }

    private static func rows(of request: MetricsRequest) -> [Range<Int64>] {
        request.interval == nil ? request.days.map { $0..<$0 + 1 } : request.parts
    }
}
