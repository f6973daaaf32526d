import Churn
import Foundation
import JSON
import Platform
import Testing
import Zone

@testable import Tools

@Suite struct `Metrics looked at` {
    private let desk: MetricsDesk

    init() throws {
        desk = try MetricsDesk()
        try desk.tellStory()
    }

    private func lines(_ arguments: [String]) throws -> [String] {
        let answer = try desk.inspect(arguments)
        #expect(answer.code == .done && answer.messages.isEmpty, "\(answer.messages)")
        return answer.lines.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    /// The last word of the line that begins like this.
    private func shown(_ answer: InspectDesk.Answer, _ title: String) throws -> String? {
        let lines = answer.lines.split(separator: "\n").filter { $0.split(separator: " ").first == title[...] }
        return lines.last?.split(separator: " ").last.map(String.init)
    }

    private func card(_ name: String) throws -> String {
        let url = try #require(Bundle.module.url(forResource: name, withExtension: "txt", subdirectory: "Cards"))
        return try String(contentsOf: url, encoding: .utf8)
    }

    @Test func `are a table that fits a terminal, with the formula at every number`() throws {
        let lines = try lines(MetricsDesk.month + ["--chart", "lapsed"])
        #expect(lines.joined(separator: "\n") + "\n" == (try card("metrics")))
        for line in lines { #expect(line.count <= 80 && !line.hasSuffix(" "), "\(line)") }
    }

    /// Readers copy numbers from there.
    @Test func `are in the how-to as they are shown`() throws {
        let page = try String(
            contentsOf: URL(fileURLWithPath: #filePath)
                .appendingPathComponent("../../../../docs/how-to/read-churn-numbers.md").standardized,
            encoding: .utf8)
        let shown = try card("metrics").split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let start = try #require(page.range(of: "```\n\(shown[0])\n")?.lowerBound)
        let block = page[start...].dropFirst(4).prefix { $0 != "`" }.split(separator: "\n").map(String.init)
        // Parts of the output: one line of dots stands for what is left out.
        var rest = shown[...]
        for line in block where line != "..." {
            let place = try #require(rest.firstIndex(of: line), "\(line)")
            rest = rest[rest.index(after: place)...]
        }
        #expect(block.count > 20)
    }

    @Test func `close their bridge for its reader`() throws {
        let lines = try lines(MetricsDesk.month)
        func money(_ line: String) -> Int64? {
            line.split(separator: " ").last.flatMap { Int64($0.filter { $0.isNumber || $0 == "-" }) }
        }
        for currency in ["USD", "EUR"] {
            let start = try #require(lines.firstIndex(of: "MRR, \(currency)"))
            let end = try #require(lines[start...].firstIndex { $0.hasPrefix("  MRR(b)") })
            let numbers = lines[(start + 1)..<end].compactMap(money)
            #expect(numbers.count == 13)
            #expect(numbers.reduce(0, +) == money(lines[end]))
        }
    }

    @Test func `have a star where they are not final, and say why`() throws {
        let open = try lines(MetricsDesk.month)
        #expect(open.contains { $0.hasPrefix("  gross churn") && $0.contains("%*") })
        #expect(open.contains("  - days from 2026-11-28 on are not over"))
        #expect(open.contains("  2026-11-28*  not over"))
        #expect(open.contains("  2026-11-27*  failedOpen 4, trialsOpen 5"))
        let over = try lines(["--from", "2026-11-01", "--to", "2026-11-12"])
        #expect(over.contains { $0.hasPrefix("  gross churn") && !$0.contains("*") })
        #expect(!over.contains { $0.contains("not over,") || $0.contains("days from") })
    }

    @Test func `have no star at involuntary churn once nothing is billed any more`() throws {
        let (open, over) = (
            try lines(["--from", "2026-11-12", "--to", "2026-11-13"]),
            try lines(["--from", "2026-11-13", "--to", "2026-11-27"])
        )
        func churn(_ lines: [String]) -> [String] { lines.filter { $0.hasPrefix("  involuntary churn") } }
        #expect(churn(open).count == 2 && churn(open).allSatisfy { $0.hasSuffix("%*  retryOpen 3") })
        #expect(churn(over).count == 2 && churn(over).allSatisfy { $0.hasSuffix("%") })
        #expect(open[0].contains("until 2026-11-13 (1 day), production"))
        #expect(open.contains { $0.contains("retryOpen: Apple still tries to bill") })
        #expect(!over.contains { $0.contains("retryOpen: ") })
    }

    /// Subscriptions that were won meanwhile count in them.
    @Test func `say of more than a month that rates are of all of it`() throws {
        func says(_ from: String, _ to: String) throws -> Bool {
            let lines = try lines(["--from", from, "--to", to])
            for line in lines { #expect(line.count <= 80 && !line.hasSuffix(" "), "\(line)") }
            return lines.contains { $0.hasPrefix("rates    are for all ") }
        }
        #expect(try !says("2026-10-01", "2026-11-01"))
        #expect(try says("2026-10-01", "2026-11-02"))
    }

    @Test func `have two digits behind the point, and a third where it is not 0`() throws {
        try desk.cell("2026-11-14", "'unpaidGrace':1500", "'mrrNew':2499,'revenue':29990", partition: 1)
        let lines = try lines(MetricsDesk.month)
        func line(_ title: String) -> String? { lines.last { $0.split(separator: " ").first == title[...] } }
        #expect(line("mrrNew") == "    mrrNew                              541.959")
        #expect(line("mrrAdopted") == "    mrrAdopted                            0.00")
        #expect(line("MRR") == "  MRR                                11,200.00      11,269.459")
        #expect(lines.contains("  revenue                              7,022.99"))
        #expect(lines.contains("    = 39.96 / 7,022.99 = chargedRefundedAmount / revenue"))
        #expect(line("unpaidGrace,") == "  unpaidGrace, days                        1.50")
        for line in lines { #expect(!line.hasSuffix(" "), "\(line)") }
    }

    @Test func `are told apart as asked`() throws {
        try desk.cell("2026-11-05", "'started':3", product: "pro.yearly")
        let lines = try lines(MetricsDesk.month + ["--by", "product,currency"])
        #expect(
            lines.filter { $0.hasSuffix(", USD") && !$0.contains("MRR") && !$0.contains("REVENUE") }
                == ["pro.monthly of com.example.app, USD", "pro.yearly of com.example.app, USD"])
    }

    @Test func `are in json what the read API answers`() throws {
        let json = try JSONValue.read(Array(try lines(MetricsDesk.month + ["--format", "json"]).joined().utf8))
        #expect(
            json.object?.members.map(\.name) == [
                "from", "to", "by", "asOf", "notOverFrom", "formulas", "groups", "position",
            ])
        let group = try #require(json["groups"]?.array?.first)
        #expect(group["rates"]?["grossChurn"]?["denominator"]?.integer == 1414)
        #expect(group["rates"]?["grossChurn"]?["numerator"]?.integer == 61)
        #expect(json["position"]?.array?.map { $0["offset"]?.integer } == [3, 2, 2])
        #expect(json["position"]?.array?.allSatisfy { $0["asOf"]?.integer == desk.asOf } == true)
    }

    @Test func `are in csv a line for each day and group, with money told apart`() throws {
        let lines = try lines(["--from", "2026-11-26", "--to", "2026-11-29", "--by", "product", "--format", "csv"])
            .filter { !$0.isEmpty }
        let names = lines[0].split(separator: ",").map(String.init)
        #expect(names.prefix(6) == ["day", "bundleId", "productId", "currency", "final", "activeAtEnd"])
        #expect(Set(names).count == names.count)
        let rows = lines.dropFirst().map { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) }
        #expect(rows.count == 6 && rows.allSatisfy { $0.count == names.count })
        func column(_ name: String) -> [String] { rows.map { $0[names.firstIndex(of: name)!] } }
        #expect(column("day") == ["2026-11-26", "2026-11-27", "2026-11-28", "2026-11-26", "2026-11-27", "2026-11-28"])
        #expect(column("currency") == ["EUR", "EUR", "EUR", "USD", "USD", "USD"])
        #expect(column("final") == ["1", "1", "0", "1", "0", "0"])
        #expect(column("failed") == ["0", "0", "0", "0", "6", "0"])
        #expect(column("mrrAtEnd") == ["1778960", "1778960", "1778960", "11246980", "11246980", "11266960"])
    }

    @Test(arguments: [
        ("USA", "USA"), ("a,b", "\"a,b\""), ("a\"b", "\"a\"\"b\""), ("a\r\nb", "\"a\r\nb\""), ("", ""),
        ("=1+1", "'=1+1"), ("-1,2", "\"'-1,2\""),
        ("=\u{301}1", "'=\u{301}1"),
    ])
    func `have names in csv that stay names`(text: String, quoted: String) {
        #expect(MetricsCSV.quoted(text) == quoted)
    }

    @Test func `rest on the last value of each cell`() throws {
        try desk.cell("2026-11-28", "'started':7,'activeDelta':2", partition: 2)
        try desk.write(desk.key("2026-11-27", "pro.monthly", "USD", 0), nil)
        let json = try JSONValue.read(Array(try lines(MetricsDesk.month + ["--format", "json"]).joined().utf8))
        let counts = json["groups"]?.array?.first?["counts"]
        #expect(counts?["started"]?.integer == 68 && counts?["failedOpen"]?.integer == 0)
    }

    @Test func `leave out what they cannot read, and say so`() throws {
        try desk.write(desk.key("2026-11-28", "pro.monthly", "USD", 2), "{}", partition: 2)
        let answer = try desk.inspect(MetricsDesk.month)
        #expect(answer.code == .done)
        #expect(
            answer.messages == [
                "perennial inspect: this version cannot read 1 records of \(desk.topic); they are left out"
            ])
        // The earlier value of the cell is gone, too.
        #expect(try shown(answer, "mrrNew") == "519.48")
    }

    @Test func `of a later build are left out, and it says that it is too old for them`() throws {
        // All that this build would look for is there, but it may mean something else.
        let value = """
            {"v":2,"partition":2,"day":"2026-11-28","bundleId":"com.example.app","productId":"pro.monthly",\
            "billingPlan":"BILLED_UPFRONT","storefront":"USA","currency":"USD","counts":{"started":1},\
            "money":{"mrrNew":5000},"asOf":1,"offset":1}
            """
        try desk.write(desk.key("2026-11-28", "pro.monthly", "USD", 2), value, partition: 2, version: 2)
        let answer = try desk.inspect(MetricsDesk.month)
        #expect(answer.code == .done)
        #expect(
            answer.messages.first
                == "perennial inspect: \(desk.topic): a record has the schema churn-cell/2, and this build reads up to 1: "
                + "upgrade the perennial that reads it")
        #expect(try shown(answer, "mrrNew") == "519.48")
    }

