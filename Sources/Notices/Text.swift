// Identifiers and Apple's words, as bytes.

/// Compared byte for byte: Swift's own texts are equal, and sorted, by Unicode's rules.
public struct Text: Sendable, Hashable, Comparable {
    /// Longer ones in a notification are not read.
    public static let limitBytes = 1_024

    public let bytes: [UInt8]

    public init(_ bytes: [UInt8]) { self.bytes = bytes }
    public init(_ text: String) { bytes = Array(text.utf8) }

    public static func < (left: Text, right: Text) -> Bool { left.bytes.lexicographicallyPrecedes(right.bytes) }
}

extension Text: ExpressibleByStringLiteral, CustomStringConvertible {
    public init(stringLiteral value: String) { self.init(value) }
    public var description: String { String(decoding: bytes, as: UTF8.self) }
}
