// The parts of ingest, put together.

import AppStore
public import Configuration
public import Contract
public import Kafka
public import Log
public import Platform
public import Service
public import Telemetry

/// Everything of `perennial ingest` but its verifier, its signals and its exit code.
public struct IngestService: Sendable {
    /// In the order in which they start. The HTTP server comes last: when it stops, everything it needs to answer is still
    /// at work.
    public let parts: [any ServicePart]
    /// Reads the certificate again.
    public let reload: @Sendable () throws -> Void
    /// Where it listens, once it has started.
    public var address: ListenAddress? { frontDoor.address }
    private let frontDoor: FrontDoor
    private let endpoint: Endpoint

    /// From now on callers of `/usage` bear one of these; none: nobody is admitted. Where there was none at the start, `/usage` is not
    /// there.
    public func replace(usageTokens: [String]) { endpoint.replace(usageTokens: usageTokens) }

    public func replace(bundles: [String]) { endpoint.replace(bundles: bundles) }

    /// Where what is taken goes.
    public struct Destination: Sendable {
        public var prefix: TopicPrefix
        public var partitions: Int32
        /// In both environments.
        public var topics: [TopicID]

        public init(prefix: TopicPrefix, partitions: Int32, topics: [TopicID]) {
            self.prefix = prefix
            self.partitions = partitions
            self.topics = topics
        }
    }

    /// As the settings say. Adds its conditions to `health`.
    /// - Parameter app: the header `app` of every record.
    public init(
        _ configuration: Configuration, judge: any NotificationJudge, app: String, health: Health, metrics: Metrics,
        logger: Logger
    ) {
        let destination = Destination(
            prefix: configuration.topicPlan.prefix, partitions: Int32(configuration.topicPlan.partitions),
            topics: Self.topics(configuration))
        self.init(
            IngestDoor(configuration.ingest), Self.endpoint(configuration, app: app), judge: judge,
            to: destination, kafka: configuration.kafka, now: WallClock.milliseconds, health: health, metrics: metrics,
            logger: logger)
    }

    /// Into Kafka.
    /// - Parameter now: milliseconds since 1970: when a notification counts as received.
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

    /// Into any log, by its own writer.
    /// - Parameter now: milliseconds since 1970: when a notification counts as received.
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
        // The rest of what the server holds at a time is for what comes from Apple's network.
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
