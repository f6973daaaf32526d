// When a tick is due: a function of what was seen of the partitions and of the time that is passed in.

/// What one member knows of the partitions it owns. Times are milliseconds since 1970 by the wall clock: a partition's clock is
/// made of timestamps, which other hosts have written as well.
///
/// Records are not read, their arrival is seen by the end that moves. Only when a partition has been quiet for an interval, or
/// has just been taken over, is the timestamp of its last record read: the next tick is due one interval after it, whoever
/// wrote it. So a partition that changes hands gets neither two ticks in one interval nor a tick behind its own clock.
struct TickSchedule {
    /// What is known of a partition's last record.
    private enum Last {
        /// There is none.
        case none
        /// Its timestamp is to be read at this time.
        case unread(at: Int64)
        case timestamp(Int64)
    }

    private struct Partition {
        /// Where the next record will stand; nil until the first look.
        var end: Int64?
        var last = Last.none
    }

    let interval: Int64
    private var partitions: [Int32: Partition] = [:]

    init(interval: Int64) {
        precondition(interval > 0, "silence has a length")
        self.interval = interval
    }

    /// These are the member's, and all it has. What was known of them is forgotten: somebody else may have had them since.
    mutating func take(over owned: [Int32]) {
        partitions = Dictionary(uniqueKeysWithValues: owned.map { ($0, Partition()) })
    }

    var owned: [Int32] { partitions.keys.sorted() }

    /// A look at the broker found the end of a partition there.
    mutating func saw(end: Int64, of number: Int32, at now: Int64) {
        guard let known = partitions[number], known.end != end else { return }
        let last: Last
        if end == 0 {
            last = .none
        } else if let before = known.end, before < end {
            // Somebody has appended since the last look.
            last = .unread(at: now + interval)
        } else {
            // Taken over, or another topic of the same name.
            last = .unread(at: now)
        }
        partitions[number] = Partition(end: end, last: last)
    }

    /// Partitions whose last record's timestamp is wanted now, and their ends.
    func unread(at now: Int64) -> [Int32: Int64] {
        partitions.compactMapValues { partition in
            guard case .unread(let time) = partition.last, time <= now else { return nil }
            return partition.end
        }
    }

    /// The record before `end` has this timestamp; nil: no record is left there, retention has deleted it.
    mutating func read(_ timestamp: Int64?, before end: Int64, of number: Int32) {
        guard let known = partitions[number], known.end == end else { return }
        partitions[number]?.last = timestamp.map { .timestamp($0) } ?? .none
    }

    /// Partitions that have been quiet for an interval, and since when the tick has been due; nil: there is no record that it
    /// could be counted from.
    func due(at now: Int64) -> [(partition: Int32, since: Int64?)] {
        partitions.sorted { $0.key < $1.key }.compactMap { number, partition in
            guard partition.end != nil else { return nil }
            switch partition.last {
            case .none: return (number, nil)
            case .timestamp(let time) where time + interval <= now: return (number, time + interval)
            case .timestamp, .unread: return nil
            }
        }
    }

    /// Whether a look is worth while before its turn: something is due or to be read, or nothing is known yet.
    func hasWork(at now: Int64) -> Bool {
        !due(at: now).isEmpty || !unread(at: now).isEmpty || partitions.values.contains { $0.end == nil }
    }

    /// The broker has a tick of ours at `offset`. Whatever else came in between stands before it.
    mutating func ticked(_ number: Int32, at offset: Int64, timestamp: Int64) {
        guard let end = partitions[number]?.end, end <= offset else { return }
        partitions[number] = Partition(end: offset + 1, last: .timestamp(timestamp))
    }

    /// The furthest that the last record of a partition lies ahead of `now`; 0 when none does.
    func ahead(of now: Int64) -> Int64 {
        partitions.values.reduce(0) { furthest, partition in
            guard case .timestamp(let time) = partition.last else { return furthest }
            return max(furthest, time - now)
        }
    }
}
