// Reads the notes that the users of a store write.

/// Reads little-endian numbers and texts, one after the other; nil if too few bytes remain.
public struct NoteReader {
    private var rest: ArraySlice<UInt8>

    public init(_ bytes: [UInt8]) { rest = bytes[...] }

    public var isAtEnd: Bool { rest.isEmpty }
    /// The bytes that were not read yet.
    public var remaining: ArraySlice<UInt8> { rest }

    public mutating func take<Value: FixedWidthInteger>(_ type: Value.Type) -> Value? {
        take(count: MemoryLayout<Value>.size).map { bytes in
            Value(littleEndian: bytes.withUnsafeBytes { $0.loadUnaligned(as: Value.self) })
        }
    }

    public mutating func take(count: Int) -> ArraySlice<UInt8>? {
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }
}

extension [UInt8] {
    /// Appends a number that a `NoteReader` can read.
    public mutating func append(littleEndian value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
    }
}
