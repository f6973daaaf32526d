import Contract
import JSON
import Notices
import Testing

@testable import Churn

@Suite struct `A series` {
    private func cells() -> Cells {
        var cells = Cells()
        cells.asOf = Cells.instant("2026-11-20")
        cells.write("2026-10-02", [.activeDelta: 40, .mrrNew: 400_000])
        cells.write("2026-11-01", [.lapsedVoluntary: 1, .activeDelta: -1, .mrrVoluntary: -10_000])
        cells.write("2026-11-02", [.lapsedBilling: 2, .activeDelta: -2, .mrrBilling: -20_000])
        cells.write("2026-11-08", [.lapsedVoluntary: 4, .activeDelta: -4, .mrrVoluntary: -40_000])
        cells.write("2026-11-17", [.started: 3, .activeDelta: 3, .mrrNew: 30_000])
        cells.write("2026-11-17", [.started: 5, .activeDelta: 5], product: "basic")
        return cells
    }

    private func report(_ from: String, _ to: String, by: String = "", _ interval: String) throws -> MetricsReport {
        MetricsReport(
            cells().table, try MetricsRequest(from: from, to: to, by: by, interval: interval), dayOf: dayInUTC)
    }

    /// 2026-11-02 was a Monday.
    @Test(arguments: [
        ("2026-11-01", "2026-11-04", "day", ["2026-11-01", "2026-11-02", "2026-11-03", "2026-11-04"]),
        ("2026-11-01", "2026-11-18", "week", ["2026-11-01", "2026-11-02", "2026-11-09", "2026-11-16", "2026-11-18"]),
        ("2026-11-02", "2026-11-09", "week", ["2026-11-02", "2026-11-09"]),
        ("1969-12-28", "1970-01-06", "week", ["1969-12-28", "1969-12-29", "1970-01-05", "1970-01-06"]),
        ("2027-12-31", "2028-03-02", "month", ["2027-12-31", "2028-01-01", "2028-02-01", "2028-03-01", "2028-03-02"]),
    ])
    func `is cut at its interval, and at the ends of the request`(
        _ from: String, _ to: String, _ interval: String, _ cuts: [String]
    ) throws {
        let parts = try MetricsRequest(from: from, to: to, by: "", interval: interval).parts
        let edges = parts.map { CivilDay(number: $0.lowerBound).description } + [to]
        #expect(edges == cuts)
        for (part, next) in zip(parts, parts.dropFirst()) { #expect(part.upperBound == next.lowerBound) }
    }

    /// Both count the days of a part alike. What a series must carry over from part to part are its stocks. How counts become rates is
    /// the subject of other tests.
    @Test(arguments: ["day", "week", "month"], ["", "product", "product,currency"])
    func `has in each part what a report of its days says`(_ interval: String, _ by: String) throws {
        let (from, to) = ("2026-10-20", "2026-11-24")
        for series in try report(from, to, by: by, interval).series {
            #expect(series.parts.first?.from.description == from && series.parts.last?.to.description == to)
            for part in series.parts {
                let alone = try cells().report(part.from.description, part.to.description, by: by).groups
                let same = alone.first { $0.name == series.name }
                #expect(same != nil || part.group.isEmpty)
                guard let same else { continue }
                #expect(part.group.counts == same.counts && part.group.stocks == same.stocks)
                #expect(part.group.rates == same.rates && part.group.openDays == same.openDays)
                #expect(part.group.money.map(\.stocks) == same.money.map(\.stocks))
                #expect(part.group.money.map(\.rates) == same.money.map(\.rates))
            }
        }
    }

    @Test func `has parts in which nothing was counted, and no groups of which there is nothing to say`() throws {
        let whole = try report("2026-11-01", "2026-11-09", by: "product", "day")
        #expect(whole.groups.isEmpty)
        #expect(whole.series.map { $0.name.productId.description } == ["pro"])
        #expect(whole.series[0].parts.map { $0.group.counts[.lapsedVoluntary] } == [1, 0, 0, 0, 0, 0, 0, 4])
        #expect(whole.series[0].parts.map { $0.group.stocks[0].end } == [39, 37, 37, 37, 37, 37, 37, 33])
        #expect(try report("2026-01-01", "2026-02-01", "week").series.isEmpty)
    }

    @Test func `is told with its days, and each formula once`() throws {
        var writer = JSONWriter()
        let report = try report("2026-11-01", "2026-11-21", "week")
        writer.object { report.write(to: &$0) }
        let json = try JSONValue.read(writer.bytes)
        let parts = try #require(json["groups"]?.array?.first?["series"]?.array)
        #expect(parts.map { $0["from"]?.string } == ["2026-11-01", "2026-11-02", "2026-11-09", "2026-11-16"])
        #expect(parts.map { $0["over"]?.bool } == [true, true, true, false])
        #expect(parts[1]["rates"]?["grossChurn"]?["numerator"]?.integer == 6)
        #expect(parts[1]["rates"]?["grossChurn"]?["denominator"]?.integer == 39)
        #expect(parts[1]["money"]?.array?.first?["amounts"]?["mrrBilling"]?.integer == -20_000)
        let text = String(decoding: writer.bytes, as: UTF8.self)
        #expect(text.split(separator: "sum of lapsed* / Paying(a)").count == 2)
        #expect(json["formulas"]?["grossChurn"]?.string == "sum of lapsed* / Paying(a)")
        // Every number that has a formula, and nothing else.
        let group = try #require(report.series.first?.parts.first?.group)
        let names = group.stocks.map(\.name) + group.rates.map(\.name)
        let money = group.money.flatMap { $0.stocks.map(\.name) + $0.rates.map(\.name) }
        let told = try #require(json["formulas"]?.object?.members.map(\.name))
        #expect(Set(told) == Set(names + money) && told.count == Set(told).count)
    }

    @Test func `as a table has a line for each part, which add up to the days`() throws {
        let week = MetricsCSV(try MetricsRequest(from: "2026-11-01", to: "2026-11-21", by: "", interval: "week"))
        let day = MetricsCSV(try MetricsRequest(from: "2026-11-01", to: "2026-11-21", by: ""))
        #expect(week.header == day.header)
        func lapsed(_ csv: MetricsCSV) -> [(day: String, count: Int64, isFinal: Bool)] {
            var rows: [(String, Int64, Bool)] = []
            MetricsReport.eachRow(cells().table, csv.request, dayOf: dayInUTC) { _, row in
                rows.append((row.day.description, row.sums[.lapsedVoluntary], row.isFinal))
            }
            return rows
        }
        #expect(lapsed(week).map(\.day) == ["2026-11-01", "2026-11-02", "2026-11-09", "2026-11-16"])
        #expect(lapsed(week).map(\.isFinal) == [true, true, true, false])
        #expect(lapsed(week).reduce(0) { $0 + $1.count } == lapsed(day).reduce(0) { $0 + $1.count })
        #expect(MetricsReport.rowCount(of: cells().table, week.request) == 4)
        #expect(MetricsReport.rowCount(of: cells().table, day.request) == 20)
    }
}

@Suite struct `Figures of the business` {
    private func figures(_ cells: Cells, today: String) -> [String: BusinessFigures.Group] {
        BusinessFigures.groups(cells.table, today: CivilDay(today)!) { _, product in
            product.description.hasPrefix("pro") ? "premium" : product.description
        }
    }

