// Time for the outer layers of the program. Domain and engine code gets the time as an argument, and reads no clock.

import Glibc

/// A time by which something must be finished, on a clock that never jumps.
public struct Deadline: Sendable {
    private let end: ContinuousClock.Instant

    public init(after duration: Duration) {
        end = ContinuousClock.now.advanced(by: duration)
    }

    /// Never negative.
    public var remaining: Duration {
        let left = ContinuousClock.now.duration(to: end)
        return left < .zero ? .zero : left
    }

    public var hasPassed: Bool { remaining == .zero }
}

extension Duration {
    /// Rounded towards zero.
    public var wholeMilliseconds: Int64 {
        components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
    }

    /// For C time-outs: at least 1 before the deadline (0 would mean "do not wait"), and never more than Int32 allows.
    public var timeoutMilliseconds: Int32 {
        self <= .zero ? 0 : Int32(clamping: Swift.max(1, wholeMilliseconds))
    }

    public var fractionalSeconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}

public enum WallClock {
    /// Milliseconds since 1970 in UTC.
    public static func milliseconds() -> Int64 {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
    }
}

/// Time since the machine was started. This clock also runs while the machine sleeps and while this process is stopped,
/// and it is never set. Use it for durations that others measure about this process, such as its silence.
public enum BootClock {
    public static func now() -> Duration {
        var now = timespec()
        clock_gettime(CLOCK_BOOTTIME, &now)
        return .seconds(now.tv_sec) + .nanoseconds(now.tv_nsec)
    }
}

/// Sleeps on the calling thread. For control loops with their own threads; never on a pool thread.
public func pause(for duration: Duration) {
    let milliseconds = duration.wholeMilliseconds
    var wanted = timespec(tv_sec: Int(milliseconds / 1000), tv_nsec: Int(milliseconds % 1000) * 1_000_000)
    var left = timespec()
    while nanosleep(&wanted, &left) != 0 && errno == EINTR {
        wanted = left
    }
}
