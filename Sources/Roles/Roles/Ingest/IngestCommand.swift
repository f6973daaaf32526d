// `perennial ingest`: wiring.

import AppStore
import Clock
import Cluster
import CommandLine
import Configuration
import Ingest
import Kafka
import Platform
import Service
import Serving
import Telemetry
import Tools

extension Command {
    static let ingest = Command(
        .ingest, "Receives App Store Server Notifications, verifies them, and answers 200 when Kafka has them.",
        details: """
            Apple posts to /notifications. With usage.token, the app's own backend posts to /usage. On SIGHUP, and when their files
            change, ingest reads the TLS certificate, apps, verify.roots and usage.token again. If it cannot use a file, it logs why
            and keeps what it has. On SIGTERM or SIGINT ingest answers the requests in flight and exits with 0.
            """,
        action: .service { invocation, configuration in
            // A series that belongs to one environment sets the label itself.
            guard let process = ServiceRun(.ingest, configuration, environment: "both", output: invocation.output)
            else {
                return .wrongUsage
            }
            do throws(ConfigurationFaults) {
                return run(process, configuration, try policy(configuration), invocation)
            } catch {
                for fault in error.faults { invocation.output.message("perennial ingest: \(fault)") }
                return .wrongUsage
            }
        })

    private static func policy(_ configuration: Configuration) throws(ConfigurationFaults) -> VerificationPolicy {
        var policy = try checkedPolicy(configuration).policy
        // A signed text is never longer than its body, so the limit of bodies is also the limit of signed texts.
        policy.maxBytes = configuration.ingest.maxBodyBytes
        return policy
    }

    private static func run(
        _ process: ServiceRun, _ configuration: Configuration, _ policy: VerificationPolicy, _ invocation: Invocation
    ) -> ExitCode {
        let (metrics, health, logger) = (process.metrics, process.health, process.logger)
        if configuration.ingest.certificatePath == nil, let warning = LibraryVersion.libmicrohttpd.warningBehindProxy {
            logger.warning(warning)
        }
        let revocations: Revocations?
        do {
            revocations = try Revocations.make(
                configuration, maxWaiters: configuration.ingest.maxInFlight, metrics: metrics, logger: logger)
        } catch {
            invocation.output.message("perennial ingest: \(error)")
            return .gaveUp
        }
        let verifiers = VerifierPool(policy, revocation: revocations)
        let ingest = IngestService(
            configuration, judge: verifiers, kafka: process.kafka,
            app: "perennial/\(PerennialVersion.text)", health: health, metrics: metrics, logger: logger)
        // Ingest accepts notifications even if another process ticks.
        let ticker = Ticker(
            Ticker.Configuration(configuration, process.kafka), readiness: .timeOfHost, health: health,
            metrics: metrics, logger: logger)
        // It starts before the parts that use it, so that it stops after them.
        let asked: [any ServicePart] = revocations.map { [$0] } ?? []
        let reload = IngestReload(configuration, invocation.reload, verifiers, ingest, logger)
        let watch = FileWatch({ reload.files }, logger: logger, reload: { try reload.settings() })
        return process.service(
            asked + [process.makeAdmin(), ticker] + ingest.parts + [watch], reload: { try reload.everything() }
        ).run()
    }
}
