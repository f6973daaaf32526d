// Reads kept bytes where they lie.

public import Notices

/// Reads what `ByteWriter` wrote, without copying texts.
///
/// After invalid bytes it reads zeros, and `isValid` is false: whoever reads asks for it before using what was read, and
/// at the latest after each row. It never reads beyond the bytes.
///
/// All of it is inlined: other modules read some ten numbers for every row. No function is given the address of the
/// reader: so the place stays in a register while rows are read.
public struct KeptReader {
    @usableFromInline let bytes: UnsafeBufferPointer<UInt8>
    @usableFromInline var next = 0
    @usableFromInline var holds = true

    @inlinable public init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    @inlinable public var place: Int { next }
    @inlinable public var isValid: Bool { holds }
    @inlinable public var isAtEnd: Bool { next == bytes.count }
    /// The number of unread bytes.
    @inlinable public var rest: Int { bytes.count - next }

    /// Reads the same bytes from a place that was read before.
    @inlinable public func again(from place: Int32) -> KeptReader {
        var reader = KeptReader(bytes)
        reader.next = min(max(Int(place), 0), bytes.count)
        return reader
    }

    /// Declares the bytes invalid.
    @inlinable public mutating func refuse() {
        holds = false
        next = bytes.count
    }

    @inlinable @inline(__always) public mutating func byte() -> UInt8 {
        guard next < bytes.count else {
            refuse()
            return 0
        }
        defer { next &+= 1 }
        return bytes[next]
    }

    /// A number of at most two bytes: the same form, and a longer one is invalid.
    @inlinable @inline(__always) mutating func shortUnsigned() -> UInt64 {
        let first = byte()
        if first < 0x80 { return UInt64(first) }
        let second = byte()
        if second == 0 || second >= 0x80 { refuse() }
        return UInt64(first & 0x7f) | UInt64(second) << 7
    }

    @inlinable @inline(__always) public mutating func unsigned() -> UInt64 {
        guard let value = CompactNumber.unsigned(in: bytes, at: &next) else {
            refuse()
            return 0
        }
        return value
    }

    @inlinable @inline(__always) public mutating func signed() -> Int64 { CompactNumber.signed(unsigned()) }

    @inlinable @inline(__always) public mutating func signed(from base: Int64) -> Int64 { signed() &+ base }

    @inlinable public mutating func optional() -> Int64? {
        switch byte() {
        case 0: return nil
        case 1: return signed()
        default:
            refuse()
            return nil
        }
    }

    /// 8 bytes.
    @inlinable @inline(__always) public mutating func fixed() -> UInt64 {
        guard bytes.count &- next >= 8 else {
            refuse()
            return 0
        }
        defer { next &+= 8 }
        return UInt64(bigEndian: CompactNumber.eight(of: bytes, at: next))
    }

    /// A number of things that use at least a byte each.
    @inlinable @inline(__always) public mutating func count() -> Int {
        let count = unsigned()
        guard count <= UInt64(bytes.count - next) else {
            refuse()
            return 0
        }
        return Int(count)
    }

    @inlinable public mutating func text() -> TextPlace {
        let count = count()
        guard holds, let start = bytes.baseAddress else { return TextPlace("") }
        defer { next += count }
        return TextPlace(start: start + next, count: count)
    }

    @inlinable @inline(__always) public mutating func id(isNumber: Bool) -> PurchaseId {
        if !isNumber {
            var rest = self
            let id = rest.textId()
            self = rest
            return id
        }
        let number = unsigned()
        if number >= TransactionId.limitNumber { refuse() }
        return PurchaseId(number: number)
    }

    @usableFromInline mutating func textId() -> PurchaseId {
        let id = PurchaseId(text())
        // A number has one form.
        if id.text == nil { refuse() }
        return id
    }

    /// The bytes between two places that were read.
    @inlinable public func bytes(from start: Int32, to end: Int32) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(rebasing: bytes[Int(start)..<Int(end)])
    }
}
