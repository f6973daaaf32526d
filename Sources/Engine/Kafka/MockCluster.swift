// librdkafka's built-in mock cluster, for tests of the protocol without a broker.

internal import CRDKafka
internal import Platform

/// A mock cluster in this process, on loopback.
///
/// It supports produce, fetch, groups and injected errors. It supports neither transactions (aborted records stay
/// visible, offsets sent in them are not stored, nothing is fenced) nor offsets by time nor administration: those need
/// a real broker. Its brokers are never taken down or brought up: both bind the same port again, and 2.0.2 aborts the
/// process if that fails (seen). Cut connections and injected errors show the same.
public final class MockCluster {
    /// Requests for which errors can be injected; the numbers are Kafka's API keys.
    public enum Request: Int16, Sendable {
        case produce = 0
        case fetch = 1
        case offsetFetch = 9
        case findCoordinator = 10
        case joinGroup = 11
        case initProducerID = 22
        case addPartitionsToTransaction = 24
        case addOffsetsToTransaction = 25
        case endTransaction = 26
        case transactionOffsetCommit = 28
    }

    private var host: ClientHandle
    private let cluster: OpaquePointer
    private var isClosed = false

    public init(brokers: Int32 = 1) throws(PropertyFault) {
        let context = ClientContext(events: { _ in })
        var conf = try ClientConf(clientID: "mock")
        conf.install(context, for: RD_KAFKA_PRODUCER)
        host = try ClientHandle(RD_KAFKA_PRODUCER, conf: conf, context: context, label: "mock cluster")
        guard let cluster = rd_kafka_mock_cluster_new(host.raw, brokers) else {
            throw PropertyFault(property: "*", reason: "the mock cluster cannot be created")
        }
        self.cluster = cluster
    }

    public var bootstrapServers: String { String(cString: rd_kafka_mock_cluster_bootstraps(cluster)) }

    public func createTopic(_ name: String, partitions: Int32, replicationFactor: Int32 = 1) throws(KafkaFault) {
        try KafkaFault.check(
            rd_kafka_mock_topic_create(cluster, name, partitions, replicationFactor), "create topic \(name)")
    }

    /// Answers the next requests of this kind with these codes, one each; `transport` cuts the connection instead.
    public func fail(_ request: Request, with codes: [KafkaCode]) {
        var raw = codes.map(\.raw)
        rd_kafka_mock_push_request_errors_array(cluster, request.rawValue, raw.count, &raw)
    }

    /// Cancels the failures that `fail` has ordered.
    public func heal(_ request: Request) { rd_kafka_mock_clear_request_errors(cluster, request.rawValue) }

    /// Clients that look up this topic get this code.
    public func failTopic(_ name: String, with code: KafkaCode) {
        rd_kafka_mock_topic_set_error(cluster, name, code.raw)
    }

    /// Delays every answer of the broker by this much from now on.
    public func delayAnswers(by duration: Duration) {
        rd_kafka_mock_broker_set_rtt(cluster, 1, Int32(duration.wholeMilliseconds))
    }

    public func close() {
        if isClosed { return }
        isClosed = true
        rd_kafka_mock_cluster_destroy(cluster)
        _ = host.close(by: Deadline(after: .seconds(5)))
    }
}
