// What every command that serves begins with.

import Administration
import Cluster
package import CommandLine
package import Configuration
package import Kafka
import Platform
package import Service
package import Telemetry

/// A process that runs until a signal arrives: its log lines, its metrics, its health, and the properties of its clients.
package struct ServiceRun: Sendable {
    package let logger: Logger
    package let metrics: Metrics
    package let health = Health()
    /// Clients that are made with these properties report to `metrics`.
    package let kafka: ClientProperties
    private let listen: ListenAddress

    /// nil: no broker is named, and a message was printed.
    ///
    /// - Parameters:
    ///   - command: its name in messages.
    ///   - environment: the label of every metric that does not set it itself.
    ///   - level: nil: `log.level`.
    package init?(
        _ command: CommandName, _ configuration: Configuration, environment: String, level: LogLevel? = nil,
        output: Output
    ) {
        let settings = configuration.service
        metrics = Metrics(common: ["environment": environment])
        kafka = configuration.clientProperties(reportingTo: metrics)
        guard kafka.bootstrapServers != nil else {
            output.message("perennial \(command.rawValue): \(ClusterAccess.noServers)")
            return nil
        }
        metrics.buildInfo(version: PerennialVersion.text)
        metrics.processInfo()
        metrics.gauge("perennial_ready", help: "1 while /readyz answers 200, otherwise 0.") { [health] in
            health.readiness.isHealthy ? 1 : 0
        }
        logger = Logger(level: level ?? settings.logLevel, format: settings.logFormat)
        listen = settings.adminListen
    }

    /// File descriptors for the store of one partition.
    private static let descriptorsPerStore = 300
    /// File descriptors for connections, Kafka's brokers, the admin server and the system.
    private static let spareDescriptors = 1_500

    /// Raises the limit of open files to what this many stores need. The limit of a shell is often 1,024, which is too low for
    /// a large state.
    package func allowFiles(ofStores stores: Int) {
        let wanted = stores * Self.descriptorsPerStore + Self.spareDescriptors
        let possible = DescriptorLimit.raise(to: wanted)
        if possible >= wanted { return }
        logger.info(
            "the limit of open files is lower than a large state needs: raise it (ulimit -Hn) if files cannot be opened",
            ["files": .integer(possible), "wanted": .integer(wanted)])
    }

    /// The part that answers `/livez`, `/readyz` and `/metrics`.
    package func makeAdmin() -> any ServicePart {
        AdminServer(listen: listen, health: health, metrics: metrics, logger: logger)
    }

    /// The process of these parts, which start in this order; `reload` is called on SIGHUP.
    package func service(_ parts: [any ServicePart], reload: (@Sendable () throws -> Void)? = nil) -> Service {
        Service(parts, health: health, logger: logger, reload: reload)
    }
}
