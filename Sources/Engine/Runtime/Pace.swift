// Limits the speed of a worker, so that one with a large backlog leaves capacity for others.

import Synchronization

/// Lets all threads of a process together process this many records per second, evenly. Each poll waits until its share
/// is available, and takes at most the records of a twentieth of a second, so that polls stay frequent.
public final class Pace: Sendable {
    /// The least limit for this many threads: below it a thread would poll too rarely and look dead.
    public static func least(threads: Int) -> Int { 10 * threads }

    private let recordsPerSecond: Int
    private let recordsAtOnce: Int
    /// The time from which the next record may be processed.
    private let free = Mutex(Duration.zero)

    /// - Parameter recordsPerSecond: at least `least(threads:)`.
    public init(recordsPerSecond: Int, threads: Int) {
        precondition(
            recordsPerSecond >= Self.least(threads: threads), "every thread must poll at least once per second")
        self.recordsPerSecond = recordsPerSecond
        recordsAtOnce = max(1, recordsPerSecond / 20 / threads)
    }

    /// How many records the next poll may return. Waits until that many are allowed.
    func reserve(upTo limit: Int, _ environment: WorkerEnvironment) -> Int {
        let count = min(limit, recordsAtOnce)
        let now = environment.elapsed()
        let start = free.withLock { free in
            let start = max(free, now)
            free = start + time(of: count)
            return start
        }
        if start > now { environment.pause(start - now) }
        return count
    }

    /// Gives back the part of the reservation for which there were no records.
    func giveBack(_ count: Int) {
        if count > 0 { free.withLock { $0 -= time(of: count) } }
    }

    private func time(of count: Int) -> Duration {
        .nanoseconds(Int64(count) * 1_000_000_000 / Int64(recordsPerSecond))
    }
}
