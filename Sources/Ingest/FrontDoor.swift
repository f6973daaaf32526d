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
    private let server = Mutex<HTTPServer?>(nil)
    private let stopRequested = Latch()
    private let ended = Latch()

    /// One line of refusals in this time.
    private static let refusalInterval: Duration = .seconds(10)

    init(
        _ settings: Configuration.Ingest, endpoint: Endpoint, refusals: RefusalLog, metrics: Metrics, logger: Logger
    ) {
        self.settings = settings
        self.endpoint = endpoint
        self.refusals = refusals
        self.metrics = metrics
        self.logger = logger
    }

    var address: ListenAddress? { server.withLock { $0?.address } }

    func start(failed: @escaping @Sendable (any Error) -> Void) throws {
        var configuration = HTTPServer.Configuration(name: name, address: settings.listen)
        configuration.maxBodyBytes = settings.maxBodyBytes
        configuration.maxInFlight = settings.maxInFlight
        let made = try HTTPServer(configuration, handler: endpoint, metrics: metrics, logger: logger)
        server.withLock { $0 = made }
        logger.info("ingest listens", ["address": .string(made.address.description)])
        let thread = WorkerThread.start("ingest-chores") {
            defer { self.ended.open() }
            while !self.stopRequested.wait(for: Self.refusalInterval) { self.refusals.flush() }
            self.refusals.flush()
        }
        if case .failure(let error)? = thread.result { throw error }
    }

    func stop(by deadline: Deadline) throws {
        defer { stopRequested.open() }
        guard let running = server.withLock({ $0 }) else { return }
        if !running.stop(by: deadline) { throw ServicePartFault.stillRunning }
        stopRequested.open()
        guard ended.wait(until: deadline) else { throw ServicePartFault.stillRunning }
    }

    func reload() throws {}
}
