// Processes one partition: records and timers in, outputs and state out, nothing visible before the commit.

internal import Log
internal import Platform
internal import Store

/// Where the worker's own outputs, which no processor names, stand among the outputs.
struct InnerOutputs {
    let changelog: Int
    let deadLetters: Int
    /// The output of each table, by the table's index among the inputs.
    let tables: [Int]
}

/// Processes the records of one partition. It does not read the log itself, and appends to the worker's outputs.
final class PartitionTask {
    enum Outcome: Equatable {
        case done
        /// Processed. Commit before the next record, which may crash the process: otherwise the crashes of this record
        /// would be counted again from one.
        case commitNow
        /// The cycle is full: commit, then offer the same record again.
        case commitFirst
        /// The partition reads no more records; this record was not processed.
        case pause(PauseReason)
    }

    enum PauseReason: Equatable {
        case newerSchema(String)
        case tooManyLetters(String)
        case unreadableState(String)
        /// The processor refused when the partition was opened.
        case refused(String)
        /// The log no longer has the next record.
        case gap(String)
    }

    /// The number of timers that fire before a commit comes in between, so that a large number does not delay it.
    static let timersPerCycle = 5000
    /// The most bytes that may wait for the store, whatever the cache size: a store needs as much again while it
    /// writes.
    private static let unstoredLimit = 8 << 20
    /// After this many crashes at one record it counts as poison.
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
    /// The note of the commit in progress.
    private var pendingNote: Note
    /// The next offset, by the index of the input.
    private(set) var next: [NextOffset]
    private var clock: Int64
    private var emitted: UInt32
    private var breakers: [Breaker]
    private var committedBreakers: [Breaker]
    /// There is something to commit.
    private(set) var isTouched = false
    private var firedInCycle = 0
    /// Timers from the store's index that their key no longer has: a restore fills the index without checking.
    private var staleTimers: [TimerEntry] = []
    /// Since when something is committed that is not in the store. nil: the store has everything.
    private(set) var unstoredSince: Duration?
    /// The place in the changelog up to which the store has everything.
    private var storedChangelog: NextOffset
    private let newLife: () -> UInt64
    private var changelogBytes: [UInt8] = []
    private var entryBytes: [UInt8] = []
    private let changes: StoreChanges

    /// - Parameters:
    /// - changes: shared by all partitions of the thread, which are written one after the other.
    /// - newLife: returns a number that no other life of a changelog has, and never 0.
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
        storedChangelog = note.changelog
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

