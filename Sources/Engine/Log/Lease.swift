// How long a session may act on the partitions that it owns.

/// While a lease is valid the log gives the partitions to no other session: it does so only after the session was
/// silent for the whole session timeout. The exception is a process started under the same identity, which gets them at
/// once: whoever starts it must know that the other one has ended.
///
/// A poll without news proves little: a process that was stopped and continues polls before it learns that it has lost
/// everything. So a poll extends a lease that is still valid, and only an answer of the group renews one that has
/// expired.
public struct Lease: Sendable {
    /// The rest covers clocks that differ, and actions that begin in the last moment.
    private static let share = (parts: 3, of: 4)

    private let length: Duration
    /// nil: the session owns nothing.
    public private(set) var until: Duration?

    public init(sessionTimeout: Duration) {
        length = sessionTimeout * Self.share.parts / Self.share.of
    }

    /// The group has confirmed that the session owns the partitions.
    public mutating func confirm(at now: Duration) { until = now + length }

    /// The session has polled, and learned of no loss.
    public mutating func extend(at now: Duration) {
        if let until, now < until { self.until = now + length }
    }

    public mutating func end() { until = nil }
}
