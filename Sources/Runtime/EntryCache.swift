// The entries of one partition in memory: what the open cycle has changed, and what was read lately.

internal import Log
internal import Store

/// Entries by key. Changed ones stay until they are committed or taken back; others may be dropped, the store has them.
///
/// Looked up once per record by bytes that lie in a fetch buffer, so it is a table of its own: no array is made to look one up.
final class EntryCache {
    /// Open addressing; its size is a power of two, at most half full.
    private var table: [Entry?] = Array(repeating: nil, count: 64)
    private(set) var count = 0
    private(set) var bytes = 0
    /// In the order in which they were first changed: what reaches a log must not depend on hashes.
    private(set) var dirty: [Entry] = []
    private(set) var dirtyBytes = 0
    private var hand = 0
    private var buffer: [UInt8] = []

    private let store: any PartitionStore
    private let limitBytes: Int

    init(store: any PartitionStore, limitBytes: Int) {
        self.store = store
        self.limitBytes = limitBytes
    }

    // MARK: Looking up

    /// The entry of the key, with or without a value.
    func entry(_ key: Span<UInt8>) throws(StoreFault) -> Entry {
        let hash = Self.hash(key)
        var place = Int(truncatingIfNeeded: hash) & (table.count - 1)
        while let entry = table[place] {
            if entry.hash == hash, equal(entry.key, key) {
                entry.isRecent = true
                return entry
            }
            place = (place + 1) & (table.count - 1)
        }
        return insert(try load(key, hash))
    }

    private func load(_ key: Span<UInt8>, _ hash: UInt64) throws(StoreFault) -> Entry {
        let bytes = copy(key)
        guard try store.read(key, into: &buffer) else {
            return Entry(key: bytes, hash: hash, value: nil, format: 0, timers: [])
        }
        guard let (value, format, timers) = EntryCoding.decode(buffer) else {
            throw StoreFault(.corrupt, "an entry of the state cannot be read: wipe this partition's state")
        }
        return Entry(key: bytes, hash: hash, value: value, format: format, timers: timers)
    }

    private func insert(_ entry: Entry) -> Entry {
        if count * 2 >= table.count { grow() }
        place(entry)
        count += 1
        countBytes(of: entry)
        return entry
    }

    private func place(_ entry: Entry) {
        var place = Int(truncatingIfNeeded: entry.hash) & (table.count - 1)
        while table[place] != nil { place = (place + 1) & (table.count - 1) }
        table[place] = entry
    }

    private func grow() {
        let old = table
        table = Array(repeating: nil, count: old.count * 2)
        for case let entry? in old { place(entry) }
        hand = 0
    }

    /// wyhash's mixing step over eight bytes at a time. Keys come from Apple, not from an enemy who knows the partition's hashes.
    static func hash(_ key: Span<UInt8>) -> UInt64 {
        key.withUnsafeBytes { bytes in
            var hash: UInt64 = 0x9e37_79b9_7f4a_7c15 ^ UInt64(bytes.count)
            var position = 0
            while position + 8 <= bytes.count {
                hash = mix(hash ^ bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self))
                position += 8
            }
            var rest: UInt64 = 0
            while position < bytes.count {
                rest = rest << 8 | UInt64(bytes[position])
                position += 1
            }
            return mix(hash ^ rest)
        }
    }

    private static func mix(_ value: UInt64) -> UInt64 {
        let product = value.multipliedFullWidth(by: 0xa076_1d64_78bd_642f)
        return product.high ^ product.low
    }

    private func equal(_ left: [UInt8], _ right: Span<UInt8>) -> Bool {
        left.count == right.count
            && left.withUnsafeBytes { left in
                right.withUnsafeBytes { right in left.elementsEqual(right) }
            }
    }

    private func copy(_ span: Span<UInt8>) -> [UInt8] { span.withUnsafeBytes { [UInt8]($0) } }

    // MARK: Changing

    /// After every change of an entry.
    func changed(_ entry: Entry) {
        if !entry.isDirty {
            entry.isDirty = true
            dirty.append(entry)
            dirtyBytes += entry.countedBytes
        }
        countBytes(of: entry)
    }

    /// A step that failed is taken back: the entry is as the store has it again.
    func unchanged(_ entry: Entry) {
        guard entry.isDirty else { return }
        entry.isDirty = false
        dirtyBytes -= entry.countedBytes
        dirty.removeAll { $0 === entry }
        countBytes(of: entry)
    }

    private func countBytes(of entry: Entry) {
        let now = entry.bytes
        bytes += now - entry.countedBytes
        if entry.isDirty { dirtyBytes += now - entry.countedBytes }
        entry.countedBytes = now
    }

    /// The changed entries are in the store now.
    func committed() {
        for entry in dirty {
            entry.isDirty = false
            entry.isStored = entry.value != nil
            entry.storedTimers = entry.timers
        }
        dirty.removeAll(keepingCapacity: true)
        dirtyBytes = 0
        if bytes > limitBytes { drop() }
    }

    /// Takes back everything since the last commit: the old contents are in the store only.
    func rollBack() {
        for entry in dirty { remove(entry) }
        dirty.removeAll(keepingCapacity: true)
        dirtyBytes = 0
    }

    /// Forgets everything: somebody else has written to the store.
    func removeAll() {
        table = Array(repeating: nil, count: 64)
        (count, bytes, dirtyBytes, hand) = (0, 0, 0, 0)
        dirty = []
    }

    // MARK: Dropping

    /// Drops what was not read since the hand last came by, down to nine tenths of the limit.
    private func drop() {
        let goal = limitBytes / 10 * 9
        var steps = 0
        // Twice round: the first time may only find that everything was read lately.
        while bytes > goal, steps < table.count * 2 {
            if let entry = table[hand], !entry.isDirty {
                if !entry.isRecent {
                    // What stood behind it may have moved here: the hand stays.
                    remove(entry)
                    continue
                }
                entry.isRecent = false
            }
            hand = (hand + 1) & (table.count - 1)
            steps += 1
        }
    }

    /// Later entries of the same run move up, so that no search ends early at the hole.
    private func remove(_ entry: Entry) {
        let mask = table.count - 1
        var hole = Int(truncatingIfNeeded: entry.hash) & mask
        while table[hole] !== entry { hole = (hole + 1) & mask }
        var place = (hole + 1) & mask
        while let other = table[place] {
            let home = Int(truncatingIfNeeded: other.hash) & mask
            if (place - home) & mask >= (place - hole) & mask {
                table[hole] = other
                hole = place
            }
            place = (place + 1) & mask
        }
        table[hole] = nil
        count -= 1
        bytes -= entry.countedBytes
    }
}
