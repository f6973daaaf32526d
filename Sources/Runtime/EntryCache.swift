// The entries of one partition in memory: what the open cycle has changed, what the store does not have yet, and what was read
// lately.

internal import Log
internal import Store

/// Entries by key. Changed ones stay until they are committed or taken back, and committed ones until the store has them;
/// others may be dropped.
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
    /// Committed, and not in the store yet.
    private(set) var unstored: [Entry] = []
    private(set) var unstoredBytes = 0
    private var hand = 0
    private var buffer: [UInt8] = []

    private let store: any PartitionStore
    private let formats: ClosedRange<UInt8>
    /// Beyond it some of what the store has is dropped.
    var limitBytes: Int

    /// - Parameter formats: of values that this build reads.
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
            throw StoreFault(.corrupt, "an entry of the state cannot be read: wipe this partition's state")
        }
        guard formats.contains(content.format) else {
            throw StoreFault(
                .format,
                "a value in the state has the format \(content.format), and this build reads \(formats.lowerBound) to "
                    + "\(formats.upperBound): start the build that wrote it, or rebuild the state from the beginning")
        }
        // While the bytes are there as they were written: to encode them again for a commit would cost more.
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

    /// Before every change of an entry, which `changed` follows.
    func willChange(_ entry: Entry) {
        guard !entry.isDirty else { return }
        entry.isDirty = true
        if entry.isUnstored { entry.committed = entry.content }
        dirty.append(entry)
        dirtyBytes += entry.countedBytes
    }

    func changed(_ entry: Entry) { countBytes(of: entry) }

    /// A step that failed is taken back: the entry is as of the last commit again.
    func unchanged(_ entry: Entry) {
        guard entry.isDirty else { return }
        entry.isDirty = false
        entry.committed = nil
        dirtyBytes -= entry.countedBytes
        dirty.removeAll { $0 === entry }
        countBytes(of: entry)
    }

    /// A timer stands elsewhere in the store than in the entry now. The log does not know places.
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

    /// The log has the changes.
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

    /// The store has what is committed. Not in the middle of a cycle.
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

    /// Takes back everything since the last commit.
    func rollBack() {
        for entry in dirty {
            entry.isDirty = false
            if let committed = entry.committed.take() {
                entry.content = committed
                countBytes(of: entry)
            } else {
                // The store has it as it was.
                remove(entry)
            }
        }
        dirty.removeAll(keepingCapacity: true)
        dirtyBytes = 0
    }

    // MARK: Dropping

    /// Drops what was not read since the hand last came by, down to nine tenths of the limit.
    private func drop() {
        let goal = limitBytes / 10 * 9
        var steps = 0
        // Twice round: the first time may only find that everything was read lately.
        while bytes > goal, steps < table.count * 2 {
            if let entry = table[hand], !entry.isDirty, !entry.isUnstored {
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
