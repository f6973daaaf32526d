// The clocks of the read API.

internal import Follow
internal import Platform

/// Tests, and demonstrations with their own time, pass others.
public struct ReadAPITime: Sendable {
    /// Used to judge access, in milliseconds since 1970: the time of the records.
    public var now: @Sendable () -> Int64
    /// Used for the age of a copy, in milliseconds since 1970: the time by which the log forgets deletions.
    public var wall: @Sendable () -> Int64
    /// A clock that never jumps.
    public var elapsed: @Sendable () -> Duration

    public init(
        now: @escaping @Sendable () -> Int64, wall: @escaping @Sendable () -> Int64,
        elapsed: @escaping @Sendable () -> Duration
    ) {
        self.now = now
        self.wall = wall
        self.elapsed = elapsed
    }

    /// Uses another time for access only: copies age by the clock of this host.
    public init(now: @escaping @Sendable () -> Int64, elapsed: @escaping @Sendable () -> Duration) {
        self.init(now: now, wall: WallClock.milliseconds, elapsed: elapsed)
    }

    /// The clocks of this host.
    public static func real() -> ReadAPITime {
        let time = FollowTime.real()
        return ReadAPITime(now: time.wall, wall: time.wall, elapsed: time.elapsed)
    }

    var ofFollowing: FollowTime { FollowTime(wall: wall, elapsed: elapsed) }
}
