// Time, as the process around it has it.

internal import Platform

/// A test, or a demonstration that lives in a time of its own, gives others.
public struct ReadAPITime: Sendable {
    /// Milliseconds since 1970: what access is judged by, and the age of a copy.
    public var now: @Sendable () -> Int64
    /// On a clock that never jumps.
    public var elapsed: @Sendable () -> Duration

    public init(now: @escaping @Sendable () -> Int64, elapsed: @escaping @Sendable () -> Duration) {
        self.now = now
        self.elapsed = elapsed
    }

    /// That of this host.
    public static func real() -> ReadAPITime {
        let start = ContinuousClock.now
        return ReadAPITime(now: WallClock.milliseconds, elapsed: { start.duration(to: .now) })
    }
}
