// GET /v1/metrics: churn and billing rates, computed from cells.

internal import Churn
internal import Contract
internal import JSON

enum MetricsAnswer {
    static func body(
        _ table: CellTable, _ request: MetricsRequest, of environment: Environment,
        dayOf: @escaping @Sendable (Int64) -> CivilDay,
        position: [UInt8]
    ) -> [UInt8] {
        let report = MetricsReport(table, request, dayOf: dayOf)
        // A group has some six thousand bytes.
        var writer = JSONWriter(capacity: 8192 * (report.groups.count + 1))
        writer.object { writer in
            writer.member("environment", environment.nameOfApple)
            report.write(to: &writer)
            writer.member("position", json: position)
        }
        return writer.bytes
    }
}