    @Test func `of days before anything was counted are nothing, and no failure`() throws {
        let past = ["--from", "2020-01-01", "--to", "2020-01-03"]
        let first = "nothing was counted up to then; the first day with numbers is 2026-10-01"
        #expect(try lines(past).contains(first))
        #expect(try lines(past + ["--format", "json"]).joined().contains("\"groups\":[]"))
        let rows = try lines(past + ["--format", "csv"]).filter { !$0.isEmpty }.dropFirst()
        #expect(rows.count == 4)
        #expect(rows.allSatisfy { $0.split(separator: ",").dropFirst(3).allSatisfy { $0 == "0" } }, "\(rows)")
        // A subscription began and lapsed; the zeros after that have another cause.
        try desk.cell("2020-02-05", "'started':1,'charged':1,'activeDelta':1")
        try desk.cell("2020-02-06", "'lapsedVoluntary':1,'activeDelta':-1")
        let march = try lines(["--from", "2020-03-01", "--to", "2020-03-03"])
        #expect(march.contains("nothing was counted in these days, and there were no customers"))
    }

    @Test func `warn when the last of a partition's cells were counted by other days`() throws {
        let utc = CellRules(.utc)
        func messages() throws -> [String] { try desk.inspect(MetricsDesk.month) { $0.cellRules = utc }.messages }
        // Cells without the header do not count.
        #expect(try messages() == [])
        desk.rules = "0123456789abcdef"
        try desk.cell("2026-11-28", "'started':3", partition: 1)
        #expect(try messages() == ["perennial inspect: \(utc.warning)"])
        #expect(utc.warning.contains("churn.zone=UTC here: set churn.zone to the value that perennial churn uses"))
        #expect(try desk.inspect(MetricsDesk.month).messages == [])
        // By now the worker has other data, the same as this host.
        desk.rules = utc.header
        try desk.cell("2026-11-28", "'started':4", partition: 1)
        #expect(try messages() == [])
    }

