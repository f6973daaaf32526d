// The time of an in-memory log.

internal import Platform
import Synchronization

extension MemoryLog {
    /// The clock for session and transaction timeouts and append times. It never runs backwards.
    public final class Clock: Sendable {
        private let start: Int64
        /// nil: the clock moves only with `advance`.
        private let origin: ContinuousClock.Instant?
        private let advanced = Atomic<Int64>(0)

        private init(start: Int64, origin: ContinuousClock.Instant?) {
            self.start = start
            self.origin = origin
        }

        /// Starts at the time of day, and continues with a monotonic clock.
        public static func real() -> Clock {
            Clock(start: WallClock.milliseconds(), origin: ContinuousClock.now)
        }

        /// Moves only with `advance`. Nothing waits on it: a poll without records returns at once, so that one thread
        /// can play all roles.
        public static func manual(startingAt milliseconds: Int64 = 0) -> Clock {
            Clock(start: milliseconds, origin: nil)
        }

        public var isManual: Bool { origin == nil }

        /// Milliseconds since 1970.
        public var now: Int64 {
            guard let origin else { return start + advanced.load(ordering: .relaxed) }
            return start + origin.duration(to: .now).wholeMilliseconds
        }

        /// Only for a manual clock.
        public func advance(by duration: Duration) {
            precondition(isManual, "the real clock cannot be set")
            precondition(duration >= .zero, "the clock cannot run backwards")
            advanced.add(duration.wholeMilliseconds, ordering: .relaxed)
        }
    }
}
