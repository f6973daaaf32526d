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
        /// The cycle is full: the same record again after a commit.
        case commitFirst
        /// Reads nothing more; the record was not dealt with.
        case pause(PauseReason)
    }

    enum PauseReason: Equatable {
        case newerSchema(String)
        case tooManyLetters(String)
    }

    /// Fired before a commit comes in between, so that a mass of them does not hold it up.
    static let timersPerCycle = 5000
    /// Traps at one record before it is taken for poison.
    static let trapLimit = 3

    let partition: Int32
    let turn: Turn
    let store: any PartitionStore
    private let definition: WorkerDefinition
    private let inputs: [InputTopic]
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
    private var changelogBytes: [UInt8] = []
    private let changes = StoreChanges()

    init(
        _ processor: any Processor, partition: Int32, store: any PartitionStore, note: Note, next: [NextOffset],
        outputs: OutputBatch, inner: InnerOutputs, cacheBytes: Int, counts: WorkerCounts, crashes: (any CrashNoting)?
    ) {
        self.partition = partition
        self.store = store
        self.processor = processor
        definition = processor.definition
        inputs = definition.inputs
        self.outputs = outputs
        self.inner = inner
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
        cache = EntryCache(store: store, limitBytes: cacheBytes)
        turn = Turn(
            definition, partition: partition, outputs: outputs, cache: cache, timers: TimerQueue(store: store))
    }

    // MARK: Records

    func handle(_ record: borrowing RecordView) throws(StoreFault) -> Outcome {
        let input = record.topic
        // What was dealt with before a rewind, or lies before the start, may come again.
        guard record.offset >= next[input].value else { return .done }
        crashes?.working(topic: input, offset: record.offset)
        defer { crashes?.idle() }
        if input != 0 { return try handleRow(record, input) }

        let meaning = inputs[0].meaning(of: record, isTable: false)
        if case .newerSchema(let words) = meaning { return .pause(.newerSchema(words)) }
        turn.begin(input: inputs[0], isTable: false, offset: record.offset, emitted: emitted)
        let moment = max(clock, record.timestamp)
        guard try fireTimers(dueBy: moment) else {
            emitted = turn.emitted
            return .commitFirst
        }
        crashes?.working(topic: 0, offset: record.offset)
        clock = moment
        let outcome = try process(record, 0, meaning)
        if outcome == .done { emitted = 0 } else { emitted = turn.emitted }
        return outcome
    }

    private func handleRow(_ record: borrowing RecordView, _ input: Int) throws(StoreFault) -> Outcome {
        let meaning = inputs[input].meaning(of: record, isTable: true)
        if case .newerSchema(let words) = meaning { return .pause(.newerSchema(words)) }
        turn.begin(input: inputs[input], isTable: true, offset: record.offset, emitted: 0)
        if let key = record.key {
            let home = Partitioner.partition(of: key, count: definition.partitions)
            if home != partition {
                reroute(record, to: home, input)
                finish(record)
                return .done
            }
        }
        return try process(record, input, meaning)
    }

    private func process(_ record: borrowing RecordView, _ input: Int, _ meaning: RecordMeaning) throws(StoreFault)
        -> Outcome
    {
        var failure: ProcessFailure?
        switch meaning {
        case .known:
            if crashes?.isPoison(topic: input, offset: record.offset, limit: Self.trapLimit) ?? false {
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
            guard breakers[input].allowsLetter() else {
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
        return .done
    }

    private func finish(_ record: borrowing RecordView) {
        next[record.topic] = NextOffset(after: record.offset)
        isTouched = true
        counts.records += 1
    }

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
            let entry = try cache.entry(timer.key.span)
            // It was moved or cancelled meanwhile.
            guard entry.due(timer.kind) == timer.due else {
                staleTimers.append(timer)
                continue
            }
            turn.removeFired(timer.kind, of: entry)
            isTouched = true
            if let failure = try fire(timer, of: entry) { addLetter(of: timer, failure) }
            counts.fired(due: timer.due, by: moment)
            firedInCycle += 1
            if firedInCycle >= Self.timersPerCycle { return false }
        }
        return true
    }

    private func fire(_ timer: TimerEntry, of entry: Entry) throws(StoreFault) -> ProcessFailure? {
        // A place of its own in the crash notes: what a timer traps at is no fault of the record that moved the clock, and would
        // not go away with it.
        let topic = inputs.count + Int(timer.kind)
        let place = timer.due ^ Int64(bitPattern: entry.hash)
        if crashes?.isPoison(topic: topic, offset: place, limit: Self.trapLimit) ?? false { return Self.crash }
        crashes?.working(topic: topic, offset: place)
        let name = TimerName(key: timer.key, kind: timer.kind)
        return try turn.run(clock: timer.due, timestamp: timer.due) { () throws(ProcessFailure) in
            try processor.fire(name, turn)
        }
    }

    private static let crash = ProcessFailure("crash", "the process ended \(trapLimit) times while it dealt with it")

    // MARK: What is not for the processor's outputs

    private func reroute(_ record: borrowing RecordView, to home: Int32, _ input: Int) {
        outputs.begin(topic: inner.tables[input], partition: home, timestamp: record.timestamp)
        for header in record.headers { outputs.header(header) }
        outputs.header("rerouted", turn.sourceText.span)
        outputs.end(key: record.key, value: record.value)
        counts.rerouted += 1
    }

    /// The record as it was, and behind its own headers why it is here.
    private func addLetter(of record: borrowing RecordView, _ input: Int, _ failure: ProcessFailure) {
        outputs.begin(topic: inner.deadLetters, partition: partition, timestamp: record.timestamp)
        for header in record.headers { outputs.header(header) }
        addReason(failure, firstTimestamp: record.timestamp)
        outputs.end(key: record.key, value: record.value)
        counts.letter(failure.reason, isTable: input != 0)
    }

    private func addLetter(of timer: TimerEntry, _ failure: ProcessFailure) {
        outputs.begin(topic: inner.deadLetters, partition: partition, timestamp: timer.due)
        var kind: [UInt8] = []
        appendDecimal(Int64(timer.kind), to: &kind)
        outputs.header("timer", kind.span)
        addReason(failure, firstTimestamp: timer.due)
        outputs.end(key: timer.key.span, value: nil)
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

    /// What is not in the log or the store yet.
    var uncommittedBytes: Int { cache.dirtyBytes }

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

    /// Before the commit: the changes of the cycle, and the position they belong to.
    func addChangelog(timestamp: Int64) {
        pendingNote = note
        pendingNote.clock = clock
        pendingNote.emitted = emitted
        pendingNote.format = max(note.format, definition.stateFormat)
        for (index, input) in inputs.enumerated() { pendingNote.positions[input.topic] = next[index] }
        for entry in cache.dirty {
            changelogBytes.removeAll(keepingCapacity: true)
            changelogBytes.append(ChangelogKey.entry)
            changelogBytes.append(contentsOf: entry.key)
            let keyCount = changelogBytes.count
            if let value = entry.value {
                EntryCoding.encode(value, format: entry.format, timers: entry.timers, into: &changelogBytes)
                addToChangelog(
                    timestamp, changelogBytes.span.extracting(first: keyCount),
                    changelogBytes.span.extracting(droppingFirst: keyCount))
            } else if entry.isStored {
                addToChangelog(timestamp, changelogBytes.span, nil)
            }
        }
        let (key, value) = (ChangelogKey.note, pendingNote.encoded)
        addToChangelog(timestamp, key.span, value.span)
    }

    private func addToChangelog(_ timestamp: Int64, _ key: Span<UInt8>, _ value: Span<UInt8>?) {
        outputs.begin(topic: inner.changelog, partition: partition, timestamp: timestamp)
        outputs.end(key: key, value: value)
    }

    /// The log has it: now the store. What fails here is healed by the changelog.
    func committed(changelogEnd: NextOffset, at now: Int64) throws(StoreFault) {
        pendingNote.changelog = changelogEnd
        pendingNote.writtenAt = now
        changes.removeAll()
        for timer in staleTimers { try removeStale(timer) }
        for entry in cache.dirty { changes.add(entry) }
        changes.note = pendingNote.encoded
        try store.write(changes, .process)
        note = pendingNote
        committedNext = next
        committedBreakers = breakers
        staleTimers.removeAll(keepingCapacity: true)
        cache.committed()
        turn.timers.committed()
        isTouched = false
        firedInCycle = 0
    }

    /// The key may have got a timer of the same time again since it was found.
    private func removeStale(_ timer: TimerEntry) throws(StoreFault) {
        guard try cache.entry(timer.key.span).due(timer.kind) != timer.due else { return }
        changes.removeTimer(due: timer.due, key: timer.key.span, kind: timer.kind)
    }

    /// The log took nothing: everything as after the last commit.
    func rollBack() {
        cache.rollBack()
        turn.timers.rolledBack()
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

extension StoreChanges {
    /// An entry as it is now, in the place of what the store has.
    func add(_ entry: Entry) {
        let key = entry.key
        for timer in entry.storedTimers where !entry.timers.contains(timer) {
            removeTimer(due: timer.due, key: key.span, kind: timer.kind)
        }
        for timer in entry.timers where !entry.storedTimers.contains(timer) {
            addTimer(due: timer.due, key: key.span, kind: timer.kind)
        }
        if let value = entry.value {
            var bytes: [UInt8] = []
            bytes.reserveCapacity(value.count + 2 + 9 * entry.timers.count)
            EntryCoding.encode(value, format: entry.format, timers: entry.timers, into: &bytes)
            put(key.span, bytes.span)
        } else if entry.isStored {
            delete(key.span)
        }
    }
}
