// GET /v1/metrics: churn and billing rates, computed from cells.

internal import Churn
internal import Contract
internal import JSON

enum MetricsAnswer {
    /// Parts of a series over all groups; each has some three thousand bytes.
    static let limitParts = 3_000
    /// Lines of a table in CSV; each has some three hundred bytes.
    static let limitLines = 30_000

    /// nil if it would have too many lines.
    static func csv(
        _ table: CellTable, _ request: MetricsRequest, dayOf: @escaping @Sendable (Int64) -> CivilDay
    ) -> [UInt8]? {
        let csv = MetricsCSV(request)
        guard MetricsReport.rowCount(of: table, csv.request) <= limitLines else { return nil }
        var text = Array((csv.header + "\r\n").utf8)
        MetricsReport.eachRow(table, csv.request, dayOf: dayOf) { group, row in
            text += (csv.line(group, row) + "\r\n").utf8
        }
        return text
    }

    /// nil if a series would have too many parts.
    static func body(
        _ table: CellTable, _ request: MetricsRequest, of environment: Environment,
        dayOf: @escaping @Sendable (Int64) -> CivilDay,
        position: [UInt8]
    ) -> [UInt8]? {
        if request.interval != nil, MetricsReport.rowCount(of: table, request) > limitParts { return nil }
        let report = MetricsReport(table, request, dayOf: dayOf)
        // A group has some three thousand bytes.
        let parts = report.groups.count + report.series.reduce(0) { $0 + $1.parts.count }
        var writer = JSONWriter(capacity: 4096 * (parts + 1))
        writer.object { writer in
            writer.member("environment", environment.nameOfApple)
            report.write(to: &writer)
            writer.member("position", json: position)
        }
        return writer.bytes
    }
}
