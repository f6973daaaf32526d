// A compact encoding of numbers and texts.

/// Uses its own memory: an array would check for shared storage at each byte. All of it is inlined but growing.
public struct ByteWriter: ~Copyable {
    @usableFromInline var memory: UnsafeMutableBufferPointer<UInt8>
    @usableFromInline var count = 0

    public init(capacity: Int = 64) { memory = .allocate(capacity: max(capacity, 16)) }

    deinit { memory.deallocate() }

    public var bytes: [UInt8] { Array(memory[..<count]) }

    /// Where the bytes lie, until more are written.
    @inlinable public var written: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(rebasing: memory[..<count]) }

    /// Empties it. It keeps its memory for what is written next.
    @inlinable public mutating func removeAll() { count = 0 }

    @inlinable mutating func makeRoom(for more: Int) {
        if memory.count - count < more { grow(by: more) }
    }

    @usableFromInline mutating func grow(by more: Int) {
        let larger = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: max(memory.count * 2, count + more))
        _ = larger.update(fromContentsOf: memory[..<count])
        memory.deallocate()
        memory = larger
    }

    @inlinable public mutating func byte(_ value: UInt8) {
        makeRoom(for: 1)
        memory[count] = value
        count += 1
    }

    /// Seven bits per byte, the lowest first; the highest bit means that more follow.
    @inlinable public mutating func unsigned(_ value: UInt64) {
        makeRoom(for: 10)
        var (rest, end) = (value, count)
        while rest >= 0x80 {
            memory[end] = UInt8(truncatingIfNeeded: rest) | 0x80
            end += 1
            rest >>= 7
        }
        memory[end] = UInt8(truncatingIfNeeded: rest)
        count = end + 1
    }

    /// Numbers near zero are short, also negative ones.
    @inlinable public mutating func signed(_ value: Int64) { unsigned(UInt64(bitPattern: value << 1 ^ value >> 63)) }

    /// Dates are close to each other. The difference wraps around, so that any two can be encoded.
    @inlinable public mutating func signed(_ value: Int64, from base: Int64) { signed(value &- base) }

    @inlinable public mutating func fixed(_ value: UInt64) {
        makeRoom(for: 8)
        UnsafeMutableRawBufferPointer(memory).storeBytes(of: value.bigEndian, toByteOffset: count, as: UInt64.self)
        count += 8
    }

    public mutating func text(_ text: Text) { text.bytes.withUnsafeBufferPointer { self.text($0) } }

    @inlinable public mutating func text(_ text: UnsafeBufferPointer<UInt8>) {
        unsigned(UInt64(text.count))
        append(text)
    }

    @inlinable public mutating func append(_ other: borrowing ByteWriter) { append(other.written) }

    @inlinable public mutating func append(_ more: UnsafeBufferPointer<UInt8>) {
        makeRoom(for: more.count)
        guard let start = more.baseAddress, let end = memory.baseAddress?.advanced(by: count) else { return }
        end.update(from: start, count: more.count)
        count += more.count
    }
}

/// Numbers as `ByteWriter` writes them.
public enum CompactNumber {
    /// Each number has exactly one form: a longer form of the same number is invalid, which is nil.
    @inlinable @inline(__always)
    public static func unsigned(in bytes: UnsafeBufferPointer<UInt8>, at place: inout Int) -> UInt64? {
        if bytes.count &- place >= 8 {
            // All bytes at once: every row has six numbers of some five bytes.
            let word = UInt64(littleEndian: eight(of: bytes, at: place))
            if word & 0x80 == 0 {
                place &+= 1
                return word & 0x7f
            }
            let ends = ~word & 0x8080_8080_8080_8080
            if ends != 0 {
                // All bits up to the end of the last byte.
                let used = ends ^ (ends &- 1)
                let sevens = word & used & 0x7f7f_7f7f_7f7f_7f7f
                // The last byte of a longer form is zero.
                if sevens <= used &>> 8 { return nil }
                place &+= (ends.trailingZeroBitCount &+ 1) &>> 3
                return joined(sevens)
            }
        }
        guard let long = longUnsigned(in: bytes, at: place) else { return nil }
        place = long.end
        return long.value
    }

    /// They must be there, and then there is an address.
    @inlinable @inline(__always)
    public static func eight(of bytes: UnsafeBufferPointer<UInt8>, at place: Int) -> UInt64 {
        UnsafeRawPointer(bytes.baseAddress.unsafelyUnwrapped).loadUnaligned(fromByteOffset: place, as: UInt64.self)
    }

    /// Eight groups of seven bits without the gaps between them.
    @inlinable @inline(__always)
    static func joined(_ sevens: UInt64) -> UInt64 {
        // The upper one of two neighbours moves down, by one, two and four bits.
        let pairs = sevens &- (sevens &>> 1 & 0x3f80_3f80_3f80_3f80)
        let fours = pairs &- (pairs &>> 2 & 0x0fff_c000_0fff_c000) &* 3
        return (fours &>> 32) &<< 28 | fours & 0x0fff_ffff
    }

    /// Returned instead of changing the place of a reader: whatever has an address does not stay in a register.
    @usableFromInline static func longUnsigned(
        in bytes: UnsafeBufferPointer<UInt8>, at start: Int
    ) -> (value: UInt64, end: Int)? {
        var (value, shift, place): (UInt64, UInt64, Int) = (0, 0, start)
        while shift < 64, place < bytes.count {
            let next = bytes[place]
            place += 1
            let bits = UInt64(next & 0x7f)
            guard shift < 63 || bits <= 1 else { return nil }
            value |= bits << shift
            if next < 0x80 { return next == 0 && shift > 0 ? nil : (value, place) }
            shift += 7
        }
        return nil
    }

    @inlinable public static func signed(_ value: UInt64) -> Int64 {
        Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
    }
}

/// Reads what `ByteWriter` wrote. For any bytes it returns nil instead of trapping, and never uses more memory than
/// there are bytes.
public struct ByteReader: ~Copyable {
    private let bytes: [UInt8]
    private var place = 0

    public init(_ bytes: [UInt8]) { self.bytes = bytes }

    public var isAtEnd: Bool { place == bytes.count }
    /// The number of unread bytes.
    public var rest: Int { bytes.count - place }

    public mutating func byte() -> UInt8? {
        guard place < bytes.count else { return nil }
        defer { place += 1 }
        return bytes[place]
    }

    public mutating func unsigned() -> UInt64? {
        guard place < bytes.count else { return nil }
        if bytes[place] < 0x80 {
            place += 1
            return UInt64(bytes[place - 1])
        }
        return bytes.withUnsafeBufferPointer { CompactNumber.unsigned(in: $0, at: &place) }
    }

    public mutating func signed() -> Int64? { unsigned().map { CompactNumber.signed($0) } }

    public mutating func signed(from base: Int64) -> Int64? { signed().map { $0 &+ base } }

    public mutating func fixed() -> UInt64? {
        guard bytes.count - place >= 8 else { return nil }
        place += 8
        return bytes.withUnsafeBytes { UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: place - 8, as: UInt64.self)) }
    }

    public mutating func text() -> Text? {
        guard let count = count() else { return nil }
        defer { place += count }
        return Text(Array(bytes[place..<place + count]))
    }

    /// A number of things that use at least a byte each.
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
    /// The outer nil means invalid bytes.
    public mutating func optional() -> Int64?? {
        switch byte() {
        case 0: return .some(nil)
        case 1: return signed().map { .some($0) }
        default: return nil
        }
    }
}