    @Test func `add up the products of a group, by the end of today`() {
        var cells = Cells()
        cells.write("2026-10-02", [.activeDelta: 40, .trialDelta: 3, .mrrNew: 400_000], product: "pro.monthly")
        cells.write(
            "2026-11-10", [.activeDelta: 2, .retryDelta: 1, .mrrNew: 7_000], product: "pro.yearly", currency: "EUR")
        cells.write("2026-11-10", [.mrrNew: 5], product: "pro.yearly", currency: "euros")
        cells.write("2026-11-10", [.activeDelta: 9], product: "basic")
        cells.write("2026-11-11", [.activeDelta: 100], product: "basic")
        let found = figures(cells, today: "2026-11-10")
        #expect(found.keys.sorted() == ["basic", "premium"])
        #expect(found["premium"]?.stocks[.activeDelta] == 42 && found["premium"]?.stocks[.trialDelta] == 3)
        #expect(found["premium"]?.stocks[.retryDelta] == 1 && found["basic"]?.stocks[.activeDelta] == 9)
        #expect(found["premium"]?.monthlyRevenue == ["USD": 400_000, "EUR": 7_000, "other": 5])
    }

    @Test func `tell today from yesterday`() {
        var cells = Cells()
        for (day, count) in [("2026-11-08", 1), ("2026-11-09", 2), ("2026-11-10", 4), ("2026-11-11", 8)] {
            cells.write(day, [.started: Int64(count)])
        }
        let group = figures(cells, today: "2026-11-10")["premium"]
        #expect(group?.today[.started] == 4 && group?.yesterday[.started] == 2)
    }

    @Test func `have sums that wrap at hostile amounts`() {
        var cells = Cells()
        for product in ["pro.monthly", "pro.yearly"] {
            cells.write("2026-10-20", [.failed: .max, .recoveredWithin16: .max, .mrrNew: .max], product: product)
        }
        let group = figures(cells, today: "2026-11-30")["premium"]
        #expect(group?.failed == -2 && group?.recovered == -2 && group?.monthlyRevenue["USD"] == -2)
    }

    @Test func `count failures that have had their 16 days, for 30 days`() {
        var cells = Cells()
        // Today is 2026-11-30: the window is from 2026-10-15 to 2026-11-13.
        for (day, count) in [("2026-10-14", 1), ("2026-10-15", 2), ("2026-11-13", 4), ("2026-11-14", 8)] {
            cells.write(day, [.failed: Int64(10 * count), .recoveredWithin16: Int64(count), .recoveredWithin28: 90])
        }
        let group = figures(cells, today: "2026-11-30")["premium"]
        #expect(group?.failed == 60 && group?.recovered == 6)
    }
}
