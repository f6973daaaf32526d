// `perennial clock`: the ticker alone, for installations without ingest.

import Clock
import Cluster
import CommandLine
import Configuration
import Contract
import Kafka
import Platform
import Service
import Telemetry

extension Command {
    static let clock = Command(
        .clock, "Keeps time in the topics: appends a tick to each partition of notifications that is quiet.",
        details: """
            Needed only where no ingest runs, because ingest writes the ticks itself. Several replicas share the partitions; when one
            stops, the others take over. Runs until SIGTERM or SIGINT. If no ticks are written, /readyz says why.
            """,
        action: .service { invocation, configuration in
            guard configuration.kafka.bootstrapServers != nil else {
                invocation.output.message(
                    "perennial clock: kafka.bootstrap.servers is not set: name one or more brokers as host:port, separated by "
                        + "commas")
                return .wrongUsage
            }
            let logger = Logger(level: configuration.service.logLevel, format: configuration.service.logFormat)
            let health = Health()
            // A series that belongs to one environment sets the label itself.
            let metrics = Metrics(common: ["environment": "both"])
            metrics.buildInfo(version: PerennialVersion.text)
            metrics.processInfo()
            let admin = AdminServer(
                listen: configuration.service.adminListen, health: health, metrics: metrics, logger: logger)
            let ticker = Ticker(
                Ticker.Configuration(configuration.watched(by: metrics)), readiness: .ticking, health: health,
                metrics: metrics,
                logger: logger)
            return Service([admin, ticker], health: health, logger: logger).run()
        })
}

extension Ticker.Configuration {
    /// The ticker, as this command and ingest run it.
    init(_ configuration: Configuration) {
        self.init(
            prefix: configuration.topicPlan.prefix, partitions: configuration.topicPlan.partitions,
            interval: configuration.tickInterval, kafka: configuration.kafka,
            app: "perennial/\(PerennialVersion.text)")
    }
}
