// Keeps the local copies at the end of their topics.

internal import Churn
internal import Contract
internal import Log
internal import Platform
internal import Service
internal import Store
internal import Telemetry

/// One thread, which reads every partition of the followed topics as a client of committed records without a group.
final class Follower: ServicePart {
    struct Configuration: Sendable {
        var names: Names
        /// Of whoever reads the cells; nil: theirs are not looked at.
        var rules: CellRules?
        /// How often the ends are asked for: so old is what an answer says of its time, at most, while all is well.
        var lookInterval: Duration = .seconds(1)
        /// Between two tries of what has failed.
        var faultPause: Duration = .seconds(1)
    }

    let name = "api-follower"
    private let thread: ThreadPart

    init(
        _ configuration: Configuration, log: any RecordLog, stores: any PartitionStores, copies: [PartitionCopy],
        totals: CellTotals, time: ReadAPITime, readiness: Readiness, metrics: ReadAPIMetrics, logger: Logger
    ) {
        thread = ThreadPart(name) { stop in
            let following = Following(
                configuration, log: log, stores: stores, copies: copies, totals: totals, time: time,
                readiness: readiness, metrics: metrics, logger: logger)
            while !stop.isOpen {
                if !following.step() { stop.wait(for: configuration.faultPause) }
            }
            following.close()
        }
    }

    func start(failed: @escaping @Sendable (any Error) -> Void) throws { try thread.start(failed: failed) }
    func stop(by deadline: Deadline) throws { try thread.stop(by: deadline) }
}

/// The follower's own side: one thread.
final class Following {
    /// Lent at a time: a write of so many takes about a millisecond.
    private static let recordsPerPoll = 2000
    /// Held while a copy is built: larger writes are cheaper.
    private static let recordsPerWrite = 10_000
    /// Held by all partitions together.
    private static let heldBytes = 32 << 20
    static func heldBytes(partitions: Int) -> Int { heldBytes / partitions }
    private static let pollWait: Duration = .milliseconds(100)
    private static let patience: Duration = .seconds(10)
    /// Of positions that have moved alone. They tell how old a copy is.
    private static let noteInterval: Duration = .seconds(60)
    /// For so long leaders may move, which is told without alarm.
    private static let leaderPatience: Duration = .seconds(10)
    private static let progressInterval: Duration = .seconds(5)

    let configuration: Follower.Configuration
    let log: any RecordLog
    let stores: any PartitionStores
    private let totals: CellTotals
    let time: ReadAPITime
    let readiness: Readiness
    let metrics: ReadAPIMetrics
    let logger: Logger
    /// By partition.
    let states: [CopyState]
    var reader: (any LogReader)?
    private let batch = RecordBatch()
    private var judge = RecordJudge()
    private var nextLook: Duration = .zero
    private var nextProgress: Duration = .zero
    private var wasComplete = false
    private var faultTold: String?
    private var faultSince: Duration?
    private var hasToldRules = false
    /// In milliseconds, by the number of the topic: see `checkTopics`.
    var greatestAges = FollowedTopic.allCases.map { _ in Following.greatestAge }

    init(
        _ configuration: Follower.Configuration, log: any RecordLog, stores: any PartitionStores,
        copies: [PartitionCopy], totals: CellTotals, time: ReadAPITime, readiness: Readiness, metrics: ReadAPIMetrics,
        logger: Logger
    ) {
        self.totals = totals
        self.configuration = configuration
        self.log = log
        self.stores = stores
        self.time = time
        self.readiness = readiness
        self.metrics = metrics
        self.logger = logger
        let begun = CopyNote(partitions: Int32(copies.count), begunAt: time.wall())
        states = copies.map { CopyState($0, begun) }
    }

    func topicName(_ topic: FollowedTopic) -> String { configuration.names.topic(topic.id) }
    func partition(_ topic: FollowedTopic, _ state: CopyState) -> TopicPartition {
        TopicPartition(topicName(topic), state.copy.number)
    }

    // MARK: A step

    /// A little work. false: it has failed, and is not to be tried again at once.
    func step() -> Bool {
        do throws(LogFault) {
            var reader = try openReader()
            if isAnyTooOld {
                // Nothing may be taken before it is known whether something is missing in between.
                try look(reader)
                reader = try openReader()
            }
            try reader.poll(into: batch, limit: Self.recordsPerPoll, wait: Self.pollWait)
            let isDrained = batch.count < Self.recordsPerPoll
            let hasPaused = take(reader)
            batch.removeAll()
            write(all: isDrained)
            if time.elapsed() >= nextLook { try look(reader) }
            report()
            // The reader would go on to fetch what may not be looked at.
            if hasPaused { dropReader() }
            return tell(nil)
        } catch {
            batch.removeAll()
            if error.remedy != .retrySameCall { dropReader() }
            report()
            return tell(error)
        }
    }

