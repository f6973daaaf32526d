// Time, as the process around the sender has it.

internal import Platform

/// A test gives others.
public struct SenderTime: Sendable {
    /// What deadlines are judged by, in milliseconds since 1970.
    public var wall: @Sendable () -> Int64
    /// On a clock that never jumps.
    public var elapsed: @Sendable () -> Duration
    /// From 0 to 1.
    public var jitter: @Sendable () -> Double

    public init(
        wall: @escaping @Sendable () -> Int64, elapsed: @escaping @Sendable () -> Duration,
        jitter: @escaping @Sendable () -> Double
    ) {
        self.wall = wall
        self.elapsed = elapsed
        self.jitter = jitter
    }

    /// That of this host.
    public static func real() -> SenderTime {
        let start = ContinuousClock.now
        return SenderTime(
            wall: WallClock.milliseconds, elapsed: { start.duration(to: .now) }, jitter: { .random(in: 0...1) })
    }
}
