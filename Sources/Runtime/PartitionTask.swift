// One partition at work: records and timers in, outputs and state out, nothing visible before the commit.

internal import Log
internal import Platform
internal import Store

/// Where the outputs of the worker stand that no processor names.
struct InnerOutputs {
    let changelog: Int
    let deadLetters: Int
    /// Of each table, by its index among the inputs.
    let tables: [Int]
}

/// Deals with the records of one partition. It knows the log by what it is given, and appends to the worker's outputs.
final class PartitionTask {
    enum Outcome: Equatable {
        case done
        /// Done, and to be committed before the next record, which may end the process: this one would be counted from one
        /// again.
        case commitNow
        /// The cycle is full: the same record again after a commit.
        case commitFirst
        /// Reads nothing more; the record was not dealt with.
        case pause(PauseReason)
    }

    enum PauseReason: Equatable {
        case newerSchema(String)
        case tooManyLetters(String)
        case unreadableState(String)
        /// By the processor, when the partition was opened.
        case refused(String)
        /// The next record is not in the log any more.
        case gap(String)
    }

    /// Fired before a commit comes in between, so that a mass of them does not hold it up.
    static let timersPerCycle = 5000
    /// What waits for the store at most, whatever the cache may take: a store needs as much again while it takes it.
    private static let unstoredLimit = 8 << 20
    /// Traps at one record before it is taken for poison.
    static let trapLimit = 3

    let partition: Int32
    let turn: Turn
    let store: any PartitionStore
    private let definition: WorkerDefinition
    private let inputs: [InputTopic]
    /// By the index of the input.
    private let silentBefore: [NextOffset]
    private let processor: any Processor
    private let outputs: OutputBatch
    private let inner: InnerOutputs
    private let counts: WorkerCounts
    private let crashes: (any CrashNoting)?
    private let cache: EntryCache

    /// As of the last commit.
    private(set) var note: Note
    private var committedNext: [NextOffset]
    /// What the commit under way will make of it.
    private var pendingNote: Note
    /// By the index of the input.
    private(set) var next: [NextOffset]
    private var clock: Int64
    private var emitted: UInt32
    private var breakers: [Breaker]
    private var committedBreakers: [Breaker]
    /// Something has to be committed.
    private(set) var isTouched = false
    private var firedInCycle = 0
    /// Found in the store's index, which a restore fills without looking, and no timer of their key any more.
    private var staleTimers: [TimerEntry] = []
    /// Since when something is committed that is not in the store; nil: nothing.
    private(set) var unstoredSince: Duration?
    private let newLife: () -> UInt64
    private var changelogBytes: [UInt8] = []
    private var entryBytes: [UInt8] = []
    private let changes: StoreChanges

    /// - Parameters:
    ///   - changes: of all partitions of the thread, which are written one after the other.
    ///   - newLife: a number that no other life of a changelog has; never 0.
    init(
        _ processor: any Processor, partition: Int32, store: any PartitionStore, note: Note, next: [NextOffset],
        outputs: OutputBatch, inner: InnerOutputs, changes: StoreChanges, cacheBytes: Int, counts: WorkerCounts,
        crashes: (any CrashNoting)?, newLife: @escaping () -> UInt64
    ) {
        self.newLife = newLife
        self.partition = partition
        self.store = store
        self.processor = processor
        definition = processor.definition
        inputs = definition.inputs
        silentBefore = definition.silentBefore(in: partition)
        self.outputs = outputs
        self.inner = inner
        self.changes = changes
        self.counts = counts
        self.crashes = crashes
        self.note = note
        pendingNote = note
        self.next = next
        committedNext = next
        clock = note.clock
        emitted = note.emitted
        breakers = inputs.map { _ in Breaker() }
        committedBreakers = breakers
        cache = EntryCache(
            store: store, limitBytes: cacheBytes,
            formats: min(definition.oldestReadableFormat, definition.stateFormat)...definition.stateFormat)
        turn = Turn(
            definition, partition: partition, outputs: outputs, cache: cache, timers: TimerQueue(store: store))
    }

