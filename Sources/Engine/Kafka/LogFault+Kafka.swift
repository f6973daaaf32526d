// Translates Kafka's faults for the user of a log.

internal import CRDKafka
internal import Log

/// Why the broker refused a record, and of which topic.
struct KafkaRefusal {
    let code: KafkaCode
    let topic: String

    var words: String {
        switch code.cause {
        case .tooLarge: "the record is too large for the topic \(topic): see its max.message.bytes"
        case .forbidden: "there is no right to write to the topic \(topic)"
        default: "the topic \(topic) refused a record: \(code.explanation)"
        }
    }
}

extension LogFault {
    /// - Parameters:
    /// - identity: of the session, for the message of its end.
    /// - refusal: the refusal of a record of the open transaction, from which the transaction's failure follows.
    /// - outputs: the topics that the session writes.
    init(_ fault: KafkaFault, identity: String? = nil, refusal: KafkaRefusal? = nil, outputs: [String] = []) {
        // librdkafka reports of a failed transaction only that it has failed.
        let follows = fault.remedy == .abortTransaction && refusal != nil
        let cause = (follows ? refusal : nil)?.code.cause ?? fault.code.cause
        let words: String =
            switch cause {
            case .fenced where identity != nil:
                "another process uses the identity \(identity!): two processes have the same worker.slot; or this "
                    + "process or the broker was stopped for longer than the session or transaction timeout, which "
                    + "recovers by itself. Give every replica its own worker.slot (\(fault.words))"
            case _ where follows: "\(fault.words): \(refusal!.words)"
            case .forbidden: fault.words + Self.resource(of: fault, identity, outputs)
            case .unknownTopic: "\(fault.words); run perennial topics apply to create missing topics"
            default: fault.words
            }
        self.init(Self.remedy(for: fault.remedy, cause), cause, words)
    }

    init(_ fault: PropertyFault) { self.init(.stop, .other, fault.description) }

    /// Kafka's own message does not name the resource.
    private static func resource(of fault: KafkaFault, _ identity: String?, _ outputs: [String]) -> String {
        let advice = "; run perennial check with the name of the role to see which rights are missing"
        guard let identity else { return advice }
        return switch fault.code.raw {
        case RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED: " of the transactional id \(identity)" + advice
        case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED where !outputs.isEmpty:
            ": one of the topics \(outputs.joined(separator: ", "))" + advice
        case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED: ", for the group of \(identity)" + advice
        default: advice
        }
    }

    private static func remedy(for remedy: KafkaFault.Remedy, _ cause: Cause) -> Remedy {
        switch (remedy, cause) {
        case (.stopProcess, _): .stop
        // The same records would be refused again.
        case (.abortTransaction, .tooLarge), (.abortTransaction, .timestampAhead), (.abortTransaction, .forbidden):
            .stop
        // Code that creates topics waits until they can be used, so a topic that is still unknown stays so.
        case (.retrySameCall, .unknownTopic), (.abortTransaction, .unknownTopic): .stop
        // A fenced identity does not recover by reading again.
        case (.rebuildClient, _), (_, .fenced): .rebuild
        case (.abortTransaction, _): .rewind
        case (.retrySameCall, _): .retrySameCall
        }
    }
}

extension KafkaCode {
    var cause: LogFault.Cause {
        if isAuthorisation { return .forbidden }
        return switch raw {
        case RD_KAFKA_RESP_ERR__FENCED, RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, RD_KAFKA_RESP_ERR_PRODUCER_FENCED,
            RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH:
            .fenced
        case RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION, RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID,
            RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS:
            .generation
        case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE, RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET: .positionGone
        case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC,
            RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
            .unknownTopic
        case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE: .leaderMoves
        case RD_KAFKA_RESP_ERR__TIMED_OUT, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, RD_KAFKA_RESP_ERR__MSG_TIMED_OUT,
            RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE:
            .timedOut
        case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP: .timestampAhead
        case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE: .tooLarge
        case RD_KAFKA_RESP_ERR__AUTHENTICATION, RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED: .forbidden
        default: .other
        }
    }
}

extension LogEvent {
    /// nil for an event that a log does not report.
    init?(_ event: ClientEvent) {
        switch event {
        case .log(let level, let facility, let message):
            // librdkafka's own lines are for debugging: the code that sees the consequence reports it in plain words.
            // The lines of this layer report a mistake of an owner.
            let level: Level =
                switch level {
                case .error where facility == ClientContext.ownFacility: .error
                case .warning where facility == ClientContext.ownFacility: .warning
                default: .debug
                }
            self = .message(level, "\(facility): \(message)")
        case .error(let code, let detail): self = .message(.debug, "\(code): \(detail)")
        case .producerReplaced(let reason): self = .writerReplaced(reason: reason)
        case .advice(let words): self = .advice(words)
        case .statistics: return nil
        }
    }
}
