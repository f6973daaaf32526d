// Where the timers of a store begin.

internal import Glibc

/// No timer of the store has smaller bytes than the floor.
///
/// A removed timer stays on disk as a tombstone until a compaction drops it, and a scan from the very beginning would
/// step over all of these tombstones every time. With the floor each of them is stepped over once. If the first timer
/// is known, the floor also answers without disk access whether a timer is due, which is asked for every record.
struct TimerFloor {
    private(set) var bytes: [UInt8] = [KeySpace.timer]
    /// There is a timer with exactly these bytes; or there are no timers, and the floor is the end.
    private(set) var isExact = false

    /// The due time of the first timer, if the floor knows it; the inner nil: there is no timer.
    var knownFirst: Int64?? {
        guard isExact else { return nil }
        return .some(bytes.withUnsafeBytes { TimerKey.due($0) })
    }

    mutating func added(_ key: [UInt8]) {
        let order = Self.order(key, bytes)
        if order <= 0 {
            bytes = key
            isExact = true
        }
    }

    mutating func removed(_ key: [UInt8]) {
        if isExact, Self.order(key, bytes) == 0 { isExact = false }
    }

    /// A scan from the floor found this timer first.
    mutating func found(_ key: [UInt8]) {
        bytes = key
        isExact = true
    }

    /// A scan from the floor found none before `end`.
    mutating func foundNone(before end: [UInt8]) {
        guard Self.order(bytes, end) < 0 else { return }
        bytes = end
        isExact = end == [KeySpace.end]
    }

    /// As `memcmp`, with a shorter key before those that begin with it: RocksDB's order of keys.
    static func order(_ left: [UInt8], _ right: [UInt8]) -> Int {
        let result = memcmp(left, right, min(left.count, right.count))
        return result != 0 ? Int(result) : left.count - right.count
    }
}
