// Time, as the process around it has it.

internal import Follow
internal import Platform

/// A test, or a demonstration that lives in a time of its own, gives others.
public struct ReadAPITime: Sendable {
    /// What access is judged by, in milliseconds since 1970: the time in which the records live.
    public var now: @Sendable () -> Int64
    /// What the age of a copy is judged by, in milliseconds since 1970: the time in which the log forgets deletions.
    public var wall: @Sendable () -> Int64
    /// On a clock that never jumps.
    public var elapsed: @Sendable () -> Duration

    public init(
        now: @escaping @Sendable () -> Int64, wall: @escaping @Sendable () -> Int64,
        elapsed: @escaping @Sendable () -> Duration
    ) {
        self.now = now
        self.wall = wall
        self.elapsed = elapsed
    }

    /// With a time of its own for access only: copies age by the clock of this host.
    public init(now: @escaping @Sendable () -> Int64, elapsed: @escaping @Sendable () -> Duration) {
        self.init(now: now, wall: WallClock.milliseconds, elapsed: elapsed)
    }

    /// That of this host.
    public static func real() -> ReadAPITime {
        let time = FollowTime.real()
        return ReadAPITime(now: time.wall, wall: time.wall, elapsed: time.elapsed)
    }

    var ofFollowing: FollowTime { FollowTime(wall: wall, elapsed: elapsed) }
}
