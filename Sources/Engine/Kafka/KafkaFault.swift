// Faults of Kafka and their remedies.

internal import CRDKafka

/// An error code of Kafka's protocol (positive) or of librdkafka (negative).
public struct KafkaCode: Sendable, Hashable, RawRepresentable, CustomStringConvertible {
    public var rawValue: Int32

    public init(rawValue: Int32) { self.rawValue = rawValue }
    init(_ code: rd_kafka_resp_err_t) { rawValue = code.rawValue }

    public static let none = KafkaCode(rawValue: 0)
    public static let queueFull = KafkaCode(RD_KAFKA_RESP_ERR__QUEUE_FULL)
    public static let timedOut = KafkaCode(RD_KAFKA_RESP_ERR__TIMED_OUT)
    public static let deliveryTimedOut = KafkaCode(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT)
    /// Not known to be written: no broker has returned the record's offset. Only this layer uses the code; librdkafka
    /// reports no record so.
    public static let unconfirmed = KafkaCode(RD_KAFKA_RESP_ERR__INCONSISTENT)
    public static let transport = KafkaCode(RD_KAFKA_RESP_ERR__TRANSPORT)
    public static let resolve = KafkaCode(RD_KAFKA_RESP_ERR__RESOLVE)
    public static let allBrokersDown = KafkaCode(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
    public static let authentication = KafkaCode(RD_KAFKA_RESP_ERR__AUTHENTICATION)
    public static let tls = KafkaCode(RD_KAFKA_RESP_ERR__SSL)
    public static let fencedInstance = KafkaCode(RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID)
    static let wrongState = KafkaCode(RD_KAFKA_RESP_ERR__STATE)
    public static let purgedInQueue = KafkaCode(RD_KAFKA_RESP_ERR__PURGE_QUEUE)
    public static let purgedInFlight = KafkaCode(RD_KAFKA_RESP_ERR__PURGE_INFLIGHT)
    public static let unknownPartition = KafkaCode(RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION)
    public static let unknownTopicOrPartition = KafkaCode(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
    public static let topicAlreadyExists = KafkaCode(RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
    /// The record's timestamp is further ahead of the broker's clock than `message.timestamp.after.max.ms` of its topic
    /// allows.
    public static let invalidTimestamp = KafkaCode(RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP)
    public static let offsetOutOfRange = KafkaCode(RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE)
    public static let illegalGeneration = KafkaCode(RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION)
    /// The group has members, so only they may commit its offsets.
    public static let unknownMember = KafkaCode(RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID)
    static let unstableOffsets = KafkaCode(RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT)
    public static let groupNotEmpty = KafkaCode(RD_KAFKA_RESP_ERR_NON_EMPTY_GROUP)
    public static let groupNotFound = KafkaCode(RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND)
    public static let invalidConfiguration = KafkaCode(RD_KAFKA_RESP_ERR__INVALID_ARG)

    private static let authorisation: [rd_kafka_resp_err_t] = [
        RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED,
        RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ]

    /// The broker knows the client and refuses it; a retry cannot help.
    public var isAuthorisation: Bool { Self.authorisation.contains { $0.rawValue == rawValue } }

    private static let electing: [rd_kafka_resp_err_t] = [
        RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE,
        RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
    ]

    /// Another broker coordinates the group, or none does yet.
    var wantsAnotherCoordinator: Bool { Self.electing.contains { $0.rawValue == rawValue } }

    /// An abort purged the record: expected, no failure of the broker or the network.
    public var isPurge: Bool { self == .purgedInQueue || self == .purgedInFlight }

    var raw: rd_kafka_resp_err_t { rd_kafka_resp_err_t(rawValue: rawValue) }

    /// Kafka's name of the code without its prefix, such as `INVALID_TIMESTAMP` or `_QUEUE_FULL`.
    public var name: String { String(cString: rd_kafka_err2name(raw)) }

    public var description: String { name }
}

public struct KafkaFault: Error, Equatable, CustomStringConvertible {
    /// Decided here, where librdkafka's answer is available, so that no caller has to guess from a code.
    public enum Remedy: String, Sendable {
        /// Repeat the same call with the same arguments, after a short wait, with no other call in between.
        case retrySameCall
        /// `abort`, seek back to the start of the cycle, and begin again. This is common.
        case abortTransaction
        /// Close this client without writing anything that depends on the open cycle, and create a new one.
        case rebuildClient
        /// Only a person can help (rights, credentials, misuse): end the process with the reason.
        case stopProcess
    }

    public var remedy: Remedy
    public var code: KafkaCode
    /// What was attempted, such as "commit the transaction".
    public var operation: String
    public var detail: String

    public init(_ remedy: Remedy, _ code: KafkaCode, operation: String, detail: String? = nil) {
        self.remedy = remedy
        self.code = code
        self.operation = operation
        self.detail = detail ?? code.explanation
    }

    /// For people: what failed, why, and Kafka's name of the code. Programs use the remedy.
    public var words: String { "cannot \(operation): \(detail) (\(code.name))" }

    public var description: String { "cannot \(operation): \(detail) (\(code.name), \(remedy.rawValue))" }
}

extension KafkaFault {
    /// Takes ownership of `raw` (`rd_kafka_error_t`) and throws unless it is nil.
    static func check(_ raw: OpaquePointer?, _ operation: String) throws(KafkaFault) {
        guard let raw else { return }
        defer { rd_kafka_error_destroy(raw) }
        let code = KafkaCode(rd_kafka_error_code(raw))
        let remedy = remedy(
            for: code, isFatal: rd_kafka_error_is_fatal(raw) != 0,
            wantsAbort: rd_kafka_error_txn_requires_abort(raw) != 0, isRetriable: rd_kafka_error_is_retriable(raw) != 0)
        throw KafkaFault(remedy, code, operation: operation, detail: String(cString: rd_kafka_error_string(raw)))
    }

    /// The order of the checks matters: a fatal error may also ask for an abort, and an abort of a fenced producer only
    /// fails again. Errors that need a person come first.
    static func remedy(for code: KafkaCode, isFatal: Bool, wantsAbort: Bool, isRetriable: Bool) -> Remedy {
        if code.isAuthorisation { return .stopProcess }
        if isFatal { return .rebuildClient }
        if wantsAbort { return .abortTransaction }
        if isRetriable || code == .queueFull || code == .timedOut { return .retrySameCall }
        return code.remedyOutsideTransactions
    }

    static func check(_ code: rd_kafka_resp_err_t, _ operation: String) throws(KafkaFault) {
        guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return }
        let code = KafkaCode(code)
        throw KafkaFault(code.remedyOutsideTransactions, code, operation: operation)
    }
}

extension KafkaCode {
    /// For calls that return only a code.
    public var remedyOutsideTransactions: KafkaFault.Remedy {
        if isAuthorisation { return .stopProcess }
        switch raw {
        case RD_KAFKA_RESP_ERR__AUTHENTICATION, RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED,
            RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE, RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION,
            RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
            RD_KAFKA_RESP_ERR_INVALID_CONFIG, RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR,
            RD_KAFKA_RESP_ERR_POLICY_VIOLATION, RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, RD_KAFKA_RESP_ERR_NON_EMPTY_GROUP,
            RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
            RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
            return .stopProcess
        case RD_KAFKA_RESP_ERR__FATAL, RD_KAFKA_RESP_ERR__FENCED, RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID,
            RD_KAFKA_RESP_ERR__STATE, RD_KAFKA_RESP_ERR__INVALID_ARG, RD_KAFKA_RESP_ERR__DESTROY:
            return .rebuildClient
        default:
            return .retrySameCall
        }
    }

    /// Plain words, with the likely cause if Kafka's own message does not give one.
    public var explanation: String {
        switch self {
        case .invalidTimestamp:
            "the record's timestamp is further ahead of the broker's clock than message.timestamp.after.max.ms of its "
                + "topic allows; this host's clock probably runs ahead: check its time synchronisation"
        case .unconfirmed:
            "the broker acknowledged a later record of the partition, but never this one; its producer must send it "
                + "again"
        case .queueFull:
            "the queue of records that wait for the broker is full; wait for acknowledgements and send again"
        case .fencedInstance:
            "another process has joined the group with the same instance id; give each replica its own worker.slot"
        default:
            String(cString: rd_kafka_err2str(raw))
        }
    }
}
