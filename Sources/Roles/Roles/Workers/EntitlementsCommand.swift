// `perennial entitlements`: wiring.

import CommandLine
import Configuration
import Contract
import Workers

extension Command {
    static let entitlements = Command(
        .entitlements, "Computes from notifications what each customer may use, and publishes every change.",
        details: """
            Reads notifications; writes entitlements (one record per subscription), entitlement-events (one per change) and accounts
            (what each appAccountToken owns, over all apps). The names of entitlements come from the file that the setting apps names.
            Replicas share the partitions; give each a worker.slot of its own. The local state is a cache. Runs until SIGTERM or SIGINT.
            """,
        action: .service { invocation, configuration in
            WorkerRun(
                worker: .entitlements, configuration: configuration, output: invocation.output,
                reload: invocation.reload
            ).runAlone()
        })
}
