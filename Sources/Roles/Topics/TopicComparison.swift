// What is, against what is to be. Pure: the cluster comes in as values.

import Contract
import Kafka
import Platform

/// One thing to do, or to be told of, about one topic.
enum TopicFinding: Equatable {
    case missing(PlannedTopic)
    case differentSettings(PlannedTopic, [SettingChange])
    /// Cannot be mended here: keys would change their partition.
    case wrongPartitions(PlannedTopic, has: Int)
    /// Cannot be mended here: replicas are moved by the operator's own tools.
    case wrongReplication(PlannedTopic, has: Int)

    var topic: PlannedTopic {
        switch self {
        case .missing(let topic), .differentSettings(let topic, _), .wrongPartitions(let topic, _),
            .wrongReplication(let topic, _):
            topic
        }
    }

    /// `apply` leaves it alone.
    var isForPeople: Bool {
        switch self {
        case .missing, .differentSettings: false
        case .wrongPartitions, .wrongReplication: true
        }
    }

    /// One line: verb, topic, what and why.
    var line: String {
        switch self {
        case .missing(let topic):
            "create  \(topic.name)  \(topic.partitions) partitions, \(topic.replicationFactor) replicas, "
                + topic.settings.map { "\($0.name)=\($0.value)" }.joined(separator: ", ")
        case .differentSettings(let topic, let changes):
            "change  \(topic.name)  \(changes.map(\.description).joined(separator: ", "))"
        case .wrongPartitions(let topic, let has):
            "wrong   \(topic.name)  has \(has) partitions, the setting partitions says \(topic.partitions): left alone, since "
                + "keys would change their partition; the setting stays the number that the topics were made with: put it back if it "
                + "was changed, or use another topic.prefix"
        case .wrongReplication(let topic, let has):
            "wrong   \(topic.name)  has \(has) replicas, topics.replication.factor says \(topic.replicationFactor): left alone; "
                + "move its replicas with kafka-reassign-partitions.sh, or set topics.replication.factor=\(has)"
        }
    }
}

struct SettingChange: Equatable, CustomStringConvertible {
    let name: String
    /// nil: the broker does not know this setting.
    let has: String?
    let wanted: String

    var description: String { "\(name) \(has ?? "unknown to this broker") -> \(wanted)" }
}

/// A topic as the cluster has it.
struct ExistingTopic {
    var partitions: Int
    /// Of the partition that has the fewest.
    var replicas: Int
    var settings: [String: String]
}

enum TopicComparison {
    /// In the order of the plan. Other topics of the cluster are nobody's business here.
    static func findings(_ planned: [PlannedTopic], _ existing: [String: ExistingTopic]) -> [TopicFinding] {
        planned.flatMap { topic -> [TopicFinding] in
            guard let has = existing[topic.name] else { return [.missing(topic)] }
            var findings: [TopicFinding] = []
            if has.partitions != topic.partitions { findings.append(.wrongPartitions(topic, has: has.partitions)) }
            if has.replicas != topic.replicationFactor { findings.append(.wrongReplication(topic, has: has.replicas)) }
            // What holds is compared, wherever it was set: on the topic, on the broker, or built in.
            let changes = topic.settings.filter { has.settings[$0.name] != $0.value && !isBeyondReplicas($0, has) }
                .map { SettingChange(name: $0.name, has: has.settings[$0.name], wanted: $0.value) }
            if !changes.isEmpty { findings.append(.differentSettings(topic, changes)) }
            return findings
        }
    }

    /// More in-sync replicas than there are replicas would stop every write; the wrong number of replicas is told instead.
    private static func isBeyondReplicas(_ setting: TopicSetting, _ has: ExistingTopic) -> Bool {
        setting.name == "min.insync.replicas" && (Int(setting.value) ?? 0) > has.replicas
    }
}

extension ClusterAccess {
    /// The planned topics that exist.
    func existing(_ planned: [PlannedTopic], by deadline: Deadline) throws(KafkaFault) -> [String: ExistingTopic] {
        let names = Set(planned.map(\.name))
        let cluster = try admin.cluster(by: deadline)
        // A topic that cannot be described is there all the same: creating it is not what is missing.
        if let hidden = cluster.hidden.first(where: { names.contains($0.name) }) { throw hidden.fault }
        let described = cluster.topics.filter { names.contains($0.name) }
        let settings = try admin.settings(of: described.map(\.name), by: deadline)
        var existing: [String: ExistingTopic] = [:]
        for topic in described {
            existing[topic.name] = ExistingTopic(
                partitions: topic.partitions.count, replicas: topic.partitions.map(\.replicas.count).min() ?? 0,
                settings: Dictionary(
                    settings[topic.name, default: []].map { ($0.name, $0.value) },
                    uniquingKeysWith: { first, _ in first }))
        }
        return existing
    }
}
