// The HTTP server for operators and their tools.

import HTTP
public import Platform
public import Service
import Synchronization
public import Telemetry

/// `/livez` and `/readyz` (200 or 503, and a JSON body with the reasons), `/metrics` for Prometheus.
///
/// Make it the first part of a service: it then answers from the beginning to the end, even while the other parts stop.
public final class AdminServer: ServicePart {
    public let name = "admin"
    private static let connectionsOfOneAddress = 16
    private let listen: ListenAddress
    private let health: Health
    private let metrics: Metrics
    private let logger: Logger
    private let reserved = Mutex<ReservedAddress?>(nil)
    private let server = Mutex<HTTPServer?>(nil)

    public init(listen: ListenAddress, health: Health, metrics: Metrics, logger: Logger) {
        self.listen = listen
        self.health = health
        self.metrics = metrics
        self.logger = logger
    }

    /// The address on which it listens; nil before the start.
    public var address: ListenAddress? { server.withLock { $0?.address } }

    public func prepare() throws {
        let taken = try ReservedAddress(listen)
        reserved.withLock { $0 = taken }
    }

    public func start(failed: @escaping @Sendable (any Error) -> Void) throws {
        var configuration = HTTPServer.Configuration(name: name, address: listen)
        configuration.reserved = reserved.withLock { $0.take() }
        // For a few probes and scrapers one thread and few descriptors are enough.
        configuration.threads = 1
        configuration.maxConnections = 64
        // Each client needs one or two; one that opens more and sends nothing must not block `/livez` for the others.
        configuration.accepts = { _, open in open < Self.connectionsOfOneAddress }
        // None of its requests has a body.
        configuration.maxBodyBytes = 0
        // A slow head must not block a probe.
        configuration.headDeadline = .seconds(2)
        configuration.greetingDeadline = .seconds(2)
        // Idle connections must not block a probe.
        configuration.idleTimeout = .seconds(10)
        // Probes open a connection each time, and a scraper can reconnect.
        configuration.drainGrace = .milliseconds(100)
        let made = try HTTPServer(configuration, handler: routes(), metrics: metrics, logger: logger)
        server.withLock { $0 = made }
        logger.info("admin server listens", ["address": .string(made.address.description)])
    }

    public func stop(by deadline: Deadline) throws {
        guard let running = server.withLock({ $0 }) else { return }
        if !running.stop(by: deadline) { throw ServicePartFault.stillRunning }
    }

    private func routes() -> Router {
        var router = Router()
        let (health, metrics) = (health, metrics)
        router.get("/livez") { _ in Self.answer(health.liveness) }
        router.get("/readyz") { _ in Self.answer(health.readiness) }
        router.get("/metrics") { _ in .content(200, Metrics.contentType, metrics.exposition()) }
        return router
    }

    private static func answer(_ report: Health.Report) -> HTTPResponse {
        var response = HTTPResponse.json(report.isHealthy ? 200 : 503, report.json)
        // The answer is valid only for a moment.
        response.headers.add("Cache-Control", "no-store")
        // Probes repeat every few seconds anyway; this is for people with a browser or a proxy.
        if !report.isHealthy { response.headers.add("Retry-After", "5") }
        return response
    }
}
