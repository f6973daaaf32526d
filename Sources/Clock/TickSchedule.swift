// When a tick is due: a function of what was seen of the partitions and of the time that is passed in.

/// What one member knows of the partitions it owns. Times are milliseconds since 1970 by the wall clock: a partition's clock is
/// made of timestamps, which other hosts have written as well.
///
/// Records are not read, their arrival is seen by the end that moves. Only when a partition has been quiet for an interval, or
/// has just been taken over, is the timestamp of its last record read: the next tick is due one interval after it, whoever
/// wrote it. So a partition that changes hands gets neither two ticks in one interval nor a tick behind its own clock.
///
/// With a `life`, only partitions are ticked whose last notification is younger than that.
struct TickSchedule {
    /// Of the last record before an end.
    struct Record: Equatable {
        let timestamp: Int64
        let isTick: Bool
    }

    /// What is known of a partition's last record.
    private enum Last {
        /// There is none.
        case none
        /// Its timestamp is to be read at this time.
        case unread(at: Int64)
        case timestamp(Int64)
    }

    /// What is known of a partition's last notification.
    private enum Notified {
        /// There is none, or it is older than a life.
        case none
        /// The last record is a tick: those before it have to be read.
        case unsearched
        case at(Int64)
    }

    private struct Partition {
        /// Where the next record will stand; nil until the first look.
        var end: Int64?
        var last = Last.none
        var notified = Notified.none
    }

    let interval: Int64
    /// nil: partitions are ticked for ever.
    let life: Int64?
    private var partitions: [Int32: Partition] = [:]

    init(interval: Int64, life: Int64? = nil) {
        precondition(interval > 0, "silence has a length")
        self.interval = interval
        self.life = life
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
        partitions[number] = Partition(end: end, last: last, notified: known.notified)
    }

    /// Partitions whose last record's timestamp is wanted now, and their ends.
    func unread(at now: Int64) -> [Int32: Int64] {
        partitions.compactMapValues { partition in
            guard case .unread(let time) = partition.last, time <= now else { return nil }
            return partition.end
        }
    }

    /// This is the record before `end`; nil: no record is left there, retention has deleted it.
    mutating func read(_ record: Record?, before end: Int64, of number: Int32) {
        guard let known = partitions[number], known.end == end else { return }
        partitions[number]?.last = record.map { .timestamp($0.timestamp) } ?? .none
        // Whatever was known of earlier ones: more may have come than this record.
        partitions[number]?.notified = record.map { $0.isTick ? .unsearched : .at($0.timestamp) } ?? .none
    }

    /// Partitions of which the records of a life before these ends have to be searched for a notification.
    var unsearched: [Int32: Int64] {
        guard life != nil else { return [:] }
        return partitions.compactMapValues { partition in
            if case .unsearched = partition.notified { partition.end } else { nil }
        }
    }

    /// The last notification of a life before `end` has this timestamp; nil: there is none.
    mutating func found(notification timestamp: Int64?, before end: Int64, of number: Int32) {
        guard let known = partitions[number], known.end == end else { return }
        partitions[number]?.notified = timestamp.map { .at($0) } ?? .none
    }

    private func isAlive(_ partition: Partition, at now: Int64) -> Bool {
        guard let life else { return true }
        if case .at(let time) = partition.notified { return now - time < life }
        return false
    }

    /// Partitions that have been quiet for an interval, and since when the tick has been due; nil: there is no record that it
    /// could be counted from.
    func due(at now: Int64) -> [(partition: Int32, since: Int64?)] {
        partitions.sorted { $0.key < $1.key }.compactMap { number, partition in
            guard partition.end != nil, isAlive(partition, at: now) else { return nil }
            switch partition.last {
            case .none: return (number, nil)
            case .timestamp(let time) where time + interval <= now: return (number, time + interval)
            case .timestamp, .unread: return nil
            }
        }
    }

    /// Whether a look is worth while before its turn: something is due or to be read, or nothing is known yet.
    func hasWork(at now: Int64) -> Bool {
        !due(at: now).isEmpty || !unread(at: now).isEmpty || !unsearched.isEmpty
            || partitions.values.contains { $0.end == nil }
    }

    /// The broker has a tick of ours at `offset`. Whatever else came in between stands before it.
    mutating func ticked(_ number: Int32, at offset: Int64, timestamp: Int64) {
        guard let known = partitions[number], let end = known.end, end <= offset else { return }
        // What came in between is younger than the look: a notification of just now.
        let notified = end < offset ? Notified.at(timestamp) : known.notified
        partitions[number] = Partition(end: offset + 1, last: .timestamp(timestamp), notified: notified)
    }

    /// The furthest that the last record of a partition lies ahead of `now`; 0 when none does.
    func ahead(of now: Int64) -> Int64 {
        partitions.values.reduce(0) { furthest, partition in
            guard case .timestamp(let time) = partition.last else { return furthest }
            return max(furthest, time - now)
        }
    }
}
