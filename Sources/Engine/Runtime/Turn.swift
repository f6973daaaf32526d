// What a processor uses while it processes one record, timer or settled key.

internal import Log
internal import Store

/// State, outputs and timers of one turn. There is one per partition, and it is valid only inside a processor's calls.
public final class Turn {
    /// The content of an entry before a change, to restore it if the turn fails.
    private struct Before {
        let entry: Entry
        let content: Entry.Content
        let wasDirty: Bool
    }

    public let partition: Int32
    /// Milliseconds since 1970. For an event: the greatest timestamp of the events so far, this one included. For a
    /// timer: its due time. When a key is settled: the clock of the last processed record. For rows of a table before
    /// the first event: 0.
    public internal(set) var clock = Int64.min
    /// Timestamp of the outputs: that of the record, or the due time of the timer.
    public internal(set) var timestamp: Int64 = 0
    /// Offset of the record in process, an event or a row, also while timers fire that it has made due. When a key is
    /// settled: offset of the last record.
    public private(set) var offset: Int64 = 0
    /// The partition's clock after that record. For a timer: the clock when it was found to be due.
    public private(set) var recordClock: Int64 = 0
    /// The record is not finished: a commit comes between its timers.
    public internal(set) var isUnderWay = false
    /// Outputs that this record has caused so far, including those of its timers.
    public private(set) var emitted: UInt32 = 0

    private let definition: WorkerDefinition
    private let outputs: OutputBatch
    private let constantHeaders: [EncodedHeaders]
    let cache: EntryCache
    var timers: TimerQueue
    /// The size that a log accepts in one record, less room for headers. A larger record would stop the worker forever.
    static let limitBytes = 900_000
    private var isTooLarge = false
    /// The fault of a failed read, for which the record is not the cause.
    private(set) var storeFault: StoreFault?

    private var journal: [Before] = []
    private var number: UInt64 = 0
    private var outputsBefore: OutputBatch.Mark
    /// `topic:partition:offset` of the record that caused the turn, which is also its id without the number of the
    /// output.
    private var source: [UInt8] = []
    private var idPrefix: [UInt8] = []
    /// Topic of the record. Its `source` and `idPrefix` are written when they are first needed: many records tell nothing.
    private var topic = ""
    private var isTable = false
    private var isNamed = false
    private var id: [UInt8] = []
    private var timersSet: [TimerEntry] = []
    /// `topic:partition:` of the events.
    private let sourcePrefix: [UInt8]
    private var settledSource: [UInt8] = []
    private var step = Step.turn

    /// Nothing is put out. All else is the same: outputs use up numbers of ids, and one that is too large fails.
    var isSilent = false

    private enum Step { case turn, settling, looking }

    init(_ definition: WorkerDefinition, partition: Int32, outputs: OutputBatch, cache: EntryCache, timers: TimerQueue)
    {
        self.partition = partition
        self.definition = definition
        self.outputs = outputs
        self.cache = cache
        self.timers = timers
        outputsBefore = outputs.mark
        sourcePrefix = Array("\(definition.events.topic):\(partition):".utf8)
        constantHeaders = definition.outputs.map { output in
            EncodedHeaders([
                RecordHeader(HeaderName.schema, output.schema),
                RecordHeader(HeaderName.app, AppHeader.text(definition.app, rules: definition.rules)),
            ])
        }
    }

    // MARK: For processors

    /// The state of a key.
    public func state(_ key: Span<UInt8>) throws(ProcessFailure) -> KeyState {
        do throws(StoreFault) {
            return KeyState(entry: try cache.entry(key), turn: self)
        } catch {
            storeFault = storeFault ?? error
            throw ProcessFailure("store", error.words)
        }
    }

    /// Appends a record to an output; `output` is its index in the definition. `nil` as value is a tombstone. Without
    /// `partition` the record goes to the partition of the input.
    public func emit(
        _ output: Int, key: Span<UInt8>?, value: Span<UInt8>?, partition: Int32? = nil
    ) {
        precondition(step != .settling, "an output of a settled key needs an origin")
        guard begin(output, timestamp, partition, key, value) else { return countID() }
        countID()
        outputs.header(HeaderName.id, id.span)
        outputs.headers(constantHeaders[output])
        outputs.header(HeaderName.source, source.span)
        outputs.end(key: key, value: value)
    }

