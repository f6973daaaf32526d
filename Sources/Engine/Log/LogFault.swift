// Faults of a log, and what its user does about them.

public struct LogFault: Error, Equatable, CustomStringConvertible {
    /// The log decides this, because it knows what its answer means, so that no caller has to guess.
    public enum Remedy: String, Sendable {
        /// Repeat the same call with the same arguments, after a short wait.
        case retrySameCall
        /// `abort`, seek to where the cycle began, and continue. This is common.
        case rewind
        /// Close the session without writing anything that depends on the open cycle, and open another. The outcome of
        /// a commit may be unknown: the group's committed offsets show it.
        case rebuild
        /// Only a person can help: end with the reason.
        case stop
    }

    public enum Cause: String, Sendable {
        /// A newer session has the same identity.
        case fenced
        /// The group has assigned this session's partitions to others.
        case generation
        /// There is no record at a position any more, or there never was one.
        case positionGone
        case unknownTopic
        /// A partition's leader changes or is not known yet: common while brokers or topics start, and over in seconds.
        case leaderMoves
        case timedOut
        /// The record's timestamp is further in the future than the topic allows.
        case timestampAhead
        case tooLarge
        case forbidden
        /// The caller has broken a rule of the interface.
        case misuse
        case other
    }

    public var remedy: Remedy
    public var cause: Cause
    /// For people: what failed, and why.
    public var words: String

    public init(_ remedy: Remedy, _ cause: Cause, _ words: String) {
        self.remedy = remedy
        self.cause = cause
        self.words = words
    }

    /// With a wrong number keys would be read and written in other partitions than everywhere else.
    ///
    /// - Parameter wanted: the number in the settings.
    public static func partitions(of topic: String, are count: Int32, not wanted: Int32) -> LogFault {
        LogFault(
            .stop, .misuse,
            "the topic \(topic) has \(count) partitions and the setting partitions says \(wanted): the setting must "
                + "stay the number with which the topics were created, because it determines the partition of each "
                + "key. Set it back if it was changed, or set topic.prefix to the prefix of topics with \(wanted) "
                + "partitions")
    }

    public var description: String { "\(words) (\(cause.rawValue), \(remedy.rawValue))" }
}