    /// Before the first record. Why there may be none; nil when there may.
    func open() throws(StoreFault) -> PauseReason? {
        do throws(StoreFault) {
            let failure = try turn.look(clock: clock) { () throws(ProcessFailure) in try processor.opened(turn) }
            return failure.map { .refused($0.detail.isEmpty ? $0.reason : $0.detail) }
        } catch {
            // The first record that needs what a later build wrote stops at it, and says so.
            guard error.cause == .format else { throw error }
            return nil
        }
    }

    // MARK: Records

    func handle(_ record: borrowing RecordView) throws(StoreFault) -> Outcome {
        do throws(StoreFault) {
            return try deal(with: record)
        } catch {
            guard error.cause == .format else { throw error }
            emitted = record.topic == 0 ? turn.emitted : emitted
            return .pause(.unreadableState(error.words))
        }
    }

    private func deal(with record: borrowing RecordView) throws(StoreFault) -> Outcome {
        let input = record.topic
        // What was dealt with before a rewind, or lies before the start, may come again.
        guard record.offset >= next[input].value else { return .done }
        guard takesVoice(of: record) else { return .commitFirst }
        crashes?.working(topic: input, offset: record.offset)
        defer { crashes?.idle() }
        if input != 0 { return try handleRow(record, input) }

        let meaning = inputs[0].meaning(of: record, isTable: false)
        if case .newerSchema(let words) = meaning { return .pause(.newerSchema(words)) }
        let moment = max(clock, record.timestamp)
        turn.begin(input: inputs[0], isTable: false, offset: record.offset, clock: moment, emitted: emitted)
        guard try fireTimers(dueBy: moment) else {
            emitted = turn.emitted
            return .commitFirst
        }
        crashes?.working(topic: 0, offset: record.offset)
        clock = moment
        let outcome = try process(record, 0, meaning)
        if case .pause = outcome { emitted = turn.emitted } else { emitted = 0 }
        return outcome
    }

    /// False: a commit comes first. What is settled in one cycle is silent or is not, wherever commits fall.
    private func takesVoice(of record: borrowing RecordView) -> Bool {
        let isSilent = record.offset < silentBefore[record.topic].value
        if isSilent == turn.isSilent { return true }
        if isTouched, definition.settledPrefix != nil { return false }
        turn.isSilent = isSilent
        return true
    }

    private func handleRow(_ record: borrowing RecordView, _ input: Int) throws(StoreFault) -> Outcome {
        if inputs[input].isFromOutside { return try handleRowFromOutside(record, input) }
        let meaning = inputs[input].meaning(of: record, isTable: true)
        if case .newerSchema(let words) = meaning { return .pause(.newerSchema(words)) }
        turn.begin(input: inputs[input], isTable: true, offset: record.offset, clock: clock, emitted: 0)
        if let key = record.key, isElsewhere(key, record) {
            reroute(record, as: key, input)
            return .done
        }
        return try process(record, input, meaning)
    }

    /// Whatever it is, the partition goes on behind it.
    private func handleRowFromOutside(_ record: borrowing RecordView, _ input: Int) throws(StoreFault) -> Outcome {
        turn.begin(input: inputs[input], isTable: true, offset: record.offset, clock: clock, emitted: 0)
        var meaning = inputs[input].meaning(of: record, isTable: true)
        switch meaning {
        case .newerSchema(let words): meaning = .strange(ProcessFailure("schema", words))
        case .unknownType: meaning = .strange(ProcessFailure("type", "the header `type` names another kind of record"))
        case .known where !isPoison(record, input):
            do throws(ProcessFailure) {
                let identity = try processor.identity(ofRow: record)
                if isElsewhere(identity.span, record) {
                    reroute(record, as: identity.span, input)
                    return .done
                }
                guard isAtHome(identity.span) else {
                    throw ProcessFailure(
                        "too_large", "it belongs to another partition, and is too large to be carried there")
                }
            } catch {
                meaning = .strange(error)
            }
        case .known, .tick, .strange: break
        }
        return try process(record, input, meaning)
    }

