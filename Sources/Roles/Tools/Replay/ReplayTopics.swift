// Creates the topics of a replay, with the settings of the live ones.

import Cluster
import Contract
import Kafka
import Platform
import Workers

struct ReplayTopics {
    let identity: ReplayIdentity
    let admin: Admin

    /// Creates missing topics, and returns when every partition has a leader.
    /// - Parameter cluster: its current state.
    func create(_ cluster: Admin.Cluster, by deadline: Deadline) throws(ToolFault) {
        let there = Set(cluster.topics.map(\.name))
        let pairs = identity.topics
        let missing = pairs.filter { !there.contains($0.shadow) }
        var wanted: [Admin.NewTopic] = []
        let live = Dictionary(cluster.topics.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        let settings = try ToolFault.persisting(until: deadline) { () throws(KafkaFault) in
            try admin.settings(of: pairs.map(\.live), by: deadline)
        }
        for (name, shadow) in missing {
            guard let topic = live[name], let own = settings[name] else { continue }
            wanted.append(
                Admin.NewTopic(
                    name: shadow, partitions: Int32(topic.partitions.count),
                    replicationFactor: Self.replicas(of: topic),
                    settings: Self.settings(of: own)))
        }
        let changelog = identity.names.topic(.changelog(identity.worker))
        if !there.contains(identity.planTopic), let topic = live[changelog] {
            let inSync = settings[changelog]?.first { $0.name == "min.insync.replicas" }
            let plan = Admin.NewTopic(
                name: identity.planTopic, partitions: 1, replicationFactor: Self.replicas(of: topic),
                settings: [("cleanup.policy", "delete")] + Self.forEver + (inSync.map { [($0.name, $0.value)] } ?? []))
            // Created first: this topic shows that the replay exists, even if other topics are still missing.
            try create([plan], by: deadline)
        }
        try create(wanted, by: deadline)
    }

    private func create(_ topics: [Admin.NewTopic], by deadline: Deadline) throws(ToolFault) {
        if topics.isEmpty { return }
        try ToolFault.asking { () throws(KafkaFault) in
            for fault in try admin.create(topics, by: deadline).values {
                // Another process of the replay was faster, or librdkafka has sent the request twice.
                if let fault, TopicsSeen.isRefusal(fault) { throw fault }
            }
            while true {
                let known = try admin.cluster(by: deadline).topics
                let isReady = topics.allSatisfy { topic in
                    known.contains { $0.name == topic.name && $0.partitions.allSatisfy { $0.leader != nil } }
                }
                if isReady { return }
                if deadline.hasPassed { throw KafkaFault(.retrySameCall, .timedOut, operation: "see the new topics") }
                pause(for: .milliseconds(50))
            }
        }
    }

    private static func replicas(of topic: Admin.Topic) -> Int32 {
        Int32(topic.partitions.map(\.replicas.count).min() ?? 1)
    }

    private static let forEver = [("retention.ms", "-1"), ("retention.bytes", "-1")]

    /// The settings of the live topic, but a topic that is not compacted keeps its records for ever: they are compared with records
    /// of any age, and the topic is deleted when the replay is dropped.
    static func settings(of live: [Admin.TopicSetting]) -> [(name: String, value: String)] {
        // Throttles name replicas of the live topic.
        var settings = live.filter { $0.isOwn && !$0.name.contains("throttled.replicas") }
            .map { (name: $0.name, value: $0.value) }
        let policy = live.first { $0.name == "cleanup.policy" }?.value ?? "delete"
        guard !policy.contains("compact") else { return settings }
        settings.removeAll { setting in forEver.contains { $0.0 == setting.name } }
        settings += forEver.map { (name: $0.0, value: $0.1) }
        return settings
    }
}
