import Contract
import JSON
import Testing

@testable import Churn

@Suite struct `A report` {
    /// Random partitions, products and currencies, the same ones in each run.
    private static func mixed() -> Cells {
        var cells = Cells()
        var seed: UInt64 = 7
        func next(_ bound: UInt64) -> Int64 {
            seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int64((seed >> 33) % bound)
        }
        for _ in 0..<400 {
            let day = CivilDay(number: CivilDay("2026-10-20")!.number + next(60))
            let counter = ChurnCounter.allCases[Int(next(UInt64(ChurnCounter.allCases.count)))]
            let (product, currency) = (["basic", "pro"][Int(next(2))], ["EUR", "JPY", "USD"][Int(next(3))])
            for (counter, value) in [(counter, next(1000) - 300), (.activeDelta, next(9)), (.mrrNew, next(90_000))] {
                cells.write(
                    "\(day)", [counter: value], product: product, currency: currency,
                    storefront: ["DEU", "USA"][Int(next(2))], partition: Int32(next(12)))
            }
        }
        return cells
    }

    @Test func `closes its bridge of MRR for every group and currency`() throws {
        for by in ["", "product", "product,plan,storefront,currency"] {
            for group in try Self.mixed().report(by: by).groups {
                for money in group.money {
                    let mrr = try #require(money.stock("mrr"))
                    #expect(mrr.start + ChurnCounter.bridge.reduce(0) { $0 + money.sums[$1] } == mrr.end)
                    #expect(money.stock("arr")?.end == 12 * mrr.end)
                }
                let (active, grace) = (try #require(group.stock("active")), try #require(group.stock("inGrace")))
                #expect(group.stock("paying")?.end == active.end + grace.end)
                #expect(active.end - active.start == group.counts[.activeDelta])
            }
        }
    }

    @Test func `has groups that add up to the whole`() throws {
        let cells = Self.mixed()
        let whole = try #require(try cells.report().groups.first)
        for by in ["product", "storefront", "currency", "product,plan,storefront,currency"] {
            let groups = try cells.report(by: by).groups
            #expect(groups.count > 1)
            for counter in ChurnCounter.allCases where !counter.isMoney {
                #expect(groups.reduce(0) { $0 + $1.counts[counter] } == whole.counts[counter], "\(counter) by \(by)")
            }
            for money in whole.money {
                let parts = groups.flatMap(\.money).filter { $0.currency == money.currency }
                for counter in ChurnCounter.allCases where counter.isMoney {
                    #expect(parts.reduce(0) { $0 + $1.sums[counter] } == money.sums[counter])
                }
            }
        }
    }

    @Test func `goes on where the one before it ended`() throws {
        let cells = Self.mixed()
        let (first, second) = (
            try cells.report("2026-10-25", "2026-11-10").groups[0],
            try cells.report("2026-11-10", "2026-12-01").groups[0]
        )
        #expect(first.stocks.map(\.end) == second.stocks.map(\.start))
        #expect(first.money.map { $0.stocks.map(\.end) } == second.money.map { $0.stocks.map(\.start) })
    }

    @Test func `never adds money of two currencies`() throws {
        var cells = Cells()
        cells.write("2026-11-02", [.started: 1, .mrrNew: 10_000, .revenue: 10_000], currency: "USD")
        cells.write("2026-11-02", [.started: 1, .mrrNew: 7_000, .revenue: 7_000], currency: "EUR")
        cells.write("2026-11-02", [.trials: 1], currency: "CHF")
        let group = try #require(try cells.report().groups.first)
        #expect(group.counts[.started] == 2 && group.counts[.mrrNew] == 0)
        #expect(group.money.map { "\($0.currency)" } == ["EUR", "USD"])
        #expect(group.money.map { $0.sums[.revenue] } == [7_000, 10_000])
        #expect(try cells.report(by: "currency").groups.map { $0.money.count } == [0, 1, 1])
    }

    @Test func `tells groups apart by what it is asked, an app's product by its app`() throws {
        var cells = Cells()
        cells.write("2026-11-02", [.started: 1], product: "pro", storefront: "USA")
        cells.write("2026-11-02", [.started: 2], product: "basic", storefront: "DEU")
        cells.write("2026-11-03", [.started: 4], product: "pro", storefront: "DEU", plan: "MONTHLY")
        func names(_ by: String) throws -> [[String]] {
            let report = try cells.report(by: by)
            return report.groups.map { group in report.request.names(of: group.name).map { "\($0.value)" } }
        }
        #expect(try names("") == [[]])
        #expect(try names("product") == [["com.example.app", "basic"], ["com.example.app", "pro"]])
        #expect(try names("storefront") == [["DEU"], ["USA"]])
        #expect(
            try names("plan,storefront") == [
                ["BILLED_UPFRONT", "DEU"], ["BILLED_UPFRONT", "USA"], ["MONTHLY", "DEU"],
            ])
        #expect(try cells.report(by: "storefront").groups.map { $0.counts[.started] } == [6, 1])
    }

