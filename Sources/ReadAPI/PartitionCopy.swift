// The local copy of one partition: written by the follower, read by whoever answers.

internal import Churn
internal import Follow
internal import Log
internal import Platform
internal import Store

/// One lock around store and position: an answer and the position that it names are of one moment.
///
/// Under it bytes are copied and nothing is parsed: one large account is not to keep the partition's other customers waiting.
/// Answers wait for a write of the follower, some hundred microseconds in everyday work. What waits longer, the building of a
/// copy, nobody may ask meanwhile.
final class PartitionCopy: @unchecked Sendable {
    let number: Int32
    private let monitor = Monitor()
    private let totals: CellTotals
    // Unchecked: used under the lock of `monitor` only.
    private var store: (any PartitionStore)?
    private var note: CopyNote?
    private var readFault: StoreFault?
    private var wasComplete = false

    init(_ number: Int32, _ totals: CellTotals) {
        self.number = number
        self.totals = totals
    }

    // MARK: For answers

    /// What was read, and the place of the topic at that moment.
    struct Reading<Found> {
        var found: Found
        var place: CopyNote.Place
    }

    /// The value of a record's key; nil inside: there is none. nil: there is no copy to ask now.
    func value(_ space: KeySpace, _ key: [UInt8]) -> Reading<[UInt8]?>? {
        asking(space.topic) { store throws(StoreFault) in
            var value: [UInt8] = []
            return try store.read(space.key(key).span, into: &value) ? value : nil
        }
    }

    /// The records of an account, as many as `CopiedRecords` takes. nil: there is no copy to ask now.
    func records(ofAccount token: String) -> Reading<CopiedRecords>? {
        asking(.accounts) { store throws(StoreFault) in
            var records = CopiedRecords()
            let prefix = KeySpace.prefix(ofAccount: token)
            try store.scan(prefix.span) { key, value in
                records.take(value, of: KeySpace(rawValue: key[prefix.count]) ?? .granting)
            }
            return records
        }
    }

    func asking<Found>(
        _ topic: FollowedTopic, _ ask: (any PartitionStore) throws(StoreFault) -> Found
    ) -> Reading<Found>? {
        monitor.withLock {
            guard let store, let note, wasComplete, readFault == nil else { return nil }
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

    /// Whether it had everything since it was opened. Before, there are no answers: an empty store knows nobody, and one that is
    /// opened again may be behind what was answered already.
    var isAskable: Bool { monitor.withLock { store != nil && wasComplete } }
    /// All that the topics had is written.
    func confirm() { monitor.withLock { wasComplete = true } }

    /// - Returns: the note of the store; nil: it is empty, or of another format.
    func open(_ stores: any PartitionStores) throws(StoreFault) -> (note: CopyNote?, isEmpty: Bool) {
        try monitor.withLock { () throws(StoreFault) in
            let opened = try stores.open(number)
            let bytes = try opened.note()
            store = opened
            wasComplete = false
            readFault = nil
            note = bytes.flatMap { CopyNote(decoding: $0) }
            return (note, bytes == nil)
        }
    }

    /// - Parameters:
    ///   - cells: those among the changes.
    ///   - refunds: are merged with what is there, and not among the changes.
    func write(
        _ changes: StoreChanges, _ cells: [[UInt8]: KeptCell?], _ refunds: HeldRefunds, _ note: CopyNote,
        _ durability: StoreDurability
    ) throws(StoreFault) {
        let counted = try monitor.withLock { () throws(StoreFault) -> [CellTotals.Change] in
            guard let store else { return [] }
            let counted = try Self.changes(by: cells, of: store)
            try RefundStore.merge(refunds, into: changes, of: store)
            changes.note = note.encoded
            try store.write(changes, durability)
            self.note = note
            return counted
        }
        // Behind the lock: who asks for totals keeps nobody waiting who asks for a customer.
        totals.apply(number, counted, at: note[.cells])
    }

    /// What is due to end.
    func dueTimers(by clock: Int64, limit: Int) throws(StoreFault) -> [TimerEntry] {
        try monitor.withLock { () throws(StoreFault) in
            try store?.timers(after: nil, dueBy: clock, limit: limit) ?? []
        }
    }

    private static func changes(
        by cells: [[UInt8]: KeptCell?], of store: any PartitionStore
    ) throws(StoreFault) -> [CellTotals.Change] {
        var changes: [CellTotals.Change] = []
        changes.reserveCapacity(cells.count)
        var value: [UInt8] = []
        for (bytes, cell) in cells {
            guard let key = CellKey(bytes) else { continue }
            let isThere = try store.read(KeySpace.cells.key(bytes).span, into: &value)
            changes.append(CellTotals.Change(key: key, old: isThere ? KeptCell(value) : nil, new: cell))
        }
        return changes
    }

    /// Adds what the store has to the totals, unless that was done: a look at every cell of the partition.
    func countCells() throws(StoreFault) {
        if totals.isCounted(number) { return }
        let counted = try monitor.withLock {
            () throws(StoreFault) -> (cells: [CellTotals.Change], place: CopyNote.Place)? in
            guard let store, let note else { return nil }
            var cells: [CellTotals.Change] = []
            try store.scan([KeySpace.cells.rawValue].span) { key, value in
                let bytes = key.withUnsafeBufferPointer { Array($0.dropFirst()) }
                guard let key = CellKey(bytes), let cell = KeptCell(value.withUnsafeBufferPointer { Array($0) })
                else { return true }
                cells.append(CellTotals.Change(key: key, old: nil, new: cell))
                return true
            }
            return (cells, note[.cells])
        }
        if let counted { totals.count(number, counted.cells, at: counted.place) }
    }

    /// Nothing but the place has changed: that need not be on disk each time.
    func move(to note: CopyNote) {
        monitor.withLock { self.note = note }
        totals.apply(number, [], at: note[.cells])
    }

    func close() throws(StoreFault) {
        try monitor.withLock { () throws(StoreFault) in
            defer { note = nil }
            totals.forget()
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

/// Records of one account as a copy has them.
struct CopiedRecords {
    /// Of one answer. An account has a handful of records, thousands where consumables are sold; a token that a defect gives to
    /// all customers has millions, and would stop everything else.
    static let limitRecords = 10_000
    static let limitBytes = 8 << 20

    /// One after the other with commas between them, as they stand in an array.
    private(set) var list: [UInt8] = []
    /// Of each record in `list`.
    private(set) var places: [Range<Int>] = []
    /// Of what there were more than are taken; nil: these are all.
    private(set) var cutAt: KeySpace?

    /// false: no more are taken.
    mutating func take(_ record: Span<UInt8>, of space: KeySpace) -> Bool {
        guard places.count < Self.limitRecords, list.count + record.count <= Self.limitBytes else {
            cutAt = space
            return false
        }
        if !list.isEmpty { list.append(UInt8(ascii: ",")) }
        let start = list.count
        record.withUnsafeBufferPointer { list.append(contentsOf: $0) }
        places.append(start..<list.count)
        return true
    }
}
