// Stores that fail while their partition runs, and what follows for their next opening.

internal import Store

/// A damaged store is wiped when it is opened again, but only once: a broken disk damages the next one too. If a store
/// fails again and again for minutes, the process ends, so that another one gets the partition.
///
/// This survives sessions, because each fault ends one.
struct StoreFaults {
    /// Faults of one partition that follow each other closely.
    private struct Streak {
        let since: Duration
        var last: Duration
        var words: String
        /// The store must be wiped.
        var isDamaged = false
        /// The damaged store is the one that is not shared with other replicas.
        var isAside = false
        var wasWiped = false
    }

    /// A streak has ended when this long has passed without a fault. A restore takes less.
    private static let calm: Duration = .seconds(3600)

    private let patience: Duration
    private var streaks: [Int32: Streak] = [:]

    /// - Parameter patience: a streak may last this long.
    init(patience: Duration) { self.patience = patience }

    mutating func note(_ partition: Int32, _ fault: StoreFault, isAside: Bool, at now: Duration) {
        var streak = Streak(since: now, last: now, words: fault.words)
        if let earlier = streaks[partition], now - earlier.last < Self.calm { streak = earlier }
        streak.last = now
        streak.words = fault.words
        if fault.cause == .corrupt, !streak.wasWiped { (streak.isDamaged, streak.isAside) = (true, isAside) }
        streaks[partition] = streak
    }

    /// Why the store must be wiped. nil: it need not.
    func damage(of partition: Int32, isAside: Bool) -> String? {
        guard let streak = streaks[partition], streak.isDamaged, streak.isAside == isAside else { return nil }
        return streak.words
    }

    mutating func wiped(_ partition: Int32) {
        streaks[partition]?.isDamaged = false
        streaks[partition]?.wasWiped = true
    }

    /// Forgets all partitions except these: the others belong to other processes.
    mutating func keep(_ partitions: Set<Int32>) { streaks = streaks.filter { partitions.contains($0.key) } }

    /// The partition whose faults have lasted too long, and the last of them. nil: there is none.
    var hopeless: (partition: Int32, words: String)? {
        streaks.filter { $0.value.last - $0.value.since >= patience }.min { $0.key < $1.key }
            .map { ($0.key, $0.value.words) }
    }
}
