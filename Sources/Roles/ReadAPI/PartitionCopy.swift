// The local copy of one partition: the follower writes it, answers read it.

internal import Churn
internal import Follow
internal import Log
internal import Platform
internal import Store

/// One lock for store and position: an answer and the position in it are from the same moment.
///
/// Under the lock bytes are copied and nothing is parsed: one large account must not delay the partition's other
/// customers. Answers wait for a write of the follower, usually some hundred microseconds. While a copy is being built,
/// which takes longer, nobody may read it.
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

    /// The value that was read, and the position of the topic at that moment.
    struct Reading<Found> {
        var found: Found
        var place: CopyNote.Place
    }

    /// The value of a record's key; nil inside: the key has no value. nil: there is no readable copy now.
    func value(_ space: KeySpace, _ key: [UInt8]) -> Reading<[UInt8]?>? {
        asking(space.topic) { store throws(StoreFault) in
            var value: [UInt8] = []
            return try store.read(space.key(key).span, into: &value) ? value : nil
        }
    }

    /// The records of an account, as many as `CopiedRecords` accepts. nil: there is no readable copy now.
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
                // The follower sees it at its next step and repairs what it can.
                readFault = error
                return nil
            }
        }
    }

    // MARK: For the follower

    /// The error that an answer met. There are no more answers until the copy is opened again.
    var fault: StoreFault? { monitor.withLock { readFault } }
    var approximateBytes: Int { monitor.withLock { store?.approximateBytes ?? 0 } }

    /// Everything that the topics contained has been written. Before that there are no answers: an empty store knows no
    /// subscription, and a reopened one may be older than answers that were given already.
    func confirm() { monitor.withLock { wasComplete = true } }

    /// - Returns: the note of the store; nil: the store is empty, or has another format.
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
    ///   - cells: the cells among the changes.
    ///   - refunds: merged with the stored requests; not among the changes.
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
        // After the lock: a request for totals delays nobody who asks for a customer.
        totals.apply(number, counted, at: note[.cells])
    }

    /// Timers that are due.
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

    /// Adds the cells of the store to the totals unless they are included already; this reads every cell of the
    /// partition.
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

    /// Only the position has changed: it need not be written to disk each time.
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

    /// Closes the store first, in whatever state it is.
    func wipe(_ stores: any PartitionStores) throws(StoreFault) {
        try? close()
        try stores.wipe(number)
    }
}

/// Records of one account as they are stored in a copy.
struct CopiedRecords {
    /// Most records in one answer. An account has a handful of records, or thousands where consumables are sold. A
    /// token that a defect gives to all customers has millions, and would stop everything else.
    static let limitRecords = 10_000
    static let limitBytes = 8 << 20

    /// Separated by commas, as in an array.
    private(set) var list: [UInt8] = []
    /// The range of each record in `list`.
    private(set) var places: [Range<Int>] = []
    /// The space in which records were left out, because there were too many; nil: all records are here.
    private(set) var cutAt: KeySpace?

    /// false: no more fit.
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
