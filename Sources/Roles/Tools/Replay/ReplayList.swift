// `perennial replay --list`: lists all replays.

import Cluster
import CommandLine
import Configuration
import Contract
import JSON
import Kafka
import Log
import Platform
import Workers

/// The state of a replay.
struct ReplayStanding {
    var identity: ReplayIdentity
    /// nil: there is no plan, or it cannot be read.
    var plan: ReplayPlan?
    var members: Int
    /// Offsets of its topics, including markers of transactions and records that compaction has removed.
    var size: Int64
    /// Records of the inputs that it has processed, and all records.
    var done: Int64
    var total: Int64

    var textLine: String {
        let percent = total == 0 ? 100 : Int(Double(done) / Double(total) * 100)
        let from = plan?.from.map { "  from \($0)" } ?? ""
        let plan =
            self.plan.map { "\($0.app), rules \($0.rules ?? "none"), started \(shownTime($0.begunAt)) UTC\(from)" }
            ?? "no plan"
        return
            "\(identity.names.environment.rawValue)  \(identity.worker.rawValue)  \(identity.shadow)  \(percent) %, lag \(total - done)  "
            + "records <=\(size)  members \(members)  \(plan)"
    }

    var jsonLine: String {
        var writer = JSONWriter()
        writer.object { line in
            line.member("environment", identity.names.environment.rawValue)
            line.member("worker", identity.worker.rawValue)
            line.member("name", identity.shadow.description)
            line.member("group", identity.group)
            line.member("members", members)
            line.member("offsets", size)
            line.member("position", done)
            line.member("end", total)
            line.member("lag", total - done)
            line.member("app", plan?.app)
            line.member("rules", plan?.rules)
            line.member("from", plan?.from)
            line.member("begunAt", orNull: plan?.begunAt)
        }
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}

struct ReplayList {
    let worker: WorkerName?
    let isJSON: Bool
    let configuration: Configuration
    let output: Output

    func run() throws(ToolFault) -> ExitCode {
        let deadline = Deadline(after: .seconds(28))
        let access = try ClusterAccess.connect(configuration, as: "replay")
        defer { access.close() }
        let installation = configuration.namedEnvironments.map {
            Names(prefix: configuration.topicPlan.prefix, environment: $0)
        }
        let replays = ReplayIdentity.all(in: access.cluster.topics.map(\.name), of: installation)
            .filter { worker == nil || $0.worker == worker }
        for replay in replays {
            let standing = try standing(of: replay, access, by: deadline)
            output.data(isJSON ? standing.jsonLine : standing.textLine)
        }
        if replays.isEmpty { output.message("perennial replay: there is no replay") }
        return .done
    }

    private func standing(
        of replay: ReplayIdentity, _ access: ClusterAccess, by deadline: Deadline
    ) throws(ToolFault) -> ReplayStanding {
        let log = configuration.clientProperties.makeLog()
        let counts = Dictionary(
            access.cluster.topics.map { ($0.name, Int32($0.partitions.count)) }, uniquingKeysWith: { first, _ in first }
        )
        func partitions(_ topics: [String]) -> [TopicPartition] {
            topics.flatMap { topic in (0..<(counts[topic] ?? 0)).map { TopicPartition(topic, $0) } }
        }
        let inputs = replay.worker.inputs.map(replay.names.topic).filter { counts[$0] != nil }
        let written = replay.topics.map(\.shadow).filter { counts[$0] != nil }
        let survey = try InputSurvey(log, topics: inputs + written, group: replay.group, by: deadline)
        defer { survey.close() }
        let positions = try ToolFault.persisting(until: deadline) { () throws(KafkaFault) in
            try access.admin.currentOffsets(ofGroup: replay.group, by: deadline)
        }
        let (beginnings, ends) = (
            try survey.beginnings(partitions(inputs + written)), try survey.ends(partitions(inputs + written))
        )
        let isInput = Set(inputs)
        func count(_ isWanted: (String) -> Bool, to places: [TopicPartition: NextOffset]) -> Int64 {
            ends.filter { isWanted($0.key.topic) }.reduce(0) { sum, entry in
                let place = min(places[entry.key]?.value ?? 0, entry.value.value)
                return sum + max(0, place - (beginnings[entry.key]?.value ?? 0))
            }
        }
        return ReplayStanding(
            identity: replay,
            plan: counts[replay.planTopic] == nil ? nil : try? PlanTopic(replay, log).read(by: deadline),
            members: try access.members(of: replay.group, by: deadline).count,
            size: count({ !isInput.contains($0) }, to: ends), done: count(isInput.contains, to: positions),
            total: count(isInput.contains, to: ends))
    }
}

extension ClusterAccess {
    /// A group that does not exist has no members.
    func members(of group: String, by deadline: Deadline) throws(ToolFault) -> [Admin.Member] {
        try ToolFault.persisting(until: deadline) { () throws(KafkaFault) in
            do throws(KafkaFault) {
                return try admin.describe(group: group, by: deadline).members
            } catch {
                if error.code == .groupNotFound { return [] }
                throw error
            }
        }
    }
}
