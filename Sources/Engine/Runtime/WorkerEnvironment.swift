// What a worker gets from its process.

public import Log
internal import Platform

/// Time, and the receiver of a session's events. A test supplies its own, so that a worker does the same each time.
public struct WorkerEnvironment: Sendable {
    /// A clock that never jumps.
    public var elapsed: @Sendable () -> Duration
    /// A clock that also runs while the process is stopped.
    public var bootClock: @Sendable () -> Duration = BootClock.now
    /// Milliseconds since 1970 by the host's clock. No output depends on it.
    public var wallClock: @Sendable () -> Int64
    public var pause: @Sendable (Duration) -> Void
    public var jitter: @Sendable () -> UInt64
    /// A number for a new life of a changelog: never 0, and not used by another life.
    public var newLife: @Sendable () -> UInt64 = { .random(in: 1 ... .max) }
    public var sessionEvents: @Sendable (LogEvent) -> Void

    public init(
        elapsed: @escaping @Sendable () -> Duration, wallClock: @escaping @Sendable () -> Int64,
        pause: @escaping @Sendable (Duration) -> Void, jitter: @escaping @Sendable () -> UInt64,
        sessionEvents: @escaping @Sendable (LogEvent) -> Void = { _ in }
    ) {
        self.elapsed = elapsed
        self.wallClock = wallClock
        self.pause = pause
        self.jitter = jitter
        self.sessionEvents = sessionEvents
    }

    /// The environment of this process.
    public static func real(sessionEvents: @escaping @Sendable (LogEvent) -> Void) -> WorkerEnvironment {
        let start = ContinuousClock.now
        return WorkerEnvironment(
            elapsed: { start.duration(to: .now) }, wallClock: { WallClock.milliseconds() },
            pause: { Platform.pause(for: $0) }, jitter: { .random(in: 0 ... .max) }, sessionEvents: sessionEvents)
    }
}

/// Notes which record is in process, to find one that crashes the process again and again. For use by one thread.
public protocol CrashNoting: AnyObject {
    func working(topic: Int, offset: Int64)
    func idle()
    /// The process has crashed at this record `limit` times.
    func isPoison(topic: Int, offset: Int64, limit: Int) -> Bool
}

/// The crash notes of each partition.
public protocol CrashNotesProvider: Sendable {
    /// nil: notes cannot be kept, and the worker continues without them.
    func notes(_ partition: Int32) -> (any CrashNoting)?
}
