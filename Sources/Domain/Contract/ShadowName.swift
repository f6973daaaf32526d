// The name of a replay, and the names of its topics and its group.

/// A replay writes to shadow topics: their names are those of the live topics, followed by the name of the replay.
public struct ShadowName: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// Topic names leave this much room for it (`TopicPrefix.limitBytes`).
    public static let limitBytes = 32
    static let separator = ".replay-"

    public let description: String

    /// nil unless it has 1 to 32 letters, digits, `_` and `-`. With a dot the end of the live topic's name would be
    /// unclear.
    public init?(_ text: String) {
        guard !text.isEmpty, text.utf8.count <= Self.limitBytes,
            text.utf8.allSatisfy({ isTopicNameByte($0) && $0 != UInt8(ascii: ".") })
        else { return nil }
        description = text
    }

    /// The name of the shadow of a topic or a group.
    public func shadow(of name: String) -> String { name + Self.separator + description }

    /// Splits the name of a shadow. nil: it is not a shadow.
    public static func split(_ name: String) -> (live: String, shadow: ShadowName)? {
        var start: String.Index?
        var index = name.startIndex
        // The last separator counts: a replay's name has no dot, but a prefix may contain anything.
        while let range = name[index...].firstRange(of: separator) {
            start = range.lowerBound
            index = range.upperBound
        }
        guard let start, start > name.startIndex, let shadow = ShadowName(String(name[index...])) else { return nil }
        return (String(name[..<start]), shadow)
    }

    public static func < (left: ShadowName, right: ShadowName) -> Bool { left.description < right.description }
}
