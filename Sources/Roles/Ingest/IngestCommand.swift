// `perennial ingest`: wiring.

import AppStore
import Configuration
import Crypto
import Ingest
import Kafka
import Platform
import Service
import Telemetry

extension Command {
    static let ingest = Command(
        .ingest, "Takes App Store Server Notifications, verifies them, and answers 200 when Kafka has them.",
        details: """
            POST /notifications is what Apple calls; POST /usage, with a usage.token, is for the app's own backend. SIGHUP reads
            the TLS certificate again. SIGTERM and SIGINT answer what is held, and end with exit code 0.
            """,
        action: .service { invocation, configuration in
            guard configuration.kafka.bootstrapServers != nil else {
                invocation.output.message(
                    "perennial ingest: kafka.bootstrap.servers is not set: name one or more brokers as host:port, "
                        + "separated by commas")
                return .wrongUsage
            }
            let policy: VerificationPolicy
            do throws(CertificateFault) {
                policy = try verificationPolicy(configuration)
            } catch {
                invocation.output.message("perennial ingest: \(error)")
                return .wrongUsage
            }
            return run(configuration, policy)
        })

    private static func run(_ configuration: Configuration, _ policy: VerificationPolicy) -> ExitCode {
        let settings = configuration.service
        let logger = Logger(level: settings.logLevel, format: settings.logFormat)
        let metrics = Metrics()
        metrics.buildInfo(version: PerennialVersion.text)
        let health = Health()
        let admin = AdminServer(listen: settings.adminListen, health: health, metrics: metrics, logger: logger)
        let ingest = IngestService(
            configuration, judge: VerifierPool { Verifier(policy) }, app: "perennial/\(PerennialVersion.text)",
            health: health, metrics: metrics, logger: logger)
        return Service([admin] + ingest.parts, health: health, logger: logger, reload: ingest.reload).run()
    }
}

private func verificationPolicy(_ configuration: Configuration) throws(CertificateFault) -> VerificationPolicy {
    var policy = VerificationPolicy(anchors: TrustAnchors([AppleRoot.g3]), apps: configuration.apps)
    policy.maxBytes = configuration.ingest.maxBodyBytes
    return policy
}
