// Creates, changes and deletes topics.

internal import CRDKafka
public import Platform

extension Admin {
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

    /// Creates topics; each has its own outcome (nil: created). With `validateOnly` the broker only checks the request.
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
}

// MARK: Settings of topics

extension Admin {
    public struct TopicSetting: Sendable, Equatable {
        public var name: String
        public var value: String
        /// The value is set on this topic, not inherited from the broker or a default.
        public var isOwn: Bool

        public init(name: String, value: String, isOwn: Bool) {
            self.name = name
            self.value = value
            self.isOwn = isOwn
        }
    }

    /// All settings of each topic, including inherited ones; a topic that does not exist is left out.
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

    /// Changes settings of a topic and keeps its other own settings.
    ///
    /// librdkafka 2.0.2 can only replace all own settings of a topic at once, so they are read first and sent along. A
    /// change that another client makes in between would be lost.
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
}
