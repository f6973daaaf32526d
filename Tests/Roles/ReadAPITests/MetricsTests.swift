import Churn
import Contract
import HTTP
import JSON
import Log
import MemoryLog
import Platform
import Store
import Testing
import Zone

@testable import ReadAPI

@Suite struct `Metrics over HTTP` {
    private let query = "from=2026-02-01&to=2026-03-01"

    private func groups(_ rig: Rig, _ query: String = "from=2026-02-01&to=2026-03-01") throws -> [JSONValue] {
        try #require(rig.metrics(query)?["groups"]?.array)
    }

    private func active(_ rig: Rig) throws -> Int64? {
        try groups(rig).first?["stocks"]?["active"]?["end"]?.integer
    }

    @Test func `add up the cells of all partitions, and say what they rest on`() throws {
        let rig = try Rig()
        try rig.write(
            .cell(Cell(day: "2026-01-10", counts: #""activeDelta":40"#)),
            .cell(
                Cell(partition: 1, counts: #""lapsedVoluntary":3,"activeDelta":-3"#, money: #""mrrVoluntary":-2997"#)),
            .cell(Cell(partition: 2, counts: #""lapsedBilling":1,"activeDelta":-1"#, money: "")),
            .cell(Cell(partition: 2, currency: "EUR", asOf: 1_771_000_000_500)))
        rig.settle()
        let answer = try #require(rig.metrics())
        let group = try #require(answer["groups"]?.array?.first)
        let churn = try #require(group["rates"]?["grossChurn"])
        #expect(churn["numerator"]?.integer == 4 && churn["denominator"]?.integer == 40)
        #expect(answer["formulas"]?["grossChurn"]?.string == "sum of lapsed* / Paying(a)")
        #expect(try active(rig) == 37)
        #expect(group["money"]?.array?.map { $0["currency"]?.string } == ["EUR", "USD"])
        #expect(answer["asOf"]?.integer == 1_771_000_000_500)
        #expect(answer["notOverFrom"]?.string == "2026-02-13")
        let places = try #require(answer["position"]?.array)
        #expect(places.map { $0["partition"]?.integer } == [0, 1, 2])
        #expect(places.map { $0["offset"]?.integer } == [1, 1, 2])
        #expect(places.allSatisfy { $0["topic"]?.string == "appstore.production.churn-cells" })
    }

    @Test func `follow every change of a cell, and its end`() throws {
        let rig = try Rig()
        try rig.write(.cell(Cell()), .cell(Cell(counts: #""activeDelta":7"#)), .cell(Cell(product: "basic")))
        rig.settle()
        #expect(try active(rig) == 8)
        try rig.write(.cell(Cell(counts: #""activeDelta":9"#, money: "")))
        rig.settle(steps: 2)
        #expect(try active(rig) == 10)
        #expect(rig.metric("perennial_api_cells") == 2)
        try rig.write(.init(topic: .cells, key: Cell().key, value: nil, partition: 0))
        rig.settle(steps: 2)
        #expect(try active(rig) == 1)
        // A second tombstone removes nothing more.
        try rig.write(.cell(Cell(product: "basic")), .init(topic: .cells, key: Cell().key, value: nil, partition: 0))
        rig.settle(steps: 2)
        #expect(try active(rig) == 1)
        #expect(try groups(rig, query + "&by=product").count == 1)
    }

    @Test func `are the same after a restart, and after a copy was lost`() throws {
        let rig = try Rig()
        try rig.write(.cell(Cell()), .cell(Cell(partition: 1)), .cell(Cell(partition: 2, product: "basic")))
        rig.settle()
        let before = rig.metrics("from=2026-02-01&to=2026-03-01&by=product,currency")
        #expect(before != nil)
        rig.following.close()
        #expect(rig.status(.metrics, "", query) == 503)
        let again = try Rig(memory: rig.memory, disk: rig.disk, makesTopics: false)
        again.settle()
        #expect(again.metrics("from=2026-02-01&to=2026-03-01&by=product,currency") == before)
        #expect(again.metric(#"perennial_api_records_total{topic="churn-cells"}"#) == 0)
        again.following.close()
        try MemoryStores(disk: rig.disk).wipe(1)
        let third = try Rig(memory: rig.memory, disk: rig.disk, makesTopics: false)
        third.settle()
        #expect(third.metrics("from=2026-02-01&to=2026-03-01&by=product,currency") == before)
        #expect(third.metric(#"perennial_api_records_total{topic="churn-cells"}"#) == 1)
    }

    @Test func `are empty where no worker counts`() throws {
        let rig = try Rig()
        rig.settle()
        let answer = try #require(rig.metrics())
        #expect(answer["groups"]?.array?.isEmpty == true && answer["asOf"] == .null && answer["notOverFrom"] == .null)
        #expect(answer["position"]?.array?.count == 3)
    }

    @Test func `leave out what is no cell, and what stood in its place`() throws {
        let rig = try Rig()
        try rig.write(.cell(Cell()), .cell(Cell(product: "basic")), .cell(Cell(product: "plus")))
        let wrong: [(key: String, value: String, partition: Int32)] = [
            (Cell().key, #"{"v":1}"#, 0), (Cell(product: "basic").key, Cell().json, 0),
            (Cell(partition: 2).key, Cell(partition: 2).json, 1), ("nothing", Cell().json, 0),
            ("0|2026-02-30|a|b|c|d|e", Cell().json, 0),
        ]
        for row in wrong {
            try rig.write(.init(topic: .cells, key: row.key, value: row.value, partition: row.partition))
        }
        rig.settle()
        #expect(rig.trouble == nil)
        #expect(try active(rig) == 1)
        #expect(rig.metric(#"perennial_api_records_kept_out_total{topic="churn-cells",cause="shape"}"#) == 2)
        #expect(rig.metric(#"perennial_api_records_kept_out_total{topic="churn-cells",cause="key"}"#) == 3)
    }

    // MARK: Series and tables

    private func ask(_ rig: Rig, _ query: String, _ headers: KeyValuePairs<String, String>) -> HTTPResponse {
        var fields = HTTPHeaders()
        for (name, value) in headers { fields.add(name, value) }
        return rig.endpoint.answer(.metrics, ""[...].utf8, query: query, fields)
    }

    @Test func `as a series have a part for each interval`() throws {
        let rig = try Rig()
        try rig.write(.cell(Cell(day: "2026-02-03")), .cell(Cell(day: "2026-02-10", counts: #""activeDelta":4"#)))
        rig.settle()
        let groups = try groups(rig, query + "&interval=week")
        let parts = try #require(groups.first?["series"]?.array)
        #expect(groups.count == 1 && groups[0]["stocks"] == nil)
        #expect(
            parts.map { $0["from"]?.string } == [
                "2026-02-01", "2026-02-02", "2026-02-09", "2026-02-16", "2026-02-23",
            ])
        #expect(parts.map { $0["stocks"]?["active"]?["end"]?.integer } == [0, 1, 5, 5, 5])
        // Forms send empty fields.
        #expect(rig.metrics(query + "&interval=&by=") == rig.metrics(query))
    }

    @Test func `as a table have the lines of inspect, for spreadsheets`() throws {
        let rig = try Rig()
        try rig.write(.cell(Cell(day: "2026-02-03")), .cell(Cell(day: "2026-02-10", currency: "EUR")))
        rig.settle()
        let answer = ask(rig, query + "&interval=month", ["Accept": "text/csv"])
        #expect(answer.status == 200 && answer.headers["Content-Type"] == "text/csv; charset=utf-8")
        let lines = String(decoding: answer.body, as: UTF8.self).split(
            separator: "\r\n", omittingEmptySubsequences: false)
        #expect(lines.count == 4 && lines.last?.isEmpty == true)
        #expect(lines[0].hasPrefix("day,currency,final,activeAtEnd,"))
        #expect(lines[1].hasPrefix("2026-02-01,EUR,0,1,") && lines[2].hasPrefix("2026-02-01,USD,0,1,"))
        for accept in ["application/json, text/csv", "application/json;q=0.5, text/csv;q=0.51, */*", "text/csv, */*"] {
            #expect(ask(rig, query, ["Accept": accept]).headers["Content-Type"] != "application/json", "\(accept)")
        }
        let days = ask(rig, query, ["Accept": "application/json;q=0.5, text/csv"])
        #expect(String(decoding: days.body, as: UTF8.self).split(separator: "\r\n").count == 1 + 2 * 28)
        let refused = [
            "application/json", "*/*", "text/csv;q=0", "text/csvx", "application/json, text/csv;q=0.9",
            "text/csv;q=0.25, application/json;q=0.251", "text/csv;q=0.5, */*",
            "application/*;q=0.6, text/csv;q=0.5, */*;q=0.1",
        ]
        for accept in refused {
            #expect(ask(rig, query, ["Accept": accept]).headers["Content-Type"] == "application/json", "\(accept)")
        }
    }

    @Test func `are refused if the answer would have too many parts or lines`() throws {
        let rig = try Rig()
        for number in 0..<9 { try rig.write(.cell(Cell(product: "p\(number)"))) }
        rig.settle()
        let long = "from=2017-01-01&to=2027-01-01&by=product"
        let series = ask(rig, long + "&interval=day", [:])
        #expect(
            series.status == 422 && String(decoding: series.body, as: UTF8.self) == #"{"error":"series_too_large"}"#)
        #expect(ask(rig, long, ["Accept": "text/csv"]).status == 422)
        #expect(ask(rig, long + "&interval=month", ["Accept": "text/csv"]).status == 200)
        #expect(ask(rig, long + "&interval=month", [:]).status == 200)
        #expect(ask(rig, long, [:]).status == 200)
    }

    private static let day = "it must be a day, as 2026-11-01"
    private static let dimensions = "it must be one or more of product, plan, storefront, currency, separated by commas"
    private static let order = "it must be after from, and is not included: for one day it is the next"
    private static let names = "only from, to, by, interval and environment are known"
    private static let escape = "it has an invalid percent escape"

    @Test(arguments: [
        ("from=&to=2026-02-01", "from", day), ("from=2026-2-1&to=2026-02-01", "from", day),
        ("from=2026-02-01&to=2026-02-30", "to", day), ("from=2026-02-01&to=2026-02-01", "to", order),
        ("from=2026-02-01&to=2026-01-01", "to", order),
        ("from=2006-02-01&to=2026-02-01", "to", "it is more than 3660 days after from"),
        ("from=2026-01-01&to=2026-02-01&by=country", "by", dimensions),
        ("from=2026-01-01&to=2026-02-01&by=product,", "by", dimensions),
        ("from=2026-01-01&to=2026-02-01&by=%zz", "by", escape),
        ("from=2026-01-01&to=2026-02-01&interval=hour", "interval", "it must be one of day, week, month"),
        // Totals would be mistaken for the requested filter.
        ("from=2026-01-01&to=2026-02-01&By=product", "By", names), ("to=2026-02-01&From=2026-01-01", "From", names),
        ("from=2026-01-01&to=2026-02-01&=1", "", names), ("from=2026-01-01&to=2026-02-01&%zz=1", "%zz", names),
        (#"from=2026-01-01&to=2026-02-01&"},\%0a%ff=1"#, "\"},\\\n\u{fffd}", names),
    ])
    func `say which parameter is wrong, and why`(query: String, parameter: String, reason: String) throws {
        let answer = try refusal(query)
        #expect(answer.object?.members.map(\.name) == ["error", "parameter", "reason"])
        #expect(answer["error"]?.string == "invalid_parameter")
        #expect(answer["parameter"]?.string == parameter && answer["reason"]?.string == reason, "\(answer)")
    }

    @Test(arguments: [
        ("", #"{"error":"missing_parameter","parameter":"from"}"#),
        ("from=2026-02-01", #"{"error":"missing_parameter","parameter":"to"}"#),
        ("from=2026-01-01&from=&to=2026-02-01", #"{"error":"too_many_values","parameter":"from","limit":1}"#),
        ("by=&by=plan", #"{"error":"too_many_values","parameter":"by","limit":1}"#),
    ])
    func `say which parameter is missing, and which is there too often`(query: String, json: String) throws {
        #expect(try refusal(query) == (try JSONValue.read(Array(json.utf8))))
    }

    private func refusal(_ query: String) throws -> JSONValue {
        let rig = try Rig()
        rig.settle()
        let answer = rig.endpoint.answer(.metrics, ""[...].utf8, query: query)
        #expect(answer.status == 400)
        return try JSONValue.read(answer.body)
    }

    @Test func `warn once when the last cells were counted by other days than they are asked by`() throws {
        let rules = CellRules(.utc)
        let rig = try Rig(rules: rules)
        // In an older version of the data, which the worker does not use any more.
        try rig.write(
            .cell(Cell(), rules: "0123456789abcdef"), .cell(Cell(), rules: rules.header), .cell(Cell(partition: 1)))
        rig.settle()
        #expect(rig.trouble == nil && !rig.logged.contains("churn.zone"))
        for _ in 0..<2 {
            try rig.write(.cell(Cell(partition: 2), rules: "0123456789abcdef"))
            rig.settle(steps: 3)
        }
        #expect(rig.logged.ranges(of: rules.warning).count == 1 && rules.warning.contains("churn.zone=UTC here"))
        #expect(try active(rig) == 3)
        // Another process, whose copy is complete.
        rig.disk.crash()
        let next = try Rig(memory: rig.memory, disk: rig.disk, time: rig.time, makesTopics: false, rules: rules)
        next.settle()
        #expect(next.logged.ranges(of: rules.warning).count == 1)
        #expect(next.metric(#"perennial_api_records_total{topic="churn-cells"}"#) == 0)
    }

    @Test func `keep of the rules of a cell what can tell them from others`() {
        var note = CopyNote(partitions: 3, begunAt: 5)
        for rules in ["", "0123456789abcdef", String(repeating: "x", count: 64)] {
            note.keep(rules: Array(rules.utf8).span)
            #expect(note.rules == Array(rules.utf8) && CopyNote(decoding: note.encoded) == note)
        }
        note.keep(rules: Array(String(repeating: "x", count: 1000).utf8).span)
        #expect(note.rules.count == 64 && CopyNote(decoding: note.encoded) == note)
        #expect(CopyNote(decoding: note.encoded.dropLast()) == nil && CopyNote(decoding: note.encoded + [0]) == nil)
        note.keep(rules: nil)
        #expect(note.rules.isEmpty)
    }

    @Test func `take names with escapes, and an empty list of them`() throws {
        let rig = try Rig()
        try rig.write(.cell(Cell()))
        rig.settle()
        #expect(try groups(rig, query + "&by=").count == 1)
        let group = try #require(try groups(rig, query + "&%62y=currency%2Cproduct").first)
        #expect(group["group"]?.object?.members.map(\.name) == ["bundleId", "productId", "currency"])
    }

    /// A copy keeps only the parts of a cell that its build knows; a build that knows more has to read the cells again.
    @Test func `begin anew with the counters of another build`() throws {
        var bytes = CopyNote(partitions: 3, begunAt: 5).encoded
        #expect(CopyNote(decoding: bytes) != nil)
        bytes[1] -= 1
        #expect(CopyNote(decoding: bytes) == nil)
    }

    @Test func `keep of a cell what they need of it`() throws {
        var sums = Sums()
        sums.add(-3, to: .activeDelta)
        sums.add(12_345_678, to: .revenue)
        let record = CellRecord(
            key: try #require(CellKey(Array(Cell().key.utf8))), sums: sums, mark: .init(asOf: -5, offset: 2))
        let cell = KeptCell(record)
        #expect(KeptCell(cell.bytes) == cell && cell.asOf == -5 && cell.sums.sums == sums)
        #expect(KeptCell(Array(cell.bytes.dropLast())) == nil && KeptCell([1, 2]) == nil)
    }
}
