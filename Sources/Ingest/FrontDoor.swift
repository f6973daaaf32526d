// The HTTP server of ingest, its certificate, and the log line about what was refused.

import HTTP
import Platform
import Service
import Synchronization
import Telemetry

final class FrontDoor: ServicePart {
    let name = "ingest"
    private let door: IngestDoor
    private let endpoint: Endpoint
    private let refusals: RefusalLog
    private let metrics: Metrics
    private let logger: Logger
    /// nil: it is not read from files.
    private let certificate: CertificateFiles?
    private let reserved = Mutex<ReservedAddress?>(nil)
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
    /// Of them: one that has to work through a costly head or handshake is not to stop all others.
    private static let fewestThreads = 2
    /// Of all connections, one address may have this part.
    private static let clientsForAllPlaces = 8
    /// For Kafka's brokers, the admin server, files and the system's own.
    private static let spareDescriptors = 256

    /// - Parameter now: milliseconds since 1970, by which certificates are judged.
    init(
        _ door: IngestDoor, endpoint: Endpoint, refusals: RefusalLog, now: @escaping @Sendable () -> Int64,
        metrics: Metrics, logger: Logger
    ) {
        self.door = door
        self.endpoint = endpoint
        self.refusals = refusals
        self.metrics = metrics
        self.logger = logger
        if case .files(let certificate, let key) = door.identity {
            self.certificate = CertificateFiles(
                certificatePath: certificate, keyPath: key, now: now, metrics: metrics)
        } else {
            certificate = nil
        }
    }

    /// nil: Apple can take the certificate, as far as its dates go.
    var certificateTrouble: String? { certificate?.trouble }

    var address: ListenAddress? { server.withLock { $0?.address } }

    func prepare() throws {
        let taken = try ReservedAddress(door.listen)
        reserved.withLock { $0 = taken }
    }

    func start(failed: @escaping @Sendable (any Error) -> Void) throws {
        let made = try HTTPServer(try serverConfiguration(), handler: endpoint, metrics: metrics, logger: logger)
        server.withLock { $0 = made }
        let isTLS = if case .none = door.identity { false } else { true }
        logger.info("ingest listens", ["address": .string(made.address.description), "tls": .bool(isTLS)])
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
        guard let term = try certificate.load(into: server) else { return }
        logger.info(
            "new connections see the new certificate",
            ["subject": .string(term.subject), "expires": .string(rfc3339(milliseconds: term.notAfter))])
    }

    private func serverConfiguration() throws -> HTTPServer.Configuration {
        var configuration = HTTPServer.Configuration(name: name, address: door.listen)
        configuration.reserved = reserved.withLock { $0.take() }
        if case .inMemory(let identity) = door.identity {
            configuration.identity = identity
        } else {
            configuration.identity = try certificate?.first()
        }
        configuration.maxBodyBytes = door.maxBodyBytes
        configuration.maxBufferedBytes = door.maxBufferedBytes
        // A proxy may have another opinion on where a chunk ends, and then on where the next request begins.
        configuration.takesChunks = configuration.identity != nil
        configuration.threads = max(Self.fewestThreads, availableProcessors() / Self.processorsForEachThread)
        configuration.maxInFlight = door.maxInFlight
        let wanted = door.maxInFlight + Self.spareConnections
        let possible = DescriptorLimit.raise(to: wanted + Self.spareDescriptors) - Self.spareDescriptors
        if possible < wanted {
            logger.warning(
                "fewer connections than ingest.max.in.flight asks for: raise the limit of open files (ulimit -Hn)",
                ["connections": .integer(max(possible, 64)), "wanted": .integer(wanted)])
        }
        configuration.maxConnections = max(64, min(wanted, possible))
        let (endpoint, most) = (endpoint, max(16, configuration.maxConnections / Self.clientsForAllPlaces))
        configuration.accepts = { peer, open in endpoint.admits(peer) && (open < most || endpoint.isTrusted(peer)) }
        configuration.prefers = { endpoint.isTrusted($0) }
        configuration.refusal = HTTPResponse.refusalInJSON
        return configuration
    }

    private func doChores(_ server: HTTPServer) {
        var lastFlush = ContinuousClock.now
        var toldOfCertificate: String?
        tellOfCertificate(&toldOfCertificate)
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
            tellOfCertificate(&toldOfCertificate)
            if lastFlush.duration(to: .now) >= Self.refusalInterval {
                refusals.flush()
                lastFlush = .now
            }
        }
        refusals.flush()
    }

    /// Once, and of an end that is near once a day: that is how often its words change.
    private func tellOfCertificate(_ told: inout String?) {
        let (trouble, warning) = (certificate?.trouble, certificate?.warning)
        guard (trouble ?? warning) != told else { return }
        told = trouble ?? warning
        if let trouble { logger.error(trouble) } else if let warning { logger.warning(warning) }
    }
}
