// A checksum with which two copies of a state can be compared without reading either.

/// The number of keys of a state, and a sum over them that does not depend on their order. Each change updates it: the
/// hash of the key's old entry is subtracted, and the hash of its new entry is added.
struct StateSum: Equatable {
    var keys: Int64 = 0
    var checksum: UInt64 = 0

    mutating func add(_ hash: UInt64) {
        keys += 1
        checksum &+= hash
    }

    mutating func remove(_ hash: UInt64) {
        keys -= 1
        checksum &-= hash
    }
}

/// The hash of a key and its entry. Logs and disks contain it: a change of the hash needs a new version of the note.
///
/// wyhash's mixing step over sixteen bytes at a time. It detects faults, not forgeries: whoever can write to the
/// changelog can write any state.
enum EntryHash {
    /// - Parameter entry: the entry as a changelog contains it.
    static func hash(key: Span<UInt8>, entry: Span<UInt8>) -> UInt64 {
        // The length of the key marks where the entry begins.
        let hash = add(key, to: first ^ UInt64(key.count))
        return mix(add(entry, to: hash) ^ UInt64(entry.count), second)
    }

    /// Hash of an entry as a store has it, with the places of its timers, which a changelog does not contain. nil: the
    /// bytes are not an entry.
    static func hash(key: Span<UInt8>, stored: Span<UInt8>) -> UInt64? {
        guard let hasPlaces = EntryCoding.hasPlaces(stored) else { return nil }
        if !hasPlaces { return hash(key: key, entry: stored) }
        guard let content = EntryCoding.decode(stored) else { return nil }
        var entry: [UInt8] = []
        EntryCoding.encode(content, withPlaces: false, into: &entry)
        return hash(key: key, entry: entry.span)
    }

    private static let first: UInt64 = 0x9e37_79b9_7f4a_7c15
    private static let second: UInt64 = 0xa076_1d64_78bd_642f

    private static func add(_ bytes: Span<UInt8>, to start: UInt64) -> UInt64 {
        bytes.withUnsafeBytes { bytes in
            var hash = start
            var position = 0
            while position + 16 <= bytes.count {
                hash = mix(number(bytes, position) ^ hash, number(bytes, position + 8) ^ second)
                position += 16
            }
            var (low, high): (UInt64, UInt64) = (0, 0)
            var shift: UInt64 = 0
            while position < bytes.count {
                if shift < 64 {
                    low |= UInt64(bytes[position]) << shift
                } else {
                    high |= UInt64(bytes[position]) << (shift - 64)
                }
                shift += 8
                position += 1
            }
            return mix(low ^ hash, high ^ second)
        }
    }

    private static func number(_ bytes: UnsafeRawBufferPointer, _ position: Int) -> UInt64 {
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self))
    }

    private static func mix(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }
}
