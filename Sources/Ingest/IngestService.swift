// The parts of ingest, put together.

import AppStore
public import Configuration
import Contract
import Kafka
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

    /// Adds its conditions to `health`.
    /// - Parameter app: the header `app` of every record.
    public init(
        _ configuration: Configuration, judge: any NotificationJudge, app: String, health: Health, metrics: Metrics,
        logger: Logger
    ) {
        let refusals = RefusalLog(logger)
        let publishing = Publisher.Configuration(
            properties: configuration.kafka, prefix: configuration.topicPlan.prefix,
            partitions: Int32(configuration.topicPlan.partitions), topics: Self.topics(configuration))
        let watch = TopicWatch(publishing, health: health, logger: logger)
        let publisher = Publisher(
            publishing, metrics: metrics, health: health, logger: logger, refusals: refusals,
            topicsTrouble: { watch.topicsTrouble })
        health.condition("kafka") { watch.kafkaTrouble ?? publisher.brokerTrouble }
        let verifiers = VerifierThreads(
            judge, capacity: configuration.ingest.maxInFlight, patience: configuration.ingest.timeout / 2)
        let endpoint = Endpoint(
            Self.endpoint(configuration, app: app), judge: verifiers, sink: publisher, metrics: metrics,
            refusals: refusals, now: WallClock.milliseconds)
        let frontDoor = FrontDoor(
            configuration.ingest, endpoint: endpoint, refusals: refusals, metrics: metrics, logger: logger)
        self.frontDoor = frontDoor
        parts = [watch, publisher, verifiers, frontDoor]
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
        endpoint.rejectedBytesPerHour = configuration.ingest.rejectedMaxBytesPerHour
        endpoint.archivesSignedPayloads = configuration.verification.archivesSignedPayloads
        return endpoint
    }
}
