// The arguments of `inspect metrics`.

import Churn
import Cluster
import CommandLine
import Platform
import Settings

struct MetricsQuery: Sendable, Equatable {
    enum Format: String, Sendable, CaseIterable { case table, json, csv }

    static let options = ["from", "to", "by", "interval", "chart"]

    let request: MetricsRequest
    let format: Format
    /// Drawn below the table.
    let chart: ChartSeries?

    init(_ invocation: Invocation) throws(ToolFault) {
        if let surplus = invocation.operands.dropFirst().first {
            throw ToolFault(.wrongUsage, "metrics cover all subscriptions; \(quoted(surplus)) is one argument too many")
        }
        for name in ["at", "content", "all"] where invocation.has(name) {
            throw ToolFault(.wrongUsage, "--\(name) belongs to a subscription or an account, not to metrics")
        }
        let word = invocation.option("format") ?? Format.table.rawValue
        guard let format = Format(rawValue: word) else {
            throw ToolFault(.wrongUsage, "--format of metrics must be table, json or csv, not \(quoted(word))")
        }
        self.format = format
        chart = try invocation.option("chart").map { name throws(ToolFault) in
            guard let series = ChartSeries(name) else {
                let nearest = nearestName(to: name, among: ChartSeries.names).map { "; the nearest is \($0)" } ?? ""
                throw ToolFault(
                    .wrongUsage,
                    "--chart takes \((ChartSeries.stocks + ["lapsed"]).joined(separator: ", ")), or any counter such as "
                        + "failed or revenue, not \(quoted(name))\(nearest)")
            }
            return series
        }
        guard chart == nil || format == .table else {
            throw ToolFault(.wrongUsage, "--chart is drawn below a table: remove --format \(word)")
        }
        request = try Self.request(invocation)
        guard request.interval == nil || format != .table else {
            throw ToolFault(.wrongUsage, "--interval makes a series, which no table can show: add --format json or csv")
        }
    }

    private static func request(_ invocation: Invocation) throws(ToolFault) -> MetricsRequest {
        guard let from = invocation.option("from"), let to = invocation.option("to") else {
            throw ToolFault(
                .wrongUsage, "metrics need --from DAY and --to DAY, such as 2026-11-01; the day of --to is excluded")
        }
        do throws(MetricsRequest.Flaw) {
            return try MetricsRequest(
                from: from, to: to, by: invocation.option("by") ?? "", interval: invocation.option("interval"))
        } catch {
            switch error {
            case .day(let name):
                let text = name == "from" ? from : to
                throw ToolFault(.wrongUsage, "--\(name) takes a day, such as 2026-11-01, not \(quoted(text))")
            case .order:
                throw ToolFault(
                    .wrongUsage,
                    "--to must be after --from: for one day it is the next day, not \(quoted(to))")
            case .tooLong:
                throw ToolFault(
                    .wrongUsage, "from --from to --to there may be at most \(MetricsRequest.limitDays) days")
            case .dimension(let name):
                let all = Dimension.allCases.map(\.rawValue).joined(separator: ", ")
                throw ToolFault(
                    .wrongUsage, "--by takes one or more of \(all), separated by commas, not \(quoted(name))")
            case .interval(let name):
                let all = Interval.allCases.map(\.rawValue).joined(separator: ", ")
                throw ToolFault(.wrongUsage, "--interval takes one of \(all), not \(quoted(name))")
            }
        }
    }
}

/// What a chart shows.
struct ChartSeries: Sendable, Equatable {
    enum Kind: Sendable, Equatable {
        /// At the end of each day.
        case stock
        /// The counts of each day.
        case counters([ChurnCounter])
    }

    static let stocks = ["active", "paying", "inGrace", "inRetry", "trials", "mrr", "arr", "atRiskMRR"]
    static let names = stocks + ["lapsed"] + ChurnCounter.allCases.map(\.name)

    let name: String
    let kind: Kind
    let isMoney: Bool

    init?(_ name: String) {
        self.name = name
        if Self.stocks.contains(name) {
            kind = .stock
            isMoney = ["mrr", "arr", "atRiskMRR"].contains(name)
        } else if name == "lapsed" {
            kind = .counters(Rate.lapses)
            isMoney = false
        } else if let counter = ChurnCounter(name: name) {
            kind = .counters([counter])
            isMoney = counter.isMoney
        } else {
            return nil
        }
    }

    func value(_ row: DayRow) -> Int64 {
        switch kind {
        case .stock: row.stocks.first { $0.name == name }?.end ?? 0
        case .counters(let counters): counters.reduce(0) { $0 &+ row.sums[$1] }
        }
    }
}
