// A partition of an input that lost records before the worker read them.

internal import Log

/// There is no record at the worker's position: its further output would rest on a history with a gap.
struct InputGap: Equatable, Sendable {
    let partition: TopicPartition
    let position: NextOffset
    /// nil: it is not known, and neither is `end`.
    let beginning: NextOffset?
    let end: NextOffset?

    /// nil: the log has the next record.
    static func find(
        _ partition: TopicPartition, at position: NextOffset, beginning: NextOffset, end: NextOffset
    ) -> InputGap? {
        if position >= beginning, position <= end { return nil }
        return InputGap(partition: partition, position: position, beginning: beginning, end: end)
    }

    /// What happened, without advice.
    var finding: String {
        guard let beginning else { return "there is no longer a record at the position \(position) of \(partition)" }
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

    /// What happened, and what to do.
    func words(_ definition: WorkerDefinition) -> String {
        // A worker has the same name on the command line.
        let worker = definition.name
        let advice =
            definition.isShadow
            ? "start this replay again; or remove it (`perennial replay \(worker) --drop NAME`) and run one with --incomplete"
            : "stop every process of this worker and run `perennial offsets accept-gap \(worker) --partition "
                + "\(partition.partition)`, which continues after the gap"
        let link = definition.isShadow ? " and " : "; or "
        return "\(finding). This partition is paused; the others continue. Restore the records" + link + advice
    }
}
