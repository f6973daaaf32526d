// What a changed entry writes into the store.

internal import Store

extension Entry {
    /// The timers that the store does not list at their places.
    var timersToStore: [TimerEntry] {
        timers.filter { timer in !storedTimers.contains { $0.isAtPlace(of: timer) } }
            .map { TimerEntry(due: $0.place, key: key, kind: $0.kind) }
    }
}

extension StoreChanges {
    /// Adds the current entry, which replaces the entry in the store.
    func add(_ entry: Entry, _ bytes: inout [UInt8]) {
        let key = entry.key
        for timer in entry.storedTimers where !entry.timers.contains(where: { $0.isAtPlace(of: timer) }) {
            removeTimer(due: timer.place, key: key.span, kind: timer.kind)
        }
        for timer in entry.timers where !entry.storedTimers.contains(where: { $0.isAtPlace(of: timer) }) {
            addTimer(due: timer.place, key: key.span, kind: timer.kind)
        }
        if entry.value != nil {
            bytes.removeAll(keepingCapacity: true)
            EntryCoding.encode(entry.content, withPlaces: true, into: &bytes)
            put(key.span, bytes.span)
        } else if entry.isStored {
            delete(key.span)
        }
    }
}
