// Partitions whose stores this machine does not let be used, and how long that may go on.

/// What a full disk or a missing right keeps from work is tried again every few seconds: a person makes room, and the worker goes
/// on by itself. After some minutes the process ends, because as long as it lives the group gives the partition to nobody else.
///
/// Kept while sessions come and go: each new one would otherwise begin to count anew.
struct Hindrances {
    static let retryInterval: Duration = .seconds(5)
    /// Each try may say something else about the same trouble.
    private static let tellInterval: Duration = .seconds(60)

    private struct Hindrance {
        let since: Duration
        var retryAt: Duration
        var tellAt: Duration
        var words: String
    }

    private var all: [Int32: Hindrance] = [:]

    mutating func note(_ partition: Int32, _ words: String, at now: Duration) {
        all[partition, default: Hindrance(since: now, retryAt: now, tellAt: now, words: words)].words = words
        all[partition]!.retryAt = now + Self.retryInterval
    }

    func isDue(_ partition: Int32, at now: Duration) -> Bool { all[partition].map { now >= $0.retryAt } ?? true }

    /// True at the first time, and once a minute while it goes on.
    mutating func mustTell(_ partition: Int32, at now: Duration) -> Bool {
        guard let tellAt = all[partition]?.tellAt, now >= tellAt else { return false }
        all[partition]!.tellAt = now + Self.tellInterval
        return true
    }

    mutating func end(_ partition: Int32) { all[partition] = nil }

    /// The others are somebody else's.
    mutating func keep(_ partitions: Set<Int32>) { all = all.filter { partitions.contains($0.key) } }

    /// What was said last of one that has lasted so long; nil: it has not.
    func words(of partition: Int32, lasting patience: Duration, at now: Duration) -> String? {
        guard let hindrance = all[partition], now - hindrance.since >= patience else { return nil }
        return hindrance.words
    }
}
