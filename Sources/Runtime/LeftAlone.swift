// Partitions that came to topics after the worker's keys had their places.

internal import Log

/// Topics are made with as many partitions as the setting says, and stay so: every key has its place by that number. Somebody may
/// grow one all the same. Nothing that the worker and those before it write lands in what is new, and to follow the new
/// number would look for every key elsewhere. So the rest is left alone, loudly, and the old partitions are worked on.
struct LeftAlone {
    private let definition: WorkerDefinition
    /// How many partitions the topic has.
    private var grown: [String: Int32] = [:]
    /// Whose inputs the group has given to different members: it deals topics with different numbers out differently.
    private var split: [Int32] = []

    init(_ definition: WorkerDefinition) { self.definition = definition }

    /// A session knows it of all topics, as they are at its beginning.
    mutating func opened(_ grown: [String: Int32]) { self.grown = grown }

    /// Of inputs that grow while a session lasts the assignment tells.
    /// - Returns: the partitions that can be worked on.
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
            "the topic \(topic) has grown to \(count) partitions, and the setting partitions says \(wanted): what is written to "
                + "partition \(wanted) and above is left alone. Leave the setting as it is: with another number every key would be "
                + "looked for where its state is not. Whoever writes to the topic has to place keys by \(wanted)"
        }
        if !split.isEmpty {
            let inputs = definition.inputs.map(\.topic).joined(separator: " and ")
            words.append(
                "partitions \(split.map(String.init).joined(separator: ", ")) are not worked on: \(inputs) have different numbers "
                    + "of partitions, and the group gives these to different replicas. Grow the others to the same number "
                    + "(kafka-topics.sh --alter), and leave the setting partitions as it is")
        }
        return words
    }
}
