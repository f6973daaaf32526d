// The name of a replay, and what its topics and its group are called by it.

/// A replay writes into shadow topics: named after the live ones, with the name of the replay behind.
public struct ShadowName: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// Of the topic names of the catalogue, this is left for it (`TopicPrefix.limitBytes`).
    public static let limitBytes = 32
    static let separator = ".replay-"

    public let description: String

    /// nil unless it has 1 to 32 letters, digits, `_` and `-`. A dot would make the end of the live topic's name unclear.
    public init?(_ text: String) {
        guard !text.isEmpty, text.utf8.count <= Self.limitBytes,
            text.utf8.allSatisfy({ isTopicNameByte($0) && $0 != UInt8(ascii: ".") })
        else { return nil }
        description = text
    }

    /// The shadow of a topic, or of a group.
    public func shadow(of name: String) -> String { name + Self.separator + description }

    /// Takes the name of a shadow apart. nil: it is no shadow.
    public static func split(_ name: String) -> (live: String, shadow: ShadowName)? {
        var start: String.Index?
        var index = name.startIndex
        // The last one counts: a name has no dot, but a prefix may contain anything.
        while let range = name[index...].firstRange(of: separator) {
            start = range.lowerBound
            index = range.upperBound
        }
        guard let start, start > name.startIndex, let shadow = ShadowName(String(name[index...])) else { return nil }
        return (String(name[..<start]), shadow)
    }

    public static func < (left: ShadowName, right: ShadowName) -> Bool { left.description < right.description }
}