    @Test func `leaves out groups of which nothing is to be told`() throws {
        var cells = Cells()
        cells.write("2026-10-02", [.started: 1, .activeDelta: 1, .mrrNew: 5], product: "over")
        cells.write("2026-10-09", [.activeDelta: -1, .mrrOther: -5], product: "over")
        cells.write("2026-10-02", [.activeDelta: 1], product: "stays")
        cells.write("2026-12-02", [.started: 1], product: "later")
        #expect(try cells.report(by: "product").groups.map { "\($0.name.productId)" } == ["stays"])
        #expect(try Cells().report().groups.isEmpty)
    }

    @Test func `marks the days that are open, and why`() throws {
        var cells = Cells()
        cells.asOf = Cells.instant("2026-11-28") + 1
        cells.write("2026-11-02", [.failed: 3])
        cells.write("2026-11-20", [.failedOpen: 1, .failed: 1], product: "basic")
        cells.write("2026-11-20", [.failedOpen: 1, .retryOpen: 1], partition: 2)
        cells.write("2026-11-21", [.trialsOpen: 4])
        cells.write("2026-11-22", [.commitmentsOpen: 4])
        cells.write("2026-11-28", [.started: 1])
        let days = try #require(try cells.report().groups.first?.openDays)
        #expect(days.map { "\($0.day)" } == ["2026-11-20", "2026-11-21", "2026-11-28"])
        #expect(days.map(\.open) == [[2, 1, 0], [0, 0, 4], [0, 0, 0]])
        #expect(days.map(\.isOver) == [true, true, false])
    }

    @Test func `has the same days as the zone of the cells`() throws {
        var cells = Cells()
        // 23:30 of the 27th in UTC, the 28th an hour east of it.
        cells.asOf = Cells.instant("2026-11-28") - 1_800_000
        cells.write("2026-11-28", [.started: 1])
        let request = try MetricsRequest(from: "2026-11-01", to: "2026-11-28", by: "")
        let last = request.to.number - 1
        #expect(!MetricsReport(cells.table, request, dayOf: dayInUTC).horizon.isOver(last))
        #expect(MetricsReport(cells.table, request) { dayInUTC($0 + 3_600_000) }.horizon.isOver(last))
    }

    @Test func `refuses times that are none`() {
        func flaw(_ from: String, _ to: String, _ by: String = "") -> MetricsRequest.Flaw? {
            do throws(MetricsRequest.Flaw) {
                _ = try MetricsRequest(from: from, to: to, by: by)
                return nil
            } catch { return error }
        }
        #expect(flaw("2026-11-01", "2026-11-01") == .order)
        #expect(flaw("2026-11-02", "2026-11-01") == .order)
        #expect(flaw("2026-11-31", "2026-12-01") == .day(parameter: "from"))
        #expect(flaw("2026-11-01", "tomorrow") == .day(parameter: "to"))
        #expect(flaw("2016-01-01", "2026-01-08") == nil)
        #expect(flaw("2016-01-01", "2026-01-09") == .tooLong)
        #expect(flaw("2026-11-01", "2026-12-01", "product,country") == .dimension("country"))
        #expect(flaw("2026-11-01", "2026-12-01", "product,") == .dimension(""))
        #expect(flaw("2026-11-01", "2026-12-01", "currency,product,product") == nil)
        #expect(flaw("2026-11-01", "2026-12-01", " product, plan ") == nil)
        #expect(flaw("2026-11-01", "2026-12-01", "product plan") == .dimension("product plan"))
        #expect(flaw("2026-11-01", "2026-12-01", "product, ") == .dimension(" "))
    }

    // MARK: The table

    @Test func `is the same in whatever order and by whatever detours cells come`() throws {
        let cells = Self.mixed()
        var shuffled = CellTable()
        for record in cells.records.reversed() {
            let parts = record.key.parts
            shuffled.replace(Sums(), by: record.sums, of: parts, on: record.key.day)
            var other = record.sums
            other.add(5, to: .failed)
            other.add(-record.sums[.activeDelta], to: .activeDelta)
            shuffled.replace(record.sums, by: other, of: parts, on: record.key.day)
            shuffled.replace(other, by: record.sums, of: parts, on: record.key.day)
            shuffled.see(asOf: record.mark.asOf)
        }
        let request = try MetricsRequest(from: "2026-10-25", to: "2026-12-01", by: "product,currency")
        func json(_ table: CellTable) -> [UInt8] {
            var writer = JSONWriter()
            writer.object { MetricsReport(table, request, dayOf: dayInUTC).write(to: &$0) }
            return writer.bytes
        }
        #expect(json(shuffled) == json(cells.table))
        for record in cells.records {
            shuffled.replace(record.sums, by: Sums(), of: record.key.parts, on: record.key.day)
        }
        #expect(shuffled.count == 0)
    }

