// Numbers keys in the order in which they arrive.

/// All keys in one array and their positions in another: a dictionary would need an allocation for each key.
struct KeyIndex {
    private var bytes: [UInt8] = []
    private var ends: [Int] = []
    private var hashes: [UInt64] = []
    /// The number of each key plus one; 0 is a free slot. The size is a power of two, and at most half is used.
    private var slots: [Int32] = [Int32](repeating: 0, count: 1024)

    var count: Int { ends.count }

    func key(_ number: Int) -> ArraySlice<UInt8> { bytes[(number == 0 ? 0 : ends[number - 1])..<ends[number]] }

    /// The number of this key. A new key gets the next number.
    mutating func number(of key: UnsafeRawBufferPointer) -> (number: Int, isNew: Bool) {
        let hash = Self.hash(key)
        var slot = Int(truncatingIfNeeded: hash) & (slots.count - 1)
        while slots[slot] != 0 {
            let number = Int(slots[slot] - 1)
            if hashes[number] == hash, self.key(number).elementsEqual(key) { return (number, false) }
            slot = (slot + 1) & (slots.count - 1)
        }
        bytes.append(contentsOf: key)
        ends.append(bytes.count)
        hashes.append(hash)
        slots[slot] = Int32(ends.count)
        if ends.count * 2 > slots.count { grow() }
        return (ends.count - 1, true)
    }

    private mutating func grow() {
        slots = [Int32](repeating: 0, count: slots.count * 2)
        for (number, hash) in hashes.enumerated() {
            var slot = Int(truncatingIfNeeded: hash) & (slots.count - 1)
            while slots[slot] != 0 { slot = (slot + 1) & (slots.count - 1) }
            slots[slot] = Int32(number + 1)
        }
    }

    mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        ends.removeAll(keepingCapacity: true)
        hashes.removeAll(keepingCapacity: true)
        for slot in slots.indices { slots[slot] = 0 }
    }

    /// The same in every process, so that two runs show the same samples. FNV-1a, its bits mixed once more at the end.
    static func hash(_ key: UnsafeRawBufferPointer) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in key { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
        hash = (hash ^ (hash >> 33)) &* 0xff51_afd7_ed55_8ccd
        return hash ^ (hash >> 33)
    }
}
