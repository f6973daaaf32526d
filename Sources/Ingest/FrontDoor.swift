// The HTTP server of ingest, its certificate, and the log line about what was refused.

import Configuration
import HTTP
import Platform
import Service
import Synchronization
import Telemetry

final class FrontDoor: ServicePart {
    let name = "ingest"
    private let settings: Configuration.Ingest
    private let endpoint: Endpoint
    private let refusals: RefusalLog
    private let metrics: Metrics
    private let logger: Logger
    /// nil: plaintext.
    private let certificate: CertificateFiles?
    private let server = Mutex<HTTPServer?>(nil)
    private let stopRequested = Latch()
    private let ended = Latch()

    /// One line of refusals in this time.
    private static let refusalInterval: Duration = .seconds(10)
    /// Of looking at the files of the certificate.
    private static let fileInterval: Duration = .seconds(1)
    /// Connections beyond the requests that may be held: those that are idle, or still reading.
    private static let spareConnections = 512
    /// Reading and answering is a sixth of what verifying costs; fewer threads find more to do each time they wake.
    private static let processorsForEachThread = 2
    /// For Kafka's brokers, the admin server, files and the system's own.
    private static let spareDescriptors = 256

    init(
        _ settings: Configuration.Ingest, endpoint: Endpoint, refusals: RefusalLog, metrics: Metrics, logger: Logger
    ) {
        self.settings = settings
        self.endpoint = endpoint
        self.refusals = refusals
        self.metrics = metrics
        self.logger = logger
        if !settings.isPlaintext, let certificate = settings.certificatePath, let key = settings.keyPath {
            self.certificate = CertificateFiles(certificatePath: certificate, keyPath: key, metrics: metrics)
        } else {
            certificate = nil
        }
    }

    var address: ListenAddress? { server.withLock { $0?.address } }

    func start(failed: @escaping @Sendable (any Error) -> Void) throws {
        let made = try HTTPServer(try serverConfiguration(), handler: endpoint, metrics: metrics, logger: logger)
        server.withLock { $0 = made }
        logger.info(
            "ingest listens",
            ["address": .string(made.address.description), "tls": .bool(certificate != nil)])
        let thread = WorkerThread.start("ingest-chores") {
            defer { self.ended.open() }
            self.doChores(made)
        }
        if case .failure(let error)? = thread.result {
            made.stop(by: Deadline(after: .zero))
            throw error
        }
    }

    func stop(by deadline: Deadline) throws {
        let isClean = server.withLock { $0 }?.stop(by: deadline) ?? true
        stopRequested.open()
        guard isClean, ended.wait(until: deadline) else { throw ServicePartFault.stillRunning }
    }

    /// Reads the certificate again. Throws when it cannot be used; what is in use stays.
    func reload() throws {
        guard let certificate, let server = server.withLock({ $0 }) else { return }
        if try certificate.load(into: server) { logger.info("new connections see the new certificate") }
    }

    private func serverConfiguration() throws -> HTTPServer.Configuration {
        var configuration = HTTPServer.Configuration(name: name, address: settings.listen)
        configuration.identity = try certificate?.read()
        configuration.maxBodyBytes = settings.maxBodyBytes
        configuration.threads = max(1, availableProcessors() / Self.processorsForEachThread)
        configuration.maxInFlight = settings.maxInFlight
        let wanted = settings.maxInFlight + Self.spareConnections
        let possible = DescriptorLimit.raise(to: wanted + Self.spareDescriptors) - Self.spareDescriptors
        if possible < wanted {
            logger.warning(
                "fewer connections than ingest.max.in.flight asks for: raise the limit of open files (ulimit -Hn)",
                ["connections": .integer(max(possible, 64)), "wanted": .integer(wanted)])
        }
        configuration.maxConnections = max(64, min(wanted, possible))
        configuration.refusal = HTTPResponse.refusalInJSON
        return configuration
    }

    private func doChores(_ server: HTTPServer) {
        var lastFlush = ContinuousClock.now
        while !stopRequested.wait(for: Self.fileInterval) {
            if let certificate, certificate.haveChanged {
                do {
                    try reload()
                } catch {
                    logger.error(
                        "the files of the TLS certificate have changed and cannot be used; the one in use stays",
                        ["reason": .string("\(error)")])
                }
            }
            if lastFlush.duration(to: .now) >= Self.refusalInterval {
                refusals.flush()
                lastFlush = .now
            }
        }
        refusals.flush()
    }
}
