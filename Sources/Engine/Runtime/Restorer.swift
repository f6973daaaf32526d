// Restores stores to the end of their changelog.

package import Log
package import Platform
internal import Store
import Synchronization

/// A store that is handed to the restorer. Only the holder of the order uses the store.
struct RestoreOrder: @unchecked Sendable {
    /// Unchecked: the store is handed over with the order, and no other thread uses it until the reply.
    let store: any PartitionStore
    let partition: Int32
    /// Identifies this order for `cancel`.
    let token: UInt64
    /// The store's note. nil: the store is empty.
    var note: Note?
    /// The group's committed offsets by topic. They are fetched before the changelog's end: an earlier owner can no
    /// longer commit anything that is not in them, and what is in them lies before that end.
    let committed: [String: NextOffset]
    /// Why the store must be wiped, although it opens. nil: it need not.
    var damage: String?
    let reply: @Sendable (RestoreReply) -> Void
}

struct RestoreReply: @unchecked Sendable {
    enum Outcome: Equatable, Sendable {
        /// The store has the whole changelog. Reading continues at `next`, by the index of the input.
        case restored(Note, next: [NextOffset], records: Int)
        /// The store does not belong to the log as it is now.
        case useless(String)
        /// The store cannot be read, or it has failed before.
        case damaged(String)
        /// A person must help.
        case refused(String)
        /// The store cannot be written on this machine.
        case hindered(String)
        case withdrawn
    }

    let order: RestoreOrder
    let outcome: Outcome
    /// A message for a person about something that does not stop the restore.
    var warning: String?
    /// A gap in an input of the restored partition: no record can be read at its position.
    var gap: InputGap?
}

/// Reads the changelogs of any number of partitions side by side. Any thread may send orders; one thread calls `step`.
package final class Restorer: Sendable {
    private enum Word: Sendable {
        case order(RestoreOrder)
        case cancel(UInt64)
    }

    private let words = Mailbox<Word>(capacity: .max)
    private let work: Mutex<RestoreWork>

    /// - Parameter name: name of the reader in messages of the log.
    package init(
        _ definition: WorkerDefinition, log: any RecordLog, name: String,
        memory: MemoryPlan = MemoryPlan(bytes: 256 << 20, threads: 1, partitions: 12),
        wallClock: @escaping @Sendable () -> Int64, remaining: @escaping @Sendable (_ records: Int64) -> Void
    ) {
        work = Mutex(
            RestoreWork(
                definition, log: log, name: name, memory: memory, wallClock: wallClock, remaining: remaining))
    }

    /// Opens what the first order needs, so that a worker that starts does not wait for it. A fault is no harm: the first
    /// order meets it again. Takes about a second at most, because orders and a stop wait for it.
    package func prepare() { work.withLock { $0.prepare() } }

    func restore(_ order: RestoreOrder) { _ = words.post(.order(order)) }

    /// The reply to the order follows soon: `withdrawn`, or an outcome that came first.
    func cancel(_ token: UInt64) { _ = words.post(.cancel(token)) }

    /// Does a little work. If there is none, waits at most `wait`.
    package func step(wait: Duration) {
        // Also waits after a fault: brokers in trouble are not asked again at once.
        let rests = work.withLock { $0.isIdle || $0.hasFailed }
        let news = words.take(waiting: rests ? wait : .zero)
        work.withLock { work in
            for word in news {
                switch word {
                case .order(let order): work.add(order)
                case .cancel(let token): work.cancel(token)
                }
            }
            work.step(wait: wait)
        }
    }

    /// Returns every store.
    package func close(by deadline: Deadline) {
        step(wait: .zero)
        work.withLock { $0.close(by: deadline) }
    }
}

/// The restorer's own side, used by one thread.
private struct RestoreWork: ~Copyable {
    private static let patience: Duration = .seconds(10)
    private static let patienceOfPreparation: Duration = .seconds(1)
    /// The end of a partition ends no poll, and what follows a clean stop has no records at all.
    private static let longestPoll: Duration = .milliseconds(10)

