// The report that is made from the cells of some days.

public import Contract
public import Notices

public struct MetricsReport: Sendable {
    /// The kinds of rows that the request adds up.
    public struct Group: Sendable {
        /// Parts that the request does not group by are empty.
        public let name: CellParts
        /// The sums over all days.
        public let counts: Sums
        public let stocks: [Stock]
        public let rates: [Rate]
        /// Sorted by currency.
        public let money: [Money]
        public let openDays: [OpenDay]
    }

    public struct Money: Sendable {
        /// Empty if the rows have no currency.
        public let currency: Text
        public let sums: Sums
        public let stocks: [Stock]
        public let rates: [Rate]
    }

    /// A day whose counts are not final.
    public struct OpenDay: Sendable, Equatable {
        /// In the order of display.
        public static let counters: [ChurnCounter] = [.failedOpen, .retryOpen, .trialsOpen]

        public let day: CivilDay
        public let isOver: Bool
        /// In the order of `counters`.
        public let open: [Int64]
    }

    public let request: MetricsRequest
    public let horizon: Horizon
    /// Sorted by name, without empty groups.
    public let groups: [Group]
    /// The first day with counts, requested or not; nil: there are no counts.
    public let firstDay: CivilDay?

    /// Takes some tenth of a microsecond for each cell before the end.
    public init(_ table: CellTable, _ request: MetricsRequest, dayOf: @escaping @Sendable (Int64) -> CivilDay) {
        self.request = request
        let horizon = Horizon(table.asOf, dayOf: dayOf)
        self.horizon = horizon
        groups = CellGroup.all(of: table, request).compactMap { Group($0, request, horizon) }
        firstDay = table.firstDay
    }

    /// Why a report calls a rate approximate.
    public static let approximation = "losses of customers won after a are in it"
}

extension MetricsReport.Group {
    /// nil if there was nothing at the start and nothing was counted.
    init?(_ group: CellGroup, _ request: MetricsRequest, _ horizon: Horizon) {
        var within = GroupTally(currencies: group.currencies.count)
        var mature = MatureDays(horizon)
        var openDays: [MetricsReport.OpenDay] = []
        let before = group.before(request.days.lowerBound)
        group.walk(request.days) { day, tally in
            within.add(tally)
            mature.add(tally.counts, on: day)
            if let open = MetricsReport.OpenDay(day, tally.counts, horizon) { openDays.append(open) }
        }
        var after = before
        after.add(within)
        let areOver = horizon.isOver(request.to.number - 1)
        name = group.name
        counts = within.counts.sums
        stocks = Stock.ofCounts(before.counts, after.counts)
        rates = Rate.ofCounts(
            within.counts, paying: Stock.paying(before.counts), areOver: areOver, mature)
        money = group.currencies.indices.compactMap { index in
            let start = before.money[index]
            let stocks = Stock.ofMoney(start, after.money[index])
            guard !within.money[index].isEmpty || stocks.contains(where: { $0.start != 0 }) else { return nil }
            return MetricsReport.Money(
                currency: group.currencies[index], sums: within.money[index].sums, stocks: stocks,
                rates: Rate.ofMoney(within.money[index], mrr: Stock.mrr(start), areOver: areOver))
        }
        self.openDays = openDays
        if money.isEmpty, counts.isEmpty, stocks.allSatisfy({ $0.start == 0 }) { return nil }
    }
}

extension MetricsReport.OpenDay {
    /// nil if everything is decided, or the day has not begun.
    init?(_ day: Int64, _ tally: Tally, _ horizon: Horizon) {
        isOver = horizon.isOver(day)
        open = Self.counters.map { tally[$0] }
        guard open.contains(where: { $0 != 0 }) || !isOver && horizon.day?.number == day else { return nil }
        self.day = CivilDay(number: day)
    }
}
