// For how long a session may act on what it owns.

/// While a lease runs the log gives the partitions to nobody else: it does so only after a silence of the session's whole time. But
/// for a process that is started under the same identity, which takes them at once: whoever starts it has to know that the other is
/// gone.
///
/// A poll that brings nothing proves little: a process that was stopped and goes on polls before it hears that it has lost
/// everything. So a poll lengthens a lease that still runs, and only an answer of the group brings back one that has ended.
public struct Lease: Sendable {
    /// The rest is for clocks that differ, and for what was begun in the last moment.
    private static let share = (parts: 3, of: 4)

    private let length: Duration
    /// nil: nothing is owned.
    public private(set) var until: Duration?

    public init(sessionTimeout: Duration) {
        length = sessionTimeout * Self.share.parts / Self.share.of
    }

    /// The group has said that the partitions are the session's.
    public mutating func confirm(at now: Duration) { until = now + length }

    /// A sign of life was given, and nothing was heard against it.
    public mutating func extend(at now: Duration) {
        if let until, now < until { self.until = now + length }
    }

    public mutating func end() { until = nil }
}
