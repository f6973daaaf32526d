// Keeps copies of topics up to date.

public import Log
public import Telemetry

/// The outcome of a step.
public enum FollowStep: Sendable {
    case done
    /// Nothing is followed: the step returned at once.
    case idle
    /// The next step should wait a little.
    case failed
}

/// Reads partitions of topics as a client of committed records without a group, each into its sink. For use by one
/// thread.
public final class TopicFollower<Sink: PartitionSink> {
    private let core: FollowerCore

    /// Follows nothing yet.
    ///
    /// - Parameters:
    ///   - readiness: gets the state of the follower, for other threads.
    ///   - sink: creates the sink of a partition whenever the partition is followed anew.
    public init(
        _ options: FollowOptions, log: any RecordLog, time: FollowTime, readiness: Readiness, counts: FollowCounts,
        logger: Logger, sink: @escaping (Int32) -> Sink
    ) {
        core = FollowerCore(
            options, log: log, time: time, readiness: readiness, counts: counts, logger: logger, sink: sink)
    }

    // MARK: Followed partitions

    /// From now on the follower follows exactly these partitions; call it between two steps. Partitions that are
    /// dropped are written and closed at once, new ones are opened by the next step. It blocks as long as the sinks do.
    public func follow(partitions: Set<Int32>) { core.follow(partitions: partitions) }

    /// Sorted.
    public var followed: [Int32] { core.partitions.map(\.number) }

    /// nil: the partition is not followed.
    public func sink(_ partition: Int32) -> Sink? { core.followed(partition)?.sink as? Sink }

    /// For each topic of the partition that is paused, why reading has stopped before a record.
    public func pauses(_ partition: Int32) -> [String] { core.followed(partition)?.pauses ?? [] }

    // MARK: Work

    /// Does a little work: reads new records, writes them, and requests the ends when that is due.
    public func step() -> FollowStep { core.step() }

    /// The next step requests the ends before it reads. When `completeAsOf` is not before the time of this call,
    /// everything that the topics had before the call is read.
    public func lookNow() { core.isLookWanted = true }

    /// How often the log has returned the ends of the topics.
    public var looks: Int { core.looks }

    /// The time of the elapsed clock at which the ends were requested that are now reached and written; of the topics
    /// the oldest such time counts. nil: no ends were reached since the partition was opened, or it is not followed.
    public func completeAsOf(_ partition: Int32) -> Duration? { core.followed(partition)?.completeAt }

    /// The same for one topic, when it is read but perhaps not written.
    public func completeAsOf(_ partition: Int32, topic: Int) -> Duration? {
        core.followed(partition)?.courses[topic].completeAt
    }

    /// Writes and closes everything. It may follow again afterwards.
    public func close() { core.close() }
}