    private let definition: WorkerDefinition
    private let log: any RecordLog
    private let name: String
    private let memory: MemoryPlan
    private let wallClock: @Sendable () -> Int64
    private let remaining: @Sendable (Int64) -> Void
    private var reader: (any LogReader)?
    /// The changelog of this reader was seen to be compacted.
    private var isChecked = false
    private let batch = RecordBatch()
    /// Orders that are not started yet.
    private var waiting: [RestoreOrder] = []
    /// Sorted by partition, so that the order of work does not depend on chance.
    private var running: [Restore] = []

    init(
        _ definition: WorkerDefinition, log: any RecordLog, name: String, memory: MemoryPlan,
        wallClock: @escaping @Sendable () -> Int64, remaining: @escaping @Sendable (Int64) -> Void
    ) {
        self.definition = definition
        self.memory = memory
        self.log = log
        self.name = name
        self.wallClock = wallClock
        self.remaining = remaining
    }

    /// The last step had a fault.
    private(set) var hasFailed = false
    /// A request for several partitions had a fault that only a person can fix. So each partition is asked about alone,
    /// and only the partitions with the fault get it as their answer.
    private var goesOneByOne = false

    var isIdle: Bool { waiting.isEmpty && running.isEmpty }

    mutating func add(_ order: RestoreOrder) { waiting.append(order) }

    mutating func cancel(_ token: UInt64) {
        if let index = waiting.firstIndex(where: { $0.token == token }) {
            answer(waiting.remove(at: index), .withdrawn)
        }
        if let index = running.firstIndex(where: { $0.order.token == token }) {
            // The next owner of the store reads again what is not written.
            answer(running.remove(at: index).order, .withdrawn)
            dropReader()
            tellRemaining()
        }
    }

    private func tellRemaining() { remaining(running.reduce(0) { $0 + max(0, $1.end.value - $1.position.value) }) }

    mutating func close(by deadline: Deadline) {
        for order in waiting + running.map(\.order) { answer(order, .withdrawn) }
        waiting = []
        running = []
        batch.removeAll()
        reader?.close(by: deadline)
        reader = nil
    }

    mutating func step(wait: Duration) {
        guard !isIdle else { return }
        hasFailed = false
        do throws(LogFault) {
            let reader = try openReader()
            try begin(reader)
            if running.isEmpty { return }
            try reader.poll(into: batch, limit: 1000, wait: min(wait, Self.longestPoll))
            try take(reader)
            batch.removeAll()
            try finish(reader)
            tellRemaining()
            // Otherwise it would read the changelogs for ever, as fast as workers write them.
            if running.isEmpty { try reader.read(from: [:]) }
        } catch {
            fail(error)
        }
    }

    mutating func prepare() {
        do throws(LogFault) {
            // It connects while the topic is looked at. It asks about no partition: one without a leader, even of another
            // process, would make everybody wait.
            if reader == nil { _ = try makeReader() }
            try requireCompaction(by: Deadline(after: Self.patienceOfPreparation))
            isChecked = true
        } catch {
            // The reader is kept. The first order asks again.
        }
    }

    private mutating func openReader() throws(LogFault) -> any LogReader {
        if !isChecked {
            try requireCompaction(by: Deadline(after: Self.patience))
            isChecked = true
        }
        if let reader { return reader }
        return try makeReader()
    }

    private mutating func makeReader() throws(LogFault) -> any LogReader {
        var options = ReaderOptions(name: name, group: definition.group, topics: [definition.changelog])
        options.readsAhead = true
        options.readAheadBytes = memory.restoreReadAheadBytes
        // Only the last request of a restore finds nothing, and the restore waits for its answer.
        options.fetchWait = Self.longestPoll
        let made = try log.openReader(options)
        reader = made
        if !running.isEmpty { try read(made) }
        return made
    }

    /// Without compaction each restore would lack the keys that have not been written for a long time.
    private func requireCompaction(by deadline: Deadline) throws(LogFault) {
        let name = definition.changelog
        let shape: TopicShape?
        do throws(LogFault) {
            shape = try log.topics([name], by: deadline)[name]
        } catch {
            guard error.cause == .forbidden else { throw error }
            throw LogFault(
                .stop, .forbidden,
                "\(error.words): a worker reads the settings of its changelog, \(name), and needs for that the right "
                    + "DescribeConfigs")
        }
        guard let shape else {
            throw LogFault(.stop, .unknownTopic, "the topic \(name) is missing: run perennial topics apply")
        }
        guard shape.isCompacted else {
            throw LogFault(
                .stop, .misuse,
                "the topic \(name) is not compacted: it loses keys that are not written for a long time, and they "
                    + "would be missing from the state; set its cleanup.policy to compact only (perennial topics apply)"
            )
        }
    }

