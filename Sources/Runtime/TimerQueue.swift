// The timers of one partition in the order in which they fire.

internal import Store

/// Merges the timers that the store has with those that were set since it was last written.
///
/// It knows places of timers, and may give one that was moved, cancelled, or given before: the entry of its key knows better, and
/// is asked by whoever takes it out.
struct TimerQueue {
    private static let scanLimit = 256

    private let store: any PartitionStore
    /// Set since the store was written; a heap, the first is the earliest.
    private var fresh: [TimerEntry] = []
    /// Read from the store and not given yet; the last is the earliest.
    private var scanned: [TimerEntry] = []
    /// The last one that was read from the store since it was written. What was given stays in there until the next write.
    private var cursor: TimerEntry?
    /// No timer in the store behind `scanned` is due before.
    private var storeBound = Int64.min

    init(store: any PartitionStore) { self.store = store }

    /// No timer is due before.
    private var bound: Int64 {
        min(fresh.first?.due ?? .max, scanned.last?.due ?? storeBound)
    }

    /// How many are kept for the store.
    var freshCount: Int { fresh.count }

    /// The earliest that is due by then.
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
        // Looked up once for all records until then: a search in the store costs more than a record.
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

    /// What was set is in the store now, and what has fired is not any more.
    mutating func stored() {
        storeBound = min(storeBound, bound)
        start(with: [])
    }

    /// A cycle is taken back.
    /// - Parameter unstored: all timers that the last commit has and the store does not.
    mutating func rolledBack(to unstored: [TimerEntry]) {
        storeBound = .min
        start(with: unstored)
    }

    private mutating func start(with timers: [TimerEntry]) {
        // What is sorted is a heap.
        fresh = timers.sorted()
        scanned.removeAll(keepingCapacity: true)
        cursor = nil
    }
}
