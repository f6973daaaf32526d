// Checks that bytes are DER: OpenSSL accepts any BER.

/// Checks the form of an encoding, not its meaning.
///
/// OpenSSL's own output cannot be compared with the input: it keeps the signed part and the names of a certificate as
/// they came, and would write BER unchanged. Octet strings (including values of extensions, of which OpenSSL reads
/// those it knows) and the order within a SET OF are not checked.
enum StrictDER {
    /// A certificate nests 8 deep. The recursion uses a thread's stack.
    private static let deepest = 24

    /// Whether the bytes are exactly one value, and DER at every level.
    static func isWellFormed(_ bytes: Span<UInt8>) -> Bool {
        var position = 0
        return isValue(bytes, from: &position, to: bytes.count, depth: 1) && position == bytes.count
    }

    private static func isValue(_ bytes: Span<UInt8>, from position: inout Int, to end: Int, depth: Int) -> Bool {
        guard depth <= deepest, let tag = tag(bytes, from: &position, to: end),
            let count = length(bytes, from: &position, to: end)
        else { return false }
        let last = position + count
        guard last <= end else { return false }
        guard tag.isConstructed else {
            defer { position = last }
            return tag.universal.map { isPrimitive($0, bytes.extracting(position..<last)) } ?? true
        }
        // Among the universal types only sequences and sets are constructed; BER also allows strings in pieces.
        if let universal = tag.universal, universal != 0x10, universal != 0x11 { return false }
        while position < last {
            guard isValue(bytes, from: &position, to: last, depth: depth + 1) else { return false }
        }
        return true
    }

    private struct Tag {
        var isConstructed: Bool
        /// nil for context-specific tags.
        var universal: UInt8?
    }

    private static func tag(_ bytes: Span<UInt8>, from position: inout Int, to end: Int) -> Tag? {
        guard position < end else { return nil }
        let first = bytes[position]
        position += 1
        // Tag numbers from 31 take more bytes. No certificate has them.
        guard first & 0x1f != 0x1f else { return nil }
        return Tag(isConstructed: first & 0x20 != 0, universal: first & 0xc0 == 0 ? first & 0x1f : nil)
    }

    /// The shortest form, with at most three bytes of length: a certificate is far below 16 MiB.
    private static func length(_ bytes: Span<UInt8>, from position: inout Int, to end: Int) -> Int? {
        guard position < end else { return nil }
        let first = bytes[position]
        position += 1
        guard first >= 0x80 else { return Int(first) }
        let more = Int(first & 0x7f)
        guard (1...3).contains(more), position + more <= end else { return nil }
        var count = 0
        for _ in 0..<more {
            count = count << 8 | Int(bytes[position])
            position += 1
        }
        let shortest = count < 0x80 ? 0 : count < 0x100 ? 1 : count < 0x1_0000 ? 2 : 3
        return more == shortest ? count : nil
    }

    private static func isPrimitive(_ universal: UInt8, _ content: Span<UInt8>) -> Bool {
        switch universal {
        case 0x01: content.count == 1 && (content[0] == 0 || content[0] == 0xff)
        case 0x02, 0x0a: isInteger(content)
        case 0x03: isBitString(content)
        case 0x05: content.isEmpty
        case 0x06: isIdentifier(content)
        // The end of an indefinite length, and types that are always constructed.
        case 0x00, 0x10, 0x11: false
        default: true
        }
    }

    /// Whether it has as few bytes as possible.
    private static func isInteger(_ content: Span<UInt8>) -> Bool {
        guard content.count > 1 else { return content.count == 1 }
        return !(content[0] == 0 && content[1] < 0x80) && !(content[0] == 0xff && content[1] >= 0x80)
    }

    /// Whether the unused bits are zero.
    private static func isBitString(_ content: Span<UInt8>) -> Bool {
        guard !content.isEmpty, content[0] < 8 else { return false }
        guard content.count > 1 else { return content[0] == 0 }
        return content[content.count - 1] & ((1 << content[0]) - 1) == 0
    }

    /// Whether each arc has as few bytes as possible and the last one is complete.
    private static func isIdentifier(_ content: Span<UInt8>) -> Bool {
        guard !content.isEmpty, content[content.count - 1] < 0x80 else { return false }
        var isStart = true
        for index in content.indices {
            if isStart && content[index] == 0x80 { return false }
            isStart = content[index] < 0x80
        }
        return true
    }
}
