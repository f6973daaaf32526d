// Finds out which rights a client has, with a request for each that changes nothing.
//
// Brokers check rights first. So a request that must be refused for another reason shows whether the right exists:
//
// - Write to a topic: a record with acks=2, which no broker accepts.
// - Read of a group: an offset of a partition that no topic has.
// - Write of a transactional id: a transaction longer than any broker allows, under an id that no worker has.
// - Read of a topic: one fetch at its end.

internal import CRDKafka
internal import Log
public import Platform

/// Tries rights with clients of its own. For use by one thread; blocks until the deadline at most.
public struct RightsTrial {
    public enum Answer: Sendable, Equatable {
        case granted, refused
        /// The result is unknown because of another error, such as a missing topic.
        case unknown(KafkaCode)

        /// - Parameter passed: codes that brokers return after they have checked the rights.
        init(_ code: KafkaCode, passed: rd_kafka_resp_err_t...) {
            if code.isAuthorisation {
                self = .refused
            } else if code == .none || passed.contains(where: { $0.rawValue == code.rawValue }) {
                self = .granted
            } else {
                self = .unknown(code)
            }
        }
    }

    /// Greater than any partition number in use.
    private static let noPartition: Int32 = 1_000_000

    private let admin: Admin
    private let properties: ClientProperties
    private let deadline: Deadline
    private var answers: [Right: Answer] = [:]

    /// Throws only if no client can be created with the properties.
    public static func answers(
        to rights: [Right], _ admin: Admin, _ properties: ClientProperties, by deadline: Deadline
    ) throws(PropertyFault) -> [Right: Answer] {
        var trial = RightsTrial(admin: admin, properties: properties, deadline: deadline)
        let open = trial.describe(rights)
        try trial.write(open)
        try trial.read(open)
        trial.join(open)
        try trial.transact(open)
        return trial.answers
    }

    private init(admin: Admin, properties: ClientProperties, deadline: Deadline) {
        self.admin = admin
        self.properties = properties
        self.deadline = deadline
    }

    // MARK: Describe

    /// Returns the rights that remain to be tried: without Describe on a topic no other right on it works.
    private mutating func describe(_ rights: [Right]) -> [Right] {
        var left: [Right] = []
        for (resource, rights) in Dictionary(grouping: rights, by: \.resource) {
            let answer: Answer
            switch resource {
            case .topic(let name):
                answer = Answer(code { () throws(KafkaFault) in try admin.look(at: name, by: deadline) })
            case .group(let name):
                answer = Answer(
                    codeOfCoordinator(by: half) { limit throws(KafkaFault) in
                        _ = try admin.describe(group: name, by: limit)
                    }, passed: RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND)
            case .transactionalIDs: answer = .granted
            }
            for right in rights {
                if answer != .granted || right.operation == .describe, !isTransactional(resource) {
                    answers[right] = answer
                } else if right.operation == .describeConfigs, case .topic(let name) = resource {
                    answers[right] = Answer(
                        code { () throws(KafkaFault) in _ = try admin.settings(of: [name], by: deadline) })
                } else {
                    left.append(right)
                }
            }
        }
        return left
    }

    private func isTransactional(_ resource: Right.Resource) -> Bool {
        if case .transactionalIDs = resource { true } else { false }
    }

    private func code(_ body: () throws(KafkaFault) -> Void) -> KafkaCode {
        do throws(KafkaFault) {
            try body()
            return .none
        } catch {
            return error.code
        }
    }

    /// Asks again while no broker is the coordinator yet, as while one of them loads the group.
    private func codeOfCoordinator(by limit: Deadline, _ ask: (Deadline) throws(KafkaFault) -> Void) -> KafkaCode {
        while true {
            let code = code { () throws(KafkaFault) in try ask(limit) }
            if !code.wantsAnotherCoordinator || limit.hasPassed { return code }
            pause(for: .milliseconds(100))
        }
    }

    /// For one group: whoever waits for a coordinator in vain leaves time for all other rights.
    private var half: Deadline { Deadline(after: deadline.remaining / 2) }

    private func topics(_ rights: [Right], _ operation: Right.Operation) -> [String] {
        rights.compactMap { right in
            guard right.operation == operation, case .topic(let name) = right.resource else { return nil }
            return name
        }
    }

    private func conf(_ kind: ClientKind, _ more: [(String, String)]) throws(PropertyFault) -> ClientConf {
        var conf = try ClientConf(clientID: "perennial-rights")
        try conf.apply(properties, to: kind)
        for (name, value) in more { try conf.set(name, value) }
        return conf
    }

    private var milliseconds: Int32 { max(1, deadline.remaining.timeoutMilliseconds) }

    // MARK: Write

    private final class Reports { var codes: [Int: KafkaCode] = [:] }

    private mutating func write(_ rights: [Right]) throws(PropertyFault) {
        let topics = topics(rights, .write)
        if topics.isEmpty { return }
        let reports = Reports()
        let context = ClientContext(events: { _ in }) { reports.codes[Int($0.token)] = $0.failure ?? KafkaCode.none }
        var conf = try conf(
            .producer,
            [
                ("enable.idempotence", "false"), ("acks", "2"), ("message.timeout.ms", "\(milliseconds)"),
                ("linger.ms", "0"),
            ])
        conf.install(context, for: RD_KAFKA_PRODUCER)
        var core = try ProducerCore(conf: conf, context: context, label: "producer of rights")
        for (index, name) in topics.enumerated() {
            let failed = code { () throws(KafkaFault) in
                try core.addTopic(name)
                // If a broker ever accepted it, readers would skip it because they do not know its schema.
                try core.send(
                    ProducerTopic(index: index), partition: 0, key: nil, value: nil,
                    headers: [RecordHeader(HeaderName.schema, "rights-trial/1")], timestamp: nil, token: UInt(index))
            }
            if failed != .none { reports.codes[index] = failed }
        }
        _ = code { () throws(KafkaFault) in try core.flush(by: deadline) }
        _ = core.close(by: Deadline(after: closingLimit))
        for (index, name) in topics.enumerated() {
            answers[Right(.write, .topic(name))] = Answer(
                reports.codes[index] ?? .timedOut, passed: RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS)
        }
    }

