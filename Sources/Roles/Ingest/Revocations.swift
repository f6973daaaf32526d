// The revocation check as a part of the service.

public import Configuration
public import Platform
public import Revocation
public import Service
public import Telemetry

/// The revocation check that `verify.ocsp` asks for when it is not `off`.
public final class Revocations: ServicePart {
    public let name = "ocsp"
    public let watch: RevocationWatch
    /// true (`hard`): a chain whose status is unknown gets no verdict. false (`soft`): it is accepted.
    public let isRequired: Bool

    /// nil when `verify.ocsp` is off. Throws when a thread cannot be started.
    public static func make(
        _ configuration: Configuration, maxWaiters: Int, metrics: Metrics, logger: Logger
    ) throws -> Revocations? {
        switch configuration.verification.ocsp {
        case .off: nil
        case .soft: try Revocations(isRequired: false, maxWaiters: maxWaiters, metrics: metrics, logger: logger)
        case .hard: try Revocations(isRequired: true, maxWaiters: maxWaiters, metrics: metrics, logger: logger)
        }
    }

    private init(isRequired: Bool, maxWaiters: Int, metrics: Metrics, logger: Logger) throws {
        var configuration = RevocationWatch.Configuration()
        configuration.maxWaiters = maxWaiters
        watch = try RevocationWatch(configuration, metrics: metrics, logger: logger)
        self.isRequired = isRequired
    }

    /// The watch works from the moment it is made: verifiers may ask at once.
    public func start(failed: @escaping @Sendable (any Error) -> Void) {}

    public func stop(by deadline: Deadline) throws {
        guard watch.close(by: deadline) else { throw ServicePartFault.stillRunning }
    }
}