    /// The reader may hold records of a partition that is no longer wanted, or be at a wrong offset.
    private mutating func dropReader() {
        batch.removeAll()
        reader?.close(by: Deadline(after: Self.patience))
        reader = nil
        isChecked = false
    }

    private func read(_ reader: any LogReader) throws(LogFault) {
        var starts: [TopicPartition: NextOffset] = [:]
        for restore in running { starts[partition(restore.order)] = restore.position }
        try reader.read(from: starts)
    }

    private func partition(_ order: RestoreOrder) -> TopicPartition {
        TopicPartition(definition.changelog, order.partition)
    }

    // MARK: Starting

    private mutating func begin(_ reader: any LogReader) throws(LogFault) {
        if waiting.isEmpty || goesOneByOne && !running.isEmpty { return }
        let orders = goesOneByOne ? [waiting[0]] : waiting
        let partitions = orders.map { partition($0) }
        let deadline = Deadline(after: Self.patience)
        // All records that were ever written have smaller offsets, including those in open transactions of a dead
        // owner. The end of the committed records would not do: it lacks what is committed a moment later.
        let ends = try reader.ends(.all, of: partitions, by: deadline)
        let beginnings = try reader.beginnings(of: partitions, by: deadline)
        // All or none: an order that is started twice would get two replies.
        for partition in partitions where ends[partition] == nil || beginnings[partition] == nil {
            throw LogFault(.retrySameCall, .timedOut, "the ends of \(partition) are not known")
        }
        for order in orders {
            let partition = partition(order)
            begin(order, beginnings[partition]!, ends[partition]!)
        }
        waiting.removeFirst(orders.count)
        if waiting.isEmpty { goesOneByOne = false }
        running.sort { $0.order.partition < $1.order.partition }
        if !running.isEmpty { try read(reader) }
    }

    private mutating func begin(_ order: RestoreOrder, _ beginning: NextOffset, _ end: NextOffset) {
        if let outcome = order.obstacle(definition, beginning, end, now: wallClock()) { return answer(order, outcome) }
        running.append(Restore(order, definition, from: beginning, to: end))
    }

    // MARK: Records

    private mutating func take(_ reader: any LogReader) throws(LogFault) {
        let batch = batch
        for index in 0..<batch.count {
            let record = batch[index]
            let number = record.partition
            guard let place = running.firstIndex(where: { $0.order.partition == number }) else { continue }
            let restore = running[place]
            guard record.offset >= restore.position.value, record.offset < restore.end.value else { continue }
            if let outcome = restore.apply(record) {
                running.remove(at: place)
                answer(restore.order, outcome)
            }
        }
        for restore in running {
            // No further than the requested end: later records were not applied, and the store must not claim to have
            // them.
            let position = reader.position(of: partition(restore.order)) ?? restore.position
            restore.position = min(restore.end, max(restore.position, position))
        }
        let bytesPerWrite = memory.restoreWriteBytes / max(1, running.count)
        for restore in running where restore.isDueForWrite(from: bytesPerWrite) {
            let now = wallClock()
            _ = storing(restore) { () throws(StoreFault) in try restore.write(at: now) }
        }
    }

    private mutating func drop(_ restore: Restore) { running.removeAll { $0 === restore } }

    /// nil: the restorer no longer has the store, and has sent the reply.
    private mutating func storing<Value>(_ restore: Restore, _ body: () throws(StoreFault) -> Value) -> Value? {
        do throws(StoreFault) { return try body() } catch {
            drop(restore)
            answer(restore.order, restore.outcome(of: error))
            return nil
        }
    }

    // MARK: The end

    private mutating func finish(_ reader: any LogReader) throws(LogFault) {
        let done = running.filter { $0.position >= $0.end }
        if done.isEmpty { return }
        // After a fault here the partitions stay in the list, and the next step asks again.
        let places = try inputPlaces(of: done, reader)
        for restore in done {
            let now = wallClock()
            guard let obstacle = storing(restore, { () throws(StoreFault) in try restore.finish(at: now) }) else {
                continue
            }
            let outcome = obstacle ?? outcome(of: restore, places)
            var gap: InputGap?
            if case .restored(_, let next, _) = outcome { gap = self.gap(restore.order.partition, next, places) }
            drop(restore)
            answer(restore.order, outcome, restore.warning, gap)
        }
    }