    /// It is to be dealt with where its key is at home. One that is too large for that stays.
    private func isElsewhere(_ key: Span<UInt8>, _ record: borrowing RecordView) -> Bool {
        !isAtHome(key) && Self.size(of: record, record.headers) + key.count <= Turn.limitBytes
    }

    private func isAtHome(_ key: Span<UInt8>) -> Bool {
        Partitioner.partition(of: key, count: definition.partitions) == partition
    }

    private func isPoison(_ record: borrowing RecordView, _ input: Int) -> Bool {
        crashes?.isPoison(topic: input, offset: record.offset, limit: Self.trapLimit) ?? false
    }

    private func process(_ record: borrowing RecordView, _ input: Int, _ meaning: RecordMeaning) throws(StoreFault)
        -> Outcome
    {
        var failure: ProcessFailure?
        var isPoison = false
        switch meaning {
        case .known:
            isPoison = self.isPoison(record, input)
            if isPoison {
                failure = Self.crash
            } else {
                // A ~Escapable value cannot be captured by a closure that may be kept; this one is not.
                failure = try turn.run(clock: clock, timestamp: record.timestamp) { () throws(ProcessFailure) in
                    try processor.process(record, turn)
                }
            }
        case .tick: counts.ticks += 1
        case .unknownType: counts.unknown += 1
        case .strange(let why): failure = why
        case .newerSchema: preconditionFailure("looked at before")
        }
        if let failure {
            guard inputs[input].isFromOutside || breakers[input].allowsLetter() else {
                return .pause(
                    .tooManyLetters(
                        "\(Breaker.limit) of the last \(Breaker.window) records of \(inputs[input].topic) went to the dead "
                            + "letters, and the next would, too (\(failure)): look at them with `perennial dead-letters list`, "
                            + "mend what is wrong, and start this worker again"))
            }
            addLetter(of: record, input, failure)
        } else {
            breakers[input].processed()
        }
        finish(record)
        return isPoison ? .commitNow : .done
    }

    private func finish(_ record: borrowing RecordView) {
        turn.isUnderWay = false
        next[record.topic] = NextOffset(after: record.offset)
        isTouched = true
        counts.records += 1
    }

    /// The next commit tells where it stands, although nothing was dealt with.
    func touch() { isTouched = true }

    /// Nothing was dealt with, and the position moves all the same: behind what takes offsets without being a record.
    func skip(to position: NextOffset, of input: Int) {
        guard position > next[input] else { return }
        next[input] = position
        isTouched = true
    }

    // MARK: Timers

    /// False: there are more, and a commit comes first.
    private func fireTimers(dueBy moment: Int64) throws(StoreFault) -> Bool {
        while let timer = try turn.timers.take(dueBy: moment) {
            do throws(StoreFault) {
                guard try deal(with: timer, dueBy: moment) else { return false }
            } catch {
                // It has not fired: the next look has to find it.
                turn.timers.set(timer)
                throw error
            }
        }
        return true
    }

