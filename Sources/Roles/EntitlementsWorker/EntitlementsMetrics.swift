// Metrics that only this worker has.

public import Telemetry

/// A record that is processed again, after a crash or an abort, is counted again.
public struct EntitlementsMetrics: Sendable {
    let unusable: Counter
    let disagreements: Counter

    public init(_ metrics: Metrics) {
        unusable = metrics.counter(
            "perennial_entitlements_unusable_transactions_total",
            help:
                "Notifications with an unusable transaction: its id or its purchase date is missing or, if it renews, "
                + "its end.")
        disagreements = metrics.counter(
            "perennial_entitlements_status_disagreements_total",
            help: "Notifications whose data.status is not the state that their payloads give.")
    }
}
