// Connects the parts of the read API.

public import Churn
public import Contract
internal import HTTP
public import Log
public import Platform
public import Service
public import Store
internal import Synchronization
public import Telemetry

/// All of `perennial api` except its admin server, its signals and its exit code.
public struct ReadAPIService: Sendable {
    public struct Configuration: Sendable {
        /// The environments that are followed, each with its own place for its copies, which nothing else may use. If
        /// several know the same id, the first one counts.
        public var sources: [Source]
        /// Number of partitions of each topic.
        public var partitions: Int
        public var listen: ListenAddress
        /// Bearer tokens; none: everybody who can reach the address may ask.
        public var tokens: [String]
        /// Greatest age of a notification that its worker has not processed; nil: every age is accepted.
        public var maxBehind: Duration?
        /// The day of a time, in the zone of the days of `churn-cells`.
        public var dayOf: @Sendable (Int64) -> CivilDay
        /// The origin of `dayOf`, to warn if the days of `churn-cells` have another one; nil: nothing is compared.
        public var rules: CellRules?
        /// For the gauges of the business.
        public var products: ProductGroups

        public init(
            _ sources: [Source], partitions: Int, listen: ListenAddress, tokens: [String],
            maxBehind: Duration? = nil, dayOf: @escaping @Sendable (Int64) -> CivilDay = { dayInUTC($0) },
            rules: CellRules? = nil, products: ProductGroups = ProductGroups()
        ) {
            self.sources = sources
            self.partitions = partitions
            self.listen = listen
            self.tokens = tokens
            self.maxBehind = maxBehind
            self.dayOf = dayOf
            self.rules = rules
            self.products = products
        }
    }

    public struct Source: Sendable {
        public var names: Names
        public var stores: any PartitionStores

        public init(_ names: Names, _ stores: any PartitionStores) {
            self.names = names
            self.stores = stores
        }
    }

    /// In the order in which they start. The HTTP server answers 503 until the copies are complete.
    public let parts: [any ServicePart]
    /// The address that it listens on, after it has started.
    public var address: ListenAddress? { frontDoor.address }
    private let frontDoor: FrontDoor
    private let tokens: TokenRing

    /// Adds the condition `api` to `health`.
    public init(
        _ configuration: Configuration, log: any RecordLog, time: ReadAPITime = .real(), health: Health,
        metrics: Metrics, logger: Logger
    ) {
        let shelves = configuration.sources.enumerated().map { index, source in
            Shelf(
                source.names, partitions: configuration.partitions, maxBehind: configuration.maxBehind,
                isWorked: index == 0)
        }
        // An environment for testers must not make production unready: the second environment counts only until it has
        // answered once. After that, the positions in answers and the metrics show its state.
        health.condition("api") {
            let troubles = shelves.enumerated().compactMap { index, shelf in
                index > 0 && (shelf.isAnswering(at: time.elapsed()) || shelf.hasAnswered)
                    ? nil : shelf.trouble(at: time.elapsed(), now: time.now())
            }
            return troubles.isEmpty ? nil : troubles.joined(separator: "; ")
        }
        var parts: [any ServicePart] = []
        for (shelf, source) in zip(shelves, configuration.sources) {
            parts.append(
                Follower(
                    Follower.Configuration(rules: configuration.rules), shelf, log: log, stores: source.stores,
                    time: time, metrics: ShelfMetrics(metrics, shelf, now: time.now), logger: logger))
            parts.append(
                WorkerWatchPart(
                    shelf.names, partitions: Int32(configuration.partitions), log: log, time: time, pace: shelf.pace,
                    logger: logger))
            parts.append(
                BusinessGauges(
                    shelf, products: configuration.products, time: time, dayOf: configuration.dayOf, metrics: metrics))
        }
        tokens = TokenRing(configuration.tokens)
        let endpoint = Endpoint(
            shelves, tokens: tokens, time: time, metrics: ReadAPIMetrics(metrics), dayOf: configuration.dayOf)
        frontDoor = FrontDoor(configuration.listen, endpoint: endpoint, metrics: metrics, logger: logger)
        self.parts = parts + [frontDoor]
    }

    /// Only these tokens are valid from now on. Throws if there were tokens and there are none now, or the other way
    /// round.
    public func replace(tokens: [String]) throws(TokensGone) { try self.tokens.replace(by: tokens) }
}

/// The HTTP server.
final class FrontDoor: ServicePart {
    let name = "api"
    private let listen: ListenAddress
    private let endpoint: Endpoint
    private let metrics: Metrics
    private let logger: Logger
    private let reserved = Mutex<ReservedAddress?>(nil)
    private let server = Mutex<HTTPServer?>(nil)

    init(_ listen: ListenAddress, endpoint: Endpoint, metrics: Metrics, logger: Logger) {
        self.listen = listen
        self.endpoint = endpoint
        self.metrics = metrics
        self.logger = logger
    }

    var address: ListenAddress? { server.withLock { $0?.address } }

    func prepare() throws {
        let taken = try ReservedAddress(listen)
        reserved.withLock { $0 = taken }
    }

    func start(failed: @escaping @Sendable (any Error) -> Void) throws {
        var configuration = HTTPServer.Configuration(name: name, address: listen)
        configuration.reserved = reserved.withLock { $0.take() }
        // The threads sometimes read local files: one that waits for the disk must not stop the others.
        configuration.threads = max(2, availableProcessors())
        // None of its requests may have a body.
        configuration.maxBodyBytes = 0
        configuration.retryAfterSeconds = Endpoint.retryAfterSeconds
        configuration.refusal = { HTTPResponse.refusalInJSON($0, $1).notStored }
        let made = try HTTPServer(configuration, handler: endpoint, metrics: metrics, logger: logger)
        server.withLock { $0 = made }
        logger.info("the read API listens", ["address": .string(made.address.description)])
    }

    func stop(by deadline: Deadline) throws {
        guard let running = server.withLock({ $0 }) else { return }
        if !running.stop(by: deadline) { throw ServicePartFault.stillRunning }
    }
}
