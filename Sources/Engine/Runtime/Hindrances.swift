// Partitions whose local stores cannot be used on this machine, and for how long that is tolerated.

/// After a full disk or a missing permission the worker retries every few seconds: when a person has fixed the cause,
/// it continues by itself. After some minutes the process ends, because the group gives the partition to no other
/// member while it lives.
///
/// This survives sessions: otherwise each new session would start the count again.
struct Hindrances {
    static let retryInterval: Duration = .seconds(5)
    /// Minimum time between two log lines, as each attempt may give another message for the same problem.
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

    /// True the first time, and then once a minute while the problem lasts.
    mutating func mustTell(_ partition: Int32, at now: Duration) -> Bool {
        guard let tellAt = all[partition]?.tellAt, now >= tellAt else { return false }
        all[partition]!.tellAt = now + Self.tellInterval
        return true
    }

    mutating func end(_ partition: Int32) { all[partition] = nil }

    /// Forgets all partitions except these: the others belong to other processes.
    mutating func keep(_ partitions: Set<Int32>) { all = all.filter { partitions.contains($0.key) } }

    /// The last message of a problem that has lasted at least this long. nil: no problem has.
    func words(of partition: Int32, lasting patience: Duration, at now: Duration) -> String? {
        guard let hindrance = all[partition], now - hindrance.since >= patience else { return nil }
        return hindrance.words
    }
}
