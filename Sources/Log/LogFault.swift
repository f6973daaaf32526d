// What can go wrong with a log, and what its user does about it.

public struct LogFault: Error, Equatable, CustomStringConvertible {
    /// Decided by the log, which knows what its answer means, so that no caller guesses.
    public enum Remedy: String, Sendable {
        /// The same call with the same arguments, after a short wait.
        case retrySameCall
        /// `abort`, seek to where the cycle began, read on. An everyday path.
        case rewind
        /// Close the session without writing anything that rests on the open cycle, and open another. The outcome of a commit
        /// may be unknown: the group's positions tell.
        case rebuild
        /// Only a person can help: end with the reason.
        case stop
    }

    public enum Cause: String, Sendable {
        /// A younger session has the same identity.
        case fenced
        /// The group has given this session's partitions to others.
        case generation
        /// There is no record at a position any more, or there never was one.
        case positionGone
        case unknownTopic
        /// A partition's leader moves, or is not known yet: an everyday thing while brokers or topics start, and over in seconds.
        case leaderMoves
        case timedOut
        /// The record's timestamp is further in the future than the topic takes.
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

    /// Keys would be looked for, and put, where nobody else does.
    ///
    /// - Parameter wanted: as the settings say.
    public static func partitions(of topic: String, are count: Int32, not wanted: Int32) -> LogFault {
        LogFault(
            .stop, .misuse,
            "the topic \(topic) has \(count) partitions and the setting partitions says \(wanted): the setting is for good the "
                + "number with which the topics were made, since every key has its place by it. Put it back if it was changed, "
                + "or set topic.prefix to that of topics with \(wanted)")
    }

    public var description: String { "\(words) (\(cause.rawValue), \(remedy.rawValue))" }
}
