// The partitions for which a process may act outside of the log, and until when.

internal import Log
internal import Platform
import Synchronization

/// The threads of a worker write it. Code that acts on the worker's outputs reads it: a side effect needs a valid
/// lease.
public final class Ownership: Sendable {
    public struct Held: Sendable, Equatable {
        /// A time of the boot clock. From then on another process may have the partition.
        public var until: Duration
        /// Since when the partition was held without a break.
        public var since: Duration
    }

    private struct Share {
        var held: [Int32: Held] = [:]
    }

    private let shares: Mutex<[Share]>
    private let bootClock: @Sendable () -> Duration

    package init(threads: Int, bootClock: @escaping @Sendable () -> Duration) {
        shares = Mutex(Array(repeating: Share(), count: threads))
        self.bootClock = bootClock
    }

    /// Sets the partitions that one thread has now; it has no others.
    package func set(_ partitions: [Int32], until: Duration?, thread: Int) {
        let now = bootClock()
        shares.withLock { shares in
            guard let until else { return shares[thread].held = [:] }
            var held: [Int32: Held] = [:]
            for partition in partitions {
                let before = shares[thread].held[partition]
                // If the lease had expired, another process may have owned the partition in between.
                let since = before.flatMap { now < $0.until ? $0.since : nil } ?? now
                held[partition] = Held(until: until, since: since)
            }
            shares[thread].held = held
        }
    }

    /// The partitions whose lease is valid.
    public var held: [Int32: Held] {
        let now = bootClock()
        return shares.withLock { shares in
            shares.reduce(into: [:]) { all, share in
                all.merge(share.held.filter { now < $0.value.until }) { $0.until > $1.until ? $0 : $1 }
            }
        }
    }

    /// Ask this directly before the side effect.
    public func isHeld(_ partition: Int32) -> Bool {
        let now = bootClock()
        return shares.withLock { shares in shares.contains { now < $0.held[partition]?.until ?? .zero } }
    }
}
