// How long the calls of the transaction protocol take, and from when on a request of one may have been sent twice.

internal import Platform

/// The library sends a request again after `retry.backoff.ms` (newer versions: less up to a fifth), TxnOffsetCommit after 500 ms
/// whatever that setting says. So a call that took less than three quarters of both was sent once. An ordinary one takes 3 to 12 ms
/// beside the brokers, and far from them some times the way there and back: then the pause of the next client is longer, so that
/// ordinary calls and repeated ones can still be told apart.
struct CallTimes {
    /// A longer pause of the library would tell nothing more: TxnOffsetCommit does not keep it.
    static let longestBackoff: Duration = .milliseconds(500)
    /// An ordinary call may take so many times the usual one.
    private static let tolerance = 4
    /// Few: a way that has become longer costs a replacement for each call until most of these know it.
    private static let remembered = 5

    enum Call: String, CaseIterable { case sendOffsets, commit, abort }

    /// As the user wants it, or the layer's own.
    private let smallest: Duration
    private let longest: Duration
    /// `retry.backoff.ms` of the client in use.
    private(set) var backoff: Duration
    private var recent: [Call: [Duration]] = [:]

    /// - Parameter longest: that the library pauses at most, whatever `retry.backoff.ms` says.
    init(backoff: Duration, longest: Duration? = nil) {
        self.longest = min(longest ?? Self.longestBackoff, Self.longestBackoff)
        smallest = backoff
        self.backoff = backoff
    }

    /// A call that took so long may have sent a request twice.
    var limit: Duration { min(backoff, longest) * 3 / 4 }

    mutating func note(_ call: Call, took duration: Duration) {
        recent[call, default: []].append(duration)
        if recent[call]!.count > Self.remembered { recent[call]!.removeFirst() }
    }

    /// What the slowest kind of call takes as a rule.
    var usual: Duration {
        recent.values.reduce(.zero) { longest, times in max(longest, times.sorted()[times.count / 2]) }
    }

    /// For the client that is made next: its limit is the tolerance times what calls take.
    mutating func adapt() {
        backoff = max(smallest, min(longest, usual * Self.tolerance * 4 / 3))
    }

    /// Nothing can be told apart any more, whatever the pause.
    var isAtItsEnd: Bool { backoff >= longest }
}

/// How many of the last transactions had to replace their producer.
struct ReplacementRate {
    private static let window = 100
    /// More than one in ten.
    private static let bearable = 10
    /// Between two warnings.
    private static let silence: Duration = .seconds(600)

    private var replaced: [Bool] = []
    private var warnedAt: ContinuousClock.Instant?

    /// Of one more transaction. How many of the last hundred, when it is time to say so.
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
