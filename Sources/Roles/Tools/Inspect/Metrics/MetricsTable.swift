// A report as text for people.

import Churn
import CommandLine
import Contract
import Notices

struct MetricsTable {
    static let titleWidth = 32
    static let valueWidth = 15
    /// Newest first; json has all.
    static let limitOpenDays = 10
    /// With more days, customers that were won meanwhile distort a rate of customers at the start.
    static let limitDaysOfRates = 31

    private(set) var lines: [String] = []
    private let report: MetricsReport

    init(_ report: MetricsReport, _ environment: Contract.Environment) {
        self.report = report
        let (from, to) = (report.request.from, report.request.to)
        let days = to.number - from.number
        lines.append(
            "metrics  \(from) until \(to) (\(days) day\(days == 1 ? "" : "s")), \(environment.rawValue)")
        if let asOf = report.horizon.asOf, let day = report.horizon.day {
            lines.append("as of    \(shownTime(asOf)) UTC; \(day) is not over")
        }
        lines.append("a, b     the beginnings of these two days; sums are over the days between")
        if days > Self.limitDaysOfRates {
            lines += wrapped(
                "rates    are for all \(days) days: the losses include customers won after a, so churn may be more "
                    + "than 100 %; ask month by month", width: 80, hanging: 9)
        }
        if report.groups.isEmpty {
            lines += ["", Self.nothing(until: to, firstDay: report.firstDay)]
        }
        for group in report.groups { add(group) }
    }

    private static func nothing(until to: CivilDay, firstDay: CivilDay?) -> String {
        guard let firstDay else { return "nothing was counted up to then" }
        if firstDay.number < to.number { return "nothing was counted in these days, and there were no customers" }
        return "nothing was counted up to then; the first day with numbers is \(firstDay)"
    }

    /// The parts of a group's name; empty for the group of all.
    static func title(_ name: CellParts, _ request: MetricsRequest) -> [String] {
        request.names(of: name).compactMap { part in
            if "\(part.name)" == "bundleId" { return nil }
            let text = shownText("\(part.value)")
            let app = "\(part.name)" == "productId" && name.bundleId.bytes.isEmpty == false
            return text.isEmpty ? "no \(part.name)" : text + (app ? " of \(shownText("\(name.bundleId)"))" : "")
        }
    }

    private mutating func add(_ group: MetricsReport.Group) {
        let title = Self.title(group.name, report.request).joined(separator: ", ")
        lines += ["", title.isEmpty ? "ALL" : title, String(repeating: "=", count: max(title.count, 3))]
        heading("STOCKS", "a", "b")
        for stock in group.stocks { row(stock) { grouped($0) } }
        for money in group.money { addBridge(money) }
        let rates = Dictionary(uniqueKeysWithValues: group.rates.map { ($0.name, $0) })
        func section(_ title: String, _ counters: [ChurnCounter], _ names: [String]) {
            heading(title)
            for counter in counters {
                if counter == .unpaidGrace {
                    number("unpaidGrace, days", groupedThousandths(group.counts[counter]))
                } else {
                    number(counter.name, grouped(group.counts[counter]))
                }
            }
            for name in names { if let rate = rates[name] { add(rate) } }
        }
        section(
            "CHURN", Rate.lapses + [.regained, .renewalTurnedOff, .renewalTurnedOn],
            [
                "grossChurn", "voluntaryChurn", "involuntaryChurnProvisional", "involuntaryChurnFinal", "netChurn",
            ])
        section(
            "PURCHASES",
            [.started, .adopted, .renewed, .switched, .resubscribed, .upgraded, .downgraded, .crossgraded], [])
        section(
            "BILLING",
            [
                .failed, .failedOpen, .graceEntered, .earlyRecovered, .graceRecovered, .retryRecovered, .retryEntered,
                .retryLost, .retryCancelled, .retryOther, .retryOpen, .unpaidGrace,
            ], ["billingFailureRate", "graceRecovery"] + group.rates.map(\.name).filter { $0.hasPrefix("recovery") })
        section("TRIALS", [.trials, .trialsConverted, .trialsEnded, .trialsOpen], ["trialConversion"])
        section(
            "REFUNDS",
            [
                .charged, .unpriced, .chargedRefunded, .refunded, .refundReversed, .refundRequested, .refundDeclined,
                .oneTimeRefunded,
            ], ["refundRate"])
        for money in group.money { addRevenue(money) }
        section(
            "COMMITMENTS",
            [
                .commitmentsStarted, .commitmentsCompleted, .commitmentsSwitched, .commitmentsRefunded,
                .commitmentsDefaulted, .commitmentsOpen,
            ], ["commitmentDefaultRate"])
        addFootnotes(group)
    }

    // MARK: Money

    private mutating func addBridge(_ money: MetricsReport.Money) {
        let shown = Self.amounts(
            ChurnCounter.bridge.map { money.sums[$0] } + money.stocks.flatMap { [$0.start, $0.end] })
        heading("MRR, \(Self.currency(money))")
        guard let mrr = money.stocks.first else { return }
        number("MRR(a)", shown(mrr.start))
        for counter in ChurnCounter.bridge { number("  \(counter.name)", shown(money.sums[counter])) }
        number("MRR(b)", shown(mrr.end))
        lines.append("    = MRR(a) + all of the above")
        heading("", "a", "b")
        for stock in money.stocks { row(stock, shown) }
        for rate in money.rates where rate.name != "refundRateByAmount" { add(rate) }
    }

