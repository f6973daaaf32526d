// Measures the calls of the transaction protocol, and decides from which duration on a request may have been sent
// twice.

internal import Platform

/// librdkafka repeats a request after `retry.backoff.ms` (newer versions: up to a fifth less), and TxnOffsetCommit
/// always after 500 ms. So a call that took less than three quarters of both was sent once. A normal call takes 3 to 12
/// ms near the brokers, and several round trips far from them. There the next client gets a longer pause, so that
/// normal and repeated calls can still be distinguished.
struct CallTimes {
    /// A longer pause would not help: TxnOffsetCommit does not use it.
    static let longestBackoff: Duration = .milliseconds(500)
    /// A normal call may take this many times the usual duration.
    private static let tolerance = 4
    /// Only a few: when the network becomes slower, each call costs a replacement until most of these durations show
    /// it.
    private static let remembered = 5

    enum Call: String, CaseIterable { case sendOffsets, commit, abort }

    /// The pause that the user has set, or the default of this layer.
    private let smallest: Duration
    private let longest: Duration
    /// `retry.backoff.ms` of the client in use.
    private(set) var backoff: Duration
    private var recent: [Call: [Duration]] = [:]

    /// - Parameter longest: the longest pause that librdkafka makes, whatever `retry.backoff.ms` is.
    init(backoff: Duration, longest: Duration? = nil) {
        self.longest = min(longest ?? Self.longestBackoff, Self.longestBackoff)
        smallest = backoff
        self.backoff = backoff
    }

    /// A call that took at least this long may have sent a request twice.
    var limit: Duration { min(backoff, longest) * 3 / 4 }

    mutating func note(_ call: Call, took duration: Duration) {
        recent[call, default: []].append(duration)
        if recent[call]!.count > Self.remembered { recent[call]!.removeFirst() }
    }

    /// The usual duration of the slowest kind of call.
    var usual: Duration {
        recent.values.reduce(.zero) { longest, times in max(longest, times.sorted()[times.count / 2]) }
    }

    /// Sets the pause of the next client: its limit is the tolerance times the usual duration.
    mutating func adapt() {
        backoff = max(smallest, min(longest, usual * Self.tolerance * 4 / 3))
    }

    /// The pause is as long as it can be, and does not help to distinguish any more.
    var isAtItsEnd: Bool { backoff >= longest }
}

/// Counts how many of the last transactions replaced their producer.
struct ReplacementRate {
    private static let window = 100
    /// Percent of transactions above which a warning is due.
    private static let bearable = 10
    /// Minimum time between two warnings.
    private static let silence: Duration = .seconds(600)

    private var replaced: [Bool] = []
    private var warnedAt: ContinuousClock.Instant?

    /// Adds one transaction. Returns how many of the last hundred were replaced if a warning is due, else nil.
    mutating func note(_ isReplaced: Bool, at now: ContinuousClock.Instant = .now) -> Int? {
        replaced.append(isReplaced)
        if replaced.count > Self.window { replaced.removeFirst() }
        guard isReplaced else { return nil }
        let count = replaced.count { $0 }
        guard count > Self.bearable else { return nil }
        if let warnedAt, warnedAt.duration(to: now) < Self.silence { return nil }
        warnedAt = now
        return count
    }
}
