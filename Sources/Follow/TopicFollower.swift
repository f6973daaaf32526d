// Keeps copies at the end of their topics.

public import Log
public import Telemetry

/// What a step came to.
public enum FollowStep: Sendable {
    case done
    /// Nothing is followed: it has returned at once.
    case idle
    /// It is not to be tried again at once.
    case failed
}

/// Reads partitions of topics as a client of committed records without a group, each into its sink. One thread.
public final class TopicFollower<Sink: PartitionSink> {
    private let core: FollowerCore

    /// Follows nothing yet.
    ///
    /// - Parameters:
    ///   - readiness: is told how it goes, for other threads.
    ///   - sink: makes that of a partition, whenever it comes to be followed.
    public init(
        _ options: FollowOptions, log: any RecordLog, time: FollowTime, readiness: Readiness, counts: FollowCounts,
        logger: Logger, sink: @escaping (Int32) -> Sink
    ) {
        core = FollowerCore(
            options, log: log, time: time, readiness: readiness, counts: counts, logger: logger, sink: sink)
    }

    // MARK: What is followed

    /// From now on these are followed and no others; between two steps. What leaves is written and closed at once, what comes is
    /// opened by the next step. It blocks as long as the sinks do.
    public func follow(partitions: Set<Int32>) { core.follow(partitions: partitions) }

    /// In order.
    public var followed: [Int32] { core.partitions.map(\.number) }

    /// nil: the partition is not followed.
    public func sink(_ partition: Int32) -> Sink? { core.followed(partition)?.sink as? Sink }

    /// Why reading has stopped before a record, of each topic of the partition where it has.
    public func pauses(_ partition: Int32) -> [String] { core.followed(partition)?.pauses ?? [] }

    // MARK: Work

    /// A little work: reads what has come, writes it, and asks for the ends when that is due.
    public func step() -> FollowStep { core.step() }

    /// The next step asks for the ends before it reads. What the topics had before this call is read when `completeAsOf` is not
    /// before the moment of this call.
    public func lookNow() { core.isLookWanted = true }

    /// How often the log has told the ends of the topics.
    public var looks: Int { core.looks }

    /// The moment, on the elapsed clock, at which the ends were asked for that were reached and written since, of the topic where
    /// that is longest ago. nil: never since the partition was opened, or it is not followed.
    public func completeAsOf(_ partition: Int32) -> Duration? { core.followed(partition)?.completeAt }

    /// The same of one topic, when it is read, and perhaps not written.
    public func completeAsOf(_ partition: Int32, topic: Int) -> Duration? {
        core.followed(partition)?.courses[topic].completeAt
    }

    /// Writes and closes everything. It may follow again.
    public func close() { core.close() }
}
