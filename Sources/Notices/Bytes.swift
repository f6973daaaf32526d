// Numbers and texts as few bytes.

public struct ByteWriter: Sendable {
    public private(set) var bytes: [UInt8] = []

    public init(capacity: Int = 0) { bytes.reserveCapacity(capacity) }

    public mutating func byte(_ value: UInt8) { bytes.append(value) }

    /// Seven bits a byte, the lowest first; the highest bit says that more follow.
    public mutating func unsigned(_ value: UInt64) {
        // Room is made once for all of them.
        bytes.append(addingCapacity: 10) { bytes in
            var rest = value
            while rest >= 0x80 {
                bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
                rest >>= 7
            }
            bytes.append(UInt8(rest))
        }
    }

    /// Numbers near zero are short, also those below it.
    public mutating func signed(_ value: Int64) { unsigned(UInt64(bitPattern: value << 1 ^ value >> 63)) }

    /// Dates lie near each other. The difference wraps around, so that any two can be told.
    public mutating func signed(_ value: Int64, from base: Int64) { signed(value &- base) }

    public mutating func fixed(_ value: UInt64) {
        withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
    }

    public mutating func text(_ text: Text) {
        unsigned(UInt64(text.bytes.count))
        bytes += text.bytes
    }

    public mutating func append(_ other: ByteWriter) { bytes += other.bytes }
}

/// Reads what `ByteWriter` wrote. Whatever the bytes are it answers nil rather than trap, and never takes more memory than
/// there are bytes.
public struct ByteReader: ~Copyable {
    private let bytes: [UInt8]
    private var place = 0

    public init(_ bytes: [UInt8]) { self.bytes = bytes }

    public var isAtEnd: Bool { place == bytes.count }

    public mutating func byte() -> UInt8? {
        guard place < bytes.count else { return nil }
        defer { place += 1 }
        return bytes[place]
    }

    /// Each number has one form: a longer one of the same is none.
    public mutating func unsigned() -> UInt64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while shift < 64, let next = byte() {
            let bits = UInt64(next & 0x7f)
            guard shift < 63 || bits <= 1 else { return nil }
            value |= bits << shift
            if next < 0x80 { return next == 0 && shift > 0 ? nil : value }
            shift += 7
        }
        return nil
    }

    public mutating func signed() -> Int64? {
        unsigned().map { Int64(bitPattern: $0 >> 1) ^ -Int64(bitPattern: $0 & 1) }
    }

    public mutating func signed(from base: Int64) -> Int64? { signed().map { $0 &+ base } }

    public mutating func fixed() -> UInt64? {
        guard bytes.count - place >= 8 else { return nil }
        var value: UInt64 = 0
        for index in place..<place + 8 { value = value << 8 | UInt64(bytes[index]) }
        place += 8
        return value
    }

    public mutating func text() -> Text? {
        guard let count = count() else { return nil }
        defer { place += count }
        return Text(Array(bytes[place..<place + count]))
    }

    /// Of things that take at least a byte each.
    public mutating func count() -> Int? {
        guard let count = unsigned(), count <= UInt64(bytes.count - place) else { return nil }
        return Int(count)
    }
}

extension ByteWriter {
    public mutating func optional(_ value: Int64?) {
        byte(value == nil ? 0 : 1)
        if let value { signed(value) }
    }
}

extension ByteReader {
    /// The outer nil is a fault.
    public mutating func optional() -> Int64?? {
        switch byte() {
        case 0: return .some(nil)
        case 1: return signed().map { .some($0) }
        default: return nil
        }
    }
}
