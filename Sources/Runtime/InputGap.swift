// A partition of an input that has lost records which the worker has not read.

internal import Log

/// There is no record at the worker's position: what it says next would rest on a history with a hole.
struct InputGap: Equatable, Sendable {
    let partition: TopicPartition
    let position: NextOffset
    /// nil: not known, as `end`.
    let beginning: NextOffset?
    let end: NextOffset?

    /// nil: the log has what comes next.
    static func find(
        _ partition: TopicPartition, at position: NextOffset, beginning: NextOffset, end: NextOffset
    ) -> InputGap? {
        if position >= beginning, position <= end { return nil }
        return InputGap(partition: partition, position: position, beginning: beginning, end: end)
    }

    /// What has happened, without advice.
    var finding: String {
        guard let beginning else { return "there is no record at the position \(position) of \(partition) any more" }
        if position < beginning {
            return
                "the records of \(partition) from offset \(position) to \(beginning.value - 1) were deleted before they were "
                + "read"
        }
        let place = end.map { "its end, \($0)" } ?? "its end"
        return
            "the position \(position) of \(partition) lies beyond \(place): the topic was created again, or its brokers have "
            + "lost records"
    }

    /// What has happened, and what is to be done about it.
    func words(_ definition: WorkerDefinition) -> String {
        // The name of a worker is that on the command line.
        let worker = definition.name
        let advice =
            definition.isShadow
            ? "start this replay again; or remove it (`perennial replay \(worker) --drop NAME`) and run one with --incomplete"
            : "stop every process of this worker and run `perennial offsets accept-gap \(worker) --partition "
                + "\(partition.partition)`, which goes on behind the gap"
        let link = definition.isShadow ? " and " : "; or "
        return "\(finding). This partition waits, the others go on. Bring the records back" + link + advice
    }
}
