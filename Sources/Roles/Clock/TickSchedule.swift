// Decides when a tick is due, from what was seen of the partitions and the time that is passed in.

/// What one member knows about its partitions. Times are milliseconds since 1970 by the wall clock: a partition's clock
/// consists of timestamps, and other hosts have written some of them.
///
/// Records are not read; the end that moves shows that records arrived. Only if a partition was silent for an interval,
/// or was just assigned, the timestamp of its last record is read: the next tick is due one interval after it, whoever
/// wrote it. So a partition that moves to another member gets neither two ticks in one interval nor a tick behind its
/// own clock.
///
/// With a `life`, only partitions whose last notification is younger than that get ticks.
///
/// `trial` is the only exception: one tick that is not due, after the brokers have refused the time of this host.
struct TickSchedule {
    /// The last record before an end.
    struct Record: Equatable {
        let timestamp: Int64
        let isTick: Bool
    }

    /// What is known about a partition's last record.
    private enum Last {
        /// The partition has no record.
        case none
        /// Its timestamp must be read at this time.
        case unread(at: Int64)
        case timestamp(Int64)
    }

    /// What is known about a partition's last notification.
    private enum Notified {
        /// There is none, or it is older than a life.
        case none
        /// The last record is a tick, so the records before it must be read.
        case unsearched
        case at(Int64)
    }

    private struct Partition {
        /// The offset of the next record; nil until the first look.
        var end: Int64?
        var last = Last.none
        var notified = Notified.none
    }

    let interval: Int64
    /// nil: partitions get ticks forever.
    let life: Int64?
    private var partitions: [Int32: Partition] = [:]

    init(interval: Int64, life: Int64? = nil) {
        precondition(interval > 0, "the interval must be positive")
        self.interval = interval
        self.life = life
    }

    /// The member owns exactly these partitions. All earlier knowledge of them is dropped: other members may have owned
    /// them since.
    mutating func take(over owned: [Int32]) {
        partitions = Dictionary(uniqueKeysWithValues: owned.map { ($0, Partition()) })
    }

    var owned: [Int32] { partitions.keys.sorted() }

    /// A look at the broker found this end of a partition.
    mutating func saw(end: Int64, of number: Int32, at now: Int64) {
        guard let known = partitions[number], known.end != end else { return }
        let last: Last
        if end == 0 {
            last = .none
        } else if let before = known.end, before < end {
            // Records were appended since the last look.
            last = .unread(at: now + interval)
        } else {
            // The partition was just assigned, or belongs to another topic with the same name.
            last = .unread(at: now)
        }
        partitions[number] = Partition(end: end, last: last, notified: known.notified)
    }

    /// The partitions for which the timestamp of the last record is needed now, and their ends.
    func unread(at now: Int64) -> [Int32: Int64] {
        partitions.compactMapValues { partition in
            guard case .unread(let time) = partition.last, time <= now else { return nil }
            return partition.end
        }
    }

    /// This is the record before `end`; nil: retention has deleted it.
    mutating func read(_ record: Record?, before end: Int64, of number: Int32) {
        guard let known = partitions[number], known.end == end else { return }
        partitions[number]?.last = record.map { .timestamp($0.timestamp) } ?? .none
        // Earlier knowledge is outdated: more than this record may have arrived.
        partitions[number]?.notified = record.map { $0.isTick ? .unsearched : .at($0.timestamp) } ?? .none
    }

    /// Partitions in which the records of a life before these ends must be searched for a notification.
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

    /// Partitions that were silent for an interval, and since when the tick is due; nil: there is no record from which
    /// the interval could be counted.
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

    /// Whether any partition gets ticks.
    func hasLiving(at now: Int64) -> Bool { partitions.values.contains { isAlive($0, at: now) } }

    /// A partition to which a tick can be written although none is due: it was looked at, gets ticks, and its last record
    /// is not known to be ahead of `now`.
    func trial(at now: Int64) -> Int32? {
        partitions.sorted { $0.key < $1.key }.first { _, partition in
            guard partition.end != nil, isAlive(partition, at: now) else { return false }
            if case .timestamp(let time) = partition.last { return time <= now }
            return true
        }?.key
    }

    /// Whether an early look is useful: something is due or must be read, or nothing is known yet.
    func hasWork(at now: Int64) -> Bool {
        !due(at: now).isEmpty || !unread(at: now).isEmpty || !unsearched.isEmpty
            || partitions.values.contains { $0.end == nil }
    }

    /// The broker has our tick at `offset`. Any other new records are before it.
    mutating func ticked(_ number: Int32, at offset: Int64, timestamp: Int64) {
        guard let known = partitions[number], let end = known.end, end <= offset else { return }
        // Records that arrived in between are newer than the look: a notification of this moment.
        let notified = end < offset ? Notified.at(timestamp) : known.notified
        partitions[number] = Partition(end: offset + 1, last: .timestamp(timestamp), notified: notified)
    }

    /// How far the last record of a partition is ahead of `now`, at most; 0 if none is.
    func ahead(of now: Int64) -> Int64 {
        partitions.values.reduce(0) { furthest, partition in
            guard case .timestamp(let time) = partition.last else { return furthest }
            return max(furthest, time - now)
        }
    }
}
