// Identifiers and Apple's words, as bytes.

/// Compared byte by byte: Swift's own strings are compared and sorted by Unicode's rules.
public struct Text: Sendable, Hashable, Comparable {
    /// Longer texts in a notification are ignored.
    public static let limitBytes = 1_024

    public let bytes: [UInt8]

    public init(_ bytes: [UInt8]) { self.bytes = bytes }
    public init(_ text: String) { bytes = Array(text.utf8) }
    public init(_ word: StaticString) { bytes = word.withUTF8Buffer { Array($0) } }

    public static func < (left: Text, right: Text) -> Bool { left.bytes.lexicographicallyPrecedes(right.bytes) }
}

extension Text: ExpressibleByStringLiteral, CustomStringConvertible {
    public init(stringLiteral value: String) { self.init(value) }
    public var description: String { String(decoding: bytes, as: UTF8.self) }
}
