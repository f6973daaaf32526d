// The timers of one partition in the order in which they fire.

internal import Store

/// Merges the timers of the store with those that were set since the last write.
///
/// It knows only the places of timers, and may return a timer that was moved, cancelled, or returned before. So the
/// caller checks each timer against the entry of its key.
struct TimerQueue {
    private static let scanLimit = 256

    private let store: any PartitionStore
    /// Timers that were set since the store was written: a heap with the earliest first.
    private var fresh: [TimerEntry] = []
    /// Timers that were read from the store and not returned yet: the earliest is last.
    private var scanned: [TimerEntry] = []
    /// The last timer that was read from the store since it was written. Returned timers stay in the store until the
    /// next write.
    private var cursor: TimerEntry?
    /// No timer in the store after `scanned` is due before this.
    private var storeBound = Int64.min

    init(store: any PartitionStore) { self.store = store }

    /// No timer is due before this.
    private var bound: Int64 {
        min(fresh.first?.due ?? .max, scanned.last?.due ?? storeBound)
    }

    /// How many timers wait for the store.
    var freshCount: Int { fresh.count }

    /// Takes the earliest timer that is due at `moment`.
    mutating func take(dueBy moment: Int64) throws(StoreFault) -> TimerEntry? {
        guard bound <= moment else { return nil }
        if scanned.isEmpty, storeBound <= moment { try scan(dueBy: moment) }
        let stored = scanned.last
        guard let first = fresh.first, first.due <= moment, stored.map({ first < $0 }) ?? true else {
            guard let stored, stored.due <= moment else { return nil }
            return scanned.removeLast()
        }
        return popFresh()
    }

    private mutating func scan(dueBy moment: Int64) throws(StoreFault) {
        let found = try store.timers(after: cursor, dueBy: moment, limit: Self.scanLimit)
        scanned = found.reversed()
        cursor = found.last ?? cursor
        // Read once for all records up to then: a lookup in the store costs more than a record.
        storeBound = try store.timers(after: cursor, dueBy: .max, limit: 1).first?.due ?? .max
    }

    mutating func set(_ timer: TimerEntry) {
        fresh.append(timer)
        var child = fresh.count - 1
        while child > 0, fresh[child] < fresh[(child - 1) / 2] {
            fresh.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    private mutating func popFresh() -> TimerEntry {
        fresh.swapAt(0, fresh.count - 1)
        let first = fresh.removeLast()
        var parent = 0
        while true {
            var child = 2 * parent + 1
            guard child < fresh.count else { break }
            if child + 1 < fresh.count, fresh[child + 1] < fresh[child] { child += 1 }
            guard fresh[child] < fresh[parent] else { break }
            fresh.swapAt(child, parent)
            parent = child
        }
        return first
    }

    /// Call this when the store has the timers that were set, and has dropped those that fired.
    mutating func stored() {
        storeBound = min(storeBound, bound)
        start(with: [])
    }

    /// Rolls back a cycle.
    /// - Parameter unstored: all timers that are in the last commit but not in the store.
    mutating func rolledBack(to unstored: [TimerEntry]) {
        storeBound = .min
        start(with: unstored)
    }

    private mutating func start(with timers: [TimerEntry]) {
        // A sorted array is a heap.
        fresh = timers.sorted()
        scanned.removeAll(keepingCapacity: true)
        cursor = nil
    }
}
