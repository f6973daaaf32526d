// A text where it lies: in the kept bytes, or in the notification.

public import Notices

/// The place of a text in bytes that somebody else keeps. Compared byte by byte.
///
/// It is valid as long as those bytes stay where they are: while one notification is processed.
public struct TextPlace: BitwiseCopyable, Equatable {
    public let start: UnsafePointer<UInt8>
    public let count: Int

    @inlinable public init(start: UnsafePointer<UInt8>, count: Int) {
        self.start = start
        self.count = count
    }

    /// Of a constant of the program.
    @inlinable public init(_ word: StaticString) {
        start = word.utf8Start
        count = word.utf8CodeUnitCount
    }

    @inlinable public var bytes: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: start, count: count) }
    /// A copy.
    public var text: Text { Text(Array(bytes)) }

    public func prefix(_ length: Int) -> TextPlace { TextPlace(start: start, count: min(count, length)) }

    public func contains(_ byte: UInt8) -> Bool { bytes.contains(byte) }

    @inlinable @inline(__always) public func isWord(_ word: StaticString) -> Bool { self == TextPlace(word) }

    @inlinable @inline(__always) public static func == (left: TextPlace, right: TextPlace) -> Bool {
        guard left.count == right.count else { return false }
        let (one, other) = (UnsafeRawPointer(left.start), UnsafeRawPointer(right.start))
        func isSame(at place: Int) -> Bool {
            one.loadUnaligned(fromByteOffset: place, as: UInt64.self)
                == other.loadUnaligned(fromByteOffset: place, as: UInt64.self)
        }
        var place = 0
        if left.count >= 8 {
            // The last eight bytes overlap with those before.
            let last = left.count - 8
            while place < last {
                if !isSame(at: place) { return false }
                place += 8
            }
            return isSame(at: last)
        }
        while place < left.count {
            if left.start[place] != right.start[place] { return false }
            place += 1
        }
        return true
    }

    public static func < (left: TextPlace, right: TextPlace) -> Bool {
        left.bytes.lexicographicallyPrecedes(right.bytes)
    }
}
