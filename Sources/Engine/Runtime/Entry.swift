// The state of one key, and its encoding in stores and changelogs.

/// A time at which the key's timer fires.
struct EntryTimer: Equatable {
    /// 0 to 127.
    var kind: UInt8
    /// Milliseconds since 1970.
    var due: Int64
    /// The time under which the index of timers lists it: never after `due`. Most timers are moved to a later time
    /// again and again and rarely fire. They keep their place in the index, and are moved to their due time only when
    /// that place is reached.
    var place: Int64

    init(kind: UInt8, due: Int64, place: Int64? = nil) {
        self.kind = kind
        self.due = due
        self.place = place ?? due
    }

    func isAtPlace(of other: EntryTimer) -> Bool { kind == other.kind && place == other.place }
}

/// What a worker knows of one key: a value in the processor's own encoding, and the key's timers. Both are one entry of
/// store and changelog, so that one cannot exist without the other.
final class Entry {
    /// What a cycle can change, and what is rolled back with the cycle.
    struct Content {
        /// nil: the key has no value.
        var value: [UInt8]?
        /// Format in which `value` was written.
        var format: UInt8
        /// Sorted by kind.
        var timers: [EntryTimer]
    }

    let key: [UInt8]
    let hash: UInt64
    var content: Content
    /// The content as of the last commit, if the store does not have it yet. A rollback restores it.
    var committed: Content?
    /// The timers as the store has them. The next write removes these from the store's index.
    var storedTimers: [EntryTimer]
    /// The store has a value of the key.
    var isStored: Bool
    /// The changelog has a value of the key.
    var isLogged: Bool
    /// The content differs from the last commit.
    var isDirty = false
    /// The last commit differs from the store.
    var isUnstored = false
    /// The entry was read since the cache last looked for entries to drop.
    var isRecent = true
    /// Hash of the entry in the changelog, if there is one. The next commit subtracts it from the state's sum.
    var loggedHash: UInt64
    /// Hash of the entry that the current commit appends to the changelog.
    var nextHash: UInt64 = 0
    /// The turn that last changed the entry. That turn's journal has the content from before.
    var changedInTurn: UInt64 = 0
    /// Bytes that the cache has counted for this entry.
    var countedBytes = 0

    /// An entry as the store has it.
    init(key: [UInt8], hash: UInt64, content: Content, loggedHash: UInt64 = 0) {
        self.key = key
        self.hash = hash
        self.content = content
        self.loggedHash = loggedHash
        storedTimers = content.timers
        isStored = content.value != nil
        isLogged = isStored
    }

    var value: [UInt8]? { content.value }
    var timers: [EntryTimer] { content.timers }

    /// Approximate memory of the entry: the object, three arrays and their contents.
    var bytes: Int { 274 + key.count + (content.value?.count ?? 0) }

    func timer(_ kind: UInt8) -> EntryTimer? { content.timers.first { $0.kind == kind } }

    /// True: the timer has a new place, and the caller must enter it in the index of timers.
    @discardableResult
    func setTimer(_ kind: UInt8, due: Int64?) -> Bool {
        let index = content.timers.firstIndex { $0.kind >= kind } ?? content.timers.endIndex
        let exists = index < content.timers.endIndex && content.timers[index].kind == kind
        guard let due else {
            if exists { content.timers.remove(at: index) }
            return false
        }
        if !exists {
            content.timers.insert(EntryTimer(kind: kind, due: due), at: index)
            return true
        }
        content.timers[index].due = due
        if due >= content.timers[index].place { return false }
        content.timers[index].place = due
        return true
    }

    /// Moves the timer's place to its due time.
    func settleTimer(_ kind: UInt8) {
        guard let index = content.timers.firstIndex(where: { $0.kind == kind }) else { return }
        content.timers[index].place = content.timers[index].due
    }
}

/// Layout: `format`, the number of timers, kind and due time of each timer, then the value. Integers are little-endian.
/// In a store the highest bit of a kind means that the timer's place follows because it differs from the due time. A
/// changelog contains no places.
enum EntryCoding {
    static let greatestKind: UInt8 = 127

    static func encode(_ content: Entry.Content, withPlaces: Bool, into bytes: inout [UInt8]) {
        bytes.append(content.format)
        bytes.append(UInt8(content.timers.count))
        for timer in content.timers {
            let hasPlace = withPlaces && timer.place != timer.due
            bytes.append(hasPlace ? timer.kind | 128 : timer.kind)
            withUnsafeBytes(of: timer.due.littleEndian) { bytes.append(contentsOf: $0) }
            if hasPlace { withUnsafeBytes(of: timer.place.littleEndian) { bytes.append(contentsOf: $0) } }
        }
        if let value = content.value { bytes.append(contentsOf: value) }
    }

    /// nil: the bytes are not a valid entry.
    static func decode(_ bytes: Span<UInt8>) -> Entry.Content? {
        guard let (timers, start) = timers(of: bytes) else { return nil }
        let value = bytes.extracting(droppingFirst: start).withUnsafeBytes { [UInt8]($0) }
        return Entry.Content(value: value, format: bytes[0], timers: timers)
    }

    /// The timers, and the index at which the value begins.
    static func timers(of bytes: Span<UInt8>) -> (timers: [EntryTimer], end: Int)? {
        guard bytes.count >= 2 else { return nil }
        let count = Int(bytes[1])
        var timers: [EntryTimer] = []
        timers.reserveCapacity(count)
        var position = 2
        for _ in 0..<count {
            guard position + 9 <= bytes.count else { return nil }
            let kind = bytes[position]
            let due = integer(bytes, position + 1)
            position += 9
            guard kind > greatestKind else {
                timers.append(EntryTimer(kind: kind, due: due))
                continue
            }
            guard position + 8 <= bytes.count else { return nil }
            let place = integer(bytes, position)
            guard place < due else { return nil }
            timers.append(EntryTimer(kind: kind & 127, due: due, place: place))
            position += 8
        }
        return (timers, position)
    }

    /// Whether the entry contains a timer's place. nil: the bytes are not a valid entry.
    static func hasPlaces(_ bytes: Span<UInt8>) -> Bool? {
        guard bytes.count >= 2 else { return nil }
        var position = 2
        for _ in 0..<bytes[1] {
            guard position + 9 <= bytes.count else { return nil }
            if bytes[position] > greatestKind { return true }
            position += 9
        }
        return false
    }

    private static func integer(_ bytes: Span<UInt8>, _ position: Int) -> Int64 {
        bytes.withUnsafeBytes { Int64(littleEndian: $0.loadUnaligned(fromByteOffset: position, as: Int64.self)) }
    }
}
