// What a worker counts besides what every worker counts.

public import Telemetry

/// A record that is worked on again, after a crash or an abort, is counted again.
public struct EntitlementsMetrics: Sendable {
    let unusable: Counter
    let disagreements: Counter

    public init(_ metrics: Metrics) {
        unusable = metrics.counter(
            "perennial_entitlements_unusable_transactions_total",
            help:
                "Notifications with a transaction that nothing follows from: without its id, its purchase date or, if it "
                + "renews, its end.")
        disagreements = metrics.counter(
            "perennial_entitlements_status_disagreements_total",
            help: "Notifications whose data.status is not the state that their payloads give.")
    }
}
