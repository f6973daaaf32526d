// The entries of one partition in memory: those that the open cycle has changed, those that the store does not have
// yet, and those that were read recently.

internal import Log
internal import Store

/// Entries by key. A changed entry stays until it is committed or rolled back, and a committed entry until the store
/// has it. All other entries may be dropped.
///
/// Each record looks up its key, and the key's bytes lie in a fetch buffer. So this is a hash table of our own: a
/// lookup creates no array.
final class EntryCache {
    /// Open addressing. The size is a power of two, and at most half of it is used.
    private var table: [Entry?] = Array(repeating: nil, count: 64)
    private(set) var count = 0
    private(set) var bytes = 0
    /// In the order of their first change: what reaches a log must not depend on hashes.
    private(set) var dirty: [Entry] = []
    private(set) var dirtyBytes = 0
    /// Committed entries that are not in the store yet.
    private(set) var unstored: [Entry] = []
    private(set) var unstoredBytes = 0
    private var hand = 0
    private var buffer: [UInt8] = []

    private let store: any PartitionStore
    private let formats: ClosedRange<UInt8>
    /// Above this size the cache drops entries that the store has.
    var limitBytes: Int

    /// - Parameter formats: formats of values that this build can read.
    init(store: any PartitionStore, limitBytes: Int, formats: ClosedRange<UInt8> = 0...UInt8.max) {
        self.store = store
        self.limitBytes = limitBytes
        self.formats = formats
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
            return Entry(key: bytes, hash: hash, content: .init(value: nil, format: 0, timers: []))
        }
        guard let content = EntryCoding.decode(buffer.span) else {
            throw StoreFault(.corrupt, "an entry of the state cannot be decoded")
        }
        guard formats.contains(content.format) else {
            throw StoreFault(
                .format,
                "a value in the state has format \(content.format), but this build reads formats \(formats.lowerBound) "
                    + "to \(formats.upperBound): start the build that wrote it, or rebuild the state from the beginning"
            )
        }
        // The hash uses the bytes as stored: to encode the entry again for a commit would cost more.
        let stored = buffer
        let loggedHash = EntryHash.hash(key: key, stored: stored.span) ?? 0
        return Entry(key: bytes, hash: hash, content: content, loggedHash: loggedHash)
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

    /// wyhash's mixing step over eight bytes at a time. Keys come from Apple, not from an attacker who knows the
    /// hashes.
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

    /// Call this before every change of an entry, and `changed` after it.
    func willChange(_ entry: Entry) {
        guard !entry.isDirty else { return }
        entry.isDirty = true
        if entry.isUnstored { entry.committed = entry.content }
        dirty.append(entry)
        dirtyBytes += entry.countedBytes
    }

    func changed(_ entry: Entry) { countBytes(of: entry) }

    /// Rolls back a step that failed: the entry is again as of the last commit.
    func unchanged(_ entry: Entry) {
        guard entry.isDirty else { return }
        entry.isDirty = false
        entry.committed = nil
        dirtyBytes -= entry.countedBytes
        dirty.removeAll { $0 === entry }
        countBytes(of: entry)
    }

    /// The store lists a timer of the entry under another place than the entry does now. The changelog contains no
    /// places.
    func hasMovedTimer(_ entry: Entry) { if !entry.isDirty { keepForStore(entry) } }

    private func keepForStore(_ entry: Entry) {
        guard !entry.isUnstored else { return }
        entry.isUnstored = true
        unstored.append(entry)
        unstoredBytes += entry.countedBytes
    }

    private func countBytes(of entry: Entry) {
        let now = entry.bytes
        let more = now - entry.countedBytes
        bytes += more
        if entry.isDirty { dirtyBytes += more }
        if entry.isUnstored { unstoredBytes += more }
        entry.countedBytes = now
    }

    /// Call this when the changelog has the changes.
    func committed() {
        for entry in dirty {
            entry.isDirty = false
            entry.committed = nil
            entry.isLogged = entry.value != nil
            entry.loggedHash = entry.nextHash
            keepForStore(entry)
        }
        dirty.removeAll(keepingCapacity: true)
        dirtyBytes = 0
        if bytes > limitBytes { drop() }
    }

    /// Call this when the store has everything committed, never in the middle of a cycle.
    func stored() {
        for entry in unstored {
            entry.isUnstored = false
            entry.isStored = entry.value != nil
            entry.storedTimers = entry.timers
        }
        unstored.removeAll(keepingCapacity: true)
        unstoredBytes = 0
        if bytes > limitBytes { drop() }
    }

    /// Undoes every change since the last commit.
    func rollBack() {
        for entry in dirty {
            entry.isDirty = false
            if let committed = entry.committed.take() {
                entry.content = committed
                countBytes(of: entry)
            } else {
                // The store has the entry as it was.
                remove(entry)
            }
        }
        dirty.removeAll(keepingCapacity: true)
        dirtyBytes = 0
    }

    // MARK: Dropping

    /// Drops entries that were not read since the last pass, until nine tenths of the limit are used.
    private func drop() {
        let goal = limitBytes / 10 * 9
        var steps = 0
        // Two passes: the first may only find that every entry was read recently.
        while bytes > goal, steps < table.count * 2 {
            if let entry = table[hand], !entry.isDirty, !entry.isUnstored {
                if !entry.isRecent {
                    // Removing may have moved a later entry to this index, so the index stays.
                    remove(entry)
                    continue
                }
                entry.isRecent = false
            }
            hand = (hand + 1) & (table.count - 1)
            steps += 1
        }
    }

    /// Moves later entries of the same run up, so that no search ends early at the gap.
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
