// The state of one key, and the bytes in which stores and changelogs keep it.

/// A moment at which the key wants to be woken.
struct EntryTimer: Equatable {
    /// 0 to 127.
    var kind: UInt8
    /// Milliseconds since 1970.
    var due: Int64
    /// Where the order of timers has it: never behind `due`. Most timers move later again and again and hardly ever fire; they
    /// stay where they are, and are put where they belong when their place is reached.
    var place: Int64

    init(kind: UInt8, due: Int64, place: Int64? = nil) {
        self.kind = kind
        self.due = due
        self.place = place ?? due
    }

    func isAtPlace(of other: EntryTimer) -> Bool { kind == other.kind && place == other.place }
}

/// What a worker knows of one key: a value of its own coding, and the timers that belong to it. Both are one entry of store and
/// changelog, so that neither can be there without the other.
final class Entry {
    /// What changes with a cycle, and is taken back with it.
    struct Content {
        /// nil: there is none.
        var value: [UInt8]?
        /// In which format `value` was written.
        var format: UInt8
        /// By kind.
        var timers: [EntryTimer]
    }

    let key: [UInt8]
    let hash: UInt64
    var content: Content
    /// As of the last commit, where the store does not have that: what a roll-back goes back to.
    var committed: Content?
    /// As the store has them: what a write has to remove from its index.
    var storedTimers: [EntryTimer]
    /// The store has a value of the key.
    var isStored: Bool
    /// The changelog has a value of the key.
    var isLogged: Bool
    /// Of what the changelog has, where it has something: what the next commit takes out of the state's sum.
    var loggedHash: UInt64
    /// Of what the commit under way gives to the changelog.
    var nextHash: UInt64 = 0
    /// Differs from the last commit.
    var isDirty = false
    /// The last commit differs from the store.
    var isUnstored = false
    /// The turn in which the entry was last changed; what it was before is in that turn's journal.
    var changedInTurn: UInt64 = 0
    /// Read since the cache last looked for something to drop.
    var isRecent = true
    /// What the cache has counted for it.
    var countedBytes = 0

    /// As the store has it.
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

    /// About what it takes in memory: the object, three arrays and their contents.
    var bytes: Int { 306 + key.count + (content.value?.count ?? 0) }

    func timer(_ kind: UInt8) -> EntryTimer? { content.timers.first { $0.kind == kind } }

    /// True: the timer has a new place, which the order of timers has to be told.
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

    /// Puts the timer where it belongs.
    func settleTimer(_ kind: UInt8) {
        guard let index = content.timers.firstIndex(where: { $0.kind == kind }) else { return }
        content.timers[index].place = content.timers[index].due
    }
}

/// `format`, number of timers, for each its kind and due time, then the value. Integers are little-endian. In a store the highest bit
/// of a kind says that the timer's place follows, which differs from its due time; a changelog knows no places.
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

    /// nil: the bytes are no entry.
    static func decode(_ bytes: Span<UInt8>) -> Entry.Content? {
        guard let (timers, start) = timers(of: bytes) else { return nil }
        let value = bytes.extracting(droppingFirst: start).withUnsafeBytes { [UInt8]($0) }
        return Entry.Content(value: value, format: bytes[0], timers: timers)
    }

    /// The timers, and where the value begins.
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

    /// Whether a timer's place is written. nil: the bytes are no entry.
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
