// The parts of the read API, put together.

public import Churn
public import Contract
internal import Follow
internal import HTTP
public import Log
public import Platform
public import Service
public import Store
internal import Synchronization
public import Telemetry

/// Everything of `perennial api` but its admin server, its signals and its exit code.
public struct ReadAPIService: Sendable {
    public struct Configuration: Sendable {
        /// Whose topics are followed.
        public var names: Names
        /// Of each topic.
        public var partitions: Int
        public var listen: ListenAddress
        /// Bearer token; nil: everybody who reaches the address may ask.
        public var token: String?
        /// The day of an instant, where those of `churn-cells` begin.
        public var dayOf: @Sendable (Int64) -> CivilDay
        /// Where `dayOf` is from, to warn when those of `churn-cells` are others; nil: nobody is warned.
        public var rules: CellRules?

        public init(
            _ names: Names, partitions: Int, listen: ListenAddress, token: String?,
            dayOf: @escaping @Sendable (Int64) -> CivilDay = { dayInUTC($0) }, rules: CellRules? = nil
        ) {
            self.dayOf = dayOf
            self.rules = rules
            self.names = names
            self.partitions = partitions
            self.listen = listen
            self.token = token
        }
    }

    /// In the order in which they start. The HTTP server answers 503 until the copies are complete.
    public let parts: [any ServicePart]
    /// Where it listens, once it has started.
    public var address: ListenAddress? { frontDoor.address }
    private let frontDoor: FrontDoor

    /// Adds the condition `api` to `health`.
    /// - Parameter stores: nobody else's.
    public init(
        _ configuration: Configuration, log: any RecordLog, stores: any PartitionStores, time: ReadAPITime = .real(),
        health: Health, metrics: Metrics, logger: Logger
    ) {
        let totals = CellTotals(partitions: configuration.partitions)
        let copies = (0..<Int32(configuration.partitions)).map { PartitionCopy($0, totals) }
        let readiness = Readiness()
        let counts = ReadAPIMetrics(metrics)
        health.condition("api") { readiness.trouble(at: time.elapsed()) }
        let follower = Follower(
            Follower.Configuration(names: configuration.names, rules: configuration.rules), log: log, stores: stores,
            copies: copies, totals: totals, time: time, readiness: readiness, metrics: counts, logger: logger)
        let endpoint = Endpoint(
            configuration.names, copies: copies, totals: totals, token: configuration.token, time: time,
            readiness: readiness, metrics: counts, dayOf: configuration.dayOf)
        frontDoor = FrontDoor(configuration.listen, endpoint: endpoint, metrics: metrics, logger: logger)
        parts = [follower, frontDoor]
    }
}

/// The HTTP server.
final class FrontDoor: ServicePart {
    let name = "api"
    private let listen: ListenAddress
    private let endpoint: Endpoint
    private let metrics: Metrics
    private let logger: Logger
    private let server = Mutex<HTTPServer?>(nil)

    init(_ listen: ListenAddress, endpoint: Endpoint, metrics: Metrics, logger: Logger) {
        self.listen = listen
        self.endpoint = endpoint
        self.metrics = metrics
        self.logger = logger
    }

    var address: ListenAddress? { server.withLock { $0?.address } }

    func start(failed: @escaping @Sendable (any Error) -> Void) throws {
        var configuration = HTTPServer.Configuration(name: name, address: listen)
        // They read local files at times: one that waits for the disk is not to stop the others.
        configuration.threads = max(2, availableProcessors())
        // None of its requests has a body.
        configuration.maxBodyBytes = 0
        configuration.retryAfterSeconds = Endpoint.retryAfterSeconds
        configuration.refusal = HTTPResponse.refusalInJSON
        let made = try HTTPServer(configuration, handler: endpoint, metrics: metrics, logger: logger)
        server.withLock { $0 = made }
        logger.info("the read API listens", ["address": .string(made.address.description)])
    }

    func stop(by deadline: Deadline) throws {
        guard let running = server.withLock({ $0 }) else { return }
        if !running.stop(by: deadline) { throw ServicePartFault.stillRunning }
    }
}
