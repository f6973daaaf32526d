// One thread of a worker: a session, its partitions, and the cycle that commits them.

public import Log
package import Platform
public import Store
package import Telemetry

/// What decides how a worker works, but not what it writes.
public struct WorkerOptions: Sendable {
    /// `Replica.identity`.
    public var identity: String
    /// Nobody else can have the identity.
    public var isDynamic = false
    /// Its partitions wait for a restart; if not, it leaves the group when its session ends.
    public var keepsPlace = true
    public var thread = 0
    /// A cycle is committed when the input is drained, else after this time...
    public var commitInterval: Duration = .milliseconds(20)
    /// An input is drained when nothing came for so long.
    public var drainWait = Duration.zero
    /// ...or this many records...
    public var recordsPerCycle = 10_000
    /// ...or this much changed state or output.
    public var bytesPerCycle = 32 << 20
    /// What is told is appended with the cycle's changelog, or when it is so much: the sooner a transaction hears of a partition the
    /// more often it asks the broker for some.
    public var bytesPerAppend = 1 << 20
    /// What is committed is in the stores after so long, or when it takes a quarter of the cache or 8 MiB. Until then only memory and the
    /// changelog have it.
    public var storeInterval: Duration = .seconds(2)
    /// Of all partitions of this thread together.
    public var cacheBytes = 128 << 20
    /// About as much memory may hold records that are fetched and not dealt with.
    public var readAheadBytes = 24 << 20
    public var sessionTimeout: Duration = .seconds(30)
    public var transactionTimeout: Duration = .seconds(10)
    /// How long a partition is tried whose store this machine does not let be used (a full disk, a missing right). The process
    /// ends then: a healthy one gets it.
    public var openingPatience: Duration = .seconds(300)
    /// For a partition whose store somebody else has open for so long: a sibling on this machine that is frozen, as a rule.
    public var lockPatience: Duration = .seconds(10)
    /// Where such a partition is restored to; nil: it is waited for.
    public var aside: (any PartitionStores)?
    /// Nothing at or behind these places of the inputs is dealt with; a partition that is not named has no bound.
    public var bounds: [TopicPartition: NextOffset] = [:]
    /// Somebody acts on what this worker writes, and needs to know what it owns.
    public var ownership: Ownership?
    /// Traps are noted there; nil: nowhere.
    public var crashNotes: (any CrashNotesProvider)?
    /// How fast it may go; nil: as fast as it can.
    public var pace: Pace?

    public init(identity: String) { self.identity = identity }
}

/// Why a worker cannot go on, in words for the one who has to help.
public struct WorkerEnd: Error, Equatable, CustomStringConvertible {
    public var description: String

    init(_ words: String) { description = words }
}

