// Metrics that only this worker has.

internal import Churn
internal import Notices
internal import Synchronization
public import Telemetry

/// A record that is processed again, after a crash or an abort, is counted again. The gauges are sums over the
/// partitions of this process: the sum over all replicas is the total.
public final class ChurnMetrics: Sendable {
    let unusable: Telemetry.Counter
    let undated: Telemetry.Counter
    private let metrics: Metrics
    private let shown = Mutex<[Int32: [Series: Int64]]>([:])

    public init(_ metrics: Metrics) {
        self.metrics = metrics
        unusable = metrics.counter(
            "perennial_churn_unusable_transactions_total",
            help:
                "Notifications with an unusable transaction: its id or its purchase date is missing or, if it renews, "
                + "its end.")
        undated = metrics.counter(
            "perennial_churn_undated_notifications_total",
            help: "Notifications without signedDate, which belong to no day.")
        for series in Series.fixed { _ = gauge(series) }
    }

    /// Sets the gauges of a partition; nil: this process no longer has the partition.
    func show(_ overview: Overview?, of partition: Int32) {
        let values = overview.map(Series.values) ?? [:]
        shown.withLock { shown in
            let before = shown[partition] ?? [:]
            for (series, value) in values where value != before[series] ?? 0 {
                gauge(series).add(Double(value &- (before[series] ?? 0)))
            }
            for (series, value) in before where values[series] == nil { gauge(series).add(Double(0 &- value)) }
            shown[partition] = overview == nil ? nil : values
        }
    }

    private enum Series: Hashable {
        case stock(ChurnCounter)
        case today(ChurnCounter)
        case monthlyRevenue(String)

        static let fixed: [Series] =
            ChurnCounter.allCases.filter(\.isStock).map(Series.stock)
            + ChurnCounter.allCases.filter { !$0.isMoney && !$0.isStock }.map(Series.today)

        static func values(_ overview: Overview) -> [Series: Int64] {
            var values: [Series: Int64] = [:]
            for sum in overview.stocks.all { values[.stock(sum.counter)] = sum.value }
            for sum in overview.today.all where !sum.counter.isMoney && !sum.counter.isStock {
                values[.today(sum.counter)] = sum.value
            }
            for (currency, amount) in overview.monthlyRevenue {
                values[.monthlyRevenue(currency.description)] = amount
            }
            return values
        }
    }

    private func gauge(_ series: Series) -> Gauge {
        switch series {
        case .stock(let counter):
            metrics.gauge(
                "perennial_churn_subscriptions",
                help:
                    "Subscriptions of this replica, by state: paid, on trial, in the grace period, in billing retry.",
                labels: ["state": counter.stateName])
        case .today(let counter):
            metrics.gauge(
                "perennial_churn_today",
                help: "Counters of the current day in churn.zone; late notifications may lower them.",
                labels: ["counter": counter.name])
        case .monthlyRevenue(let currency):
            metrics.gauge(
                "perennial_churn_monthly_revenue_milliunits",
                help: "Monthly recurring revenue of this replica, in thousandths of the currency's unit.",
                labels: ["currency": currency])
        }
    }
}