    /// Call this before the first record. Returns why no record may be processed; nil if records may be.
    func open() throws(StoreFault) -> PauseReason? {
        do throws(StoreFault) {
            let failure = try turn.look(clock: clock) { () throws(ProcessFailure) in try processor.opened(turn) }
            return failure.map { .refused($0.detail.isEmpty ? $0.reason : $0.detail) }
        } catch {
            // The first record that needs a value of a later format stops at it, and reports it.
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
        // Records that were processed before a rewind, or that lie before the start, may be delivered again.
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

    /// False: commit first. A cycle is settled with outputs or silently as a whole, wherever commits fall.
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

    /// Whatever the record contains, the partition continues after it.
    private func handleRowFromOutside(_ record: borrowing RecordView, _ input: Int) throws(StoreFault) -> Outcome {
        turn.begin(input: inputs[input], isTable: true, offset: record.offset, clock: clock, emitted: 0)
        var meaning = inputs[input].meaning(of: record, isTable: true)
        switch meaning {
        case .newerSchema(let words): meaning = .strange(ProcessFailure("schema", words))
        case .unknownType:
            meaning = .strange(
                ProcessFailure("type", "its headers name a type that does not belong to this topic"))
        case .known where !isPoison(record, input):
            do throws(ProcessFailure) {
                let identity = try processor.identity(ofRow: record)
                if isElsewhere(identity.span, record) {
                    reroute(record, as: identity.span, input)
                    return .done
                }
                guard isAtHome(identity.span) else {
                    throw ProcessFailure(
                        "too_large", "it belongs to another partition, and is too large to be sent there")
                }
            } catch {
                meaning = .strange(error)
            }
        case .known, .tick, .strange: break
        }
        return try process(record, input, meaning)
    }

    /// The record must be processed in the partition of its key. A record too large to be sent there stays here.
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
                // A closure that may escape cannot capture a ~Escapable value; this closure does not escape.
                failure = try turn.run(clock: clock, timestamp: record.timestamp) { () throws(ProcessFailure) in
                    try processor.process(record, turn)
                }
            }
        case .tick: counts.ticks += 1
        case .unknownType: counts.unknown += 1
        case .strange(let why): failure = why
        case .newerSchema: preconditionFailure("newer schemas are handled before")
        }
        if let failure {
            guard inputs[input].isFromOutside || breakers[input].allowsLetter() else {
                return .pause(
                    .tooManyLetters(
                        "\(Breaker.limit) of the last \(Breaker.window) records of \(inputs[input].topic) went to the "
                            + "dead letters, and so would the next one (\(failure)): read them with `perennial "
                            + "dead-letters list`, fix the cause, and start this worker again"))
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

    /// Makes the next commit write the position, although no record was processed.
    func touch() { isTouched = true }

    /// Moves the position although no record was processed: past control records, which use offsets.
    func skip(to position: NextOffset, of input: Int) {
        guard position > next[input] else { return }
        next[input] = position
        isTouched = true
    }

    // MARK: Timers

    /// False: there are more timers, and a commit comes first.
    private func fireTimers(dueBy moment: Int64) throws(StoreFault) -> Bool {
        while let timer = try turn.timers.take(dueBy: moment) {
            do throws(StoreFault) {
                guard try deal(with: timer, dueBy: moment) else { return false }
            } catch {
                // The timer has not fired, so the next call has to find it.
                turn.timers.set(timer)
                throw error
            }
        }
        return true
    }

    /// False: the cycle is full.
    private func deal(with timer: TimerEntry, dueBy moment: Int64) throws(StoreFault) -> Bool {
        let entry = try cache.entry(timer.key.span)
        // Timers that do not fire count as well: after a restore there may be very many.
        firedInCycle += 1
        isTouched = true
        guard let set = entry.timer(timer.kind), set.place == timer.due else {
            // The timer was moved to an earlier time, or cancelled.
            staleTimers.append(timer)
            return firedInCycle < Self.timersPerCycle
        }
        guard set.due == timer.due else {
            // The timer was moved to a later time.
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
            addLetter(about: timer.key, HeaderName.timer, kind, timestamp: timer.due, failure)
        }
        counts.fired(due: timer.due, by: moment)
        let isPoison = failure == Self.crash
        return firedInCycle < Self.timersPerCycle && !isPoison
    }

    private func fire(_ timer: TimerEntry, of entry: Entry) throws(StoreFault) -> ProcessFailure? {
        // A timer has its own place in the crash notes: if it crashes the process, the record that moved the clock is
        // not the cause, and removing that record would not help.
        let topic = inputs.count + Int(timer.kind)
        let place = timer.due ^ Int64(bitPattern: entry.hash)
        guard mayWork(at: topic, place) else { return Self.crash }
        let name = TimerName(key: timer.key, kind: timer.kind)
        return try turn.run(clock: timer.due, timestamp: timer.due) { () throws(ProcessFailure) in
            try processor.fire(name, turn)
        }
    }

    /// Timers and settled keys have their own places in the crash notes. False: the process has crashed there too
    /// often.
    private func mayWork(at topic: Int, _ place: Int64) -> Bool {
        if crashes?.isPoison(topic: topic, offset: place, limit: Self.trapLimit) ?? false { return false }
        crashes?.working(topic: topic, offset: place)
        return true
    }

    private static let crash = ProcessFailure("crash", "the process crashed \(trapLimit) times while processing it")

    // MARK: Outputs of the engine

    private func reroute(_ record: borrowing RecordView, as key: Span<UInt8>, _ input: Int) {
        defer { finish(record) }
        counts.rerouted += 1
        // The live worker has done this or will. A replay that did it again would change the input.
        if definition.isShadow { return }
        let home = Partitioner.partition(of: key, count: definition.partitions)
        outputs.begin(topic: inner.tables[input], partition: home, timestamp: record.timestamp)
        for header in record.headers { outputs.header(header) }
        outputs.header(HeaderName.rerouted, turn.sourceText.span)
        outputs.end(key: key, value: record.value)
    }

    /// Appends the record as it was. The headers after its own say why it is in the dead letters.
    private func addLetter(of record: borrowing RecordView, _ input: Int, _ failure: ProcessFailure) {
        if turn.isSilent { return }
        outputs.begin(topic: inner.deadLetters, partition: partition, timestamp: record.timestamp)
        let headers = record.headers
        let size = Self.size(of: record, headers)
        // The record is unchanged, unless the log would refuse it: then it is cut, and `source` names the original.
        let isCut = size > Turn.limitBytes
        for header in headers where !isCut || header.name.utf8.count + (header.value?.count ?? 0) < 1000 {
            outputs.header(header)
        }
        addReason(failure, firstTimestamp: record.timestamp)
        if isCut {
            outputs.header(HeaderName.truncated, Array("\(size)".utf8).span)
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

    /// Appends a dead letter for something that is not a record. A header says what it was.
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
        outputs.header(HeaderName.reason, Array(failure.reason.utf8).span)
        if !failure.detail.isEmpty { outputs.header(HeaderName.detail, Array(failure.detail.utf8.prefix(1000)).span) }
        outputs.header(HeaderName.source, turn.sourceText.span)
        outputs.header(HeaderName.firstTimestamp, time.span)
        outputs.header(HeaderName.app, Array(definition.app.utf8).span)
    }

    // MARK: Commit

    /// Byte limit of the cache for entries that are already in the store.
    var cacheLimit: Int {
        get { cache.limitBytes }
        set { cache.limitBytes = newValue }
    }

    /// Bytes that are not in the log or the store yet.
    var uncommittedBytes: Int { cache.dirtyBytes }
    var cachedBytes: Int { cache.bytes }

    /// The input offsets that the commit of this partition includes.
    var positions: [TopicPartition: NextOffset] {
        var positions: [TopicPartition: NextOffset] = [:]
        for (index, input) in inputs.enumerated() { positions[TopicPartition(input.topic, partition)] = next[index] }
        return positions
    }

    /// Whether the task's memory is still valid if the store is at this position.
    func isAt(_ note: Note, _ next: [NextOffset]) -> Bool {
        !isTouched && self.note.positions == note.positions && self.note.clock == note.clock
            && self.note.emitted == note.emitted && self.note.sum == note.sum && self.next == next
    }

    /// Call this before the changelog is written: the changelog must contain what is deleted here.
    private func settleKeys(with prefix: UInt8) throws(StoreFault) {
        let entries = cache.dirty.filter { $0.key.first == prefix && ($0.value != nil || $0.isLogged) }
            .sorted { $0.key.lexicographicallyPrecedes($1.key) }
        defer { crashes?.idle() }
        for entry in entries {
            if let failure = try settle(entry) {
                addLetter(about: entry.key, HeaderName.settle, [], timestamp: turn.recordClock, failure)
            }
        }
    }

    private func settle(_ entry: Entry) throws(StoreFault) -> ProcessFailure? {
        // These places follow those of timers: no record is the cause of this either.
        let (topic, place) = (inputs.count + Int(EntryCoding.greatestKind) + 1, Int64(bitPattern: entry.hash))
        guard mayWork(at: topic, place) else { return Self.crash }
        return try turn.settle { () throws(ProcessFailure) in
            try processor.settle(KeyState(entry: entry, turn: turn), turn)
        }
    }

    /// Appends, before the commit, the changes of the cycle, the results of settling, and the position they belong to.
    func addChangelog(timestamp: Int64) throws(StoreFault) {
        if let prefix = definition.settledPrefix { try settleKeys(with: prefix) }
        pendingNote = note
        pendingNote.clock = clock
        pendingNote.emitted = emitted
        pendingNote.format = max(note.format, definition.stateFormat)
        for (index, input) in inputs.enumerated() { pendingNote.positions[input.topic] = next[index] }
        // Here and not when opening: if two processes opened the partition, only one begins the life.
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

    /// Call this when the log has the commit.
    /// - Parameters:
    /// - noteOffset: the offset of this commit's note in the changelog, or a smaller one; nil: it is not known.
    /// - elapsed: the time from which the commit waits for the store.
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

    /// Approximate bytes in memory that wait for the store. The entry of each stale timer is looked up again when the store is
    /// written, and is in memory then.
    var unstoredBytes: Int { cache.unstoredBytes + turn.timers.freshCount * 64 + staleTimers.count * 1024 }

    /// The changes take too much memory, or a restore after a kill would take too long.
    func isDueForStore(_ rule: FlushRule) -> Bool {
        unstoredBytes > min(cache.limitBytes / 2, Self.unstoredLimit)
            || note.changelog.value - storedChangelog.value >= rule.offsets
    }

    /// Writes everything committed to the store, in one step and rarely: a key that has changed many times is written
    /// once, and RocksDB handles one large write much faster than many small ones. Until then only the changelog has
    /// the changes, and a crash of the process may lose the write: the changelog is its log. Never call this in the middle
    /// of a cycle.
    func writeStore() throws(StoreFault) {
        guard unstoredSince != nil else { return }
        precondition(!isTouched, "uncommitted changes must not reach the store")
        changes.removeAll()
        for timer in staleTimers { try removeStale(timer) }
        for entry in cache.unstored { changes.add(entry, &entryBytes) }
        changes.note = note.encoded
        try store.write(changes, .none)
        unstoredSince = nil
        storedChangelog = note.changelog
        staleTimers.removeAll(keepingCapacity: true)
        cache.stored()
        turn.timers.stored()
    }

    /// The key may have set a timer for the same time again since this one was found.
    private func removeStale(_ timer: TimerEntry) throws(StoreFault) {
        guard try cache.entry(timer.key.span).timer(timer.kind)?.place != timer.due else { return }
        changes.removeTimer(due: timer.due, key: timer.key.span, kind: timer.kind)
    }

    /// Nothing was committed: restores everything as of the last commit.
    func rollBack() {
        cache.rollBack()
        turn.timers.rolledBack(to: cache.unstored.flatMap(\.timersToStore))
        staleTimers.removeAll(keepingCapacity: true)
        next = committedNext
        // A dead letter that is written again counts once.
        breakers = committedBreakers
        clock = note.clock
        emitted = note.emitted
        isTouched = false
        firedInCycle = 0
    }
}
