// Which partitions a process may act for outside of the log, and until when.

internal import Log
internal import Platform
import Synchronization

/// Written by the threads of a worker, read by whoever acts on its outputs: a side effect needs a lease that runs.
public final class Ownership: Sendable {
    public struct Held: Sendable, Equatable {
        /// On the boot clock: at that moment the partition may be another's.
        public var until: Duration
        /// Since when it was held without a break.
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

    /// What one thread has now, and nothing else.
    package func set(_ partitions: [Int32], until: Duration?, thread: Int) {
        let now = bootClock()
        shares.withLock { shares in
            guard let until else { return shares[thread].held = [:] }
            var held: [Int32: Held] = [:]
            for partition in partitions {
                let before = shares[thread].held[partition]
                // A lease that had ended in between says nothing about what others did meanwhile.
                let since = before.flatMap { now < $0.until ? $0.since : nil } ?? now
                held[partition] = Held(until: until, since: since)
            }
            shares[thread].held = held
        }
    }

    /// Those whose lease runs.
    public var held: [Int32: Held] {
        let now = bootClock()
        return shares.withLock { shares in
            shares.reduce(into: [:]) { all, share in
                all.merge(share.held.filter { now < $0.value.until }) { $0.until > $1.until ? $0 : $1 }
            }
        }
    }

    /// To be asked right before the act.
    public func isHeld(_ partition: Int32) -> Bool {
        let now = bootClock()
        return shares.withLock { shares in shares.contains { now < $0.held[partition]?.until ?? .zero } }
    }
}
