// Restores one partition to the end of its changelog.

internal import Log
internal import Store

/// A store, and the part of the changelog that it still lacks.
final class Restore {
    typealias Outcome = RestoreReply.Outcome

    /// Records that are written to a store in one step.
    private static let recordsPerWrite = 10_000

    let order: RestoreOrder
    /// The store's note, which each write replaces.
    private var stored: Note?
    let end: NextOffset
    var position: NextOffset
    /// The last note that was read; before the first one the store's note.
    private(set) var note: Note?
    /// Records that the store did not have.
    private(set) var records = 0
    private let definition: WorkerDefinition
    private let beginning: NextOffset
    private let changes = StoreChanges()
    private var changed = 0
    /// Sum of the store's contents. nil: it is not known yet, and computed when the store is complete.
    private(set) var sum: StateSum?
    /// The hashes of the entries that `changes` will write. nil: the entry is deleted. Kept while `sum` is.
    private var hashes: [[UInt8]: UInt64?] = [:]
    /// The sum that the last note of the changelog contains.
    private var expected: StateSum?
    private var hasReadNote = false
    /// The changelog contains the store's note, or a later one.
    private let expectsNote: Bool

    init(_ order: RestoreOrder, _ definition: WorkerDefinition, from beginning: NextOffset, to end: NextOffset) {
        self.order = order
        self.definition = definition
        self.beginning = beginning
        self.end = end
        note = order.note
        stored = order.note
        guard let note = order.note else {
            (position, expectsNote) = (beginning, false)
            return
        }
        // Starts at the store's own note, although the store has it: it shows that both are of one life.
        let known = note.noteOffset.flatMap { $0 >= beginning ? $0 : nil }
        position = min(known ?? note.changelog, note.changelog)
        expectsNote = known != nil
        // If there is more to read than there are keys, one scan of all keys costs less than a lookup for each record.
        let left = end.value - position.value
        sum = note.sum.flatMap { left > $0.keys ? nil : $0 }
    }

    /// The order to start anew: the store may have a later note by now.
    var rest: RestoreOrder {
        var rest = order
        rest.note = stored
        return rest
    }

    // MARK: Records

    /// The outcome, if the record ends the restore. nil: it continues.
    func apply(_ record: borrowing RecordView) -> Outcome? {
        position = NextOffset(after: record.offset)
        let isNew = record.offset >= order.note?.changelog.value ?? 0
        if isNew { records += 1 }
        guard let key = record.key, !key.isEmpty else { return nil }
        if key[0] != ChangelogKey.entry { return applyNote(record) }
        return isNew ? applyEntry(key.extracting(droppingFirst: 1), record.value) : nil
    }

    private func applyNote(_ record: borrowing RecordView) -> Outcome? {
        guard var read = record.copyOfValue().flatMap({ Note(decoding: $0) }) else {
            return .refused("\(definition.changelog) was written by a build that this build cannot read")
        }
        if let words = definition.unreadable(read) { return .refused(words) }
        if let life = note?.life, life != read.life {
            return order.useless(
                "the state of partition \(order.partition) belongs to an earlier life of \(definition.changelog), "
                    + "which was deleted and created again", definition, beginning)
        }
        // A state without a sum may still be changing epochs.
        if let own = order.note, own.sum != nil, own.epoch != read.epoch {
            return order.useless(
                "the state of partition \(order.partition) is of epoch \(own.epoch), and the state of a replay has "
                    + "since replaced it (epoch \(read.epoch))", definition, beginning)
        }
        expected = read.sum
        hasReadNote = true
        read.noteOffset = NextOffset(record.offset)
        note = read
        return nil
    }

    private func applyEntry(_ key: Span<UInt8>, _ value: Span<UInt8>?) -> Outcome? {
        changed += 1
        guard let value else {
            changes.delete(key)
            keepHash(nil, of: key)
            return nil
        }
        guard let (timers, _) = EntryCoding.timers(of: value) else {
            return .refused("\(definition.changelog) contains no state of this worker")
        }
        changes.put(key, value)
        // The key's earlier timers are not looked up. Code that takes a timer from the index checks it against the
        // key's entry.
        for timer in timers { changes.addTimer(due: timer.place, key: key, kind: timer.kind) }
        keepHash(EntryHash.hash(key: key, entry: value), of: key)
        return nil
    }

    private func keepHash(_ hash: UInt64?, of key: Span<UInt8>) {
        if sum == nil { return }
        hashes.updateValue(hash, forKey: key.withUnsafeBytes { [UInt8]($0) })
    }

    // MARK: The store

    func isDueForWrite(from bytes: Int) -> Bool { changed >= Self.recordsPerWrite || changes.bytes.count >= bytes }

    /// Writes what was read. After a kill the next restore begins at the last note that the store had flushed.
    func write(at now: Int64) throws(StoreFault) {
        try keepSum()
        var written = note ?? Note(format: definition.stateFormat)
        written.changelog = max(position, order.note?.changelog ?? position)
        written.writtenAt = now
        written.sum = sum
        changes.note = written.encoded
        try order.store.write(changes, .none)
        stored = written
        if note != nil { note = written }
        changes.removeAll()
        changed = 0
    }

    /// Updates the sum to the store's contents after the changes.
    private func keepSum() throws(StoreFault) {
        guard var sum else { return }
        var stored: [UInt8] = []
        for (key, hash) in hashes {
            if try order.store.read(key.span, into: &stored) { sum.remove(try Self.hash(key.span, stored.span)) }
            if let hash { sum.add(hash) }
        }
        hashes.removeAll(keepingCapacity: true)
        self.sum = sum
    }

