// The local copy of one partition: written by the follower, read by whoever answers.

internal import Log
internal import Platform
internal import Store

/// One lock around store and position: an answer and the position that it names are of one moment.
///
/// Answers wait for a write of the follower, some hundred microseconds in everyday work. What waits longer, the building of a
/// copy, nobody may ask meanwhile.
final class PartitionCopy: @unchecked Sendable {
    let number: Int32
    private let monitor = Monitor()
    // Unchecked: used under the lock of `monitor` only.
    private var store: (any PartitionStore)?
    private var note: CopyNote?
    private var readFault: StoreFault?

    init(_ number: Int32) { self.number = number }

    // MARK: For answers

    /// What was read, and the place of the topic at that moment.
    struct Reading<Found> {
        var found: Found
        var place: CopyNote.Place
    }

    /// The value of a record's key; nil inside: there is none. nil: there is no copy to ask now.
    func value(_ topic: FollowedTopic, _ key: [UInt8]) -> Reading<[UInt8]?>? {
        asking(topic) { store throws(StoreFault) in
            var value: [UInt8] = []
            return try store.read(topic.storeKey(key).span, into: &value) ? value : nil
        }
    }

    /// Keys and values of all records whose keys begin so, until `take` is false. nil: there is no copy to ask now.
    func scan(
        _ topic: FollowedTopic, keysFrom prefix: [UInt8],
        _ take: (_ key: Span<UInt8>, _ value: Span<UInt8>) -> Bool
    ) -> Reading<Void>? {
        asking(topic) { store throws(StoreFault) in
            try store.scan(topic.storeKey(prefix).span) { key, value in take(key.extracting(droppingFirst: 1), value) }
        }
    }

    private func asking<Found>(
        _ topic: FollowedTopic, _ ask: (any PartitionStore) throws(StoreFault) -> Found
    ) -> Reading<Found>? {
        monitor.withLock {
            guard let store, let note, readFault == nil else { return nil }
            do throws(StoreFault) {
                return Reading(found: try ask(store), place: note[topic])
            } catch {
                // The follower finds it at its next look, and mends what can be mended.
                readFault = error
                return nil
            }
        }
    }

    // MARK: For the follower

    var isOpen: Bool { monitor.withLock { store != nil } }
    /// What an answer has met; until the copy is opened again there are no more.
    var fault: StoreFault? { monitor.withLock { readFault } }
    var approximateBytes: Int { monitor.withLock { store?.approximateBytes ?? 0 } }

    /// - Returns: the note of the store; nil: it is empty, or of another format.
    func open(_ stores: any PartitionStores) throws(StoreFault) -> (note: CopyNote?, isEmpty: Bool) {
        try monitor.withLock { () throws(StoreFault) in
            let opened = try stores.open(number)
            let bytes = try opened.note()
            store = opened
            readFault = nil
            note = bytes.flatMap { CopyNote(decoding: $0) }
            return (note, bytes == nil)
        }
    }

    func write(_ changes: StoreChanges, _ note: CopyNote, _ durability: StoreDurability) throws(StoreFault) {
        try monitor.withLock { () throws(StoreFault) in
            guard let store else { return }
            changes.note = note.encoded
            try store.write(changes, durability)
            self.note = note
        }
    }

    /// Nothing but the place has changed: that need not be on disk each time.
    func move(to note: CopyNote) { monitor.withLock { self.note = note } }

    func close() throws(StoreFault) {
        try monitor.withLock { () throws(StoreFault) in
            defer { note = nil }
            guard let closing = store else { return }
            store = nil
            try closing.close()
        }
    }

    /// Closes it first, in whatever state it is.
    func wipe(_ stores: any PartitionStores) throws(StoreFault) {
        try? close()
        try stores.wipe(number)
    }
}
