// Whether a fencing means that another process has the same identity.

/// Tells a second process from a log that stood still.
///
/// A coordinator that gets no answer within a transaction's time ends the transaction and fences its writer, as a second process
/// would. So does a late copy of the question that opened the session. Both come after a silence: the log was asked for something
/// and has said nothing for as long as a transaction may last.
struct Fencings {
    enum Meaning {
        /// Somebody has taken over, as after a restart.
        case once
        /// Within the window: somebody shares the identity.
        case again
        /// The log has done it.
        case ofSilence
    }

    /// A restart fences its predecessor once. Whoever is fenced again so soon shares its identity with a living process.
    let window: Duration
    private let transactionTimeout: Duration
    private var counted: [Duration] = []
    /// Since when the log owes an answer.
    private var askedAt: Duration?
    /// When the last silence ended.
    private var silentUntil: Duration?

    init(sessionTimeout: Duration, transactionTimeout: Duration) {
        window = max(sessionTimeout, transactionTimeout) * 2
        self.transactionTimeout = transactionTimeout
    }

    /// A session is being opened, or a transaction goes on that only the log can end.
    mutating func asks(at now: Duration) { if askedAt == nil { askedAt = now } }

    /// The log has opened or ended it.
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
        // What was asked during the silence may arrive, and fence, as late as a transaction may last.
        if let silentUntil, now - silentUntil < transactionTimeout { return .ofSilence }
        counted = counted.filter { now - $0 < window } + [now]
        return counted.count < 2 ? .once : .again
    }
}
