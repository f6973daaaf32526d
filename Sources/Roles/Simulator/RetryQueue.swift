// Parcels that wait for a retry.

/// One queue for each delay: the first entry is due first, so nothing needs to be sorted.
struct RetryQueue {
    struct Entry {
        let parcel: Parcel
        let sha256: [UInt8]
        let sends: Int
        let due: ContinuousClock.Instant
    }

    private struct Line {
        let delay: Int64
        var entries: [Entry] = []
        var head = 0

        var first: Entry? { head < entries.count ? entries[head] : nil }

        mutating func popFirst() -> Entry? {
            guard let entry = first else { return nil }
            head += 1
            // Compacts when half is used, so that each entry is moved once on average.
            if head * 2 >= entries.count {
                entries.removeFirst(head)
                head = 0
            }
            return entry
        }
    }

    private var lines: [Line] = []
    private(set) var count = 0

    /// - Parameter delay: the length of the wait that ends at `entry.due`.
    mutating func append(_ entry: Entry, delay: Int64) {
        count += 1
        if let index = lines.firstIndex(where: { $0.delay == delay }) {
            lines[index].entries.append(entry)
        } else {
            lines.append(Line(delay: delay, entries: [entry]))
        }
    }

    var nextDue: ContinuousClock.Instant? { lines.compactMap(\.first?.due).min() }

    mutating func pop(dueBy now: ContinuousClock.Instant) -> Entry? {
        let due = lines.indices.compactMap { index in lines[index].first.map { (index, $0.due) } }.min { $0.1 < $1.1 }
        guard let (index, instant) = due, instant <= now else { return nil }
        count -= 1
        return lines[index].popFirst()
    }
}
