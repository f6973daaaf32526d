// Makes the processor of each worker from the settings.

import ChurnWorker
package import Cluster
import CommandLine
package import Configuration
package import Consumption
import ConsumptionWorker
import Contract
package import Entitlements
import EntitlementsWorker
package import NotificationWorker
package import Platform
package import Runtime
package import Telemetry
import Zone

/// Makes the processor of one thread. With a shadow, it is the processor of a replay.
package typealias ProcessorMaker = @Sendable (Metrics, Shadow?) -> any Processor

extension WorkerName {
    /// - Parameters:
    ///   - policy: for the worker that answers refund requests.
    ///   - tell: shows what an operator should know about these settings.
    package func processors(
        _ configuration: Configuration, policy: RefundPolicy? = nil, tell: (LogLevel, String) -> Void
    ) throws(ToolFault) -> ProcessorMaker {
        let (names, partitions) = (configuration.names, Int32(configuration.topicPlan.partitions))
        let app = "perennial/\(PerennialVersion.text)"
        switch self {
        case .entitlements:
            if configuration.apps.isEmpty {
                tell(
                    .warning, "apps is not set: records will name no entitlements, and one-time products have no period"
                )
            }
            let rules = EntitlementRules(configuration)
            return { metrics, shadow in
                EntitlementsProcessor(
                    names, rules: rules, partitions: partitions, app: app, metrics: EntitlementsMetrics(metrics),
                    shadow: shadow)
            }
        case .churn:
            let zone: Zone
            do {
                zone = try Zone(name: configuration.churnZone)
            } catch {
                throw ToolFault(.wrongUsage, "churn.zone: \(error)")
            }
            // The time zone data decides the days, so it matters when two installations are compared.
            tell(.info, "days of \(zone.name), zone data \(zone.dataVersion)")
            return { metrics, shadow in
                ChurnProcessor(
                    names, zone: zone, partitions: partitions, app: app, metrics: ChurnMetrics(metrics), shadow: shadow)
            }
        case .consumption:
            let rules = ConsumptionRules(configuration, policy: policy)
            return { metrics, shadow in
                ConsumptionProcessor(
                    names, rules: rules, partitions: partitions, app: app,
                    metrics: ConsumptionMetrics(metrics, policy: policy), shadow: shadow)
            }
        }
    }
}

extension WorkerRun {
    /// Runs a worker without further parts.
    package func runAlone() -> ExitCode {
        let make: ProcessorMaker
        do throws(ToolFault) {
            let service = configuration.service
            let logger = Logger(level: service.logLevel, format: service.logFormat)
            make = try worker.processors(configuration) { logger.log($0, $1) }
        } catch {
            for line in error.lines { output.message("perennial \(worker.rawValue): \(line)") }
            return error.code
        }
        return run { make($0, nil) }
    }
}

extension EntitlementRules {
    package init(_ configuration: Configuration) {
        self.init(
            apps: configuration.apps, leeway: configuration.entitlementsLeeway.wholeMilliseconds,
            environment: configuration.environment)
    }
}

extension ConsumptionRules {
    init(_ configuration: Configuration, policy: RefundPolicy?) {
        self.init(apps: configuration.apps, policy: policy, wait: configuration.consumption.wait.wholeMilliseconds)
    }
}