    /// False: the cycle is full.
    private func deal(with timer: TimerEntry, dueBy moment: Int64) throws(StoreFault) -> Bool {
        let entry = try cache.entry(timer.key.span)
        // Those that do not fire count as well: after a restore there may be very many.
        firedInCycle += 1
        isTouched = true
        guard let set = entry.timer(timer.kind), set.place == timer.due else {
            // It was moved to an earlier time, or cancelled.
            staleTimers.append(timer)
            return firedInCycle < Self.timersPerCycle
        }
        guard set.due == timer.due else {
            // It was moved to a later time.
            entry.settleTimer(timer.kind)
            cache.hasMovedTimer(entry)
            turn.timers.set(TimerEntry(due: set.due, key: timer.key, kind: timer.kind))
            return firedInCycle < Self.timersPerCycle
        }
        turn.removeFired(timer.kind, of: entry)
        let failure: ProcessFailure?
        do throws(StoreFault) {
            failure = try fire(timer, of: entry)
        } catch {
            entry.setTimer(timer.kind, due: timer.due)
            throw error
        }
        if let failure {
            var kind: [UInt8] = []
            appendDecimal(Int64(timer.kind), to: &kind)
            addLetter(about: timer.key, "timer", kind, timestamp: timer.due, failure)
        }
        counts.fired(due: timer.due, by: moment)
        let isPoison = failure == Self.crash
        return firedInCycle < Self.timersPerCycle && !isPoison
    }

    private func fire(_ timer: TimerEntry, of entry: Entry) throws(StoreFault) -> ProcessFailure? {
        // A place of its own in the crash notes: what a timer traps at is no fault of the record that moved the clock, and would
        // not go away with it.
        let topic = inputs.count + Int(timer.kind)
        let place = timer.due ^ Int64(bitPattern: entry.hash)
        guard mayWork(at: topic, place) else { return Self.crash }
        let name = TimerName(key: timer.key, kind: timer.kind)
        return try turn.run(clock: timer.due, timestamp: timer.due) { () throws(ProcessFailure) in
            try processor.fire(name, turn)
        }
    }

    /// What is no record has a place of its own in the crash notes. False: the process has trapped there too often.
    private func mayWork(at topic: Int, _ place: Int64) -> Bool {
        if crashes?.isPoison(topic: topic, offset: place, limit: Self.trapLimit) ?? false { return false }
        crashes?.working(topic: topic, offset: place)
        return true
    }

    private static let crash = ProcessFailure("crash", "the process ended \(trapLimit) times while it dealt with it")

    // MARK: What is not for the processor's outputs

    private func reroute(_ record: borrowing RecordView, as key: Span<UInt8>, _ input: Int) {
        defer { finish(record) }
        counts.rerouted += 1
        // The live worker has done it or will, and whoever does it a second time changes the input.
        if definition.isShadow { return }
        let home = Partitioner.partition(of: key, count: definition.partitions)
        outputs.begin(topic: inner.tables[input], partition: home, timestamp: record.timestamp)
        for header in record.headers { outputs.header(header) }
        outputs.header("rerouted", turn.sourceText.span)
        outputs.end(key: key, value: record.value)
    }

    /// The record as it was, and behind its own headers why it is here.
    private func addLetter(of record: borrowing RecordView, _ input: Int, _ failure: ProcessFailure) {
        if turn.isSilent { return }
        outputs.begin(topic: inner.deadLetters, partition: partition, timestamp: record.timestamp)
        let headers = record.headers
        let size = Self.size(of: record, headers)
        // Unchanged, unless the log would not take it: then what fits, and `source` names the whole.
        let isCut = size > Turn.limitBytes
        for header in headers where !isCut || header.name.utf8.count + (header.value?.count ?? 0) < 1000 {
            outputs.header(header)
        }
        addReason(failure, firstTimestamp: record.timestamp)
        if isCut {
            outputs.header("truncated", Array("\(size)".utf8).span)
            let (key, value) = (record.copyOfKey() ?? [], record.copyOfValue() ?? [])
            let (keyPart, valuePart) = (Array(key.prefix(100_000)), Array(value.prefix(Turn.limitBytes / 2)))
            outputs.end(key: keyPart.span, value: valuePart.span)
        } else {
            outputs.end(key: record.key, value: record.value)
        }
        counts.letter(failure.reason, isTable: input != 0)
    }

    private static func size(of record: borrowing RecordView, _ headers: [RecordHeader]) -> Int {
        headers.reduce((record.key?.count ?? 0) + (record.value?.count ?? 0)) {
            $0 + $1.name.utf8.count + ($1.value?.count ?? 0) + 8
        }
    }