    /// As above, with another origin: it uses up no number of an id.
    public func emit(
        _ output: Int, as origin: Origin, key: Span<UInt8>?, value: Span<UInt8>?, partition: Int32? = nil
    ) {
        settledSource.removeAll(keepingCapacity: true)
        settledSource.append(contentsOf: sourcePrefix)
        appendDecimal(origin.offset, to: &settledSource)
        guard begin(output, origin.timestamp, partition, key, value) else { return }
        outputs.header(HeaderName.id, origin.id.span)
        outputs.headers(constantHeaders[output])
        outputs.header(HeaderName.source, settledSource.span)
        outputs.end(key: key, value: value)
    }

    /// False: the output is not written.
    private func begin(
        _ output: Int, _ timestamp: Int64, _ partition: Int32?, _ key: Span<UInt8>?, _ value: Span<UInt8>?
    ) -> Bool {
        precondition(step != .looking, "no output is allowed while a partition is opened")
        if (key?.count ?? 0) + (value?.count ?? 0) > Self.limitBytes { isTooLarge = true }
        if isSilent { return false }
        outputs.begin(topic: output, partition: partition ?? self.partition, timestamp: timestamp)
        return true
    }

    /// The header `id` of the next output, at the end of other bytes, for records that also contain it in their value.
    public func appendNextID(to bytes: inout [UInt8]) {
        nameRecord()
        bytes.append(contentsOf: idPrefix)
        appendDecimal(Int64(emitted), to: &bytes)
    }

    // MARK: For PartitionTask

    /// Sets the record that causes the next turns, the clock after it, and how many outputs it has caused before.
    func begin(input: InputTopic, isTable: Bool, offset: Int64, clock: Int64, emitted: UInt32) {
        self.offset = offset
        isUnderWay = true
        recordClock = max(clock, 0)
        topic = input.topic
        self.isTable = isTable
        isNamed = false
        self.emitted = emitted
    }

    var sourceText: [UInt8] {
        nameRecord()
        return source
    }

    private func nameRecord() {
        if isNamed { return }
        isNamed = true
        source.removeAll(keepingCapacity: true)
        source.append(contentsOf: topic.utf8)
        source.append(UInt8(ascii: ":"))
        appendDecimal(Int64(partition), to: &source)
        source.append(UInt8(ascii: ":"))
        appendDecimal(offset, to: &source)
        idPrefix.removeAll(keepingCapacity: true)
        // Offsets of a table may equal those of the events.
        if isTable {
            idPrefix.append(contentsOf: topic.utf8)
            idPrefix.append(UInt8(ascii: "-"))
        }
        appendDecimal(Int64(partition), to: &idPrefix)
        idPrefix.append(UInt8(ascii: "-"))
        appendDecimal(offset, to: &idPrefix)
        idPrefix.append(UInt8(ascii: "-"))
    }

    private func countID() {
        id.removeAll(keepingCapacity: true)
        appendNextID(to: &id)
        emitted += 1
    }

    /// Runs one step. Returns nil on success; after a failure its changes are rolled back.
    func run(clock: Int64, timestamp: Int64, _ body: () throws(ProcessFailure) -> Void) throws(StoreFault)
        -> ProcessFailure?
    {
        self.clock = max(clock, 0)
        self.timestamp = timestamp
        number += 1
        journal.removeAll(keepingCapacity: true)
        timersSet.removeAll(keepingCapacity: true)
        outputsBefore = outputs.mark
        let emittedBefore = emitted
        var failure: ProcessFailure?
        do throws(ProcessFailure) { try body() } catch { failure = error }
        if isTooLarge, failure == nil {
            failure = ProcessFailure("too_large", "an output or a state is larger than \(Self.limitBytes) bytes")
        }
        isTooLarge = false
        if failure == nil, storeFault == nil {
            for timer in timersSet { timers.set(timer) }
        } else {
            takeBack()
            emitted = emittedBefore
        }
        if let fault = storeFault.take() { throw fault }
        return failure
    }

