// `perennial churn`: wiring.

import ChurnWorker
import Configuration
import Contract
import Platform
import Telemetry
import Zone

extension Command {
    static let churn = Command(
        .churn,
        "Counts what subscriptions gain and lose: renewals, failed payments, churn, refunds and monthly revenue.",
        details: """
            Reads notifications; writes churn-cells (the counters of a day and a kind of subscription, one record per cell that
            a commit changes) and churn-events (what each notification changed). `perennial inspect metrics` shows the rates.
            Days are those of churn.zone: choose it before the first start, days that were counted stay where they are.
            Replicas share the partitions; give each a worker.slot of its own. What is on disk is a cache. Runs until SIGTERM or
            SIGINT.
            """,
        action: .service { invocation, configuration in
            let zone: Zone
            do {
                zone = try Zone(name: configuration.churnZone)
            } catch {
                invocation.output.message("perennial churn: churn.zone: \(error)")
                return .wrongUsage
            }
            // Which data the days rest on: who compares two installations needs to know.
            invocation.output.message("perennial churn: days of \(zone.name), zone data \(zone.dataVersion)")
            return WorkerRun(worker: .churn, configuration: configuration, output: invocation.output).run {
                ChurnProcessor(
                    configuration.names, zone: zone, partitions: Int32(configuration.topicPlan.partitions),
                    app: "perennial/\(PerennialVersion.text)", metrics: ChurnMetrics($0))
            }
        })
}