    /// What failed was no record. The header says what it was instead.
    private func addLetter(
        about key: [UInt8], _ what: StaticString, _ which: [UInt8], timestamp: Int64, _ failure: ProcessFailure
    ) {
        if turn.isSilent { return }
        outputs.begin(topic: inner.deadLetters, partition: partition, timestamp: timestamp)
        outputs.header(what, which.span)
        addReason(failure, firstTimestamp: timestamp)
        outputs.end(key: key.span, value: nil)
        counts.letter(failure.reason, isTable: false)
    }

    private func addReason(_ failure: ProcessFailure, firstTimestamp: Int64) {
        var time: [UInt8] = []
        appendDecimal(firstTimestamp, to: &time)
        outputs.header("reason", Array(failure.reason.utf8).span)
        if !failure.detail.isEmpty { outputs.header("detail", Array(failure.detail.utf8.prefix(1000)).span) }
        outputs.header("source", turn.sourceText.span)
        outputs.header("first-timestamp", time.span)
        outputs.header("app", Array(definition.app.utf8).span)
    }

    // MARK: Commit

    /// Of what the cache keeps beside that.
    var cacheLimit: Int {
        get { cache.limitBytes }
        set { cache.limitBytes = newValue }
    }

    /// What is not in the log or the store yet.
    var uncommittedBytes: Int { cache.dirtyBytes }
    var cachedBytes: Int { cache.bytes }

    /// What the commit of this partition says about its inputs.
    var positions: [TopicPartition: NextOffset] {
        var positions: [TopicPartition: NextOffset] = [:]
        for (index, input) in inputs.enumerated() { positions[TopicPartition(input.topic, partition)] = next[index] }
        return positions
    }

    /// Whether what is in memory is still right when the store stands there.
    func isAt(_ note: Note, _ next: [NextOffset]) -> Bool {
        !isTouched && self.note.positions == note.positions && self.note.clock == note.clock && self.next == next
    }

    /// Before the changelog, which has to have what is deleted here.
    private func settle(_ prefix: UInt8) throws(StoreFault) {
        let entries = cache.dirty.filter { $0.key.first == prefix && ($0.value != nil || $0.isLogged) }
            .sorted { $0.key.lexicographicallyPrecedes($1.key) }
        defer { crashes?.idle() }
        for entry in entries {
            if let failure = try settle(entry) {
                addLetter(about: entry.key, "settle", [], timestamp: turn.recordClock, failure)
            }
        }
    }

    private func settle(_ entry: Entry) throws(StoreFault) -> ProcessFailure? {
        // Behind the places of timers: no record is to blame for this either.
        let (topic, place) = (inputs.count + Int(EntryCoding.greatestKind) + 1, Int64(bitPattern: entry.hash))
        guard mayWork(at: topic, place) else { return Self.crash }
        return try turn.settle { () throws(ProcessFailure) in
            try processor.settle(KeyState(entry: entry, turn: turn), turn)
        }
    }

    /// Before the commit: the changes of the cycle, what settles them, and the position they belong to.
    func addChangelog(timestamp: Int64) throws(StoreFault) {
        if let prefix = definition.settledPrefix { try settle(prefix) }
        pendingNote = note
        pendingNote.clock = clock
        pendingNote.emitted = emitted
        pendingNote.format = max(note.format, definition.stateFormat)
        for (index, input) in inputs.enumerated() { pendingNote.positions[input.topic] = next[index] }
        // Here and not at the opening: of two who opened it, only one begins the life.
        pendingNote.life = note.life ?? newLife()
        var sum = note.sum ?? StateSum()
        for entry in cache.dirty {
            if entry.isLogged { sum.remove(entry.loggedHash) }
            changelogBytes.removeAll(keepingCapacity: true)
            changelogBytes.append(ChangelogKey.entry)
            changelogBytes.append(contentsOf: entry.key)
            let keyCount = changelogBytes.count
            if entry.value != nil {
                EntryCoding.encode(entry.content, withPlaces: false, into: &changelogBytes)
                let key = entry.key
                entry.nextHash = EntryHash.hash(
                    key: key.span, entry: changelogBytes.span.extracting(droppingFirst: keyCount))
                sum.add(entry.nextHash)
                addToChangelog(
                    timestamp, changelogBytes.span.extracting(first: keyCount),
                    changelogBytes.span.extracting(droppingFirst: keyCount))
            } else if entry.isLogged {
                addToChangelog(timestamp, changelogBytes.span, nil)
            }
        }
        pendingNote.sum = sum
        let (key, value) = (ChangelogKey.note, pendingNote.encoded)
        addToChangelog(timestamp, key.span, value.span)
    }

