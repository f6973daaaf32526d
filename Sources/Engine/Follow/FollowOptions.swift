// Options of a follower, and its clocks.

public import Log
internal import Platform
public import Telemetry

/// The clocks of the process. A test supplies its own.
public struct FollowTime: Sendable {
    /// Milliseconds since 1970. The age of a copy is computed with this clock, because the log deletes tombstones by
    /// such a clock.
    public var wall: @Sendable () -> Int64
    /// A clock that never jumps.
    public var elapsed: @Sendable () -> Duration

    public init(wall: @escaping @Sendable () -> Int64, elapsed: @escaping @Sendable () -> Duration) {
        self.wall = wall
        self.elapsed = elapsed
    }

    /// The clocks of this host.
    public static func real() -> FollowTime {
        let start = ContinuousClock.now
        return FollowTime(wall: WallClock.milliseconds, elapsed: { start.duration(to: .now) })
    }
}

public struct FollowOptions: Sendable {
    public struct Topic: Sendable {
        public var name: String
        /// A copy of such a topic is built anew if it may have missed deletions, and the topic must really be
        /// compacted. Any other topic is followed as it is.
        public var isCompacted: Bool
        public var start: Start

        public init(_ name: String, isCompacted: Bool, start: Start = .beginning) {
            self.name = name
            self.isCompacted = isCompacted
            self.start = start
        }
    }

    /// Where to start in a topic for which the sink has no position.
    public enum Start: Sendable {
        case beginning
        /// At the first record at or after this time, in milliseconds since 1970. Called whenever a partition is
        /// started.
        case time(@Sendable () -> Int64)
    }

    /// For messages of the log.
    public var name: String
    /// A group that the user may read; the follower neither joins it nor commits to it.
    public var group: String
    /// The number of a topic is its index here. Partition p of all of them has one sink.
    public var topics: [Topic]
    /// The number of partitions of each topic. If a topic has another number, nothing is followed: keys would be in
    /// other partitions.
    public var partitions: Int32
    /// How often the end offsets are requested. Copies that are reported as complete are at most this old while all is
    /// well.
    public var lookInterval: Duration = .seconds(1)
    /// The end that must be reached. `.all` includes records in transactions whose end the log has not shown yet, for a
    /// caller that has heard of a commit from the transaction's writer.
    public var ends: EndKind = .committed
    /// How long a step waits for records at most.
    public var pollWait: Duration = .milliseconds(100)
    /// Approximate memory for records that are fetched and not applied yet.
    public var readAheadBytes = 64 << 20
    /// How long the log may take to answer a request.
    public var questionLimit: Duration = .seconds(10)

    public init(name: String, group: String, topics: [Topic], partitions: Int32) {
        self.name = name
        self.group = group
        self.topics = topics
        self.partitions = partitions
    }
}

/// Metrics of a follower. Its user creates them, with its own names.
public struct FollowCounts: Sendable {
    /// Offsets between the read positions and the last known ends.
    public var remaining: Gauge
    /// Partitions of topics whose reading is paused.
    public var paused: Gauge
    /// Copies that could not be used.
    public var wipes: Counter

    public init(remaining: Gauge, paused: Gauge, wipes: Counter) {
        self.remaining = remaining
        self.paused = paused
        self.wipes = wipes
    }
}

public enum FollowLimits {
    /// Records of one poll: a write of this many takes about a millisecond.
    static let recordsPerPoll = 2000
    /// Records that are held while a copy is built: larger writes are cheaper.
    static let recordsPerWrite = 10_000
    /// Bytes that all partitions together may hold.
    private static let heldBytes = 32 << 20
    /// How often positions are written if only they have changed. They show how old a copy is.
    static let placesInterval: Duration = .seconds(60)
    /// A partition may lack a leader for this long before the log warns about it.
    static let leaderPatience: Duration = .seconds(10)
    static let progressInterval: Duration = .seconds(5)
    static let closing: Duration = .seconds(10)
    /// Milliseconds. A copy that was not complete for this long may have missed deletions, so it is built anew. This
    /// also applies if the topic keeps deletions for longer (`perennial topics apply` sets a week): the settings may
    /// have differed meanwhile, and Kafka's default is a day.
    static let greatestAge: Int64 = 20 * 3_600_000
    /// Milliseconds. Below this, every short interruption would cause copies to be built anew.
    static let leastDeletionsKept: Int64 = 60_000
    /// Milliseconds. A position with a time in the future was written by a clock that ran ahead, so its age is unknown.
    /// Less than this is only a difference between the clocks of two hosts.
    static let clockTolerance: Int64 = 5 * 60_000

    /// A sixth of the time for which deletions are kept remains for reading the backlog.
    static func greatestAge(whereKept kept: Int64) -> Int64 { min(greatestAge, kept / 6 * 5) }

    /// Bytes that each partition may hold.
    public static func heldBytes(partitions: Int) -> Int { heldBytes / partitions }
}
