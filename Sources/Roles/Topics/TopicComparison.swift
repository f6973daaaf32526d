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
    /// Whether it is there, or has its settings, is not known: this right is lacking.
    case forbidden(PlannedTopic, Right.Operation)

    var topic: PlannedTopic {
        switch self {
        case .missing(let topic), .differentSettings(let topic, _), .wrongPartitions(let topic, _),
            .wrongReplication(let topic, _), .forbidden(let topic, _):
            topic
        }
    }

    /// `apply` leaves it alone.
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
            "has \(has) partitions, the setting partitions says \(topic.partitions): left alone, since keys would change "
                + "their partition; the setting stays the number that the topics were made with: put it back if it was "
                + "changed, or use another topic.prefix"
        case .wrongReplication(let topic, let has):
            "has \(has) replicas, topics.replication.factor says \(topic.replicationFactor): left alone; move its replicas "
                + "with kafka-reassign-partitions.sh, or set topics.replication.factor=\(has)"
        case .forbidden(_, .describe):
            "there is no right to Describe it, so nobody here knows whether it is there"
        case .forbidden(_, let operation):
            "there is no right to \(operation.rawValue), so its settings are not compared"
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

/// A topic as the cluster has it.
struct ExistingTopic {
    var partitions: Int
    /// Of the partition that has the fewest.
    var replicas: Int
    /// nil: there is no right to read them.
    var settings: [String: String]?
}

/// What of the plan can be seen.
struct SeenTopics {
    var existing: [String: ExistingTopic] = [:]
    /// The names of those that there is no right to see.
    var hidden: Set<String> = []
}

enum TopicComparison {
    /// In the order of the plan. Other topics of the cluster are nobody's business here.
    static func findings(_ planned: [PlannedTopic], _ seen: SeenTopics) -> [TopicFinding] {
        planned.flatMap { topic -> [TopicFinding] in
            guard let has = seen.existing[topic.name] else {
                return [seen.hidden.contains(topic.name) ? .forbidden(topic, .describe) : .missing(topic)]
            }
            var findings: [TopicFinding] = []
            if has.partitions != topic.partitions { findings.append(.wrongPartitions(topic, has: has.partitions)) }
            if has.replicas != topic.replicationFactor { findings.append(.wrongReplication(topic, has: has.replicas)) }
            guard let settings = has.settings else { return findings + [.forbidden(topic, .describeConfigs)] }
            // What holds is compared, wherever it was set: on the topic, on the broker, or built in.
            let changes = topic.settings.filter { settings[$0.name] != $0.value && !isBeyondReplicas($0, has) }
                .map { SettingChange(name: $0.name, has: settings[$0.name], wanted: $0.value) }
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
    /// The planned topics, as far as they can be seen.
    func existing(_ planned: [PlannedTopic], by deadline: Deadline) throws(KafkaFault) -> SeenTopics {
        let names = Set(planned.map(\.name))
        let cluster = try admin.cluster(by: deadline)
        var seen = SeenTopics()
        for (name, fault) in cluster.hidden where names.contains(name) {
            // A topic that cannot be described is there all the same: creating it is not what is missing.
            if !fault.code.isAuthorisation { throw fault }
            seen.hidden.insert(name)
        }
        let described = cluster.topics.filter { names.contains($0.name) }
        // The list leaves out what there is no right to see. Asked for by name, the broker says so.
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

    /// Of those topics whose settings one may read.
    private func readableSettings(
        of names: [String], by deadline: Deadline
    ) throws(KafkaFault) -> [String: [Admin.TopicSetting]] {
        do throws(KafkaFault) {
            let settings = try admin.settings(of: names, by: deadline)
            // A topic that has gone meanwhile has none; that is no want of a right.
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
