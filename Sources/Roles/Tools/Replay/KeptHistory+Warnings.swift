// Warnings of `topics` and `check` if the log does not keep what a replay needs.

import Cluster
import Configuration
import Contract
import Kafka
import Log
import Platform

extension KeptHistory {
    /// One line each. If the cluster does not answer in time, there are no warnings here, because other lines report that.
    static func warnings(
        _ planned: [PlannedTopic], _ seen: SeenTopics, _ configuration: Configuration, by deadline: Deadline
    ) -> [String] {
        planned.filter { $0.id == .notifications }.flatMap { topic -> [String] in
            guard let there = seen.existing[topic.name] else { return [] }
            let words = there.settings.flatMap { Self.loss(bySettings: $0) }
            return (words.map { ["\(topic.name): \($0)"] } ?? [])
                + lost(topic.name, there.partitions, configuration, by: deadline)
        }
    }

    private static func lost(
        _ topic: String, _ count: Int, _ configuration: Configuration, by deadline: Deadline
    ) -> [String] {
        let patience = Deadline(after: min(.seconds(2), deadline.remaining))
        // A name that access lists can grant; it is neither joined nor committed to.
        let group = "\(topic.split(separator: ".").dropLast().joined(separator: ".")).offsets"
        guard
            let survey = try? InputSurvey(
                configuration.clientProperties.makeLog(), topics: [topic], group: group, by: patience)
        else { return [] }
        defer { survey.close() }
        let partitions = (0..<Int32(count)).map { TopicPartition(topic, $0) }
        guard let beginnings = try? survey.beginnings(partitions) else { return [] }
        var lost = lostBeginnings(beginnings)
        if lost.isEmpty { return [] }
        let starts = Dictionary(uniqueKeysWithValues: lost.map { ($0.partition, $0.offset) })
        // Without the right to read records, only their late beginning is reported.
        let times = (try? survey.firstTimestamps(starts, until: patience)) ?? [:]
        for index in lost.indices { lost[index].timestamp = times[lost[index].partition] }
        return words(lost)
    }
}