    private mutating func addRevenue(_ money: MetricsReport.Money) {
        let counters: [ChurnCounter] = [
            .revenue, .recoveredRevenue, .chargedRefundedAmount, .refundedAmount, .refundReversedAmount,
            .upgradeRefundedAmount, .oneTimeRefundedAmount,
        ]
        let shown = Self.amounts(counters.map { money.sums[$0] })
        heading("REVENUE, \(Self.currency(money))")
        for counter in counters { number(counter.name, shown(money.sums[counter])) }
        for rate in money.rates where rate.name == "refundRateByAmount" { add(rate) }
    }

    /// For a column of amounts: decimal points are aligned, with or without thousandths.
    private static func amounts(_ amounts: [Int64]) -> (Int64) -> String {
        let hasThousandths = amounts.contains { $0 % 10 != 0 }
        return { groupedThousandths($0) + (hasThousandths && $0 % 10 == 0 ? " " : "") }
    }

    private static func currency(_ money: MetricsReport.Money) -> String {
        money.currency.bytes.isEmpty ? "no currency" : shownText("\(money.currency)")
    }

    // MARK: Lines

    private mutating func heading(_ title: String, _ columns: String...) {
        if !title.isEmpty { lines.append("") }
        lines.append(
            trimmed(padded(title, to: Self.titleWidth) + columns.map { aligned($0, to: Self.valueWidth) }.joined()))
    }

    private mutating func number(_ title: String, _ value: String) {
        lines.append(trimmed(padded("  \(title)", to: Self.titleWidth) + aligned(value, to: Self.valueWidth)))
    }

    private mutating func row(_ stock: Stock, _ shown: (Int64) -> String) {
        let values = [stock.start, stock.end].map { aligned(shown($0), to: Self.valueWidth) }.joined()
        lines.append(trimmed(padded("  \(stock.title)", to: Self.titleWidth) + values))
        lines.append("    = \(stock.formula)")
    }

    private mutating func add(_ rate: Rate) {
        let value = rate.shown(digits: 2)
        var facts: [String] = []
        if let beside = rate.beside, rate.besideValue != 0 {
            facts.append("\(beside.name) \(grouped(rate.besideValue))")
        }
        if let days = rate.days, days.leftOut > 0 {
            facts.append("\(days.leftOut) day\(days.leftOut == 1 ? "" : "s") left out")
        }
        if rate.isApproximate { facts.append("approximate") }
        let share = "\(shown(rate.ratio.numerator, rate)) / \(shown(rate.ratio.denominator, rate))"
        let mark = rate.isProvisional && value != nil ? "*" : " "
        lines.append(
            trimmed(
                padded("  \(rate.title)", to: Self.titleWidth)
                    + aligned((value ?? "-") + mark, to: Self.valueWidth + 1) + "  " + facts.joined(separator: "; ")))
        lines += wrapped("= \(share) = \(rate.formula)", width: 76, hanging: 2).map { "    " + $0 }
    }

    private func shown(_ value: Int64, _ rate: Rate) -> String {
        rate.isMoney ? groupedThousandths(value) : grouped(value)
    }

    // MARK: What is not final

    private mutating func addFootnotes(_ group: MetricsReport.Group) {
        let rates = group.rates + group.money.flatMap(\.rates)
        let doubts = Rate.Doubt.allCases.filter { doubt in rates.contains { $0.doubts.contains(doubt) } }
        let days = group.openDays.reversed()
        if !doubts.isEmpty { lines += ["", "* not final:"] }
        for doubt in doubts { lines += wrapped("- \(words(doubt))", width: 78, hanging: 2).map { "  " + $0 } }
        if !days.isEmpty { lines += ["", "days that are not final:"] }
        for day in days.prefix(Self.limitOpenDays) {
            let open = zip(MetricsReport.OpenDay.counters, day.open).filter { $0.1 != 0 }
                .map { "\($0.0.name) \(grouped($0.1))" }
            lines.append("  \(day.day)*  " + ((day.isOver ? [] : ["not over"]) + open).joined(separator: ", "))
        }
        if days.count > Self.limitOpenDays {
            lines.append("  and \(days.count - Self.limitOpenDays) before: --format json has all")
        }
        if rates.contains(where: \.isApproximate) {
            lines += ["", "approximate: \(MetricsReport.approximation)"]
        }
    }

    private func words(_ doubt: Rate.Doubt) -> String {
        switch doubt {
        case .daysNotOver:
            report.horizon.day.map { "days from \($0) on are not over" } ?? "no day is over: nothing was counted"
        case .retryOpen: "retryOpen: Apple still tries to bill this many of those who lost access"
        case .trialsOpen: "trialsOpen: this many trials have not ended"
        case .commitmentsOpen: "commitmentsOpen: this many commitments have not ended"
        }
    }
}

extension Rate {
    /// A share in percent, or a factor. nil: the denominator is 0.
    func shown(digits: Int) -> String? {
        isFactor ? ratio.decimal(digits: digits) : ratio.decimal(digits: digits, times: 100).map { $0 + " %" }
    }
}
