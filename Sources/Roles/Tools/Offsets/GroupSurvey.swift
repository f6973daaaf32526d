// Asks Kafka for the state of groups. Changes nothing.

import Cluster
import Configuration
import Contract
import Kafka
import Log
import Platform

/// One thread.
final class GroupSurvey {
    /// Kafka's state of a group that does not exist, or has neither members nor positions any more.
    private static let absent = "Dead"

    private let admin: Admin
    private let configuration: Configuration
    private let deadline: Deadline
    private let topics: [String: [Int32]]
    private let reader: Consumer
    /// Sees the records of open transactions: the broker's answer depends on the isolation level.
    private let witness: Consumer
    /// Set if existing records did not arrive in time.
    private(set) var silence: String?

    init(_ access: ClusterAccess, _ configuration: Configuration, by deadline: Deadline) throws(ToolFault) {
        admin = access.admin
        self.configuration = configuration
        self.deadline = deadline
        topics = Dictionary(
            access.cluster.topics.map { ($0.name, $0.partitions.map(\.id)) }, uniquingKeysWith: { first, _ in first })
        // A name that access lists can grant: it is neither joined nor committed to, but librdkafka looks up its coordinator.
        let names = Names(prefix: configuration.topicPlan.prefix, environment: configuration.namedEnvironments[0])
        let group = "\(names.prefix).\(names.environment.rawValue).offsets"
        do throws(PropertyFault) {
            var options = Consumer.Configuration(
                clientID: "perennial-offsets", groupID: group, properties: configuration.clientProperties)
            reader = try Consumer(options)
            options.readsUncommitted = true
            witness = try Consumer(options)
        } catch {
            throw ToolFault(error)
        }
    }

    func close() {
        reader.close(by: Deadline(after: .seconds(2)))
        witness.close(by: Deadline(after: .seconds(2)))
    }

    /// Existing groups whose names begin with our prefix.
    func groupsOfInstallation() throws(ToolFault) -> [String] {
        let beginnings = configuration.namedEnvironments.map { "\(configuration.topicPlan.prefix).\($0.rawValue)." }
        let groups = try asking { () throws(KafkaFault) in try admin.groups(by: deadline) }
        return groups.filter { group in beginnings.contains { group.hasPrefix($0) } }
    }

    /// nil: there is no group with this name.
    func group(_ name: String) throws(ToolFault) -> GroupStanding? {
        try asking { () throws(KafkaFault) in try standing(of: name) }
    }

    private func standing(of name: String) throws(KafkaFault) -> GroupStanding? {
        let (state, members) = try describe(name)
        // Positions are read before ends, so that records written or read in between never put a position beyond its end.
        let positions = try admin.currentOffsets(ofGroup: name, by: deadline)
        if state == Self.absent, positions.isEmpty { return nil }
        let partitions = partitions(of: name, positions, members)
        let ends = try ends(of: partitions.filter { topics[$0.topic]?.contains($0.partition) ?? false })
        let found = try look(from: positions, ends)
        let standings = partitions.map { partition in
            PartitionStanding(
                partition: partition, position: positions[partition], ends: ends[partition],
                lag: found[partition]?.lag, nextTimestamp: found[partition]?.timestamp)
        }
        return GroupStanding(name: name, state: state, members: members, partitions: standings)
    }

    func asking<Answer>(_ body: () throws(KafkaFault) -> Answer) throws(ToolFault) -> Answer {
        try ToolFault.persisting(until: deadline, body)
    }

    /// For a missing group, newer protocols answer "not found", older ones the state "Dead".
    private func describe(_ name: String) throws(KafkaFault) -> (state: String, members: [Admin.Member]) {
        do throws(KafkaFault) {
            let group = try admin.describe(group: name, by: deadline)
            return (group.state, group.members)
        } catch {
            if error.code == .groupNotFound { return (Self.absent, []) }
            throw error
        }
    }

    /// Partitions in which the group has positions or members, and for our workers all of their inputs, so that a partition without
    /// a member is shown too.
    private func partitions(
        of group: String, _ positions: [TopicPartition: NextOffset], _ members: [Admin.Member]
    ) -> [TopicPartition] {
        var partitions = Set(positions.keys).union(members.flatMap(\.partitions))
        for environment in configuration.namedEnvironments {
            let names = Names(prefix: configuration.topicPlan.prefix, environment: environment)
            guard let worker = WorkerName.allCases.first(where: { names.group($0) == group }) else { continue }
            for topic in worker.inputs.map(names.topic) {
                partitions.formUnion((topics[topic] ?? []).map { TopicPartition(topic, $0) })
            }
        }
        return partitions.sorted()
    }

    func ends(of partitions: [TopicPartition]) throws(KafkaFault) -> [TopicPartition: PartitionEnds] {
        let beginnings = try reader.beginnings(of: partitions, by: deadline)
        let committed = try reader.ends(of: partitions, by: deadline)
        let all = try witness.ends(of: partitions, by: deadline)
        var ends: [TopicPartition: PartitionEnds] = [:]
        for partition in partitions {
            guard let beginning = beginnings[partition], let end = committed[partition], let last = all[partition]
            else { continue }
            ends[partition] = PartitionEnds(beginning: beginning, committed: end, all: last)
        }
        return ends
    }

    /// Every partition of these topics.
    func partitions(of names: [String]) -> [TopicPartition] {
        names.flatMap { name in (topics[name] ?? []).map { TopicPartition(name, $0) } }
    }

    /// The first record at or after the time; the end of committed records where there is none.
    func offsets(at time: Int64, in partitions: [TopicPartition]) throws(KafkaFault) -> [TopicPartition: NextOffset] {
        try reader.offsets(at: time, in: partitions, by: deadline)
    }

    private func look(
        from positions: [TopicPartition: NextOffset], _ ends: [TopicPartition: PartitionEnds]
    ) throws(KafkaFault) -> [TopicPartition: LagProbe.Found] {
        var spans: [TopicPartition: LagProbe.Span] = [:]
        for (partition, position) in positions {
            guard let ends = ends[partition] else { continue }
            // Deleted records cannot be read any more: the next record is the first that is left.
            spans[partition] = LagProbe.Span(from: max(position, ends.beginning), to: ends.committed)
        }
        // Waits only a moment for each group: the lag of late records is counted by offsets.
        let patience = Deadline(after: min(.seconds(5), deadline.remaining))
        let (found, isWhole) = try LagProbe.look(reader, spans, until: patience)
        if !isWhole {
            let cause = reader.recentFaults.last.map { " (\($0.detail))" } ?? ""
            silence = "Kafka did not return every next record in time\(cause): some times are not known"
        }
        return found
    }
}
