// Metrics that only this worker has.

public import Consumption
internal import Notices
public import Telemetry

/// A record that is processed again, after a crash or an abort, is counted again.
public struct ConsumptionMetrics: Sendable {
    private let metrics: Metrics
    private let kinds: [ConsumptionRecord.Kind: Counter]
    private let withheld: [ConsumptionRecord.Withholding: Counter]
    /// Decisions without a policy, or to which none of its rules applies.
    private let withoutRule: Counter
    private let byRule: [String: Counter]
    private let margin: Histogram
    let tooLate: Counter
    let lateAcceptances: Counter
    let strayAttempts: Counter
    let usageRows: Counter

    /// - Parameter policy: only the names of its rules become labels.
    public init(_ metrics: Metrics, policy: RefundPolicy?) {
        self.metrics = metrics
        kinds = Dictionary(
            uniqueKeysWithValues: ConsumptionRecord.Kind.allCases.map { kind in
                let counter = metrics.counter(
                    "perennial_consumption_records_total", help: "Steps of refund requests that were written, by kind.",
                    labels: ["kind": kind.rawValue])
                return (kind, counter)
            })
        withheld = Dictionary(
            uniqueKeysWithValues: ConsumptionRecord.Withholding.allCases.map { cause in
                let counter = metrics.counter(
                    "perennial_consumption_withheld_total",
                    help:
                        "Steps of kind withheld, by reason. A request without consent may still be answered.",
                    labels: ["reason": cause.rawValue])
                return (cause, counter)
            })
        func rule(_ name: String) -> Counter {
            metrics.counter(
                "perennial_consumption_decisions_total",
                help: "Decisions by the rule of the refund policy that made them; none: no rule did.",
                labels: ["rule": name])
        }
        withoutRule = rule("none")
        let names = Set((policy?.rules ?? []).map(\.name))
        byRule = Dictionary(uniqueKeysWithValues: names.map { ($0, rule($0)) })
        margin = metrics.histogram(
            "perennial_consumption_margin_seconds",
            help: "Time from Apple's acceptance of an answer to the deadline of its request, in seconds.",
            bounds: [30, 60, 300, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 28_800, 36_000, 39_600, 43_200])
        tooLate = metrics.counter(
            "perennial_consumption_too_late_total",
            help:
                "Requests that were older than 12 hours when they arrived, by a late retry of Apple's or a backfill.")
        lateAcceptances = metrics.counter(
            "perennial_consumption_late_acceptances_total",
            help: "Answers whose acceptance by Apple was reported after the last step of their request was written.")
        strayAttempts = metrics.counter(
            "perennial_consumption_stray_attempts_total", help: "Attempt rows of unknown requests.")
        usageRows = metrics.counter(
            "perennial_consumption_usage_rows_total", help: "Usage records that were merged.")
    }

    func count(_ record: ConsumptionRecord) {
        kinds[record.kind]?.add()
        switch record.kind {
        case .withheld:
            if let detail = record.detail, let cause = ConsumptionRecord.Withholding(rawValue: detail.description) {
                withheld[cause]?.add()
                if cause == .policy { countRule(of: record) }
            }
        case .decided: countRule(of: record)
        case .sent: margin.observe(Double(record.deadline - record.at) / 1000)
        default: break
        }
    }

    private func countRule(of record: ConsumptionRecord) {
        let counter = record.policy?.rule.flatMap { byRule[$0.description] }
        (counter ?? withoutRule).add()
    }
}
