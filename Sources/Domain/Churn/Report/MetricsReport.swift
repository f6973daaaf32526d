// The report that is made from the cells of some days, as a whole or as a series of its parts.

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

    /// The days from one part of a series to the next.
    public struct Part: Sendable {
        public let from: CivilDay
        /// The first day not included.
        public let to: CivilDay
        /// Has the name of its series. Without counts and stocks it is made of zeros.
        public let group: Group
    }

    public struct Series: Sendable {
        public let name: CellParts
        /// One for each part of the request, also for those in which nothing was counted.
        public let parts: [Part]
    }

    public let request: MetricsRequest
    public let horizon: Horizon
    /// Sorted by name, without empty groups. Empty if the request is for a series.
    public let groups: [Group]
    /// Sorted by name, without groups in which nothing was counted. Empty if the request is not for a series.
    public let series: [Series]
    /// The first day with counts, requested or not; nil: there are no counts.
    public let firstDay: CivilDay?

    /// Takes some tenth of a microsecond for each cell before the end.
    public init(_ table: CellTable, _ request: MetricsRequest, dayOf: @escaping @Sendable (Int64) -> CivilDay) {
        self.request = request
        let horizon = Horizon(table.asOf, dayOf: dayOf)
        self.horizon = horizon
        let all = CellGroup.all(of: table, request)
        groups =
            request.interval != nil
            ? []
            : all.compactMap { group in
                var stocks = group.before(request.days.lowerBound)
                let whole = Group(group, request.days, after: &stocks, horizon)
                return whole.isEmpty ? nil : whole
            }
        series = request.interval == nil ? [] : all.compactMap { Series($0, request.parts, horizon) }
        firstDay = table.firstDay
    }

    /// Why a report calls a rate approximate.
    public static let approximation = "losses of customers won after a are in it"
}

extension MetricsReport.Series {
    /// nil if there was nothing at the start and nothing was counted.
    init?(_ group: CellGroup, _ parts: [Range<Int64>], _ horizon: Horizon) {
        var stocks = group.before(parts[0].lowerBound)
        name = group.name
        self.parts = parts.map { days in
            MetricsReport.Part(
                from: CivilDay(number: days.lowerBound), to: CivilDay(number: days.upperBound),
                group: MetricsReport.Group(group, days, after: &stocks, horizon))
        }
        if self.parts.allSatisfy(\.group.isEmpty) { return nil }
    }
}

extension MetricsReport.Group {
    /// - Parameter before: the sums of all days before the first one; then those of the days as well.
    init(_ group: CellGroup, _ days: Range<Int64>, after before: inout GroupTally, _ horizon: Horizon) {
        var within = GroupTally(currencies: group.currencies.count)
        var mature = MatureDays(horizon)
        var openDays: [MetricsReport.OpenDay] = []
        group.walk(days) { day, tally in
            within.add(tally)
            mature.add(tally.counts, on: day)
            if let open = MetricsReport.OpenDay(day, tally.counts, horizon) { openDays.append(open) }
        }
        let start = before
        before.add(within)
        let end = before
        let areOver = horizon.isOver(days.upperBound - 1)
        name = group.name
        counts = within.counts.sums
        stocks = Stock.ofCounts(start.counts, end.counts)
        rates = Rate.ofCounts(
            within.counts, paying: Stock.paying(start.counts), areOver: areOver, mature)
        money = group.currencies.indices.compactMap { index in
            let stocks = Stock.ofMoney(start.money[index], end.money[index])
            guard !within.money[index].isEmpty || stocks.contains(where: { $0.start != 0 }) else { return nil }
            return MetricsReport.Money(
                currency: group.currencies[index], sums: within.money[index].sums, stocks: stocks,
                rates: Rate.ofMoney(within.money[index], mrr: Stock.mrr(start.money[index]), areOver: areOver))
        }
        self.openDays = openDays
    }

    /// There was nothing at the start, and nothing was counted.
    var isEmpty: Bool { money.isEmpty && counts.isEmpty && stocks.allSatisfy { $0.start == 0 } }
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
