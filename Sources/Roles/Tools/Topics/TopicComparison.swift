// Compares the existing topics with the plan. Pure: the cluster is given as values.

import Cluster
import Contract
import Kafka
import Platform

/// One difference between a topic and the plan.
enum TopicFinding: Equatable {
    case missing(PlannedTopic)
    case differentSettings(PlannedTopic, [SettingChange])
    /// Cannot be corrected here: keys would change their partition.
    case wrongPartitions(PlannedTopic, has: Int)
    /// Cannot be corrected here: operators move replicas with their own tools.
    case wrongReplication(PlannedTopic, has: Int)
    /// Without this right it is not known whether the topic exists, or what its settings are.
    case forbidden(PlannedTopic, Right.Operation)

    var topic: PlannedTopic {
        switch self {
        case .missing(let topic), .differentSettings(let topic, _), .wrongPartitions(let topic, _),
            .wrongReplication(let topic, _), .forbidden(let topic, _):
            topic
        }
    }

    /// `apply` does not change it.
    var isForPeople: Bool {
        switch self {
        case .missing, .differentSettings: false
        case .wrongPartitions, .wrongReplication, .forbidden: true
        }
    }

    /// One line: verb, topic, what and why.
    var line: String { "\(verb)\(topic.name)  \(words)" }

    var verb: String {
        switch self {
        case .missing: "create  "
        case .differentSettings: "change  "
        case .wrongPartitions, .wrongReplication: "wrong   "
        case .forbidden: "hidden  "
        }
    }

    var words: String {
        switch self {
        case .missing(let topic):
            topic.character
        case .differentSettings(_, let changes):
            changes.map(\.description).joined(separator: ", ")
        case .wrongPartitions(let topic, let has):
            "has \(has) partitions, but the setting partitions is \(topic.partitions). It is not changed, because keys "
                + "would change their partition. Set partitions to the number that the topics were created with, or use "
                + "another topic.prefix"
        case .wrongReplication(let topic, let has):
            "has \(has) replicas, but topics.replication.factor is \(topic.replicationFactor). It is not changed: move its "
                + "replicas with kafka-reassign-partitions.sh, or set topics.replication.factor=\(has)"
        case .forbidden(_, .describe):
            "this user has no right to Describe it, so it is not known whether it exists"
        case .forbidden(_, let operation):
            "this user has no right to \(operation.rawValue), so its settings are not compared"
        }
    }
}

struct SettingChange: Equatable, CustomStringConvertible {
    let name: String
    /// nil: the broker does not know this setting.
    let has: String?
    let wanted: String

    var description: String {
        let had = has.map { ShownSetting.words(name, $0) } ?? "unknown to this broker"
        return "\(name) \(had) -> \(ShownSetting.words(name, wanted))"
    }
}

/// A topic of the cluster.
struct ExistingTopic {
    var partitions: Int
    /// The fewest replicas of any partition.
    var replicas: Int
    /// nil: the right to read them is missing.
    var settings: [String: String]?
}

/// The planned topics that are visible.
struct SeenTopics {
    var existing: [String: ExistingTopic] = [:]
    /// The names of topics that this user has no right to see.
    var hidden: Set<String> = []
}

enum TopicComparison {
    /// In the order of the plan. Other topics of the cluster are ignored.
    static func findings(_ planned: [PlannedTopic], _ seen: SeenTopics) -> [TopicFinding] {
        planned.flatMap { topic -> [TopicFinding] in
            guard let has = seen.existing[topic.name] else {
                return [seen.hidden.contains(topic.name) ? .forbidden(topic, .describe) : .missing(topic)]
            }
            var findings: [TopicFinding] = []
            if has.partitions != topic.partitions { findings.append(.wrongPartitions(topic, has: has.partitions)) }
            if has.replicas != topic.replicationFactor { findings.append(.wrongReplication(topic, has: has.replicas)) }
            guard let settings = has.settings else { return findings + [.forbidden(topic, .describeConfigs)] }
            // Compares the effective value, whether it was set on the topic, on the broker, or is built in.
            let changes = topic.settings.filter { settings[$0.name] != $0.value && !isBeyondReplicas($0, has) }
                .map { SettingChange(name: $0.name, has: settings[$0.name], wanted: $0.value) }
            if !changes.isEmpty { findings.append(.differentSettings(topic, changes)) }
            return findings
        }
    }

    /// More in-sync replicas than replicas would stop every write. The wrong number of replicas is reported instead.
    private static func isBeyondReplicas(_ setting: TopicSetting, _ has: ExistingTopic) -> Bool {
        setting.name == "min.insync.replicas" && (Int(setting.value) ?? 0) > has.replicas
    }
}

extension ClusterAccess {
    /// The planned topics that are visible.
    func existing(_ planned: [PlannedTopic], by deadline: Deadline) throws(KafkaFault) -> SeenTopics {
        let names = Set(planned.map(\.name))
        let cluster = try admin.cluster(by: deadline)
        var seen = SeenTopics()
        for (name, fault) in cluster.hidden where names.contains(name) {
            // A topic that may not be described exists nevertheless, so it need not be created.
            if !fault.code.isAuthorisation { throw fault }
            seen.hidden.insert(name)
        }
        let described = cluster.topics.filter { names.contains($0.name) }
        // The list lacks topics that this user has no right to see. Asked for one by name, the broker reports the missing right.
        for name in names.subtracting(described.map(\.name)).sorted() where try isHidden(name, by: deadline) {
            seen.hidden.insert(name)
        }
        let settings = try readableSettings(of: described.map(\.name), by: deadline)
        for topic in described {
            seen.existing[topic.name] = ExistingTopic(
                partitions: topic.partitions.count, replicas: topic.partitions.map(\.replicas.count).min() ?? 0,
                settings: settings[topic.name].map { settings in
                    Dictionary(settings.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
                })
        }
        return seen
    }

    private func isHidden(_ name: String, by deadline: Deadline) throws(KafkaFault) -> Bool {
        do throws(KafkaFault) {
            try admin.look(at: name, by: deadline)
            return false
        } catch {
            if error.code == .unknownTopicOrPartition || error.remedy == .retrySameCall { return false }
            if error.code.isAuthorisation { return true }
            throw error
        }
    }

    /// The settings of topics that this user may read.
    private func readableSettings(
        of names: [String], by deadline: Deadline
    ) throws(KafkaFault) -> [String: [Admin.TopicSetting]] {
        do throws(KafkaFault) {
            let settings = try admin.settings(of: names, by: deadline)
            // A topic that was deleted meanwhile has no settings; no right is missing.
            return settings.merging(names.filter { settings[$0] == nil }.map { ($0, []) }) { known, _ in known }
        } catch {
            if !error.code.isAuthorisation { throw error }
            if names.count < 2 { return [:] }
            let half = names.count / 2
            return try readableSettings(of: Array(names[..<half]), by: deadline)
                .merging(readableSettings(of: Array(names[half...]), by: deadline)) { left, _ in left }
        }
    }
}
