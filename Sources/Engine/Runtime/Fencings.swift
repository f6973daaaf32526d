// Decides whether a fencing means that another process uses the same identity.

/// Distinguishes a second process from a broker that did not answer.
///
/// A coordinator that hears nothing for the transaction timeout aborts the transaction and fences its producer, as a
/// second process would. A late duplicate of the request that opened the session does the same. Both follow a silence:
/// the broker has not answered a request for as long as the transaction timeout.
struct Fencings {
    enum Meaning {
        /// Another process has taken over, as after a restart.
        case once
        /// Fenced again within the window: another process shares the identity.
        case again
        /// The broker fenced us after a silence.
        case ofSilence
    }

    /// A restart fences its predecessor once. A process that is fenced again within this time shares its identity with
    /// a running process.
    let window: Duration
    private let transactionTimeout: Duration
    private var counted: [Duration] = []
    /// Since when a request to the broker is unanswered.
    private var askedAt: Duration?
    /// When the last silence ended.
    private var silentUntil: Duration?

    init(sessionTimeout: Duration, transactionTimeout: Duration) {
        window = max(sessionTimeout, transactionTimeout) * 2
        self.transactionTimeout = transactionTimeout
    }

    /// A session is being opened, or a transaction continues that only the broker can end.
    mutating func asks(at now: Duration) { if askedAt == nil { askedAt = now } }

    /// The broker has opened or ended it.
    mutating func answered(at now: Duration) {
        noteSilence(at: now)
        askedAt = nil
    }

    private mutating func noteSilence(at now: Duration) {
        if let askedAt, now - askedAt >= transactionTimeout { silentUntil = now }
    }

    mutating func fenced(at now: Duration) -> Meaning {
        noteSilence(at: now)
        askedAt = nil
        // A request sent during the silence may arrive, and fence, as late as one transaction timeout afterwards.
        if let silentUntil, now - silentUntil < transactionTimeout { return .ofSilence }
        counted = counted.filter { now - $0 < window } + [now]
        return counted.count < 2 ? .once : .again
    }
}
