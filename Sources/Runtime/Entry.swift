// The state of one key, and the bytes in which stores and changelogs keep it.

/// A moment at which the key wants to be woken.
struct EntryTimer: Equatable {
    var kind: UInt8
    /// Milliseconds since 1970.
    var due: Int64
}

/// What a worker knows of one key: a value of its own coding, and the timers that belong to it. Both are one entry of store and
/// changelog, so that neither can be there without the other.
final class Entry {
    let key: [UInt8]
    let hash: UInt64
    /// nil: there is none.
    var value: [UInt8]?
    /// In which format `value` was written.
    var format: UInt8
    /// By kind.
    var timers: [EntryTimer]
    /// As the store has them: what a commit has to remove from its index.
    var storedTimers: [EntryTimer]
    /// The store has a value of the key.
    var isStored: Bool
    /// Differs from the store.
    var isDirty = false
    /// The turn in which the entry was last changed; what it was before is in that turn's journal.
    var changedInTurn: UInt64 = 0
    /// Read since the cache last looked for something to drop.
    var isRecent = true
    /// What the cache has counted for it.
    var countedBytes = 0

    init(key: [UInt8], hash: UInt64, value: [UInt8]?, format: UInt8, timers: [EntryTimer]) {
        self.key = key
        self.hash = hash
        self.value = value
        self.format = format
        self.timers = timers
        storedTimers = timers
        isStored = value != nil
    }

    /// About what it takes in memory: the object, three arrays and their contents.
    var bytes: Int { 220 + key.count + (value?.count ?? 0) }

    func due(_ kind: UInt8) -> Int64? { timers.first { $0.kind == kind }?.due }

    func setTimer(_ kind: UInt8, due: Int64?) {
        let place = timers.firstIndex { $0.kind >= kind } ?? timers.endIndex
        let exists = place < timers.endIndex && timers[place].kind == kind
        switch (due, exists) {
        case (let due?, true): timers[place].due = due
        case (let due?, false): timers.insert(EntryTimer(kind: kind, due: due), at: place)
        case (nil, true): timers.remove(at: place)
        case (nil, false): break
        }
    }
}

/// `format`, number of timers, for each its kind and due time, then the value. Integers are little-endian.
enum EntryCoding {
    static func encode(_ value: [UInt8], format: UInt8, timers: [EntryTimer], into bytes: inout [UInt8]) {
        bytes.append(format)
        bytes.append(UInt8(timers.count))
        for timer in timers {
            bytes.append(timer.kind)
            withUnsafeBytes(of: timer.due.littleEndian) { bytes.append(contentsOf: $0) }
        }
        bytes.append(contentsOf: value)
    }

    /// nil: the bytes are no entry.
    static func decode(_ bytes: [UInt8]) -> (value: [UInt8], format: UInt8, timers: [EntryTimer])? {
        guard bytes.count >= 2 else { return nil }
        let count = Int(bytes[1])
        let start = 2 + count * 9
        guard bytes.count >= start else { return nil }
        let timers = (0..<count).map { index in
            let position = 2 + index * 9
            return bytes.withUnsafeBytes { bytes in
                EntryTimer(
                    kind: bytes[position],
                    due: Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: position + 1, as: Int64.self)))
            }
        }
        return (Array(bytes[start...]), bytes[0], timers)
    }
}
