// A limit of speed, so that a worker that has much to catch up with leaves room for others.

import Synchronization

/// Lets the threads of a process deal with so many records a second, all together, and evenly: each look for records waits until
/// its share is free, and takes a twentieth of a second's records at most, so that no look is far from the next.
public final class Pace: Sendable {
    /// Of a limit for so many threads: below it a thread would not look often enough to be taken for alive.
    public static func least(threads: Int) -> Int { 10 * threads }

    private let recordsPerSecond: Int
    private let recordsAtOnce: Int
    /// From when on the next record may be dealt with.
    private let free = Mutex(Duration.zero)

    /// - Parameter recordsPerSecond: at least `least(threads:)`.
    public init(recordsPerSecond: Int, threads: Int) {
        precondition(
            recordsPerSecond >= Self.least(threads: threads), "a thread looks for records once a second at least")
        self.recordsPerSecond = recordsPerSecond
        recordsAtOnce = max(1, recordsPerSecond / 20 / threads)
    }

    /// How many records the next look may bring. Waits until that many are free.
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

    /// So many of them were not there.
    func giveBack(_ count: Int) {
        if count > 0 { free.withLock { $0 -= time(of: count) } }
    }

    private func time(of count: Int) -> Duration {
        .nanoseconds(Int64(count) * 1_000_000_000 / Int64(recordsPerSecond))
    }
}
