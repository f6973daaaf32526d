// The HTTP server of ingest, its certificate, and the log line about refused requests.

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
    /// nil: the certificate is not read from files.
    private let certificate: CertificateFiles?
    private let reserved = Mutex<ReservedAddress?>(nil)
    private let server = Mutex<HTTPServer?>(nil)
    private let stopRequested = Latch()
    private let ended = Latch()

    /// Refusals are logged at most this often.
    private static let refusalInterval: Duration = .seconds(10)
    /// How often the files of the certificate are checked for changes.
    private static let fileInterval: Duration = .seconds(1)
    /// Connections beyond `ingest.max.in.flight`: those that are idle, or whose request is still arriving.
    private static let spareConnections = 512
    /// Reading and answering costs a sixth of what verifying does. With fewer threads, each finds more work when it
    /// wakes.
    private static let processorsForEachThread = 2
    /// The minimum number of threads: one that is busy with an expensive head or handshake must not stop all others.
    private static let fewestThreads = 2
    /// One address may have one of this many parts of all connections.
    private static let clientsForAllPlaces = 8
    /// For Kafka's brokers, the admin server, files and the system itself.
    private static let spareDescriptors = 256

    /// - Parameter now: milliseconds since 1970; certificates are judged by it.
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

    /// nil: the dates of the certificate are good for Apple.
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

    /// Reads the certificate again. Throws if it cannot be used; then the one in use stays.
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
        // A proxy may see another end of a chunk, and so another start of the next request.
        configuration.takesChunks = configuration.identity != nil
        configuration.threads = max(Self.fewestThreads, availableProcessors() / Self.processorsForEachThread)
        configuration.maxInFlight = door.maxInFlight
        let wanted = door.maxInFlight + Self.spareConnections
        let possible = DescriptorLimit.raise(to: wanted + Self.spareDescriptors) - Self.spareDescriptors
        if possible < wanted {
            logger.warning(
                "fewer connections than ingest.max.in.flight needs: raise the limit of open files (ulimit -Hn)",
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

    /// Logs each trouble once, and a certificate that expires soon once a day: its text changes that often.
    private func tellOfCertificate(_ told: inout String?) {
        let (trouble, warning) = (certificate?.trouble, certificate?.warning)
        guard (trouble ?? warning) != told else { return }
        told = trouble ?? warning
        if let trouble { logger.error(trouble) } else if let warning { logger.warning(warning) }
    }
}
