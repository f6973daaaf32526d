// librdkafka's built-in mock cluster, for tests of the protocol without a broker.

internal import CRDKafka
public import Kafka

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
        case offsetFetch = 9
        case findCoordinator = 10
        case initProducerID = 22
        case endTransaction = 26
        case transactionOffsetCommit = 28
    }

    private let host: OpaquePointer
    private let cluster: OpaquePointer
    private var isClosed = false

    public init(brokers: Int32 = 1) throws(KafkaFault) {
        host = try quietClient("mock", [:])
        guard let cluster = rd_kafka_mock_cluster_new(host, brokers) else {
            rd_kafka_destroy(host)
            throw KafkaFault(.stopProcess, .invalidConfiguration, operation: "create the mock cluster")
        }
        self.cluster = cluster
    }

    public var bootstrapServers: String { String(cString: rd_kafka_mock_cluster_bootstraps(cluster)) }

    public func createTopic(_ name: String, partitions: Int32, replicationFactor: Int32 = 1) throws(KafkaFault) {
        let code = rd_kafka_mock_topic_create(cluster, name, partitions, replicationFactor)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
            throw KafkaFault(.stopProcess, KafkaCode(rawValue: code.rawValue), operation: "create topic \(name)")
        }
    }

    /// Answers the next requests of this kind with these codes, one each; `transport` cuts the connection instead.
    public func fail(_ request: Request, with codes: [KafkaCode]) {
        var raw = codes.map { rd_kafka_resp_err_t(rawValue: $0.rawValue) }
        rd_kafka_mock_push_request_errors_array(cluster, request.rawValue, raw.count, &raw)
    }

    /// Cancels the failures that `fail` has ordered.
    public func heal(_ request: Request) { rd_kafka_mock_clear_request_errors(cluster, request.rawValue) }

    /// Clients that look up this topic get this code.
    public func failTopic(_ name: String, with code: KafkaCode) {
        rd_kafka_mock_topic_set_error(cluster, name, rd_kafka_resp_err_t(rawValue: code.rawValue))
    }

    /// Delays every answer of the broker by this much from now on.
    public func delayAnswers(by duration: Duration) {
        rd_kafka_mock_broker_set_rtt(cluster, 1, Int32(duration / .milliseconds(1)))
    }

    public func close() {
        if isClosed { return }
        isClosed = true
        rd_kafka_mock_cluster_destroy(cluster)
        rd_kafka_destroy(host)
    }
}

extension KafkaCode {
    // What only tests inject or expect.
    public static let fenced = KafkaCode(rawValue: RD_KAFKA_RESP_ERR__FENCED.rawValue)
    public static let notLeader = KafkaCode(rawValue: RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION.rawValue)
    public static let duplicateSequence = KafkaCode(rawValue: RD_KAFKA_RESP_ERR_DUPLICATE_SEQUENCE_NUMBER.rawValue)
    public static let tooLarge = KafkaCode(rawValue: RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE.rawValue)
    public static let notCoordinator = KafkaCode(rawValue: RD_KAFKA_RESP_ERR_NOT_COORDINATOR.rawValue)
}