    private func countAll() throws(StoreFault) -> StateSum {
        var sum = StateSum()
        var isBroken = false
        let all: [UInt8] = []
        try order.store.scan(all.span) { key, value in
            guard let hash = EntryHash.hash(key: key, stored: value) else {
                isBroken = true
                return false
            }
            sum.add(hash)
            return true
        }
        if isBroken { throw Self.brokenEntry }
        return sum
    }

    private static func hash(_ key: Span<UInt8>, _ stored: Span<UInt8>) throws(StoreFault) -> UInt64 {
        guard let hash = EntryHash.hash(key: key, stored: stored) else { throw brokenEntry }
        return hash
    }

    private static let brokenEntry = StoreFault(.corrupt, "an entry of the state cannot be decoded")

    func outcome(of fault: StoreFault) -> Outcome {
        switch fault.cause {
        case .corrupt: order.damaged(fault.words, definition, beginning)
        case .system, .locked: .hindered(fault.words)
        case .format: .refused(fault.words)
        }
    }

    // MARK: The end

    /// Writes the rest to the store. Returns why the result is not the state that the changelog describes; nil if it
    /// is.
    func finish(at now: Int64) throws(StoreFault) -> Outcome? {
        if expectsNote, !hasReadNote {
            return order.useless(
                "\(definition.changelog)[\(order.partition)] does not have the note that belongs to the state of the partition",
                definition, beginning)
        }
        guard records > 0 || note != nil else {
            sum = StateSum()
            return nil
        }
        try write(at: now)
        let wasCounted = sum == nil
        let found = if let sum { sum } else { try countAll() }
        if let expected, found != expected { return mismatch(found, expected) }
        sum = found
        if wasCounted { try write(at: now) }
        return nil
    }

    private func mismatch(_ found: StateSum, _ expected: StateSum) -> Outcome {
        let difference =
            found.keys == expected.keys
            ? "its contents differ from the sum in the changelog's last note"
            : "it has \(found.keys) keys, and the changelog's last note says \(expected.keys)"
        return order.useless(
            "the state of partition \(order.partition) is not complete: \(difference). Records of "
                + "\(definition.changelog) are missing: did its cleanup.policy differ from compact, even for a short "
                + "time? " + definition.anew,
            definition, beginning)
    }

    /// A message for a person about something that does not stop the restore.
    var warning: String? {
        guard beginning.value > 0 else { return nil }
        return
            "\(definition.lostBeginning(order.partition, beginning)); until then the state of partition \(order.partition) is "
            + "complete only on this disk"
    }
}

extension RestoreOrder {
    /// Why the changelog cannot complete the store. nil: it can.
    func obstacle(_ definition: WorkerDefinition, _ beginning: NextOffset, _ end: NextOffset, now: Int64)
        -> RestoreReply.Outcome?
    {
        if let words = note.flatMap({ definition.unreadable($0) }) { return .refused(words) }
        if let damage { return damaged(damage, definition, beginning) }
        guard let note else {
            // Compaction does not move the beginning of a log from 0.
            return beginning.value > 0 ? .refused(definition.lostBeginning(partition, beginning)) : nil
        }
        if note.changelog > end {
            return useless(
                "the state of partition \(partition) is ahead of \(definition.changelog), which was deleted and "
                    + "created again",
                definition,
                beginning)
        }
        if note.changelog < beginning {
            return useless(
                "the changelog of partition \(partition) begins after its local state", definition, beginning)
        }
        if now - note.writtenAt > Self.greatestAge, note.changelog < end {
            return useless(
                "the state of partition \(partition) is more than 6 days old, so it may have missed deletions",
                definition, beginning
            )
        }
        return nil
    }

    /// A store that was unused for longer may have missed deletions: the changelog keeps them for a week.
    private static let greatestAge: Int64 = 6 * 86_400_000

    /// The store is wiped and restored, unless the changelog lacks its beginning.
    func useless(_ words: String, _ definition: WorkerDefinition, _ beginning: NextOffset) -> RestoreReply.Outcome {
        beginning.value > 0
            ? .refused(definition.irreplaceable(words, partition, beginning)) : .useless(words)
    }

    func damaged(_ words: String, _ definition: WorkerDefinition, _ beginning: NextOffset) -> RestoreReply.Outcome {
        if case .refused(let words) = useless(words, definition, beginning) { .refused(words) } else { .damaged(words) }
    }
}

extension WorkerDefinition {
    fileprivate var anew: String {
        "Restore the topic from a copy, or stop the worker and delete both \(changelog) and the group \(group): the "
            + "state is then rebuilt from the beginning of \(events.topic)"
    }

    func lostBeginning(_ partition: Int32, _ beginning: NextOffset) -> String {
        "\(changelog)[\(partition)] begins at offset \(beginning), not at 0: its first records were deleted, and the state "
            + "with them. \(anew)"
    }

    /// Why a store of no use is kept: what is left of it may be the only copy of the state.
    func irreplaceable(_ words: String, _ partition: Int32, _ beginning: NextOffset) -> String {
        "\(words), and cannot be restored: \(lostBeginning(partition, beginning))"
    }

    /// Why this build cannot use a state of this format. nil: it can.
    func unreadable(_ note: Note) -> String? {
        if note.format > stateFormat {
            return
                "the state was written by a later build (format \(note.format); this one writes \(stateFormat)): start the "
                + "later build again, or rebuild the state from the beginning of \(events.topic)"
        }
        if note.format < oldestReadableFormat {
            return
                "the state was written by a build that is too old (format \(note.format); this one reads formats from "
                + "\(oldestReadableFormat)): first start a build that reads both"
        }
        return nil
    }
}
