// `perennial churn`: wiring.

import CommandLine
import Configuration
import Contract
import Workers

extension Command {
    static let churn = Command(
        .churn,
        "Counts what subscriptions gain and lose: renewals, failed payments, churn, refunds and monthly revenue.",
        details: """
            Reads notifications; writes churn-cells (the counters of a day and a kind of subscription, one record per cell that a
            commit changes) and churn-events (what each notification changed). `perennial inspect metrics` shows the rates.
            Days are those of churn.zone. Choose the zone before the first start: what was counted keeps its days.
            Replicas share the partitions; give each a worker.slot of its own. The local state is a cache. Runs until SIGTERM or SIGINT.
            """,
        action: .service { invocation, configuration in
            WorkerRun(
                worker: .churn, configuration: configuration, output: invocation.output, reload: invocation.reload
            ).runAlone()
        })
}