    /// Runs one step that belongs to the cycle and not to a record.
    func settle(_ body: () throws(ProcessFailure) -> Void) throws(StoreFault) -> ProcessFailure? {
        step = .settling
        defer { step = .turn }
        return try run(clock: recordClock, timestamp: recordClock, body)
    }

    /// Lets the processor read the state without changing it.
    func look(clock: Int64, _ body: () throws(ProcessFailure) -> Void) throws(StoreFault) -> ProcessFailure? {
        step = .looking
        defer { step = .turn }
        self.clock = max(clock, 0)
        var failure: ProcessFailure?
        do throws(ProcessFailure) { try body() } catch { failure = error }
        if let fault = storeFault.take() { throw fault }
        return failure
    }

    private func takeBack() {
        outputs.rollBack(to: outputsBefore)
        for before in journal.reversed() {
            before.entry.content = before.content
            if before.wasDirty { cache.changed(before.entry) } else { cache.unchanged(before.entry) }
        }
    }

    // MARK: For KeyState

    fileprivate func willChange(_ entry: Entry) {
        precondition(step != .looking, "no change is allowed while a partition is opened")
        guard entry.changedInTurn != number else { return }
        entry.changedInTurn = number
        journal.append(Before(entry: entry, content: entry.content, wasDirty: entry.isDirty))
        cache.willChange(entry)
    }

    fileprivate func put(_ value: Span<UInt8>, in entry: Entry) {
        willChange(entry)
        if value.count + entry.key.count > Self.limitBytes { isTooLarge = true }
        value.withUnsafeBytes { entry.content.value = [UInt8]($0) }
        entry.content.format = definition.stateFormat
        cache.changed(entry)
    }

    fileprivate func delete(_ entry: Entry) {
        guard entry.value != nil else { return }
        willChange(entry)
        entry.content.value = nil
        entry.content.timers = []
        cache.changed(entry)
    }

    fileprivate func setTimer(_ kind: UInt8, due: Int64?, in entry: Entry) {
        precondition(entry.value != nil, "a timer needs a value: put the value first")
        precondition(kind <= EntryCoding.greatestKind, "kinds of timers are 0 to \(EntryCoding.greatestKind)")
        let due = due.map { max($0, clock == .max ? .max : clock + 1) }
        guard entry.timer(kind)?.due != due else { return }
        willChange(entry)
        if entry.setTimer(kind, due: due), let due {
            timersSet.append(TimerEntry(due: due, key: entry.key, kind: kind))
        }
        cache.changed(entry)
    }

    /// Removes a timer that has fired, whatever the processor does.
    func removeFired(_ kind: UInt8, of entry: Entry) {
        cache.willChange(entry)
        entry.setTimer(kind, due: nil)
        cache.changed(entry)
    }
}

/// The state of one key: its value in the processor's own encoding, and its timers.
public struct KeyState {
    let entry: Entry
    let turn: Turn

    public var key: [UInt8] { entry.key }
    /// nil: the key has no value.
    public var value: [UInt8]? { entry.value }
    /// The last commit left a value: earlier calls of `settle` have reported the key.
    public var isCommitted: Bool { entry.isLogged }
    /// The format in which the value was written.
    public var format: UInt8 { entry.content.format }
    /// When the timer of this kind fires; nil: none is set.
    public func due(_ kind: UInt8) -> Int64? { entry.timer(kind)?.due }

    public func put(_ value: Span<UInt8>) { turn.put(value, in: entry) }
    /// Also deletes the key's timers.
    public func delete() { turn.delete(entry) }

    /// Sets or moves the timer of this kind; nil cancels it. A time that is not after the turn's clock becomes the next
    /// millisecond. Only a key with a value has timers.
    public func setTimer(_ kind: UInt8, due: Int64?) { turn.setTimer(kind, due: due, in: entry) }
}

/// Writes digits. It creates no object, because it is called some times for each output.
func appendDecimal(_ value: Int64, to bytes: inout [UInt8]) {
    // The least number has 19 digits and a sign.
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
        var first = digits.count
        var rest = value.magnitude
        repeat {
            first -= 1
            digits[first] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        } while rest > 0
        if value < 0 {
            first -= 1
            digits[first] = UInt8(ascii: "-")
        }
        bytes.append(contentsOf: UnsafeBufferPointer(rebasing: digits[first...]))
    }
}