    private typealias InputPlace = (beginning: NextOffset, end: NextOffset)

    /// The beginnings and ends of the inputs.
    private func inputPlaces(
        of restores: [Restore], _ reader: any LogReader
    ) throws(LogFault) -> [TopicPartition: InputPlace] {
        let partitions = restores.flatMap { restore in
            definition.inputs.map { TopicPartition($0.topic, restore.order.partition) }
        }
        let deadline = Deadline(after: Self.patience)
        let beginnings = try reader.beginnings(of: partitions, by: deadline)
        let endsOfAll = try reader.ends(.all, of: partitions, by: deadline)
        var places: [TopicPartition: InputPlace] = [:]
        for partition in partitions {
            guard let beginning = beginnings[partition], let end = endsOfAll[partition] else {
                throw LogFault(.retrySameCall, .timedOut, "the broker did not return the end offsets of \(partition)")
            }
            places[partition] = (beginning, end)
        }
        return places
    }

    private func gap(_ number: Int32, _ next: [NextOffset], _ places: [TopicPartition: InputPlace]) -> InputGap? {
        for (input, next) in zip(definition.inputs, next) {
            let partition = TopicPartition(input.topic, number)
            guard let place = places[partition] else { continue }
            if let gap = InputGap.find(partition, at: next, beginning: place.beginning, end: place.end) { return gap }
        }
        return nil
    }

    /// Position and state must agree. If the group has another offset than the state, somebody has set the offset or
    /// lost the state.
    private func outcome(of restore: Restore, _ places: [TopicPartition: InputPlace]) -> RestoreReply.Outcome {
        if let name = restore.note?.promotion {
            return .refused(
                "the promotion of the replay \(name), whose state replaces this one, has not ended: stop every process "
                    + "of this worker and run `perennial promote \(definition.name) --name \(name) --apply` again"
            )
        }
        var next: [NextOffset] = []
        for input in definition.inputs {
            let partition = TopicPartition(input.topic, restore.order.partition)
            let committed = restore.order.committed[input.topic]
            let known = restore.note?.positions[input.topic]
            switch (committed, known) {
            case (let committed?, let known?) where committed == known: next.append(committed)
            case (nil, let known?): next.append(known)
            case (let committed?, nil) where restore.note?.positions.isEmpty == false: next.append(committed)
            case (nil, nil): next.append(places[partition]?.beginning ?? NextOffset(0))
            case (let committed?, let known):
                return .refused(
                    "the group \(definition.group) has committed offset \(committed) of \(partition), but the state of "
                        + "this worker is at \(known.map { "\($0)" } ?? "nothing: \(definition.changelog) is empty"). "
                        + "The offsets of a worker with state must not be reset by hand: set the group's offset back, "
                        + "or delete both to start from the beginning")
            }
        }
        var note = restore.note ?? Note(format: definition.stateFormat)
        note.sum = restore.sum
        return .restored(note, next: next, records: restore.records)
    }

    private mutating func fail(_ fault: LogFault) {
        hasFailed = true
        batch.removeAll()
        if fault.remedy == .retrySameCall { return }
        dropReader()
        // The fault concerns one partition: the beginnings show which.
        if fault.cause == .positionGone {
            waiting += running.map(\.rest)
            running = []
            return
        }
        guard fault.remedy == .stop else { return }
        if !goesOneByOne, waiting.count + running.count > 1 {
            waiting = running.map(\.rest) + waiting
            running = []
            goesOneByOne = true
            return
        }
        let guilty = running.first?.order ?? waiting.removeFirst()
        running = []
        goesOneByOne = !waiting.isEmpty
        answer(guilty, .refused(fault.words))
    }

    private func answer(
        _ order: RestoreOrder, _ outcome: RestoreReply.Outcome, _ warning: String? = nil, _ gap: InputGap? = nil
    ) {
        order.reply(RestoreReply(order: order, outcome: outcome, warning: warning, gap: gap))
    }
}
