// `offsets reset`: moves the positions of a group without state.

import Cluster
import CommandLine
import JSON
import Kafka
import Log
import Platform

struct OffsetsReset {
    struct Change: Equatable {
        var partition: TopicPartition
        var from: NextOffset?
        var to: NextOffset
    }

    /// A commit takes milliseconds. A longer one belongs to a process that hangs or has ended.
    private static let commitLimit: Duration = .seconds(5)

    private let reset: OffsetsQuery.Reset
    private let group: String
    private let isJSON: Bool
    private let output: Output

    init(_ reset: OffsetsQuery.Reset, _ query: OffsetsQuery, _ output: Output) {
        guard let name = query.name else { preconditionFailure("a reset has the name of a group") }
        self.reset = reset
        group = name
        isJSON = query.isJSON
        self.output = output
    }

    func run(_ survey: GroupSurvey, _ admin: Admin, by deadline: Deadline) throws(ToolFault) -> ExitCode {
        guard let standing = try survey.group(group) else {
            output.message("perennial offsets: there is no group \(group)")
            return .no
        }
        let changes = try changes(standing, survey)
        for change in changes { output.data(isJSON ? Self.json(change) : Self.text(change)) }
        guard standing.members.isEmpty else {
            output.message(
                "perennial offsets: nothing was written: the group has members, and only they may move its positions. Stop "
                    + "these members first:")
            for member in standing.members { output.message("perennial offsets: \(GroupReport.words(member))") }
            return .no
        }
        if changes.isEmpty {
            output.message("perennial offsets: nothing to do: every position is already there")
        } else if !reset.applies {
            output.message("perennial offsets: nothing was written; --apply sets \(changes.count) positions")
        } else {
            return try apply(changes, survey, admin, by: deadline)
        }
        return .done
    }

    private func changes(_ standing: GroupStanding, _ survey: GroupSurvey) throws(ToolFault) -> [Change] {
        let positions = standing.partitions.reduce(into: [TopicPartition: NextOffset]()) {
            $0[$1.partition] = $1.position
        }
        let topics = try Self.topics(reset, of: positions)
        let partitions = survey.partitions(of: topics)
        return try Self.changes(
            reset.target, positions,
            try survey.asking { () throws(KafkaFault) in try survey.ends(of: partitions) },
            at: { time throws(ToolFault) in
                try survey.asking { () throws(KafkaFault) in try survey.offsets(at: time, in: partitions) }
            })
    }

    /// The topics in which the group has positions, or the named one of them.
    static func topics(
        _ reset: OffsetsQuery.Reset, of positions: [TopicPartition: NextOffset]
    ) throws(ToolFault) -> [String] {
        let known = Set(positions.keys.map(\.topic)).sorted()
        if let topic = reset.topic {
            guard known.contains(topic) else {
                throw ToolFault(
                    .wrongUsage,
                    "the group has no position in \(topic), only in \(known.joined(separator: ", "))")
            }
            return [topic]
        }
        if case .offsets = reset.target, known.count > 1 {
            throw ToolFault(
                .wrongUsage,
                "PARTITION:OFFSET needs --topic, one of: \(known.joined(separator: ", "))")
        }
        return known
    }

    /// The changes; a position that is already there is left out.
    static func changes(
        _ target: OffsetsQuery.Target, _ positions: [TopicPartition: NextOffset],
        _ ends: [TopicPartition: PartitionEnds],
        at time: (Int64) throws(ToolFault) -> [TopicPartition: NextOffset]
    ) throws(ToolFault) -> [Change] {
        var places: [TopicPartition: NextOffset]
        switch target {
        case .beginning: places = ends.mapValues(\.beginning)
        case .end: places = ends.mapValues(\.committed)
        case .time(let moment): places = try time(moment)
        case .offsets(let offsets):
            places = [:]
            for (number, offset) in offsets.sorted(by: { $0.key < $1.key }) {
                guard let (partition, ends) = ends.first(where: { $0.key.partition == number }) else {
                    throw ToolFault(.wrongUsage, "there is no partition \(number)")
                }
                // A consumer that starts outside of this range would get an error.
                guard (ends.beginning.value...ends.committed.value).contains(offset) else {
                    throw ToolFault(
                        .wrongUsage,
                        "\(partition) has offsets from \(ends.beginning) to \(ends.committed), not \(offset)")
                }
                places[partition] = NextOffset(offset)
            }
        }
        return places.sorted { $0.key < $1.key }.compactMap { partition, place in
            let from = positions[partition]
            return from == place ? nil : Change(partition: partition, from: from, to: place)
        }
    }

    private func apply(
        _ changes: [Change], _ survey: GroupSurvey, _ admin: Admin, by deadline: Deadline
    ) throws(ToolFault) -> ExitCode {
        let positions = Dictionary(uniqueKeysWithValues: changes.map { ($0.partition, $0.to) })
        try waitForCommits(admin, by: deadline)
        let isSet = try survey.asking { () throws(KafkaFault) in
            do throws(KafkaFault) {
                try admin.setOffsets(ofGroup: group, to: positions, by: deadline)
                return true
            } catch {
                if error.code == .unknownMember { return false }
                throw error
            }
        }
        output.message(
            isSet
                ? "perennial offsets: \(changes.count) positions are set"
                : "perennial offsets: nothing was written: a member has joined the group meanwhile")
        return isSet ? .done : .no
    }

    /// A pending commit inside a transaction would take effect after ours and undo it.
    private func waitForCommits(_ admin: Admin, by deadline: Deadline) throws(ToolFault) {
        do throws(KafkaFault) {
            _ = try admin.offsets(ofGroup: group, by: Deadline(after: min(Self.commitLimit, deadline.remaining)))
        } catch {
            guard error.remedy == .retrySameCall else { throw ToolFault(error) }
            throw ToolFault(
                .gaveUp,
                "nothing was written: the positions of \(group) are not stable, probably because an open transaction has "
                    + "committed some. Wait for its end (\(error.words))")
        }
    }

    private static func text(_ change: Change) -> String {
        "change  \(change.partition)  \(change.from?.description ?? "none") -> \(change.to)"
    }

    private static func json(_ change: Change) -> String {
        var writer = JSONWriter()
        writer.object { line in
            line.member("topic", change.partition.topic)
            line.member("partition", change.partition.partition)
            line.name("from")
            if let from = change.from { line.integer(from.value) } else { line.null() }
            line.member("to", change.to.value)
        }
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}