/// Reads, processes and commits. Everything happens in `step`, on the thread that calls it, so that a test can drive it.
package final class Worker {
    /// Records of one look.
    static let recordsPerPoll = 250
    private static let rewindLimit = 20
    private static let idleWait: Duration = .milliseconds(100)
    private static let answerLimit: Duration = .seconds(60)

    let processor: any Processor
    private let definition: WorkerDefinition
    private let log: any RecordLog
    private let options: WorkerOptions
    private let environment: WorkerEnvironment
    private let logger: Logger
    private let metrics: WorkerMetrics
    private let counts: WorkerCounts
    private let inner: InnerOutputs
    private let board: PositionBoard
    private let partitions: WorkerPartitions
    private var leftAlone: LeftAlone
    /// What was said of it last.
    private var leftAloneTold: [String] = []

    private var session: (any LogSession)?
    private let batch = RecordBatch()
    private let outputs = OutputBatch()
    private var fencings: Fencings
    private var failures = 0
    /// Without a commit between them.
    private var rewinds = 0
    private var nextOpening: Duration = .zero
    private var nextSizes: Duration = .zero

    // The open cycle.
    private var cycleStart: Duration?
    private var cycleRecords = 0
    private var appendedBytes = 0

    /// - Parameter restorer: shared by the threads of a process; somebody else steps it.
    package init(
        _ processor: any Processor, log: any RecordLog, stores: any PartitionStores, options: WorkerOptions,
        restorer: Restorer, environment: WorkerEnvironment, logger: Logger, metrics: WorkerMetrics, board: PositionBoard
    ) {
        self.processor = processor
        definition = processor.definition
        self.log = log
        self.options = options
        self.environment = environment
        fencings = Fencings(sessionTimeout: options.sessionTimeout, transactionTimeout: options.transactionTimeout)
        self.logger = logger
        self.metrics = metrics
        self.board = board
        counts = WorkerCounts(metrics)
        leftAlone = LeftAlone(definition)
        let named = definition.outputs.count
        inner = InnerOutputs(
            changelog: named, deadLetters: named + 1, tables: [-1] + definition.tables.indices.map { named + 2 + $0 })
        partitions = WorkerPartitions(
            processor, stores: stores, options: options, restorer: restorer, environment: environment, logger: logger,
            metrics: metrics, counts: counts, board: board, outputs: outputs, inner: inner)
    }

    // MARK: Outside

    /// What keeps this worker from working; empty when all is well.
    package var troubles: [String] {
        (sessionTrouble.map { [$0] } ?? []) + leftAlone.words + partitions.troubles
    }

    package var holding: WorkerService.Holding { partitions.holding }

    private(set) var sessionTrouble: String? = "no partitions were given to it yet"

    /// A look for records, and what follows from it.
    package func step() throws(WorkerEnd) {
        defer { showOwnership() }
        let now = environment.elapsed()
        guard let session else { return try open(now) }
        if let words = partitions.hopeless(now) { throw WorkerEnd(words) }
        do {
            try cycle(session, now)
        } catch let fault as LogFault {
            try handle(fault)
        } catch let fault as StoreFault {
            say(.error, "the local state failed; starting anew from the log", fault.words)
            try rebuild(after: .other, pause: .seconds(1))
        } catch {
            preconditionFailure("nothing else is thrown: \(error)")
        }
    }

    /// Commits what is there and leaves. False: it was not clean, or not over by the deadline.
    package func stop(by deadline: Deadline) -> Bool {
        var isClean = true
        ownNothing()
        if let session {
            do {
                try commit(session)
            } catch {
                // Nothing of the cycle is visible; whoever comes next does it again.
                isClean = false
                say(.warning, "the last cycle was not committed; it will be done again", "\(error)")
            }
            if !session.close(by: deadline) { isClean = false }
        }
        session = nil
        partitions.end()
        // Stores that the restorer has come home and are closed.
        while !partitions.isEmpty, !deadline.hasPassed {
            partitions.comeHome()
            if !partitions.isEmpty { environment.pause(.milliseconds(2)) }
        }
        return isClean && partitions.isEmpty
    }

    // MARK: The cycle

    private func cycle(_ session: any LogSession, _ now: Duration) throws {
        try partitions.goOn(session, now)
        let limit = options.pace?.reserve(upTo: Self.recordsPerPoll, environment) ?? Self.recordsPerPoll
        let event = try session.poll(
            into: batch, limit: limit, wait: cycleStart == nil ? Self.idleWait : options.drainWait)
        options.pace?.giveBack(limit - batch.count)
        defer { batch.removeAll() }
        switch event {
        case .nothing:
            if cycleStart != nil {
                skipMarkers(session)
                try commit(session)
            }
            showPositions(session)
            try writeStores()
        case .records:
            if cycleStart == nil { cycleStart = environment.elapsed() }
            try process(session)
            let isDrained = batch.count < limit
            if isFull || isDrained && options.drainWait == .zero {
                if isDrained { skipMarkers(session) }
                try commit(session)
            } else if outputs.byteCount >= options.bytesPerAppend {
                try append(session)
            }
        case .assigned(let given): try assigned(given, session)
        case .revoked: try revoked(session)
        case .lost(let gone): try lost(gone.count, session)
        case .positionGone(let partition): try partitions.positionGone(partition, session)
        }
        try confirmOwnership(session)
    }

    /// A lease that has not begun, or has ended while the process was stopped, needs the group's own word: a commit of what is
    /// committed already asks for it. With its note in the changelog as ever: a position of the group that no note knows would be
    /// taken for one that was set by hand.
    private func confirmOwnership(_ session: any LogSession) throws {
        guard options.ownership != nil, !partitions.reading.isEmpty,
            session.ownedUntil.map({ $0 <= environment.bootClock() }) ?? true,
            !partitions.tasks.contains(where: \.isTouched)
        else { return }
        for task in partitions.reading { task.touch() }
        try commit(session)
    }

    private func showOwnership() {
        guard let ownership = options.ownership else { return }
        ownership.set(
            partitions.reading.map(\.partition), until: session?.ownedUntil, thread: options.thread)
    }

    /// Others may act from here on: not only when the step is over.
    private func ownNothing() { options.ownership?.set([], until: nil, thread: options.thread) }

    private func process(_ session: any LogSession) throws {
        let batch = batch
        for index in 0..<batch.count {
            let record = batch[index]
            guard let task = partitions.task(reading: record.partition) else { continue }
            if !options.bounds.isEmpty, try isBeyondBound(record, session) { continue }
            cycleRecords += 1
            while true {
                let outcome = try task.handle(record)
                if outcome == .done { break }
                if case .pause(let reason) = outcome {
                    try partitions.pause(record.partition, reason, session)
                    break
                }
                try append(session)
                try commit(session)
                cycleStart = environment.elapsed()
                if outcome == .commitNow { break }
            }
        }
    }

    /// Nothing more of the input is wanted in this partition, then.
    private func isBeyondBound(_ record: borrowing RecordView, _ session: any LogSession) throws(LogFault) -> Bool {
        let partition = TopicPartition(definition.inputs[record.topic].topic, record.partition)
        guard let bound = options.bounds[partition], record.offset >= bound.value else { return false }
        try session.pause([partition])
        return true
    }

    /// Everything that was given is dealt with: what lies between there and the session's position takes offsets, but is no record.
    private func skipMarkers(_ session: any LogSession) {
        for task in partitions.reading where task.isTouched {
            for (index, input) in definition.inputs.enumerated() {
                let partition = TopicPartition(input.topic, task.partition)
                guard let position = session.position(of: partition) else { continue }
                task.skip(to: min(position, options.bounds[partition] ?? position), of: index)
            }
        }
    }

    /// An input may end with what is no record: nothing has to be committed for that, and nobody is behind.
    private func showPositions(_ session: any LogSession) {
        for task in partitions.reading {
            let next = definition.inputs.indices.map { index in
                let position = session.position(of: TopicPartition(definition.inputs[index].topic, task.partition))
                return max(task.next[index], position ?? task.next[index])
            }
            if next != task.next { board.set(.init(next: next, clock: task.note.clock), of: task.partition) }
        }
    }

    private var isFull: Bool {
        guard let cycleStart else { return false }
        if cycleRecords >= options.recordsPerCycle || environment.elapsed() - cycleStart >= options.commitInterval {
            return true
        }
        let changed = partitions.tasks.reduce(appendedBytes + outputs.byteCount) { $0 + $1.uncommittedBytes }
        return changed >= options.bytesPerCycle
    }

    private func append(_ session: any LogSession) throws(LogFault) {
        if outputs.isEmpty { return }
        fencings.asks(at: environment.elapsed())
        try session.append(outputs)
        metrics.produced.add(UInt64(outputs.count))
        appendedBytes += outputs.byteCount
        outputs.removeAll()
    }

    /// Outputs, changelog and positions become visible in one step; the stores follow later.
    private func commit(_ session: any LogSession) throws {
        let touched = partitions.tasks.filter(\.isTouched)
        defer { counts.publish() }
        guard !touched.isEmpty else { return endCycle() }
        let begin = environment.elapsed()
        let written = environment.wallClock()
        var positions: [TopicPartition: NextOffset] = [:]
        for task in touched {
            try task.addChangelog(timestamp: written)
            positions.merge(task.positions) { $1 }
        }
        let now = environment.elapsed()
        if now >= nextSizes {
            nextSizes = now + .seconds(5)
            metrics.sizes(
                options.thread, stores: partitions.tasks.reduce(0) { $0 + ($1.store.approximateBytes ?? 0) },
                unstored: partitions.tasks.reduce(0) { $0 + $1.uncommittedBytes + $1.unstoredBytes },
                cached: partitions.tasks.reduce(0) { $0 + $1.cachedBytes })
        }
        try append(session)
        fencings.asks(at: environment.elapsed())
        try session.commit(positions)
        fencings.answered(at: environment.elapsed())
        for task in touched {
            // Where it is not known, a restore from the older place only reads more.
            let end = session.appendedEnd(topic: inner.changelog, partition: task.partition)
            // The note is the last of what a commit appends to a changelog.
            task.committed(
                changelogEnd: end ?? task.note.changelog, noteOffset: end.map { NextOffset($0.value - 1) }, at: written,
                elapsed: now)
            board.set(.init(next: task.next, clock: task.note.clock), of: task.partition)
        }
        metrics.commits.add()
        metrics.commitSeconds.observe(environment.elapsed() - begin)
        metrics.cycleRecords.observe(Double(cycleRecords))
        rewinds = 0
        endCycle()
        try writeStores()
        failures = 0
    }

    /// One that has waited for its time after each cycle, so that they do not hold up the same one; and those that are full.
    private func writeStores() throws(StoreFault) {
        let due = environment.elapsed() - options.storeInterval
        var oldest: PartitionTask?
        for task in partitions.tasks {
            if task.isFullForStore { try task.writeStore() }
            guard let since = task.unstoredSince, since <= due else { continue }
            if let other = oldest?.unstoredSince, other <= since { continue }
            oldest = task
        }
        try oldest?.writeStore()
    }

    private func endCycle() {
        cycleStart = nil
        cycleRecords = 0
        appendedBytes = 0
    }

    // MARK: Faults

    private func handle(_ fault: LogFault) throws(WorkerEnd) {
        switch fault.remedy {
        case .retrySameCall:
            // Of a call in the middle of a cycle: what was read is read again.
            try rewind(fault)
        case .rewind: try rewind(fault)
        case .rebuild:
            say(.warning, "the session has ended; opening another", fault.words)
            try rebuild(after: fault.cause == .fenced ? .fenced : .other)
        case .stop:
            rollBack()
            throw WorkerEnd(fault.words)
        }
    }

    /// An everyday path: the group has moved on, or a record was not delivered.
    private func rewind(_ fault: LogFault) throws(WorkerEnd) {
        guard let session else { return }
        rewinds += 1
        if rewinds > Self.rewindLimit {
            say(.warning, "cycles are taken back again and again; opening another session", fault.words)
            try rebuild(after: .delivery, pause: .seconds(5))
            sessionTrouble = "cycles are taken back again and again: \(fault.words)"
            return
        }
        // The first time at once: that is a rebalance. Then a little later each time.
        if rewinds > 1 { environment.pause(min(.milliseconds(500), .milliseconds(5 << min(rewinds, 8)))) }
        metrics.abort(fault.cause == .generation ? .generation : .delivery)
        say(.info, "a cycle was taken back; reading it again", fault.words)
        do throws(LogFault) {
            try abort(session)
            rollBack()
            var positions: [TopicPartition: NextOffset] = [:]
            // Those that are paused read nothing before they are assigned again, and some have no place to seek to.
            for task in partitions.reading { positions.merge(task.positions) { $1 } }
            try session.seek(to: positions)
        } catch {
            say(.warning, "the session has ended; opening another", error.words)
            try rebuild(after: error.cause == .fenced ? .fenced : .other)
        }
    }

    private func abort(_ session: any LogSession) throws(LogFault) {
        try session.abort()
        fencings.answered(at: environment.elapsed())
    }

    private func rollBack() {
        batch.removeAll()
        outputs.removeAll()
        for task in partitions.tasks { task.rollBack() }
        endCycle()
    }

    /// - Parameter pause: before the next session.
    private func rebuild(after cause: WorkerMetrics.AbortCause, pause: Duration = .zero) throws(WorkerEnd) {
        // Before the session is closed, which takes its time.
        let fencing = cause == .fenced ? fencings.fenced(at: environment.elapsed()) : nil
        metrics.abort(fencing == .ofSilence ? .silence : cause)
        rollBack()
        // Of a member that leaves others have the partitions before the session is gone.
        ownNothing()
        let isGone = session?.close(by: Deadline(after: .seconds(10))) ?? true
        session = nil
        if !isGone { throw WorkerEnd("the client of Kafka does not end; a new process has to take its place") }
        sessionTrouble = "its session has ended; a new one is being opened"
        board.give([], to: options.thread)
        partitions.end()
        let now = environment.elapsed()
        failures += 1
        // The first time at once, later after up to half a minute.
        var wait = max(pause, failures == 1 ? .zero : min(.seconds(30), .milliseconds(250) * (1 << min(failures, 7))))
        if let fencing, fencing != .ofSilence {
            metrics.fenced.add()
            if fencing == .again { throw sharedIdentity }
            // Two that are fenced by each other must not come back at the same moments.
            wait += .milliseconds(Int64(environment.jitter() % 2000) + 500)
        }
        nextOpening = now + wait
    }

    private var sharedIdentity: WorkerEnd {
        WorkerEnd(
            "another process works as \(options.identity), or Kafka has taken this one for dead: it was fenced twice within "
                + "\(fencings.window.wholeMilliseconds / 1000) s. "
                + (options.isDynamic ? "" : "Give every replica a worker.slot of its own; ") + "this one ends")
    }

    // MARK: Sessions

    private func open(_ now: Duration) throws(WorkerEnd) {
        partitions.comeHome()
        guard now >= nextOpening else { return environment.pause(.milliseconds(20)) }
        var sessionOptions = SessionOptions(
            group: definition.group, identity: options.identity, inputs: definition.inputs.map(\.topic),
            outputs: definition.outputs.map(\.topic) + [definition.changelog, definition.deadLetters]
                + (definition.isShadow ? [] : definition.tables.map(\.topic)))
        // With another number one account's subscriptions would be looked for in several places.
        sessionOptions.partitions = definition.partitions
        sessionOptions.keepsPlace = options.keepsPlace
        sessionOptions.sessionTimeout = options.sessionTimeout
        sessionOptions.transactionTimeout = options.transactionTimeout
        sessionOptions.readAheadBytes = options.readAheadBytes
        sessionOptions.onEvent = environment.sessionEvents
        sessionOptions.bootClock = environment.bootClock
        fencings.asks(at: environment.elapsed())
        do throws(LogFault) {
            let opened = try log.openSession(sessionOptions, by: Deadline(after: .seconds(10)))
            session = opened
            fencings.answered(at: environment.elapsed())
            leftAlone.opened(opened.grown)
            tellLeftAlone()
            sessionTrouble = "no partitions were given to it yet"
        } catch {
            sessionTrouble = error.words
            if error.remedy == .stop { throw WorkerEnd(error.words) }
            say(.warning, "no session yet; trying again", error.words)
            try rebuild(after: error.cause == .fenced ? .fenced : .other, pause: .milliseconds(500))
        }
    }

    private func assigned(_ given: [TopicPartition], _ session: any LogSession) throws {
        metrics.rebalance(.assigned)
        let committed: [TopicPartition: NextOffset]
        var starts: [TopicPartition: NextOffset]
        do throws(LogFault) {
            committed = try session.committed(given, by: Deadline(after: Self.answerLimit))
            // Where the group has no position the changelog may know one, which is sought before anything is read. A true offset all
            // the same: of one that has to be looked up, like the end, the library might hear when it reads elsewhere already.
            let unknown = given.filter { committed[$0] == nil }
            starts = try session.beginnings(of: unknown, by: Deadline(after: .seconds(10)))
            for partition in unknown where starts[partition] == nil {
                throw LogFault(.rebuild, .timedOut, "the beginning of \(partition) is not known")
            }
            starts.merge(committed) { $1 }
        } catch {
            // There is no cycle to take back, and an assignment that is not answered would never come again.
            throw LogFault(error.remedy == .stop ? .stop : .rebuild, error.cause, error.words)
        }
        try session.take(starts, paused: Set(given))
        // The others stay paused.
        let numbers = leftAlone.assigned(given)
        tellLeftAlone()
        sessionTrouble = nil
        board.give(numbers, to: options.thread)
        say(.info, "partitions given", numbers.sorted().map(String.init).joined(separator: " "))
        try partitions.assigned(numbers, committed, session)
    }

    private func tellLeftAlone() {
        metrics.leftAlone(options.thread, leftAlone.count)
        let words = leftAlone.words
        for line in words where !leftAloneTold.contains(line) { say(.error, "partitions are left alone", line) }
        leftAloneTold = words
    }

    private func revoked(_ session: any LogSession) throws {
        ownNothing()
        metrics.rebalance(.revoked)
        let begin = environment.elapsed()
        do {
            try commit(session)
        } catch let fault as LogFault {
            guard fault.remedy != .rebuild, fault.remedy != .stop else { throw fault }
            metrics.abort(.generation)
            say(.info, "a cycle was taken back because the group has moved on", fault.words)
            try abort(session)
            rollBack()
        }
        try leave(.revoked, session)
        metrics.revokeSeconds.observe(environment.elapsed() - begin)
    }

    private func lost(_ count: Int, _ session: any LogSession) throws {
        ownNothing()
        metrics.rebalance(.lost)
        metrics.abort(.lost)
        say(.warning, "partitions lost: the group took this member for dead", "\(count)")
        try abort(session)
        rollBack()
        try leave(.lost, session)
    }

    private func leave(_ event: TaskEvent, _ session: any LogSession) throws {
        sessionTrouble = "its partitions are being shared out"
        board.give([], to: options.thread)
        try partitions.leave(event, session)
        try session.giveBack()
    }

    private func say(_ level: LogLevel, _ words: String, _ detail: String) {
        logger.log(level, words, ["worker": .string(options.identity), "detail": .string(detail)])
    }
}
