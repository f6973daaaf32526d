// The clocks of the sender.

internal import Platform

/// Tests pass others.
public struct SenderTime: Sendable {
    /// Used to judge deadlines, in milliseconds since 1970.
    public var wall: @Sendable () -> Int64
    /// A clock that never jumps.
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

    /// The clocks of this host.
    public static func real() -> SenderTime {
        let start = ContinuousClock.now
        return SenderTime(
            wall: WallClock.milliseconds, elapsed: { start.duration(to: .now) }, jitter: { .random(in: 0...1) })
    }
}
