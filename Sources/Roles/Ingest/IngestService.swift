// Connects the parts of ingest.

import AppStore
public import Configuration
public import Contract
public import Kafka
public import Log
public import Platform
public import Service
public import Telemetry

/// All of `perennial ingest` except its verifier, its signals and its exit code.
public struct IngestService: Sendable {
    /// In the order in which they start. The HTTP server comes last: when it stops, all parts that it needs to answer
    /// requests are still working.
    public let parts: [any ServicePart]
    /// Reads the certificate again.
    public let reload: @Sendable () throws -> Void
    /// The address that it listens on, after it has started.
    public var address: ListenAddress? { frontDoor.address }
    private let frontDoor: FrontDoor
    private let endpoint: Endpoint

    /// From now on callers of `/usage` need one of these tokens; without tokens everybody is refused. If there was no
    /// token at the start, there is no `/usage`.
    public func replace(usageTokens: [String]) { endpoint.replace(usageTokens: usageTokens) }

    public func replace(bundles: [String]) { endpoint.replace(bundles: bundles) }

    /// The topics that ingest writes to.
    public struct Destination: Sendable {
        public var prefix: TopicPrefix
        public var partitions: Int32
        /// For both environments.
        public var topics: [TopicID]

        public init(prefix: TopicPrefix, partitions: Int32, topics: [TopicID]) {
            self.prefix = prefix
            self.partitions = partitions
            self.topics = topics
        }
    }

    /// Made from the settings. Adds its conditions to `health`.
    /// - Parameter app: the header `app` of every record.
    public init(
        _ configuration: Configuration, judge: any NotificationJudge, kafka: ClientProperties, app: String,
        health: Health, metrics: Metrics, logger: Logger
    ) {
        let destination = Destination(
            prefix: configuration.topicPlan.prefix, partitions: Int32(configuration.topicPlan.partitions),
            topics: Self.topics(configuration))
        self.init(
            IngestDoor(configuration.ingest), Self.endpoint(configuration, app: app), judge: judge,
            to: destination, kafka: kafka, now: WallClock.milliseconds, health: health, metrics: metrics,
            logger: logger)
    }

    /// Into Kafka.
    /// - Parameter now: milliseconds since 1970: the time at which a notification counts as received.
    public init(
        _ door: IngestDoor, _ endpoint: Endpoint.Configuration, judge: any NotificationJudge,
        to destination: Destination, kafka: ClientProperties, now: @escaping @Sendable () -> Int64, health: Health,
        metrics: Metrics, logger: Logger
    ) {
        let refusals = RefusalLog(logger)
        let publishing = Publisher.Configuration(
            properties: kafka, prefix: destination.prefix, partitions: destination.partitions,
            topics: destination.topics)
        let watch = TopicWatch(publishing, health: health, logger: logger)
        let publisher = Publisher(
            publishing, metrics: metrics, health: health, logger: logger, refusals: refusals,
            topicsTrouble: { watch.topicsTrouble })
        health.condition("kafka") { watch.kafkaTrouble ?? publisher.brokerTrouble }
        self.init(
            door, endpoint, judge: judge, sink: publisher, behind: [watch, publisher], refusals: refusals, now: now,
            metrics: metrics, logger: logger)
        let frontDoor = frontDoor
        health.condition("certificate") { frontDoor.certificateTrouble }
    }

    /// Writes into any log, through the log's own writer.
    /// - Parameter now: milliseconds since 1970: the time at which a notification counts as received.
    public init(
        _ door: IngestDoor, _ endpoint: Endpoint.Configuration, judge: any NotificationJudge,
        to destination: Destination, log: any RecordLog, now: @escaping @Sendable () -> Int64, metrics: Metrics,
        logger: Logger
    ) {
        let publisher = LogPublisher(log, destination)
        self.init(
            door, endpoint, judge: judge, sink: publisher, behind: [publisher], refusals: RefusalLog(logger), now: now,
            metrics: metrics, logger: logger)
    }

    private init(
        _ door: IngestDoor, _ endpoint: Endpoint.Configuration, judge: any NotificationJudge, sink: any RecordSink,
        behind: [any ServicePart], refusals: RefusalLog, now: @escaping @Sendable () -> Int64, metrics: Metrics,
        logger: Logger
    ) {
        // The rest of the server's requests in flight is for those from Apple's network.
        let verifiers = VerifierThreads(
            judge, capacity: max(1, door.maxInFlight * 3 / 4), patience: endpoint.timeout / 2)
        let handler = Endpoint(
            endpoint, judge: verifiers, sink: sink, metrics: metrics, refusals: refusals, now: now)
        let frontDoor = FrontDoor(
            door, endpoint: handler, refusals: refusals, now: now, metrics: metrics, logger: logger)
        self.frontDoor = frontDoor
        self.endpoint = handler
        parts = behind + [verifiers, frontDoor]
        reload = { try frontDoor.reload() }
    }

    private static func topics(_ configuration: Configuration) -> [TopicID] {
        var topics: [TopicID] = [.notifications, .rejected]
        if configuration.verification.archivesSignedPayloads { topics.append(.signed) }
        if configuration.ingest.usageToken != nil { topics.append(.usage) }
        return topics
    }

    private static func endpoint(_ configuration: Configuration, app: String) -> Endpoint.Configuration {
        var endpoint = Endpoint.Configuration(app: app)
        endpoint.allowed = configuration.ingest.allowed
        endpoint.clients = ClientAddresses(trustedProxies: configuration.ingest.trustedProxies)
        endpoint.usageToken = configuration.ingest.usageToken
        endpoint.usageEnvironment = configuration.environment
        endpoint.timeout = configuration.ingest.timeout
        endpoint.repeatedMilliseconds = Int64(configuration.ingest.repeatedMilliseconds)
        endpoint.rejectedBytesPerHour = configuration.ingest.rejectedMaxBytesPerHour
        endpoint.bundles = configuration.apps.map(\.bundleId)
        endpoint.archivesSignedPayloads = configuration.verification.archivesSignedPayloads
        return endpoint
    }
}
