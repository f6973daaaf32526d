// Reads kept bytes where they lie.

internal import Notices

/// Reads what `ByteWriter` wrote, without copying texts.
///
/// After invalid bytes it reads zeros, and `isValid` is false: whoever reads asks for it before using what was read, and
/// at the latest after each row. It never reads beyond the bytes.
///
/// What each row has is inlined, and no function is given the address of the reader: so the place stays in a register
/// while rows are read.
public struct KeptReader {
    private let bytes: UnsafeBufferPointer<UInt8>
    public private(set) var place = 0
    public private(set) var isValid = true

    public init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    public var isAtEnd: Bool { place == bytes.count }
    /// The number of unread bytes.
    public var rest: Int { bytes.count - place }

    /// Declares the bytes invalid.
    public mutating func refuse() {
        isValid = false
        place = bytes.count
    }

    @inline(__always) public mutating func byte() -> UInt8 {
        guard place < bytes.count else {
            refuse()
            return 0
        }
        defer { place += 1 }
        return bytes[place]
    }

    /// A number of at most two bytes: the same form, and a longer one is invalid.
    @inline(__always) mutating func shortUnsigned() -> UInt64 {
        let first = byte()
        if first < 0x80 { return UInt64(first) }
        let second = byte()
        if second == 0 || second >= 0x80 { refuse() }
        return UInt64(first & 0x7f) | UInt64(second) << 7
    }

    @inline(__always) public mutating func unsigned() -> UInt64 {
        if place < bytes.count, bytes[place] < 0x80 {
            place += 1
            return UInt64(bytes[place - 1])
        }
        guard let value = CompactNumber.unsigned(in: bytes, at: &place) else {
            refuse()
            return 0
        }
        return value
    }

    @inline(__always) public mutating func signed() -> Int64 { CompactNumber.signed(unsigned()) }

    @inline(__always) public mutating func signed(from base: Int64) -> Int64 { signed() &+ base }

    public mutating func optional() -> Int64? {
        switch byte() {
        case 0: return nil
        case 1: return signed()
        default:
            refuse()
            return nil
        }
    }

    /// 8 bytes.
    @inline(__always) public mutating func fixed() -> UInt64 {
        guard bytes.count - place >= 8 else {
            refuse()
            return 0
        }
        defer { place += 8 }
        return UInt64(bigEndian: UnsafeRawBufferPointer(bytes).loadUnaligned(fromByteOffset: place, as: UInt64.self))
    }

    /// A number of things that use at least a byte each.
    public mutating func count() -> Int {
        let count = unsigned()
        guard count <= UInt64(bytes.count - place) else {
            refuse()
            return 0
        }
        return Int(count)
    }

    public mutating func text() -> TextPlace {
        let count = count()
        guard isValid, let start = bytes.baseAddress else { return TextPlace("") }
        defer { place += count }
        return TextPlace(start: start + place, count: count)
    }

    @inline(__always) public mutating func id(isNumber: Bool) -> PurchaseId {
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

    private mutating func textId() -> PurchaseId {
        let id = PurchaseId(text())
        // A number has one form.
        if id.text == nil { refuse() }
        return id
    }

    /// The bytes between two places that were read.
    public func bytes(from start: Int32, to end: Int32) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(rebasing: bytes[Int(start)..<Int(end)])
    }
}