    @Test func `say who counts where nothing was counted`() throws {
        let empty = try MetricsDesk()
        for format in ["table", "json", "csv"] {
            let answer = try empty.inspect(MetricsDesk.month + ["--format", format])
            #expect(answer.code == .no)
            #expect(
                answer.messages.first?.contains("\(desk.topic) is empty; perennial churn writes it") == true)
            #expect(answer.lines.isEmpty == (format == "table"))
        }
        let missing = try empty.inspect(MetricsDesk.month) { $0.partitionCounts = [:] }
        #expect(missing.code == .wrongUsage)
        #expect(missing.messages.first?.contains("create it with perennial topics apply") == true)
    }

    @Test func `are drawn as bars from zero, with stars below days that are open`() throws {
        let lines = try lines(["--from", "2026-11-25", "--to", "2026-11-29", "--chart", "failed"])
        let start = try #require(lines.firstIndex(of: "failed"))
        #expect(
            lines[(start + 1)...].filter { !$0.isEmpty } == [
                "  6 |      ###", "    |      ###", "    |      ###", "    |      ###", "    |      ###",
                "    |      ###",
                "    |      ###", "  0 |      ###", "           ******", "     2026-11-25 2026-11-28",
                "     in each day; * not final",
            ])
    }

    @Test(arguments: [("MRR", "mrr"), ("Active", "active"), ("atriskmrr", "atRiskMRR"), ("lapse", "lapsed")])
    func `are not drawn of a series that is none, and the nearest is named`(name: String, nearest: String) throws {
        let answer = try desk.inspect(MetricsDesk.month + ["--chart", name])
        #expect(answer.code == .wrongUsage)
        #expect(
            answer.messages.first?.hasSuffix("not \"\(name)\"; the nearest is \(nearest)") == true, "\(answer.messages)"
        )
    }

    @Test func `are drawn by currency when they are money`() throws {
        let lines = try lines(MetricsDesk.month + ["--chart", "mrr"])
        #expect(lines.contains("mrr, EUR") && lines.contains("mrr, USD"))
        #expect(lines.contains { $0.hasPrefix("  11,719.48 |") })
    }
}

@Suite struct `Numbers for people` {
    @Test(
        arguments: [
            (0, "0"), (999, "999"), (1000, "1,000"), (-1_234_567, "-1,234,567"), (.min, "-9,223,372,036,854,775,808"),
        ] as [(Int64, String)])
    func `are grouped`(value: Int64, text: String) { #expect(grouped(value) == text) }

    @Test(
        arguments: [
            (0, "0.00"), (1_234_560, "1,234.56"), (-9_990, "-9.99"), (3_332, "3.332"), (5, "0.005"), (-4, "-0.004"),
            (999_995, "999.995"), (.min, "-9,223,372,036,854,775.808"),
        ] as [(Int64, String)])
    func `have thousandths where there are some`(value: Int64, text: String) {
        #expect(groupedThousandths(value) == text)
    }
}
