// The order in which the changes of one write are passed to RocksDB.

internal import Store

/// Approximate place of a change's key: its first sixteen bytes. Changes of one key keep the order in which they were
/// made, which decides the result.
struct ChangePlace: Comparable {
    private let space: UInt8
    private let high: UInt64
    private let low: UInt64
    let index: Int

    init(of change: StoreChanges.Change, at index: Int, in bytes: UnsafeRawBufferPointer) {
        self.index = index
        switch change {
        case .put(let key, _), .delete(let key):
            space = KeySpace.value
            high = Self.number(bytes[key].prefix(8))
            low = Self.number(bytes[key].dropFirst(8).prefix(8))
        case .addTimer(let due, let key, _), .removeTimer(let due, let key, _):
            space = KeySpace.timer
            high = UInt64(bitPattern: due) ^ (1 << 63)
            low = Self.number(bytes[key].prefix(8))
        }
    }

    private static func number(_ bytes: Slice<UnsafeRawBufferPointer>) -> UInt64 {
        if bytes.count == 8 {
            return UInt64(bigEndian: UnsafeRawBufferPointer(rebasing: bytes).loadUnaligned(as: UInt64.self))
        }
        var number: UInt64 = 0
        for byte in bytes { number = number << 8 | UInt64(byte) }
        // A shorter key comes before those that begin with it.
        return bytes.isEmpty ? 0 : number << (8 * (8 - UInt64(bytes.count)))
    }

    static func < (left: ChangePlace, right: ChangePlace) -> Bool {
        if left.space != right.space { return left.space < right.space }
        if left.high != right.high { return left.high < right.high }
        if left.low != right.low { return left.low < right.low }
        return left.index < right.index
    }
}
