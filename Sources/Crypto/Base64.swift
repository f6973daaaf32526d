// Base64 in its two alphabets, strict: one text for one value.

public enum Base64 {
    /// RFC 4648 section 5 without padding. nil for any other alphabet, padding, a length of 1 modulo 4, and bits left over
    /// that are not zero: two texts for one value would be two signatures for one payload.
    public static func decodeURL(_ text: Span<UInt8>) -> [UInt8]? { fatalError("to be written") }

    /// RFC 4648 section 4 with padding and without line breaks, canonical.
    public static func decodeStandard(_ text: Span<UInt8>) -> [UInt8]? { fatalError("to be written") }

    public static func encodeURL(_ bytes: Span<UInt8>) -> [UInt8] { fatalError("to be written") }
    public static func encodeStandard(_ bytes: Span<UInt8>) -> [UInt8] { fatalError("to be written") }
}
