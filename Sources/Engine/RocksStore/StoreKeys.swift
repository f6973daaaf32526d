// Keys of a store on disk. The order of their bytes is the order in which the store is read.

internal import Store

/// The first byte of a key. On disk the keys are in this order; the timers are last, so that `end` is after all keys.
enum KeySpace {
    static let note: UInt8 = 0
    static let value: UInt8 = 1
    static let timer: UInt8 = 2
    static let end: UInt8 = 3

    /// A key after every key that begins with these bytes, and before all others. They begin with a byte of `KeySpace`,
    /// so that there is a byte that can be incremented.
    static func end(ofPrefix prefix: [UInt8]) -> [UInt8] {
        var end = prefix
        while end.last == 0xff { end.removeLast() }
        end[end.count - 1] += 1
        return end
    }
}

/// Timers as keys: `timer`, due time (8 bytes, big-endian, sign flipped so that times before 1970 come first), key with
/// every 0x00 written as 0x00 0xff, 0x00 0x00, kind.
///
/// The order of these bytes is that of `TimerEntry`. A key ends with two zero bytes, which are smaller than anything
/// that a longer key has in their place, including an escaped zero. Without the escape the kind of a short key would be
/// compared with bytes of a longer one.
enum TimerKey {
    /// `timer` and the due time.
    static let prefixCount = 9

    static func append(due: Int64, to bytes: inout [UInt8]) {
        bytes.append(KeySpace.timer)
        let sortable = UInt64(bitPattern: due) ^ (1 << 63)
        for shift in stride(from: 56, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: sortable >> shift)) }
    }

    static func append(due: Int64, key: UnsafeRawBufferPointer, kind: UInt8, to bytes: inout [UInt8]) {
        append(due: due, to: &bytes)
        if key.contains(0) {
            for byte in key {
                bytes.append(byte)
                if byte == 0 { bytes.append(0xff) }
            }
        } else {
            bytes.append(contentsOf: key)
        }
        bytes.append(0)
        bytes.append(0)
        bytes.append(kind)
    }

    static func bytes(of entry: TimerEntry) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(prefixCount + entry.key.count + 3)
        entry.key.withUnsafeBytes { append(due: entry.due, key: $0, kind: entry.kind, to: &bytes) }
        return bytes
    }

    /// A key after every timer that is due at `moment`, and before all others.
    static func end(dueBy moment: Int64) -> [UInt8] {
        guard moment < .max else { return [KeySpace.end] }
        var bytes: [UInt8] = []
        append(due: moment + 1, to: &bytes)
        return bytes
    }

    /// nil: these bytes are not a timer.
    static func due(_ bytes: UnsafeRawBufferPointer) -> Int64? {
        guard bytes.count >= prefixCount, bytes[0] == KeySpace.timer else { return nil }
        let sortable = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 1, as: UInt64.self))
        return Int64(bitPattern: sortable ^ (1 << 63))
    }

    /// nil: these bytes are not a timer.
    static func entry(_ bytes: UnsafeRawBufferPointer) -> TimerEntry? {
        guard let due = due(bytes) else { return nil }
        var key: [UInt8] = []
        var index = prefixCount
        while index + 1 < bytes.count {
            let byte = bytes[index]
            if byte != 0 {
                index += 1
            } else if bytes[index + 1] == 0xff {
                index += 2
            } else {
                // The end of the key; only the kind may follow.
                guard bytes[index + 1] == 0, index + 3 == bytes.count else { return nil }
                return TimerEntry(due: due, key: key, kind: bytes[index + 2])
            }
            key.append(byte)
        }
        return nil
    }
}
