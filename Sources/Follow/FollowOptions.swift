// What is followed, how, and by which clocks.

public import Log
internal import Platform
public import Telemetry

/// Time, as the process around it has it. A test gives others.
public struct FollowTime: Sendable {
    /// What the age of a copy is judged by, in milliseconds since 1970: the time in which the log forgets deletions.
    public var wall: @Sendable () -> Int64
    /// On a clock that never jumps.
    public var elapsed: @Sendable () -> Duration

    public init(wall: @escaping @Sendable () -> Int64, elapsed: @escaping @Sendable () -> Duration) {
        self.wall = wall
        self.elapsed = elapsed
    }

    /// That of this host.
    public static func real() -> FollowTime {
        let start = ContinuousClock.now
        return FollowTime(wall: WallClock.milliseconds, elapsed: { start.duration(to: .now) })
    }
}

public struct FollowOptions: Sendable {
    public struct Topic: Sendable {
        public var name: String
        /// A copy of such a topic is built anew when it may have missed deletions, and the topic is checked to be one. Any other
        /// topic is followed whatever it is.
        public var isCompacted: Bool
        public var start: Start

        public init(_ name: String, isCompacted: Bool, start: Start = .beginning) {
            self.name = name
            self.isCompacted = isCompacted
            self.start = start
        }
    }

    /// Where a topic begins of which the sink keeps no position.
    public enum Start: Sendable {
        case beginning
        /// At the first record at or after this moment, in milliseconds since 1970. It is asked for whenever a partition is begun.
        case time(@Sendable () -> Int64)
    }

    /// For the log's own messages.
    public var name: String
    /// A name that the user may ask for; it is neither joined nor committed to.
    public var group: String
    /// The number of a topic is its index here. Partition p of all of them has one sink.
    public var topics: [Topic]
    /// Of each topic. With another number nothing is followed: keys would be in other partitions.
    public var partitions: Int32
    /// How often the ends are asked for: so old is what is said to be complete, at most, while all is well.
    public var lookInterval: Duration = .seconds(1)
    /// What counts as the end that has to be reached. `.all`: also what is in transactions whose end the log has not shown yet, for
    /// whoever has heard of a commit from its writer.
    public var ends: EndKind = .committed
    /// For so long a step waits for records, at most.
    public var pollWait: Duration = .milliseconds(100)
    /// About as much memory may hold what is fetched and not applied.
    public var readAheadBytes = 64 << 20
    /// For so long the log may think about a question.
    public var questionLimit: Duration = .seconds(10)

    public init(name: String, group: String, topics: [Topic], partitions: Int32) {
        self.name = name
        self.group = group
        self.topics = topics
        self.partitions = partitions
    }
}

/// What is counted. Whoever follows makes them, under names of his own.
public struct FollowCounts: Sendable {
    /// Offsets between what was read and the ends seen last.
    public var remaining: Gauge
    /// Topics' partitions that are not read on.
    public var paused: Gauge
    /// Copies that were of no use.
    public var wipes: Counter

    public init(remaining: Gauge, paused: Gauge, wipes: Counter) {
        self.remaining = remaining
        self.paused = paused
        self.wipes = wipes
    }
}

public enum FollowLimits {
    /// Lent at a time: a write of so many takes about a millisecond.
    static let recordsPerPoll = 2000
    /// Held while a copy is built: larger writes are cheaper.
    static let recordsPerWrite = 10_000
    /// Held by all partitions together.
    private static let heldBytes = 32 << 20
    /// Of positions that have moved alone. They tell how old a copy is.
    static let placesInterval: Duration = .seconds(60)
    /// A partition may lack a leader for this long before the log warns about it.
    static let leaderPatience: Duration = .seconds(10)
    static let progressInterval: Duration = .seconds(5)
    static let closing: Duration = .seconds(10)
    /// In milliseconds. A copy that was not complete for so long may have missed deletions: it is built anew, also where the topic
    /// keeps them for longer (`perennial topics apply` says a week): settings may have been others meanwhile, and Kafka's own is a
    /// day.
    static let greatestAge: Int64 = 20 * 3_600_000
    /// In milliseconds. Below it copies would be built anew for every hitch.
    static let leastDeletionsKept: Int64 = 60_000
    /// In milliseconds. A place from later than now was written by a clock that ran ahead, and says nothing about its age; less
    /// than this is two hosts that do not quite agree.
    static let clockTolerance: Int64 = 5 * 60_000

    /// A sixth of the time for which deletions are kept is left for reading what has gathered meanwhile.
    static func greatestAge(whereKept kept: Int64) -> Int64 { min(greatestAge, kept / 6 * 5) }

    /// By one of so many.
    public static func heldBytes(partitions: Int) -> Int { heldBytes / partitions }
}