    private var isAnyTooOld: Bool {
        let now = time.wall()
        return states.contains { state in
            FollowedTopic.allCases.contains { state.pauses[$0.rawValue] == nil && isTooOld($0, state, at: now) }
        }
    }

    /// Each trouble is told once. - Returns: whether there is none.
    private func tell(_ fault: LogFault?) -> Bool {
        readiness.update { $0.fault = fault?.words }
        guard let fault else {
            if faultTold != nil { logger.info("the topics are followed again") }
            (faultTold, faultSince) = (nil, nil)
            return true
        }
        let since = faultSince ?? time.elapsed()
        faultSince = since
        let isPassing = fault.cause == .leaderMoves && time.elapsed() - since < Self.leaderPatience
        if !isPassing, fault.words != faultTold {
            logger.error("the topics cannot be followed", ["reason": .string(fault.words)])
            faultTold = fault.words
        }
        return false
    }

    /// - Returns: whether a partition was paused.
    private func take(_ reader: any LogReader) -> Bool {
        let batch = batch
        var hasPaused = false
        for index in 0..<batch.count {
            let record = batch[index]
            guard let topic = FollowedTopic(rawValue: record.topic), states.indices.contains(Int(record.partition))
            else { continue }
            let state = states[Int(record.partition)]
            guard state.pauses[topic.rawValue] == nil else { continue }
            if let words = apply(record, topic, to: state) {
                state.pauses[topic.rawValue] = words
                hasPaused = true
                logger.error("a partition waits for a later build", ["reason": .string(words)])
            } else {
                state.advance(topic, to: NextOffset(after: record.offset))
            }
        }
        for state in states {
            for topic in FollowedTopic.allCases where state.pauses[topic.rawValue] == nil {
                // What takes offsets without being a record lies before it, too.
                guard let next = reader.position(of: partition(topic, state)) else { continue }
                state.advance(topic, to: next)
            }
        }
        return hasPaused
    }

    /// Why the record may not be passed; nil when it was dealt with.
    private func apply(_ record: borrowing RecordView, _ topic: FollowedTopic, to state: CopyState) -> String? {
        let verdict = judge.judge(record, topic)
        if case .newer(let words) = verdict {
            return "\(partition(topic, state)) at \(record.offset): \(words)"
        }
        metrics.records[topic.rawValue].add()
        if topic == .cells { state.note.keep(rules: record.header("rules")) }
        state.note[topic].clock = max(record.timestamp, state.note[topic].clock ?? record.timestamp)
        let key = record.copyOfKey()
        switch verdict {
        case .cell(let cell):
            guard let key else { break }
            state.changes.put(KeySpace.cells.key(key).span, cell.bytes.span)
            state.cells.updateValue(cell, forKey: key)
        case .put(let space):
            guard let key, let value = record.value else { break }
            state.changes.put(space.key(key).span, value)
            delete(key, from: topic.spaces.filter { $0 != space }, of: state)
        case .delete:
            if let key { delete(key, from: topic.spaces, of: state) }
        case .keepOut(let flaw):
            metrics.keptOut(topic, flaw)
            logger.error(
                "a record is kept out of the answers",
                [
                    "partition": .string("\(partition(topic, state))"), "offset": .integer(record.offset),
                    "cause": .string(flaw.rawValue),
                ])
            if flaw != .key, let key { delete(key, from: topic.spaces, of: state) }
        case .skip: metrics.skipped[topic.rawValue].add()
        case .newer: break
        }
        state.changed += 1
        return nil
    }

    private func delete(_ key: [UInt8], from spaces: [KeySpace], of state: CopyState) {
        for space in spaces {
            state.changes.delete(space.key(key).span)
            if space == .cells { state.cells.updateValue(nil, forKey: key) }
        }
    }

    // MARK: Writing

    /// - Parameter all: else only what has grown large.
    private func write(all: Bool) {
        let bytes = Self.heldBytes(partitions: states.count)
        let now = time.elapsed()
        for state in states where state.copy.isOpen {
            let isLarge = state.changed >= Self.recordsPerWrite || state.changes.bytes.count >= bytes
            let isNoteDue = now - state.noteWrittenAt >= Self.noteInterval
            // Whoever hears that it is complete may ask at once: nothing of it may be held back then.
            if state.changed > 0 && (all || isLarge || state.isComplete) || state.changed == 0 && isNoteDue {
                write(state)
            } else if state.changed == 0 {
                state.copy.move(to: state.note)
            }
        }
    }