    private func addToChangelog(_ timestamp: Int64, _ key: Span<UInt8>, _ value: Span<UInt8>?) {
        outputs.begin(topic: inner.changelog, partition: partition, timestamp: timestamp)
        outputs.end(key: key, value: value)
    }

    /// The log has it.
    /// - Parameters:
    ///   - noteOffset: where the note of this commit stands in the changelog, or before that; nil: not known.
    ///   - elapsed: from which on it waits for the store.
    func committed(changelogEnd: NextOffset, noteOffset: NextOffset? = nil, at now: Int64, elapsed: Duration) {
        pendingNote.changelog = max(changelogEnd, note.changelog)
        pendingNote.noteOffset = noteOffset ?? note.noteOffset
        pendingNote.writtenAt = now
        note = pendingNote
        unstoredSince = unstoredSince ?? elapsed
        committedNext = next
        committedBreakers = breakers
        cache.committed()
        isTouched = false
        firedInCycle = 0
    }

    // MARK: Store

    /// What waits for the store in memory, about.
    var unstoredBytes: Int { cache.unstoredBytes + (staleTimers.count + turn.timers.freshCount) * 64 }

    var isFullForStore: Bool { unstoredBytes > min(cache.limitBytes / 4, Self.unstoredLimit) }

    /// Everything that is committed goes to the store, in one step and seldom: a key that has changed many times is written once,
    /// and RocksDB takes many changes for much less than few at a time. The changelog has them until then. Not in the middle of a
    /// cycle.
    func writeStore() throws(StoreFault) {
        guard unstoredSince != nil else { return }
        precondition(!isTouched, "what is not committed must not reach the store")
        changes.removeAll()
        for timer in staleTimers { try removeStale(timer) }
        for entry in cache.unstored { changes.add(entry, &entryBytes) }
        changes.note = note.encoded
        try store.write(changes, .process)
        unstoredSince = nil
        staleTimers.removeAll(keepingCapacity: true)
        cache.stored()
        turn.timers.stored()
    }

    /// The key may have got a timer of the same time again since it was found.
    private func removeStale(_ timer: TimerEntry) throws(StoreFault) {
        guard try cache.entry(timer.key.span).timer(timer.kind)?.place != timer.due else { return }
        changes.removeTimer(due: timer.due, key: timer.key.span, kind: timer.kind)
    }

    /// The log took nothing: everything as after the last commit.
    func rollBack() {
        cache.rollBack()
        turn.timers.rolledBack(to: cache.unstored.flatMap(\.timersToStore))
        staleTimers.removeAll(keepingCapacity: true)
        next = committedNext
        // A letter that is read again is one letter.
        breakers = committedBreakers
        clock = note.clock
        emitted = note.emitted
        isTouched = false
        firedInCycle = 0
    }
}

extension Entry {
    /// Those that the store does not have at their places.
    fileprivate var timersToStore: [TimerEntry] {
        timers.filter { timer in !storedTimers.contains { $0.isAtPlace(of: timer) } }
            .map { TimerEntry(due: $0.place, key: key, kind: $0.kind) }
    }
}

extension StoreChanges {
    /// An entry as it is now, in the place of what the store has.
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
