// Reads and changes the cluster: topics with their settings, partitions, groups.

internal import CRDKafka
public import Platform

/// A client for administration. Every call blocks until the broker has answered or the deadline has passed.
public final class Admin {
    private var handle: ClientHandle
    let context: ClientContext
    private let clientID: String
    private let properties: ClientProperties

    public init(
        clientID: String, properties: ClientProperties, onEvent: @escaping ClientEventHandler = { _ in }
    ) throws(PropertyFault) {
        self.clientID = clientID
        self.properties = properties
        context = ClientContext(events: properties.watching(clientID, onEvent))
        var conf = try ClientConf(clientID: clientID)
        try conf.apply(properties, to: .admin)
        conf.install(context, for: RD_KAFKA_PRODUCER)
        handle = try ClientHandle(RD_KAFKA_PRODUCER, conf: conf, context: context, label: "admin \(clientID)")
    }

    var raw: OpaquePointer { handle.raw }

    /// The latest faults of brokers, oldest first: why a call got no answer.
    public var recentFaults: [(code: KafkaCode, detail: String)] {
        rd_kafka_poll(raw, 0)
        return context.recentFaults
    }

    @discardableResult
    public func close(by deadline: Deadline) -> Bool { handle.close(by: deadline) }

    // MARK: Describe

    public struct Cluster: Sendable {
        public var id: String?
        public var brokers: [(id: Int32, address: String)]
        public var topics: [Topic]
        /// Topics that exist but cannot be described, for example because of a missing right.
        public var hidden: [(name: String, fault: KafkaFault)]
    }

    public struct Topic: Sendable {
        public var name: String
        public var partitions: [Partition]
    }

    public struct Partition: Sendable {
        public var id: Int32
        /// nil if there is no leader now.
        public var leader: Int32?
        public var replicas: [Int32]
        public var inSyncReplicas: [Int32]
    }

    /// Brokers, and every topic that the client may see.
    public func cluster(by deadline: Deadline) throws(KafkaFault) -> Cluster {
        var answer: UnsafePointer<rd_kafka_metadata>?
        try KafkaFault.check(
            rd_kafka_metadata(raw, 1, nil, &answer, deadline.remaining.timeoutMilliseconds), "describe the cluster")
        defer { rd_kafka_metadata_destroy(answer) }
        let metadata = answer!.pointee
        let brokers = (0..<Int(metadata.broker_cnt)).map { index in
            let broker = metadata.brokers[index]
            return (broker.id, "\(String(cString: broker.host)):\(broker.port)")
        }
        var topics: [Topic] = []
        var hidden: [(name: String, fault: KafkaFault)] = []
        for index in 0..<Int(metadata.topic_cnt) {
            let topic = metadata.topics[index]
            let name = String(cString: topic.topic)
            if let fault = fault(topic.err, nil, "describe topic \(name)") {
                hidden.append((name, fault))
            } else {
                topics.append(Topic(name: name, partitions: partitions(of: topic)))
            }
        }
        var id: String?
        if let text = rd_kafka_clusterid(raw, deadline.remaining.timeoutMilliseconds) {
            id = String(cString: text)
            rd_kafka_mem_free(raw, text)
        }
        return Cluster(id: id, brokers: brokers, topics: topics.sorted { $0.name < $1.name }, hidden: hidden)
    }

    private func partitions(of topic: rd_kafka_metadata_topic) -> [Partition] {
        (0..<Int(topic.partition_cnt)).map { index in
            let partition = topic.partitions[index]
            return Partition(
                id: partition.id, leader: partition.leader >= 0 ? partition.leader : nil,
                replicas: (0..<Int(partition.replica_cnt)).map { partition.replicas[$0] },
                inSyncReplicas: (0..<Int(partition.isr_cnt)).map { partition.isrs[$0] })
        }.sorted { $0.id < $1.id }
    }

    // MARK: Requests

    /// librdkafka accepts at most an hour.
    private static let longestWait: Int32 = 3_600_000

    /// Sends one request of the Admin API and reads its answer from its own queue.
    func ask<Answer>(
        _ operation: rd_kafka_admin_op_t, _ words: String, by deadline: Deadline, validateOnly: Bool = false,
        request: (_ options: OpaquePointer?, _ queue: OpaquePointer?) -> Void,
        read: (_ event: OpaquePointer) throws(KafkaFault) -> Answer
    ) throws(KafkaFault) -> Answer {
        let wait = min(Self.longestWait, max(1, deadline.remaining.timeoutMilliseconds))
        let options = options(of: raw, operation, wait)
        defer { rd_kafka_AdminOptions_destroy(options) }
        if validateOnly { rd_kafka_AdminOptions_set_validate_only(options, 1, nil, 0) }
        let queue = rd_kafka_queue_new(raw)
        defer { rd_kafka_queue_destroy(queue) }
        request(options, queue)
        // librdkafka ends the request at its own time-out; the additional second only covers rounding.
        return try answer(rd_kafka_queue_poll(queue, wait + 1_000), words, read)
    }