    private func write(_ state: CopyState) {
        do throws(StoreFault) {
            let isComplete = state.isComplete
            try state.copy.write(
                state.changes, state.cells, state.note, state.isWhole && !isComplete ? .none : .process)
            if isComplete { state.isWhole = false }
            state.changes.removeAll()
            state.cells.removeAll(keepingCapacity: true)
            state.changed = 0
            state.noteWrittenAt = time.elapsed()
        } catch {
            fail(state, error)
        }
    }

    /// The store is closed; it is opened again, or built anew, with the next reader.
    private func fail(_ state: CopyState, _ fault: StoreFault) {
        logger.error("a local copy cannot be used", ["reason": .string(fault.words)])
        state.reset(to: state.note)
        if fault.cause == .corrupt { state.uselessness = fault.words }
        try? state.copy.close()
        dropReader()
    }

    // MARK: Looking

    /// Where the topics end now. What was read up to there is complete as of the moment of the question.
    private func look(_ reader: any LogReader) throws(LogFault) {
        nextLook = time.elapsed() + configuration.lookInterval
        for state in states {
            if let fault = state.copy.fault { fail(state, fault) }
        }
        // Gone with a copy that has failed: the next step begins anew.
        if self.reader == nil { return }
        var asked: [TopicPartition] = []
        for state in states {
            for topic in FollowedTopic.allCases where state.pauses[topic.rawValue] == nil {
                asked.append(partition(topic, state))
            }
        }
        let (wall, elapsed) = (time.wall(), time.elapsed())
        let ends = try reader.ends(.committed, of: asked, by: Deadline(after: Self.patience))
        var remaining: Int64 = 0
        for state in states {
            for topic in FollowedTopic.allCases {
                guard let end = ends[partition(topic, state)] else { continue }
                remaining += max(0, end.value - (state.note[topic].next?.value ?? 0))
                state.see(topic, CopyState.Goal(end: end, wall: wall, elapsed: elapsed))
                // It was cut off for so long that deletions may be gone: the next opening of the reader judges that.
                if state.goals[topic.rawValue] != nil, isTooOld(topic, state, at: wall) { dropReader() }
            }
            if state.changed == 0 { state.copy.move(to: state.note) }
        }
        metrics.remaining.set(Double(remaining))
        metrics.storeBytes.set(Double(states.reduce(0) { $0 + $1.copy.approximateBytes }))
        metrics.cells.set(Double(totals.count))
        readiness.update { $0.remaining = remaining }
        tellProgress(remaining)
    }

    private func tellProgress(_ remaining: Int64) {
        guard !wasComplete, time.elapsed() >= nextProgress else { return }
        nextProgress = time.elapsed() + Self.progressInterval
        logger.info(
            "catching up",
            [
                "records_remaining": .integer(remaining),
                "records_read": .integer(metrics.records.reduce(0) { $0 + $1.value }),
            ])
    }

    private func report() {
        for state in states where state.isComplete && state.changed == 0 { state.copy.confirm() }
        let times = states.flatMap { $0.copy.isAskable ? $0.completeAt : [nil] }
        // The copy that was complete longest ago counts.
        let completeAt = times.contains { $0 == nil } ? nil : times.compactMap { $0 }.min()
        let pauses = states.flatMap { $0.pauses.compactMap { $0 } }
        metrics.paused.set(Double(pauses.count))
        readiness.update { state in
            state.completeAt = completeAt
            state.pauses = pauses
        }
        if completeAt != nil, !wasComplete {
            logger.info(
                "caught up", ["records_read": .integer(metrics.records.reduce(0) { $0 + $1.value })])
        }
        wasComplete = completeAt != nil
        warnOfRules()
    }

    /// Once. Not while there is more to read: the rules of what is old may be those of data that the worker has left behind.
    private func warnOfRules() {
        guard !hasToldRules, let rules = configuration.rules,
            states.contains(where: { state in
                let last = state.note.rules
                return state.completeAt[FollowedTopic.cells.rawValue] != nil && rules.differ(from: last.span)
            })
        else { return }
        hasToldRules = true
        logger.warning("\(rules.warning)")
    }

    // MARK: The end

    /// Readers may hold records of a partition that is not wanted any more, or be at a wrong place.
    func dropReader() {
        batch.removeAll()
        reader?.close(by: Deadline(after: Self.patience))
        reader = nil
    }

    func close() {
        dropReader()
        for state in states where state.copy.isOpen {
            write(state)
            do throws(StoreFault) {
                try state.copy.close()
            } catch {
                logger.error("a local copy was not closed", ["reason": .string(error.words)])
            }
        }
    }
}
