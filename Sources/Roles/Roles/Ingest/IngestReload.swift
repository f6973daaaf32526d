// Reads settings of ingest again while it runs.

import AppStore
import Configuration
import Contract
import Crypto
import Ingest
import Platform
import Synchronization
import Telemetry

/// The server reloads the TLS certificate; this type reloads settings and the files that they name. If one reload fails, the other
/// still happens.
final class IngestReload: Sendable {
    private let read: @Sendable () throws -> Configuration
    private let verifiers: VerifierPool
    private let ingest: IngestService
    /// Kept, because the limit of the HTTP server does not change either.
    private let maxBodyBytes: Int
    private let hasUsage: Bool
    private let named: Mutex<[String]>
    private let logger: Logger

    init(
        _ configuration: Configuration, _ read: @escaping @Sendable () throws -> Configuration,
        _ verifiers: VerifierPool, _ ingest: IngestService, _ logger: Logger
    ) {
        self.read = read
        self.verifiers = verifiers
        self.ingest = ingest
        maxBodyBytes = configuration.ingest.maxBodyBytes
        hasUsage = configuration.ingest.usageToken != nil
        named = Mutex(configuration.files)
        self.logger = logger
    }

    /// The files that the last settings name.
    var files: [String] { named.withLock { $0 } }

    func everything() throws {
        var faults: [any Error] = []
        do { try ingest.reload() } catch { faults.append(error) }
        do { try settings() } catch { faults.append(error) }
        if !faults.isEmpty { throw ReloadFaults(faults: faults) }
    }

    func settings() throws {
        let next = try read()
        named.withLock { $0 = next.files }
        var policy = try VerificationPolicy(next)
        policy.maxBytes = maxBodyBytes
        verifiers.replace(policy)
        ingest.replace(bundles: next.apps.map(\.bundleId))
        let token = next.ingest.usageToken
        ingest.replace(usageTokens: token.map { [$0] } ?? [])
        let usage =
            if hasUsage {
                token == nil ? "refuses every request until usage.token is set again" : "on"
            } else {
                token == nil ? "off" : "off until a restart"
            }
        logger.info(
            "apps, verify.roots and usage.token were read again; other settings take effect after a restart",
            [
                "apps": .integer(next.apps.count), "roots": .integer(policy.anchors.roots.count),
                "usage": .string(usage),
            ])
    }
}

private struct ReloadFaults: Error, CustomStringConvertible {
    let faults: [any Error]
    var description: String { faults.map { "\($0)" }.joined(separator: "; ") }
}