    // MARK: Read

    private mutating func read(_ rights: [Right]) throws(PropertyFault) {
        let topics = topics(rights, .read)
        if topics.isEmpty { return }
        let context = ClientContext(events: { _ in })
        var conf = try conf(
            .consumer,
            [
                // A group that no worker joins.
                ("group.id", "perennial-rights"), ("enable.auto.commit", "false"), ("enable.partition.eof", "true"),
                ("auto.offset.reset", "latest"), ("isolation.level", "read_uncommitted"), ("fetch.wait.max.ms", "10"),
            ])
        conf.install(context, for: RD_KAFKA_CONSUMER)
        var client = try ClientHandle(RD_KAFKA_CONSUMER, conf: conf, context: context, label: "consumer of rights")
        defer { _ = client.close(by: Deadline(after: closingLimit)) }
        rd_kafka_poll_set_consumer(client.raw)
        let list = TopicPartitionList(capacity: topics.count)
        for name in topics { list.append(TopicPartition(name, 0), offset: Int64(RD_KAFKA_OFFSET_END)) }
        rd_kafka_assign(client.raw, list.raw)
        var codes: [String: KafkaCode] = [:]
        while codes.count < topics.count, !deadline.hasPassed {
            guard let message = rd_kafka_consumer_poll(client.raw, min(100, milliseconds)) else { continue }
            defer { rd_kafka_message_destroy(message) }
            // Without a topic the event is about the group, which is not tried here.
            guard let topic = message.pointee.rkt else { continue }
            let code = KafkaCode(message.pointee.err)
            if code.remedyOutsideTransactions == .retrySameCall, !isEnd(code) { continue }
            codes[String(cString: rd_kafka_topic_name(topic))] = code
        }
        for name in topics {
            answers[Right(.read, .topic(name))] = Answer(
                codes[name] ?? .timedOut, passed: RD_KAFKA_RESP_ERR__PARTITION_EOF)
        }
    }

    private func isEnd(_ code: KafkaCode) -> Bool {
        code == .none || code.rawValue == RD_KAFKA_RESP_ERR__PARTITION_EOF.rawValue
    }

    /// Brokers check the rights on a group before those on the topic.
    private mutating func join(_ rights: [Right]) {
        for right in rights {
            guard case .group(let group) = right.resource, right.operation == .read else { continue }
            let topic = rights.lazy.compactMap { if case .topic(let name) = $0.resource { name } else { nil } }.first
            let code = codeOfCoordinator(by: half) { limit throws(KafkaFault) in
                try admin.setOffsets(
                    ofGroup: group, to: [TopicPartition(topic ?? "perennial", Self.noPartition): NextOffset(0)],
                    by: limit)
            }
            answers[right] =
                code.rawValue == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED.rawValue
                ? .granted
                : Answer(
                    code, passed: RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION,
                    RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID)
        }
    }

    // MARK: Transactions

    private mutating func transact(_ rights: [Right]) throws(PropertyFault) {
        for resource in Set(rights.map(\.resource)) {
            guard case .transactionalIDs(let prefix) = resource else { continue }
            let context = ClientContext(events: { _ in })
            var conf = try conf(
                .producer,
                [
                    ("transactional.id", "\(prefix).rights"), ("transaction.timeout.ms", "2147483000"),
                    ("socket.timeout.ms", "5000"), ("message.timeout.ms", "5000"),
                ])
            conf.install(context, for: RD_KAFKA_PRODUCER)
            var client = try ClientHandle(RD_KAFKA_PRODUCER, conf: conf, context: context, label: "producer of rights")
            let code = codeOfCoordinator(by: deadline) { _ throws(KafkaFault) in
                try KafkaFault.check(
                    rd_kafka_init_transactions(client.raw, milliseconds), "begin with a transactional id")
            }
            _ = client.close(by: Deadline(after: closingLimit))
            for right in rights where right.resource == resource {
                answers[right] = Answer(code, passed: RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT)
            }
        }
    }
}

extension Admin {
    /// Throws if the topic is missing or may not be seen. A list of all topics leaves out those that may not be seen.
    public func look(at topic: String, by deadline: Deadline) throws(KafkaFault) {
        guard let handle = rd_kafka_topic_new(raw, topic, nil) else {
            throw KafkaFault(.stopProcess, KafkaCode(rd_kafka_last_error()), operation: "use topic \(topic)")
        }
        defer { rd_kafka_topic_destroy(handle) }
        _ = try partitionCount(of: handle, raw, by: deadline)
    }

    /// Throws if no broker answers.
    public func reach(by deadline: Deadline) throws(KafkaFault) {
        var answer: UnsafePointer<rd_kafka_metadata>?
        try KafkaFault.check(
            rd_kafka_metadata(raw, 0, nil, &answer, deadline.remaining.timeoutMilliseconds), "reach a broker")
        rd_kafka_metadata_destroy(answer)
    }

    /// Forgets earlier faults.
    public func forgetFaults() { context.forgetFaults() }
}
