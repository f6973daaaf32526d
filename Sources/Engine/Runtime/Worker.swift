// One thread of a worker: its session, its partitions, and the cycle that commits them.

package import Log
package import Platform
package import Store
package import Telemetry

/// Reads, processes and commits. All of it happens in `step`, on the calling thread, so that a test can drive it.
package final class Worker {
    /// Records of one poll.
    static let recordsPerPoll = 250
    private static let rewindLimit = 20
    /// A poll waits no longer while the restorer works, because a restored partition waits for the end of the poll.
    private static let restoreWait: Duration = .milliseconds(10)
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
    /// The last messages about ignored partitions.
    private var leftAloneTold: [String] = []

    private var session: (any LogSession)?
    private let batch = RecordBatch()
    private let outputs: OutputBatch
    private var fencings: Fencings
    private var failures = 0
    /// Rewinds since the last commit.
    private var rewinds = 0
    private var nextOpening: Duration = .zero
    private var nextSizes: Duration = .zero

    // The open cycle.
    private var pace: CyclePace
    private var appendedBytes = 0
    /// No cycle was committed yet since the last assignment.
    private var isFirstCommit = true

    /// - Parameter restorer: shared by the threads of a process; the caller runs its steps.
    package init(
        _ processor: any Processor, log: any RecordLog, stores: any PartitionStores, options: WorkerOptions,
        restorer: Restorer, environment: WorkerEnvironment, logger: Logger, metrics: WorkerMetrics, board: PositionBoard
    ) {
        self.processor = processor
        definition = processor.definition
        self.log = log
        self.options = options
        self.environment = environment
        pace = CyclePace(
            interval: options.commitInterval, backlogInterval: options.backlogInterval,
            recordLimit: options.recordsPerCycle)
        fencings = Fencings(sessionTimeout: options.sessionTimeout, transactionTimeout: options.transactionTimeout)
        self.logger = logger
        self.metrics = metrics
        self.board = board
        counts = WorkerCounts(metrics)
        leftAlone = LeftAlone(definition)
        // Memory of a batch is up to twice as large as what is in it.
        outputs = OutputBatch(spareBytes: 2 * options.bytesPerCycle)
        let named = definition.outputs.count
        inner = InnerOutputs(
            changelog: named, deadLetters: named + 1, tables: [-1] + definition.tables.indices.map { named + 2 + $0 })
        partitions = WorkerPartitions(
            processor, stores: stores, options: options, restorer: restorer, environment: environment, logger: logger,
            metrics: metrics, counts: counts, board: board, outputs: outputs, inner: inner)
    }

    // MARK: Outside

    /// What stops this worker or parts of it; empty if nothing does.
    package var troubles: [String] {
        (sessionTrouble.map { [$0] } ?? []) + leftAlone.words + partitions.troubles
    }

    package var holding: WorkerService.Holding { partitions.holding }

    private(set) var sessionTrouble: String? = "no partitions assigned yet"

    /// Polls for records, and processes them.
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
            say(.error, "a local store failed; opening it again in a new session", fault.words)
            try rebuild(after: .other, pause: .seconds(1))
        } catch {
            preconditionFailure("no other error can be thrown here: \(error)")
        }
    }

    /// Commits what is processed, and leaves. False: the end was not clean, or not complete by the deadline.
    package func stop(by deadline: Deadline) -> Bool {
        var isClean = true
        ownNothing()
        if let session {
            do {
                try commit(session)
            } catch {
                // The open transaction is not visible; the next owner processes its records again.
                isClean = false
                say(.warning, "the last transaction was not committed; its records will be processed again", "\(error)")
            }
            tellTime("the last commit is done")
            session.beginClosing(by: deadline)
        }
        // The stores are closed while the clients of the session end: a successor waits for both.
        partitions.end()
        tellTime("the stores are closed")
        if let session, !session.close(by: deadline) { isClean = false }
        session = nil
        tellTime("the session is closed")
        // Waits for stores that the restorer returns, and that are then closed.
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
        let wait = pace.wait(at: now)
        let event = try session.poll(
            into: batch, limit: limit, wait: partitions.awaitsRestorer ? min(wait, Self.restoreWait) : wait)
        options.pace?.giveBack(limit - batch.count)
        defer { batch.removeAll() }
        switch event {
        case .nothing:
            if pace.isOpen, pace.isDue(at: environment.elapsed()) {
                skipMarkers(session)
                try commit(session)
            }
            // The tasks of an open cycle are ahead of what is committed.
            if !pace.isOpen {
                showPositions(session)
                try writeStores()
            }
        case .records:
            pace.begin(at: environment.elapsed())
            try process(session)
            let isDrained = batch.count < limit
            if !isDrained { pace.leftRecords(at: environment.elapsed()) }
            if isFull || isDrained && pace.isDue(at: environment.elapsed()) {
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

    /// A lease that has not begun, or that expired while the process was stopped, needs an answer of the group: a
    /// commit of the committed offsets gets one. It includes the note in the changelog as always: otherwise a committed
    /// offset without a note would look like one that was set by hand.
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

    /// From here on other members may own the partitions, so this cannot wait for the end of the step.
    private func ownNothing() { options.ownership?.set([], until: nil, thread: options.thread) }

    private func process(_ session: any LogSession) throws {
        let batch = batch
        // Records come in runs of one partition.
        var current: PartitionTask?
        for index in 0..<batch.count {
            let record = batch[index]
            if current?.partition != record.partition { current = partitions.task(reading: record.partition) }
            guard let task = current else { continue }
            if !options.bounds.isEmpty, try isBeyondBound(record, session) { continue }
            pace.addRecord()
            while true {
                let outcome: PartitionTask.Outcome
                do throws(StoreFault) { outcome = try task.handle(record) } catch {
                    partitions.failed(task.partition, error)
                    throw error
                }
                if outcome == .done { break }
                if case .pause(let reason) = outcome {
                    try partitions.pause(record.partition, reason, session)
                    current = nil
                    break
                }
                try append(session)
                try commit(session)
                pace.begin(at: environment.elapsed())
                if outcome == .commitNow { break }
            }
        }
    }

    /// The bound is reached: the worker needs no more records of this input in this partition.
    private func isBeyondBound(_ record: borrowing RecordView, _ session: any LogSession) throws(LogFault) -> Bool {
        let partition = TopicPartition(definition.inputs[record.topic].topic, record.partition)
        guard let bound = options.bounds[partition], record.offset >= bound.value else { return false }
        try session.pause([partition])
        return true
    }

    /// All received records are processed: the offsets up to the session's position are control records.
    private func skipMarkers(_ session: any LogSession) {
        for task in partitions.reading where task.isTouched {
            for (index, input) in definition.inputs.enumerated() {
                let partition = TopicPartition(input.topic, task.partition)
                guard let position = session.position(of: partition) else { continue }
                task.skip(to: min(position, options.bounds[partition] ?? position), of: index)
            }
        }
    }

    /// An input may end with control records. They need no commit, and cause no lag.
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
        if pace.isFull(at: environment.elapsed()) { return true }
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

    /// Outputs, changelog and offsets become visible in one transaction; the stores follow later.
    private func commit(_ session: any LogSession) throws {
        let touched = partitions.tasks.filter(\.isTouched)
        defer { counts.publish() }
        guard !touched.isEmpty else { return endCycle() }
        let begin = environment.elapsed()
        let written = environment.wallClock()
        var positions: [TopicPartition: NextOffset] = [:]
        for task in touched {
            try partitions.watching(task.partition) { () throws(StoreFault) in
                try task.addChangelog(timestamp: written)
            }
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
        let asked = environment.elapsed()
        fencings.asks(at: asked)
        try session.commit(positions)
        let answered = environment.elapsed()
        fencings.answered(at: answered)
        for task in touched {
            // If the end is unknown, a restore from the earlier place only reads more.
            let end = session.appendedEnd(topic: inner.changelog, partition: task.partition)
            // The note is the last record that a commit appends to a changelog.
            task.committed(
                changelogEnd: end ?? task.note.changelog, noteOffset: end.map { NextOffset($0.value - 1) }, at: written,
                elapsed: now)
            board.set(.init(next: task.next, clock: task.note.clock), of: task.partition)
        }
        metrics.commits.add()
        metrics.commitSeconds.observe(environment.elapsed() - begin)
        if isFirstCommit { tellTime("the first commit is done") }
        isFirstCommit = false
        metrics.cycleRecords.observe(Double(pace.records))
        rewinds = 0
        pace.committed(in: answered - asked, at: environment.elapsed())
        endCycle()
        try writeStores()
        failures = 0
    }

    /// Writes the stores that must not wait, and after each cycle one that has waited long enough: all at once would delay a
    /// cycle.
    private func writeStores() throws(StoreFault) {
        let due = environment.elapsed() - options.storeInterval
        var oldest: PartitionTask?
        for task in partitions.tasks {
            if task.isDueForStore(options.flush) { try writeStore(of: task) }
            guard let since = task.unstoredSince, since <= due else { continue }
            if let other = oldest?.unstoredSince, other <= since { continue }
            oldest = task
        }
        if let oldest { try writeStore(of: oldest) }
    }

    private func writeStore(of task: PartitionTask) throws(StoreFault) {
        try partitions.watching(task.partition) { () throws(StoreFault) in
            try task.writeStore()
            try task.flushStore(options.flush)
        }
    }

    private func endCycle() {
        pace.end()
        appendedBytes = 0
    }

    // MARK: Faults

    private func handle(_ fault: LogFault) throws(WorkerEnd) {
        switch fault.remedy {
        case .retrySameCall:
            // The fault of a call in the middle of a cycle: the records are read again.
            try rewind(fault)
        case .rewind: try rewind(fault)
        case .rebuild:
            say(.warning, "the Kafka session failed; opening a new one", fault.words)
            try rebuild(after: fault.cause == .fenced ? .fenced : .other)
        case .stop:
            rollBack()
            throw WorkerEnd(fault.words)
        }
    }

    /// This is common: the group has rebalanced, or a record was not delivered.
    private func rewind(_ fault: LogFault) throws(WorkerEnd) {
        guard let session else { return }
        rewinds += 1
        if rewinds > Self.rewindLimit {
            say(.warning, "\(rewinds) transactions in a row were aborted; opening a new Kafka session", fault.words)
            try rebuild(after: .delivery, pause: .seconds(5))
            sessionTrouble = "transactions are aborted again and again: \(fault.words)"
            return
        }
        // The first retry is immediate, because the usual cause is a rebalance. Each further one waits longer.
        if rewinds > 1 { environment.pause(min(.milliseconds(500), .milliseconds(5 << min(rewinds, 8)))) }
        metrics.abort(fault.cause == .generation ? .generation : .delivery)
        say(.info, "a transaction was aborted; reading its records again", fault.words)
        do throws(LogFault) {
            try abort(session)
            rollBack()
            var positions: [TopicPartition: NextOffset] = [:]
            // Paused partitions read nothing before they are assigned again, and some have no offset to seek to.
            for task in partitions.reading { positions.merge(task.positions) { $1 } }
            try session.seek(to: positions)
        } catch {
            say(.warning, "the Kafka session failed; opening a new one", error.words)
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
        // Taken before the session is closed, which takes time.
        let fencing = cause == .fenced ? fencings.fenced(at: environment.elapsed()) : nil
        metrics.abort(fencing == .ofSilence ? .silence : cause)
        rollBack()
        // If the member leaves the group, others own the partitions before the session is closed.
        ownNothing()
        let isGone = session?.close(by: Deadline(after: .seconds(10))) ?? true
        session = nil
        if !isGone { throw WorkerEnd("the Kafka client does not close; restart the process") }
        sessionTrouble = "the Kafka session has ended; opening a new one"
        board.give([], to: options.thread)
        partitions.end()
        let now = environment.elapsed()
        failures += 1
        // The first retry is immediate, later ones wait up to half a minute.
        var wait = max(pause, failures == 1 ? .zero : min(.seconds(30), .milliseconds(250) * (1 << min(failures, 7))))
        if let fencing, fencing != .ofSilence {
            metrics.fenced.add()
            if fencing == .again { throw sharedIdentity }
            // Two processes that fence each other must not return at the same times.
            wait += .milliseconds(Int64(environment.jitter() % 2000) + 500)
        }
        nextOpening = now + wait
    }

    private var sharedIdentity: WorkerEnd {
        WorkerEnd(
            "another process uses the identity \(options.identity), or Kafka took this one for dead: it was fenced "
                + "twice within \(fencings.window.wholeMilliseconds / 1000) s. "
                + (options.isDynamic ? "" : "Give every replica its own worker.slot. ") + "This process ends")
    }

    // MARK: Sessions

    private func open(_ now: Duration) throws(WorkerEnd) {
        partitions.comeHome()
        guard now >= nextOpening else { return environment.pause(.milliseconds(20)) }
        var sessionOptions = SessionOptions(
            group: definition.group, identity: options.identity, inputs: definition.inputs.map(\.topic),
            outputs: definition.outputs.map(\.topic) + [definition.changelog, definition.deadLetters]
                + (definition.isShadow ? [] : definition.tables.map(\.topic)))
        // With another number the subscriptions of one account would be looked up in several partitions.
        sessionOptions.partitions = definition.partitions
        sessionOptions.keepsPlace = options.keepsPlace
        sessionOptions.sessionTimeout = options.sessionTimeout
        sessionOptions.transactionTimeout = options.transactionTimeout
        sessionOptions.readAheadBytes = options.readAheadBytes
        // What arrives within an interval shares a transaction anyway.
        sessionOptions.fetchWait = min(max(options.commitInterval, .milliseconds(10)), .milliseconds(50))
        sessionOptions.onEvent = environment.sessionEvents
        sessionOptions.bootClock = environment.bootClock
        fencings.asks(at: environment.elapsed())
        do throws(LogFault) {
            let opened = try log.openSession(sessionOptions, by: Deadline(after: .seconds(10)))
            session = opened
            fencings.answered(at: environment.elapsed())
            leftAlone.opened(opened.grown)
            tellLeftAlone()
            tellTime("the session is open")
            sessionTrouble = "no partitions assigned yet"
        } catch {
            sessionTrouble = error.words
            if error.remedy == .stop { throw WorkerEnd(error.words) }
            say(.warning, "the Kafka session could not be opened; retrying", error.words)
            try rebuild(after: error.cause == .fenced ? .fenced : .other, pause: .milliseconds(500))
        }
    }

    private func assigned(_ given: [TopicPartition], _ session: any LogSession) throws {
        metrics.rebalance(.assigned)
        tellTime("the group has assigned partitions")
        let committed: [TopicPartition: NextOffset]
        var starts: [TopicPartition: NextOffset]
        do throws(LogFault) {
            committed = try session.committed(given, by: Deadline(after: Self.answerLimit))
            // If the group has no offset, the changelog may have one, to which the worker seeks before it reads. Assign
            // a real offset anyway: the answer for one that must be looked up, like the end, might reach librdkafka
            // when it already reads elsewhere.
            let unknown = given.filter { committed[$0] == nil }
            starts = try session.beginnings(of: unknown, by: Deadline(after: .seconds(10)))
            for partition in unknown where starts[partition] == nil {
                throw LogFault(.rebuild, .timedOut, "the broker did not return the first offset of \(partition)")
            }
            starts.merge(committed) { $1 }
        } catch {
            // There is no transaction to abort, and an assignment that is not answered would not be delivered again.
            throw LogFault(error.remedy == .stop ? .stop : .rebuild, error.cause, error.words)
        }
        try session.take(starts, paused: Set(given))
        // The other partitions stay paused.
        let numbers = leftAlone.assigned(given)
        tellLeftAlone()
        sessionTrouble = nil
        board.give(numbers, to: options.thread)
        say(.info, "partitions assigned", numbers.sorted().map(String.init).joined(separator: " "))
        isFirstCommit = true
        try partitions.assigned(numbers, committed, session)
        tellTime("the stores are open")
    }

    private func tellLeftAlone() {
        metrics.leftAlone(options.thread, leftAlone.count)
        let words = leftAlone.words
        for line in words where !leftAloneTold.contains(line) { say(.error, "partitions are ignored", line) }
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
            say(.info, "a transaction was aborted because the group has rebalanced", fault.words)
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
        say(.warning, "partitions lost: the group removed this member", "\(count)")
        try abort(session)
        rollBack()
        try leave(.lost, session)
    }

    private func leave(_ event: TaskEvent, _ session: any LogSession) throws {
        sessionTrouble = "rebalancing"
        board.give([], to: options.thread)
        try partitions.leave(event, session)
        try session.giveBack()
    }

    /// The steps of a start and a stop, because a restart should be short.
    private func tellTime(_ step: String) {
        say(.debug, step, "\(environment.elapsed().wholeMilliseconds) ms after the start of the worker")
    }

    private func say(_ level: LogLevel, _ words: String, _ detail: String) {
        logger.log(level, words, ["worker": .string(options.identity), "detail": .string(detail)])
    }
}
