// `perennial clock`: the ticker alone, for installations without ingest.

import Clock
import Cluster
import CommandLine
import Configuration
import Contract
import Kafka
import Platform
import Service
import Serving
import Telemetry

extension Command {
    static let clock = Command(
        .clock, "Keeps time in the topics: appends a tick to each partition of notifications that is quiet.",
        details: """
            Needed only where no ingest runs, because ingest writes the ticks itself. Several replicas share the partitions; when one
            stops, the others take over. Runs until SIGTERM or SIGINT. If no ticks are written, /readyz says why.
            """,
        action: .service { invocation, configuration in
            // A series that belongs to one environment sets the label itself.
            guard let process = ServiceRun(.clock, configuration, environment: "both", output: invocation.output) else {
                return .wrongUsage
            }
            let ticker = Ticker(
                Ticker.Configuration(configuration, process.kafka), readiness: .ticking, health: process.health,
                metrics: process.metrics, logger: process.logger)
            return process.service([process.makeAdmin(), ticker]).run()
        })
}

extension Ticker.Configuration {
    /// The ticker, as this command and ingest run it.
    init(_ configuration: Configuration, _ kafka: ClientProperties) {
        self.init(
            prefix: configuration.topicPlan.prefix, partitions: configuration.topicPlan.partitions,
            interval: configuration.tickInterval, kafka: kafka,
            app: "perennial/\(PerennialVersion.text)")
    }
}
