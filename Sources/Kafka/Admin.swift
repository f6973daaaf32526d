// Asking and changing the cluster: topics with their settings, partitions, groups.

internal import CRDKafka
public import Log
public import Platform

/// A client for administration. Every call blocks until the broker has answered or the deadline has passed.
public final class Admin {
    private let raw: OpaquePointer
    private var handle: ClientHandle
    private let context: ClientContext

    public init(
        clientID: String, properties: ClientProperties, onEvent: @escaping ClientEventHandler = { _ in }
    ) throws(PropertyFault) {
        context = ClientContext(events: onEvent)
        var conf = ClientConf()
        try conf.set("client.id", clientID)
        try conf.set("allow.auto.create.topics", "false")
        // A tool answers a person: do not wait half a minute for one dead bootstrap server.
        try conf.set("socket.connection.setup.timeout.ms", "5000")
        try conf.apply(properties, to: .admin)
        try conf.set("allow.auto.create.topics", "false")
        conf.install(context, for: RD_KAFKA_PRODUCER)
        handle = try ClientHandle(RD_KAFKA_PRODUCER, conf: conf, context: context, label: "admin \(clientID)")
        raw = handle.raw
    }

    /// The newest troubles with brokers, oldest first: why a call found no answer.
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
    }

    public struct Topic: Sendable {
        public var name: String
        public var partitions: [Partition]
    }

    public struct Partition: Sendable {
        public var id: Int32
        /// nil while there is none.
        public var leader: Int32?
        public var replicas: [Int32]
        public var inSyncReplicas: [Int32]
    }

    /// Brokers and every topic one may see.
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
        let topics = (0..<Int(metadata.topic_cnt)).compactMap { index -> Topic? in
            let topic = metadata.topics[index]
            guard topic.err == RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
            return Topic(name: String(cString: topic.topic), partitions: partitions(of: topic))
        }
        var id: String?
        if let text = rd_kafka_clusterid(raw, deadline.remaining.timeoutMilliseconds) {
            id = String(cString: text)
            rd_kafka_mem_free(raw, text)
        }
        return Cluster(id: id, brokers: brokers, topics: topics.sorted { $0.name < $1.name })
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

    // MARK: Topics

    public struct NewTopic: Sendable {
        public var name: String
        public var partitions: Int32
        public var replicationFactor: Int32
        public var settings: [(name: String, value: String)]

        public init(
            name: String, partitions: Int32, replicationFactor: Int32, settings: [(name: String, value: String)] = []
        ) {
            self.name = name
            self.partitions = partitions
            self.replicationFactor = replicationFactor
            self.settings = settings
        }
    }

    /// Creates topics; each has its own outcome (nil: created). `validateOnly` lets the broker check without doing it.
    public func create(
        _ topics: [NewTopic], validateOnly: Bool = false, by deadline: Deadline
    ) throws(KafkaFault) -> [String: KafkaFault?] {
        var requests: [OpaquePointer?] = []
        defer { for request in requests { rd_kafka_NewTopic_destroy(request) } }
        for topic in topics {
            var message = [CChar](repeating: 0, count: 256)
            guard
                let request = rd_kafka_NewTopic_new(
                    topic.name, topic.partitions, topic.replicationFactor, &message, message.count)
            else {
                throw KafkaFault(
                    .stopProcess, .invalidConfiguration, operation: "create topic \(topic.name)",
                    detail: text(of: message))
            }
            requests.append(request)
            for (name, value) in topic.settings {
                try KafkaFault.check(
                    rd_kafka_NewTopic_set_config(request, name, value), "set \(name) of \(topic.name)")
            }
        }
        return try ask(RD_KAFKA_ADMIN_OP_CREATETOPICS, "create topics", by: deadline, validateOnly: validateOnly) {
            options, queue in
            rd_kafka_CreateTopics(raw, &requests, requests.count, options, queue)
        } read: { event in
            var count = 0
            return topicOutcomes(rd_kafka_CreateTopics_result_topics(event, &count), count, "create topic")
        }
    }

    /// Deletes topics and all their records; each has its own outcome (nil: deleted).
    public func delete(topics: [String], by deadline: Deadline) throws(KafkaFault) -> [String: KafkaFault?] {
        var requests: [OpaquePointer?] = topics.map { rd_kafka_DeleteTopic_new($0) }
        defer { for request in requests { rd_kafka_DeleteTopic_destroy(request) } }
        return try ask(RD_KAFKA_ADMIN_OP_DELETETOPICS, "delete topics", by: deadline) { options, queue in
            rd_kafka_DeleteTopics(raw, &requests, requests.count, options, queue)
        } read: { event in
            var count = 0
            return topicOutcomes(rd_kafka_DeleteTopics_result_topics(event, &count), count, "delete topic")
        }
    }

    /// Raises the number of partitions. Keys then change their partition: never for a topic that a worker reads.
    public func grow(topic: String, to partitions: Int, by deadline: Deadline) throws(KafkaFault) {
        var message = [CChar](repeating: 0, count: 256)
        guard var request = rd_kafka_NewPartitions_new(topic, partitions, &message, message.count) else {
            throw KafkaFault(
                .stopProcess, .invalidConfiguration, operation: "grow topic \(topic)", detail: text(of: message))
        }
        defer { rd_kafka_NewPartitions_destroy(request) }
        let outcomes = try ask(RD_KAFKA_ADMIN_OP_CREATEPARTITIONS, "grow topic \(topic)", by: deadline) {
            options, queue in
            withUnsafeMutablePointer(to: &request) { pointer in
                pointer.withMemoryRebound(to: OpaquePointer?.self, capacity: 1) {
                    rd_kafka_CreatePartitions(raw, $0, 1, options, queue)
                }
            }
        } read: { event in
            var count = 0
            return topicOutcomes(rd_kafka_CreatePartitions_result_topics(event, &count), count, "grow topic")
        }
        if let fault = outcomes[topic] ?? nil { throw fault }
    }

    private func topicOutcomes(
        _ results: UnsafeMutablePointer<OpaquePointer?>?, _ count: Int, _ operation: String
    ) -> [String: KafkaFault?] {
        var outcomes: [String: KafkaFault?] = [:]
        for index in 0..<count {
            let name = String(cString: rd_kafka_topic_result_name(results![index]))
            outcomes.updateValue(
                fault(
                    rd_kafka_topic_result_error(results![index]), rd_kafka_topic_result_error_string(results![index]),
                    "\(operation) \(name)"), forKey: name)
        }
        return outcomes
    }

    // MARK: Settings of topics

    public struct TopicSetting: Sendable, Equatable {
        public var name: String
        public var value: String
        /// Set on this topic, not inherited from the broker or built in.
        public var isOwn: Bool

        public init(name: String, value: String, isOwn: Bool) {
            self.name = name
            self.value = value
            self.isOwn = isOwn
        }
    }

    /// All settings of each topic, inherited ones included; a topic that does not exist is left out.
    public func settings(of topics: [String], by deadline: Deadline) throws(KafkaFault) -> [String: [TopicSetting]] {
        if topics.isEmpty { return [:] }
        var requests: [OpaquePointer?] = topics.map { rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, $0) }
        defer { for request in requests { rd_kafka_ConfigResource_destroy(request) } }
        return try ask(RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, "read topic settings", by: deadline) { options, queue in
            rd_kafka_DescribeConfigs(raw, &requests, requests.count, options, queue)
        } read: { event throws(KafkaFault) in
            var settings: [String: [TopicSetting]] = [:]
            var count = 0
            let resources = rd_kafka_DescribeConfigs_result_resources(event, &count)
            for index in 0..<count {
                let resource = resources![index]
                let name = String(cString: rd_kafka_ConfigResource_name(resource))
                let fault = fault(
                    rd_kafka_ConfigResource_error(resource), rd_kafka_ConfigResource_error_string(resource),
                    "read the settings of \(name)")
                if let fault {
                    if fault.code == .unknownTopicOrPartition { continue }
                    throw fault
                }
                settings[name] = entries(of: resource)
            }
            return settings
        }
    }

    private func entries(of resource: OpaquePointer?) -> [TopicSetting] {
        var count = 0
        let entries = rd_kafka_ConfigResource_configs(resource, &count)
        return (0..<count).compactMap { index -> TopicSetting? in
            let entry = entries![index]
            guard let value = rd_kafka_ConfigEntry_value(entry) else { return nil }
            return TopicSetting(
                name: String(cString: rd_kafka_ConfigEntry_name(entry)), value: String(cString: value),
                isOwn: rd_kafka_ConfigEntry_source(entry) == RD_KAFKA_CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG)
        }.sorted { $0.name < $1.name }
    }

    /// Changes settings of a topic and leaves its other own settings as they are.
    ///
    /// librdkafka 2.0.2 can only replace all of a topic's own settings at once, so they are read first and sent along; a
    /// change that somebody else makes in between would be lost.
    public func change(
        _ changes: [(name: String, value: String)], of topic: String, by deadline: Deadline
    ) throws(KafkaFault) {
        let own = try settings(of: [topic], by: deadline)[topic, default: []].filter(\.isOwn)
        let kept = own.filter { setting in !changes.contains { $0.name == setting.name } }
        let request = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic)
        defer { rd_kafka_ConfigResource_destroy(request) }
        for (name, value) in kept.map({ ($0.name, $0.value) }) + changes {
            try KafkaFault.check(rd_kafka_ConfigResource_set_config(request, name, value), "set \(name) of \(topic)")
        }
        var requests = [request]
        let outcome = try ask(RD_KAFKA_ADMIN_OP_ALTERCONFIGS, "change settings of \(topic)", by: deadline) {
            options, queue in
            rd_kafka_AlterConfigs(raw, &requests, 1, options, queue)
        } read: { event -> KafkaFault? in
            var count = 0
            guard let resources = rd_kafka_AlterConfigs_result_resources(event, &count), count == 1 else { return nil }
            return fault(
                rd_kafka_ConfigResource_error(resources[0]), rd_kafka_ConfigResource_error_string(resources[0]),
                "change settings of \(topic)")
        }
        if let outcome { throw outcome }
    }

    // MARK: Asking

    /// One request of the Admin API and its answer, over a queue of its own.
    func ask<Answer>(
        _ operation: rd_kafka_admin_op_t, _ words: String, by deadline: Deadline, validateOnly: Bool = false,
        stableOnly: Bool = false,
        request: (_ options: OpaquePointer?, _ queue: OpaquePointer?) -> Void,
        read: (_ event: OpaquePointer) throws(KafkaFault) -> Answer
    ) throws(KafkaFault) -> Answer {
        let options = rd_kafka_AdminOptions_new(raw, operation)
        defer { rd_kafka_AdminOptions_destroy(options) }
        var message = [CChar](repeating: 0, count: 256)
        let wait = max(1, deadline.remaining.timeoutMilliseconds)
        rd_kafka_AdminOptions_set_request_timeout(options, wait, &message, message.count)
        if validateOnly { rd_kafka_AdminOptions_set_validate_only(options, 1, &message, message.count) }
        if stableOnly { rd_kafka_error_destroy(rd_kafka_AdminOptions_set_require_stable_offsets(options, 1)) }
        let queue = rd_kafka_queue_new(raw)
        defer { rd_kafka_queue_destroy(queue) }
        request(options, queue)
        // The library answers by its own time-out; the second on top only covers its rounding.
        guard let event = rd_kafka_queue_poll(queue, wait + 1_000) else {
            throw KafkaFault(.retrySameCall, .timedOut, operation: words)
        }
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

// MARK: Groups

extension Admin {
    public struct Group: Sendable {
        /// As Kafka says it: `Empty`, `Stable`, `PreparingRebalance`, `CompletingRebalance`, `Dead`, `Unknown`.
        public var state: String
        public var members: [Member]
    }

    public struct Member: Sendable {
        public var clientID: String
        public var instanceID: String?
        public var host: String
        public var partitions: [TopicPartition]
    }

    /// A group without members that never committed is `Dead`.
    public func describe(group: String, by deadline: Deadline) throws(KafkaFault) -> Group {
        try ask(RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS, "describe group \(group)", by: deadline) { options, queue in
            group.withCString { name in
                var names: UnsafePointer<CChar>? = name
                rd_kafka_DescribeConsumerGroups(raw, &names, 1, options, queue)
            }
        } read: { event throws(KafkaFault) in
            var count = 0
            let groups = rd_kafka_DescribeConsumerGroups_result_groups(event, &count)
            guard let described = groups?[0], count == 1 else {
                throw KafkaFault(.retrySameCall, .groupNotFound, operation: "describe group \(group)")
            }
            try KafkaFault.check(copying: rd_kafka_ConsumerGroupDescription_error(described), "describe group \(group)")
            let state = rd_kafka_consumer_group_state_name(rd_kafka_ConsumerGroupDescription_state(described))
            let members = (0..<rd_kafka_ConsumerGroupDescription_member_count(described)).map { index in
                member(rd_kafka_ConsumerGroupDescription_member(described, index))
            }
            return Group(state: String(cString: state!), members: members.sorted { $0.clientID < $1.clientID })
        }
    }

    private func member(_ member: OpaquePointer?) -> Member {
        let assignment = rd_kafka_MemberDescription_assignment(member)
        let partitions = rd_kafka_MemberAssignment_partitions(assignment)
        return Member(
            clientID: String(cString: rd_kafka_MemberDescription_client_id(member)),
            instanceID: rd_kafka_MemberDescription_group_instance_id(member).map { String(cString: $0) },
            host: String(cString: rd_kafka_MemberDescription_host(member)),
            partitions: partitions.map { UnsafeMutablePointer(mutating: $0).partitions.sorted() } ?? [])
    }

    /// Every position the group has committed. Waits for pending transactions, which may still move them; `retrySameCall`
    /// when one is open at the deadline. A partition whose first position is still pending is left out.
    public func offsets(ofGroup group: String, by deadline: Deadline) throws(KafkaFault) -> [TopicPartition: NextOffset]
    {
        // 2.0.2 forgets to ask for stable positions when it asks for those of all partitions: so which there are, then those.
        let known = try offsets(ofGroup: group, in: nil, by: deadline).keys.sorted()
        while !known.isEmpty {
            do throws(KafkaFault) {
                return try offsets(ofGroup: group, in: known, by: deadline)
            } catch {
                if error.code != .unstableOffsets || deadline.hasPassed { throw error }
                pause(for: .milliseconds(20))
            }
        }
        return [:]
    }

    private func offsets(
        ofGroup group: String, in partitions: [TopicPartition]?, by deadline: Deadline
    ) throws(KafkaFault) -> [TopicPartition: NextOffset] {
        let list = TopicPartitionList(capacity: partitions?.count ?? 0)
        for partition in partitions ?? [] { list.append(partition) }
        var request = rd_kafka_ListConsumerGroupOffsets_new(group, partitions == nil ? nil : list.raw)
        defer { rd_kafka_ListConsumerGroupOffsets_destroy(request) }
        return try ask(
            RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS, "read offsets of \(group)", by: deadline, stableOnly: true
        ) { options, queue in
            rd_kafka_ListConsumerGroupOffsets(raw, &request, 1, options, queue)
        } read: { event throws(KafkaFault) in
            var count = 0
            let groups = rd_kafka_ListConsumerGroupOffsets_result_groups(event, &count)
            return try offsets(in: count == 1 ? groups?[0] : nil, "read offsets of \(group)")
        }
    }

    /// Sets positions of a group that has no members; with members the broker refuses (`UNKNOWN_MEMBER_ID`).
    public func setOffsets(
        ofGroup group: String, to positions: [TopicPartition: NextOffset], by deadline: Deadline
    ) throws(KafkaFault) {
        let list = TopicPartitionList(capacity: positions.count)
        for (partition, next) in positions.sorted(by: { $0.key < $1.key }) {
            list.append(partition, offset: next.value)
        }
        var request = rd_kafka_AlterConsumerGroupOffsets_new(group, list.raw)
        defer { rd_kafka_AlterConsumerGroupOffsets_destroy(request) }
        _ = try ask(RD_KAFKA_ADMIN_OP_ALTERCONSUMERGROUPOFFSETS, "set offsets of \(group)", by: deadline) {
            options, queue in
            rd_kafka_AlterConsumerGroupOffsets(raw, &request, 1, options, queue)
        } read: { event throws(KafkaFault) in
            var count = 0
            let groups = rd_kafka_AlterConsumerGroupOffsets_result_groups(event, &count)
            return try offsets(in: count == 1 ? groups?[0] : nil, "set offsets of \(group)")
        }
    }

    private func offsets(
        in result: OpaquePointer?, _ operation: String
    ) throws(KafkaFault) -> [TopicPartition: NextOffset] {
        try KafkaFault.check(copying: rd_kafka_group_result_error(result), operation)
        var offsets: [TopicPartition: NextOffset] = [:]
        guard let list = rd_kafka_group_result_partitions(result) else { return offsets }
        for index in 0..<Int(list.pointee.cnt) {
            let element = list.pointee.elems[index]
            try KafkaFault.check(element.err, "\(operation) in \(TopicPartition(element))")
            if element.offset >= 0 { offsets[TopicPartition(element)] = NextOffset(element.offset) }
        }
        return offsets
    }

    /// Forgets a group that has no members.
    public func delete(group: String, by deadline: Deadline) throws(KafkaFault) {
        var request = rd_kafka_DeleteGroup_new(group)
        defer { rd_kafka_DeleteGroup_destroy(request) }
        try ask(RD_KAFKA_ADMIN_OP_DELETEGROUPS, "delete group \(group)", by: deadline) { options, queue in
            rd_kafka_DeleteGroups(raw, &request, 1, options, queue)
        } read: { event throws(KafkaFault) in
            var count = 0
            let groups = rd_kafka_DeleteGroups_result_groups(event, &count)
            try KafkaFault.check(
                copying: rd_kafka_group_result_error(count == 1 ? groups?[0] : nil), "delete group \(group)")
        }
    }
}

extension KafkaFault {
    /// For errors that belong to the result they came in.
    static func check(copying error: OpaquePointer?, _ operation: String) throws(KafkaFault) {
        guard let error, rd_kafka_error_code(error) != RD_KAFKA_RESP_ERR_NO_ERROR else { return }
        let code = KafkaCode(rd_kafka_error_code(error))
        throw KafkaFault(
            code.remedyOutsideTransactions, code, operation: operation,
            detail: String(cString: rd_kafka_error_string(error)))
    }
}
