// Partitions that were added to topics after the worker's keys had their partitions.

internal import Log

/// Topics are created with as many partitions as the setting says, and keep that number: it determines the partition of
/// every key. Somebody may add partitions anyway. This worker and its producers write nothing to the new partitions,
/// and with the new number every key would be looked up in another partition. So the worker reports the new partitions
/// as an error, ignores them, and continues with the old ones.
struct LeftAlone {
    private let definition: WorkerDefinition
    /// The number of partitions that the topic has now.
    private var grown: [String: Int32] = [:]
    /// Partitions whose inputs the group has assigned to different members, because the topics have different numbers
    /// of partitions.
    private var split: [Int32] = []

    init(_ definition: WorkerDefinition) { self.definition = definition }

    /// A session knows the numbers of all topics as of its beginning.
    mutating func opened(_ grown: [String: Int32]) { self.grown = grown }

    /// If an input grows during a session, the assignment shows it.
    /// - Returns: the partitions that can be processed.
    mutating func assigned(_ given: [TopicPartition]) -> Set<Int32> {
        for partition in given where partition.partition >= definition.partitions {
            grown[partition.topic] = max(grown[partition.topic] ?? 0, partition.partition + 1)
        }
        let all = Set(given)
        let events = given.filter { $0.topic == definition.events.topic && $0.partition < definition.partitions }
        let whole = events.map(\.partition).filter { number in
            definition.inputs.allSatisfy { all.contains(TopicPartition($0.topic, number)) }
        }
        split = events.map(\.partition).filter { !whole.contains($0) }.sorted()
        return Set(whole)
    }

    var count: Int { grown.values.reduce(split.count) { $0 + Int($1 - definition.partitions) } }

    var words: [String] {
        let wanted = definition.partitions
        var words = grown.sorted { $0.key < $1.key }.map { topic, count in
            "the topic \(topic) now has \(count) partitions, but the setting partitions is \(wanted): the records of "
                + "partition \(wanted) and above are ignored. Do not change the setting: with another number every key "
                + "would be looked up in the wrong partition. Every producer of the topic must choose partitions by "
                + "\(wanted)"
        }
        if !split.isEmpty {
            let inputs = definition.inputs.map(\.topic).joined(separator: " and ")
            words.append(
                "partitions \(split.map(String.init).joined(separator: ", ")) are not processed: \(inputs) have "
                    + "different numbers of partitions, so the group assigns them to different replicas. Give all the "
                    + "same number (kafka-topics.sh --alter), and do not change the setting partitions")
        }
        return words
    }
}