    @Test func `packs sums, and reads none that were not packed`() {
        var sums = Sums()
        sums.add(-5, to: .activeDelta)
        sums.add(.max, to: .revenue)
        #expect(PackedSums(sums).sums == sums)
        #expect(PackedSums(bytes: PackedSums(sums).bytes)?.sums == sums)
        #expect(PackedSums(bytes: PackedSums(sums).bytes + [0]) == nil && PackedSums(bytes: [1]) == nil)
    }

    // MARK: Days

    @Test func `has a row for every day, with what is there when it ends`() throws {
        var cells = Cells()
        cells.asOf = Cells.instant("2026-11-04") + 1
        cells.write("2026-10-02", [.activeDelta: 5, .mrrNew: 50])
        cells.write("2026-11-02", [.activeDelta: 2, .mrrNew: 20, .failedOpen: 1])
        cells.write("2026-11-04", [.activeDelta: -1, .mrrOther: -10])
        var rows: [String] = []
        let request = try MetricsRequest(from: "2026-11-01", to: "2026-11-06", by: "currency")
        MetricsReport.eachRow(cells.table, request, dayOf: dayInUTC) { name, row in
            let stocks = ["active", "mrr"].map { name in row.stocks.first { $0.name == name }?.end ?? -1 }
            rows.append("\(name.currency) \(row.day) \(stocks) \(row.sums[.activeDelta]) \(row.isFinal)")
        }
        #expect(
            rows == [
                "USD 2026-11-01 [5, 50] 0 true", "USD 2026-11-02 [7, 70] 2 false", "USD 2026-11-03 [7, 70] 0 true",
                "USD 2026-11-04 [6, 60] -1 false", "USD 2026-11-05 [6, 60] 0 false",
            ])
    }

    // MARK: JSON

    @Test func `is told with everything that belongs to a number`() throws {
        var cells = Cells()
        cells.asOf = Cells.instant("2026-11-28")
        cells.write("2026-10-02", [.activeDelta: 40, .mrrNew: 400_000], storefront: "")
        cells.write(
            "2026-11-27", [.lapsedVoluntary: 1, .trials: 2, .trialsOpen: 2, .mrrVoluntary: -10_000], storefront: "")
        var writer = JSONWriter()
        let report = try cells.report(by: "product,storefront")
        writer.object { report.write(to: &$0) }
        let json = try JSONValue.read(writer.bytes)
        #expect(json["from"]?.string == "2026-11-01" && json["to"]?.string == "2026-12-01")
        #expect(json["by"]?.array?.map(\.string) == ["product", "storefront"])
        #expect(json["asOf"]?.integer == cells.asOf && json["notOverFrom"]?.string == "2026-11-28")
        let group = try #require(json["groups"]?.array?.first)
        #expect(group["group"]?.object?.members.map(\.name) == ["bundleId", "productId", "storefront"])
        #expect(group["group"]?["storefront"] == .null)
        #expect(group["stocks"]?["active"]?["end"]?.integer == 40)
        #expect(group["counts"]?["lapsedVoluntary"]?.integer == 1 && group["counts"]?["failed"]?.integer == 0)
        let churn = try #require(group["rates"]?["grossChurn"])
        #expect(churn["numerator"]?.integer == 1 && churn["denominator"]?.integer == 40)
        #expect(json["formulas"]?["grossChurn"]?.string == "sum of lapsed* / Paying(a)")
        #expect(churn["provisional"]?.bool == true && churn["because"]?.array?.map(\.string) == ["daysNotOver"])
        let text = String(decoding: writer.bytes, as: UTF8.self)
        #expect(text.contains(#""grossChurn":{"value":0.025000,"numerator":1,"#))
        #expect(group["rates"]?["trialConversion"]?["trialsOpen"]?.integer == 2)
        #expect(group["rates"]?["trialConversion"]?["value"] == .null)
        #expect(group["rates"]?["recoveryWithin7"]?["daysLeftOut"]?.integer == 10)
        let money = try #require(group["money"]?.array?.first)
        #expect(money["currency"]?.string == "USD" && money["amounts"]?["mrrVoluntary"]?.integer == -10_000)
        #expect(money["rates"]?["netRevenueRetention"]?["approximate"]?.string == MetricsReport.approximation)
        #expect(group["openDays"]?.array?.map { $0["day"]?.string } == ["2026-11-27", "2026-11-28"])
        #expect(group["openDays"]?.array?.map { $0["over"]?.bool } == [true, false])
    }
}
