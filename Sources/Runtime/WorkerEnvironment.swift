// What a worker has from the process around it.

public import Log
internal import Platform

/// Time, and who hears what a session says. A test gives its own, and a worker then does the same twice.
public struct WorkerEnvironment: Sendable {
    /// On a clock that never jumps.
    public var elapsed: @Sendable () -> Duration
    /// On a clock that goes on while the process is stopped.
    public var bootClock: @Sendable () -> Duration = BootClock.now
    /// Milliseconds since 1970 by the host's clock. No output rests on it.
    public var wallClock: @Sendable () -> Int64
    public var pause: @Sendable (Duration) -> Void
    public var jitter: @Sendable () -> UInt64
    /// A number for the life of a changelog that begins: never 0, and no other life's.
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

    /// That of this process.
    public static func real(sessionEvents: @escaping @Sendable (LogEvent) -> Void) -> WorkerEnvironment {
        let start = ContinuousClock.now
        return WorkerEnvironment(
            elapsed: { start.duration(to: .now) }, wallClock: { WallClock.milliseconds() },
            pause: { Platform.pause(for: $0) }, jitter: { .random(in: 0 ... .max) }, sessionEvents: sessionEvents)
    }
}

/// Where it is noted which record is being worked on, so that one that ends the process again and again is found. One thread.
public protocol CrashNoting: AnyObject {
    func working(topic: Int, offset: Int64)
    func idle()
    /// The process has trapped at this record so often.
    func isPoison(topic: Int, offset: Int64, limit: Int) -> Bool
}

/// The notes of each partition.
public protocol CrashNotesProvider: Sendable {
    /// nil: they cannot be kept, and the worker does without.
    func notes(_ partition: Int32) -> (any CrashNoting)?
}