    /// The same for a request to a group's coordinator. The client is created for this one request, and has the group's
    /// name without being a member. With a shared client, 2.0.2 ends the process in two cases:
    ///
    /// - librdkafka's time-out passes before the coordinator is found, and it is found later (librdkafka #4605). So the
    ///   request gets a time-out that never passes, and the client is closed with the request.
    /// - A broker answers that it does not coordinate the group (#5040). librdkafka then tells the client's own group
    ///   to look for the coordinator, and a client without a group has a null pointer there.
    func askCoordinator<Answer>(
        of group: String, _ operation: rd_kafka_admin_op_t, _ words: String, by deadline: Deadline,
        stableOnly: Bool = false,
        request: (_ client: OpaquePointer, _ options: OpaquePointer?, _ queue: OpaquePointer?) -> Void,
        read: (_ event: OpaquePointer) throws(KafkaFault) -> Answer
    ) throws(KafkaFault) -> Answer {
        var client = try client(of: group)
        // Nothing waits until the client is closed, which takes a while if a request is still open.
        defer { _ = client.close(by: Deadline(after: .zero)) }
        let options = options(of: client.raw, operation, Self.longestWait)
        defer { rd_kafka_AdminOptions_destroy(options) }
        if stableOnly { rd_kafka_error_destroy(rd_kafka_AdminOptions_set_require_stable_offsets(options, 1)) }
        let queue = rd_kafka_queue_new(client.raw)
        defer { rd_kafka_queue_destroy(queue) }
        request(client.raw, options, queue)
        return try answer(rd_kafka_queue_poll(queue, max(1, deadline.remaining.timeoutMilliseconds)), words, read)
    }

    private func client(of group: String) throws(KafkaFault) -> ClientHandle {
        do throws(PropertyFault) {
            var conf = try ClientConf(clientID: clientID)
            try conf.apply(properties, to: .admin)
            try conf.set("group.id", group)
            conf.install(context, for: RD_KAFKA_CONSUMER)
            return try ClientHandle(
                RD_KAFKA_CONSUMER, conf: conf, context: context, label: "admin \(clientID) for \(group)")
        } catch {
            throw KafkaFault(
                .stopProcess, .invalidConfiguration, operation: "ask about group \(group)", detail: error.description)
        }
    }

    private func options(
        of client: OpaquePointer, _ operation: rd_kafka_admin_op_t, _ milliseconds: Int32
    ) -> OpaquePointer? {
        let options = rd_kafka_AdminOptions_new(client, operation)
        var message = [CChar](repeating: 0, count: 256)
        rd_kafka_AdminOptions_set_request_timeout(options, milliseconds, &message, message.count)
        return options
    }

    private func answer<Answer>(
        _ event: OpaquePointer?, _ words: String, _ read: (_ event: OpaquePointer) throws(KafkaFault) -> Answer
    ) throws(KafkaFault) -> Answer {
        guard let event else { throw KafkaFault(.retrySameCall, .timedOut, operation: words) }
        defer { rd_kafka_event_destroy(event) }
        if let fault = fault(rd_kafka_event_error(event), rd_kafka_event_error_string(event), words) { throw fault }
        return try read(event)
    }

    func fault(_ code: rd_kafka_resp_err_t, _ detail: UnsafePointer<CChar>?, _ operation: String) -> KafkaFault? {
        guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
        let code = KafkaCode(code)
        return KafkaFault(
            code.remedyOutsideTransactions, code, operation: operation, detail: detail.map { String(cString: $0) })
    }
}

extension KafkaFault {
    /// For errors that belong to the result that contains them.
    static func check(copying error: OpaquePointer?, _ operation: String) throws(KafkaFault) {
        guard let error, rd_kafka_error_code(error) != RD_KAFKA_RESP_ERR_NO_ERROR else { return }
        let code = KafkaCode(rd_kafka_error_code(error))
        throw KafkaFault(
            code.remedyOutsideTransactions, code, operation: operation,
            detail: String(cString: rd_kafka_error_string(error)))
    }
}
