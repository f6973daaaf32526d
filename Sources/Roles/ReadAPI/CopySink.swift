// Writes the records of a partition into its local copy.

internal import Contract
internal import Follow
internal import Log
internal import Store
internal import Telemetry

/// Holds records that have been read but not written yet. Used on the follower's thread only.
final class CopySink: PartitionSink {
    private let copy: PartitionCopy
    /// Of each topic.
    private let partitions: Int
    private let stores: any PartitionStores
    private let names: Names
    private let metrics: ShelfMetrics
    private let logger: Logger
    private let judge: RecordJudge
    /// The note with everything in `changes`, except the positions, which are passed to each write.
    private(set) var note: CopyNote
    private let changes = StoreChanges()
    /// The cells in `changes`, by their records' keys; nil inside: the cell is deleted.
    private var cells: [[UInt8]: KeptCell?] = [:]
    private var refunds = HeldRefunds()
    /// true: `changes` contains events.
    private var hasEvents = false

    init(
        _ copy: PartitionCopy, of partitions: Int, _ stores: any PartitionStores, _ names: Names,
        _ judge: RecordJudge, _ metrics: ShelfMetrics, _ logger: Logger
    ) {
        self.copy = copy
        self.partitions = partitions
        self.stores = stores
        self.names = names
        self.judge = judge
        self.metrics = metrics
        self.logger = logger
        note = CopyNote(partitions: Int32(partitions), begunAt: 0)
    }

    // MARK: Opening

    func open() throws(SinkFault) -> SinkContents {
        try faulting { () throws(StoreFault) in
            let (found, isEmpty) = try copy.open(stores)
            guard let found, found.partitions == Int32(partitions) else {
                note = CopyNote(partitions: Int32(partitions), begunAt: 0)
                return isEmpty
                    ? .nothing : .foreign("it was written by another build, or for another number of partitions")
            }
            note = found
            return .places(found.places)
        }
    }

    /// Counts the cells of every copy that was opened meanwhile.
    func begin() throws(SinkFault) { try faulting { () throws(StoreFault) in try copy.countCells() } }

    func close() throws(SinkFault) {
        forget()
        try faulting { () throws(StoreFault) in try copy.close() }
    }

    func wipe() throws(SinkFault) {
        forget()
        try faulting { () throws(StoreFault) in try copy.wipe(stores) }
    }

    private func forget() {
        changes.removeAll()
        cells.removeAll()
        refunds.removeAll()
        hasEvents = false
    }

    private func faulting<Result>(_ body: () throws(StoreFault) -> Result) throws(SinkFault) -> Result {
        do throws(StoreFault) { return try body() } catch { throw SinkFault(error) }
    }

    // MARK: Records

    func take(_ record: borrowing RecordView) -> String? {
        guard let topic = FollowedTopic(rawValue: record.topic) else { return nil }
        let verdict = judge.judge(record, topic)
        if case .newer(let words) = verdict { return words }
        metrics.records[topic.rawValue].add()
        if topic == .cells { note.keep(rules: record.rules) }
        let key = record.copyOfKey()
        switch verdict {
        case .cell(let cell):
            guard let key else { break }
            changes.put(KeySpace.cells.key(key).span, cell.bytes.span)
            cells.updateValue(cell, forKey: key)
        case .refund(let refund):
            if let value = record.copyOfValue() { refunds.add(refund, value) }
        case .event(let sequence):
            guard let key, let value = record.copyOfValue() else { break }
            let place = HistoryKeys.event(of: key, sequence: sequence, offset: record.offset)
            changes.put(place.span, HistoryEntry(sequence, of: record, value).bytes.span)
            changes.addTimer(
                due: adding(record.timestamp, HistoryKeys.keptFor), key: place.span, kind: HistoryKeys.end)
            hasEvents = true
        case .put(let space):
            guard let key, let value = record.value else { break }
            changes.put(space.key(key).span, value)
            delete(key, from: topic.spaces.filter { $0 != space })
        case .delete:
            if let key { delete(key, from: topic.spaces) }
        case .keepOut(let flaw):
            metrics.keptOut(topic, flaw)
            logger.error(
                "a record is kept out of the answers",
                [
                    "partition": .string("\(TopicPartition(names.topic(topic.id), copy.number))"),
                    "offset": .integer(record.offset), "cause": .string(flaw.rawValue),
                ])
            if flaw != .key, let key { delete(key, from: topic.spaces) }
        case .skip: metrics.skipped[topic.rawValue].add()
        case .newer: break
        }
        return nil
    }

    private func delete(_ key: [UInt8], from spaces: [KeySpace]) {
        for space in spaces {
            changes.delete(space.key(key).span)
            if space == .cells { cells.updateValue(nil, forKey: key) }
        }
    }

    // MARK: Writing

    var heldBytes: Int { changes.bytes.count + refunds.byteCount }

    func write(_ places: [KeptPlace], isLasting: Bool) throws(SinkFault) {
        note.places = places
        try faulting { () throws(StoreFault) in
            if hasEvents || !refunds.records.isEmpty { try copy.end(into: changes, note) }
            try copy.write(changes, cells, refunds, note, isLasting ? .process : .none)
        }
        changes.removeAll()
        cells.removeAll(keepingCapacity: true)
        refunds.removeAll()
        hasEvents = false
    }

    func move(to places: [KeptPlace]) {
        note.places = places
        copy.move(to: note)
    }

    func confirm() { copy.confirm() }

    var fault: SinkFault? { copy.fault.map { SinkFault($0) } }
}

extension SinkFault {
    fileprivate init(_ fault: StoreFault) { self.init(fault.words, isBroken: fault.cause == .corrupt) }
}
