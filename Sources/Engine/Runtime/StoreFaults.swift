// Stores that fail while their partition runs, and what follows for their next opening.

internal import Store
import Synchronization

/// A damaged store is wiped when it is opened again. If the next one fails soon, it is not wiped, because the disk may be
/// broken. If a store fails again and again for minutes, the process ends, so that another one gets the partition.
///
/// Shared by the threads of a process, because a fault ends a session, and another thread may get the partition then.
final class StoreFaults: Sendable {
    /// Faults of one partition, between which it never ran for long.
    private struct Streak {
        let since: Duration
        var last: Duration
        var words: String
        /// Since when the partition has been running again.
        var runsSince: Duration?
        /// The store must be wiped.
        var isDamaged = false
        /// The damaged store is in this replica's own directory, and not in the one that all replicas on the machine share.
        var isAside = false
        var wasWiped = false
    }

    /// What happened to a partition before that does not matter any more: other processes may have had it, and its store, since.
    private static let memory: Duration = .seconds(3600)

    private let streaks = Mutex<[Int32: Streak]>([:])

    /// - Parameter patience: a partition that has run for this long without a fault begins a new streak.
    func note(_ partition: Int32, _ fault: StoreFault, isAside: Bool, patience: Duration, at now: Duration) {
        streaks.withLock { streaks in
            var streak = Streak(since: now, last: now, words: fault.words)
            if let earlier = streaks[partition], now - earlier.last < Self.memory,
                earlier.runsSince.map({ now - $0 < patience }) ?? true
            {
                streak = earlier
            }
            streak.last = now
            streak.words = fault.words
            streak.runsSince = nil
            if fault.cause == .corrupt, !streak.wasWiped { (streak.isDamaged, streak.isAside) = (true, isAside) }
            streaks[partition] = streak
        }
    }

    /// Why the store must be wiped. nil: it need not.
    func damage(of partition: Int32, isAside: Bool, at now: Duration) -> String? {
        streaks.withLock { streaks in
            guard let streak = streaks[partition], streak.isDamaged, streak.isAside == isAside,
                now - streak.last < Self.memory
            else { return nil }
            return streak.words
        }
    }

    func wiped(_ partition: Int32, isAside: Bool) {
        streaks.withLock { streaks in
            guard let streak = streaks[partition], streak.isDamaged, streak.isAside == isAside else { return }
            streaks[partition]!.isDamaged = false
            streaks[partition]!.wasWiped = true
        }
    }

    /// What was damaged is gone, even if somebody else has removed it.
    func restored(_ partition: Int32, at now: Duration) {
        streaks.withLock { streaks in
            guard let streak = streaks[partition] else { return }
            streaks[partition]!.isDamaged = false
            streaks[partition]!.runsSince = streak.runsSince ?? now
        }
    }

    /// A partition whose store has been failing for at least `patience`, and the message of its last fault. nil: none has.
    func hopeless(patience: Duration) -> (partition: Int32, words: String)? {
        streaks.withLock { streaks in
            streaks.filter { $0.value.last - $0.value.since >= patience }.min { $0.key < $1.key }
                .map { ($0.key, $0.value.words) }
        }
    }
}
