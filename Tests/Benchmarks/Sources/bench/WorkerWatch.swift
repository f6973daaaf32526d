// A log that reports what a worker's session does, call by call. It allows measuring a process without changing it.

import CLoops
import Log
import Platform
import Synchronization

/// Called on the worker's thread.
struct SessionHooks: Sendable {
    var polled: @Sendable (SessionEvent) -> Void = { _ in }
    var resumed: @Sendable ([TopicPartition]) -> Void = { _ in }
    var committed: @Sendable ([TopicPartition: NextOffset]) -> Void = { _ in }
    var appended: @Sendable (OutputBatch) -> Void = { _ in }
    /// The records of a poll.
    var received: @Sendable (RecordBatch) -> Void = { _ in }
    var committing: @Sendable () -> Void = {}
    /// No records are delivered before this many partitions are restored.
    var heldPartitions: Int32 = 0

    /// The measurement then begins when the last restore has ended.
    func holding(until partitions: Int32) -> SessionHooks {
        var hooks = self
        hooks.heldPartitions = partitions
        return hooks
    }
}

struct WatchedLog: RecordLog {
    private let log: any RecordLog
    private let hooks: SessionHooks

    init(_ log: any RecordLog, _ hooks: SessionHooks) {
        self.log = log
        self.hooks = hooks
    }

    func topics(_ names: [String], by deadline: Deadline) throws(LogFault) -> [String: TopicShape] {
        // A worker requires a compacted changelog. In the rows whose log is in memory nothing is compacted; with Kafka the broker
        // does that.
        try log.topics(names, by: deadline).mapValues { shape in
            var shape = shape
            shape.isCompacted = true
            return shape
        }
    }
    func create(_ topics: [NewTopic], by deadline: Deadline) throws(LogFault) {
        try log.create(topics, by: deadline)
    }
    func openReader(_ options: ReaderOptions) throws(LogFault) -> any LogReader { try log.openReader(options) }
    func openWriter(_ options: WriterOptions) throws(LogFault) -> any LogWriter { try log.openWriter(options) }

    func openSession(_ options: SessionOptions, by deadline: Deadline) throws(LogFault) -> any LogSession {
        WatchedSession(try log.openSession(options, by: deadline), hooks)
    }
}

private final class WatchedSession: LogSession {
    private let session: any LogSession
    private let hooks: SessionHooks
    private var held: Set<TopicPartition> = []
    private var isHolding: Bool

    init(_ session: any LogSession, _ hooks: SessionHooks) {
        self.session = session
        self.hooks = hooks
        isHolding = hooks.heldPartitions > 0
    }

    func poll(into batch: RecordBatch, limit: Int, wait: Duration) throws(LogFault) -> SessionEvent {
        let event = try session.poll(into: batch, limit: limit, wait: wait)
        hooks.polled(event)
        if event == .records { hooks.received(batch) }
        return event
    }
    func committed(_ partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]
    {
        try session.committed(partitions, by: deadline)
    }
    func beginnings(of partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]
    {
        try session.beginnings(of: partitions, by: deadline)
    }
    func take(_ starts: [TopicPartition: NextOffset], paused: Set<TopicPartition>) throws(LogFault) {
        try session.take(starts, paused: paused)
    }
    func giveBack() throws(LogFault) { try session.giveBack() }
    func pause(_ partitions: [TopicPartition]) throws(LogFault) { try session.pause(partitions) }
    func resume(_ partitions: [TopicPartition]) throws(LogFault) {
        if isHolding {
            held.formUnion(partitions)
            guard held.count == hooks.heldPartitions else { return }
            isHolding = false
            try session.resume(Array(held))
        } else {
            try session.resume(partitions)
        }
        hooks.resumed(partitions)
    }
    func seek(to positions: [TopicPartition: NextOffset]) throws(LogFault) { try session.seek(to: positions) }
    func position(of partition: TopicPartition) -> NextOffset? { session.position(of: partition) }
    func append(_ outputs: OutputBatch) throws(LogFault) {
        try session.append(outputs)
        hooks.appended(outputs)
    }
    func commit(_ positions: [TopicPartition: NextOffset]) throws(LogFault) {
        hooks.committing()
        try session.commit(positions)
        hooks.committed(positions)
    }
    func abort() throws(LogFault) { try session.abort() }
    var ownedUntil: Duration? { session.ownedUntil }
    var grown: [String: Int32] { session.grown }
    func appendedEnd(topic: Int, partition: Int32) -> NextOffset? {
        session.appendedEnd(topic: topic, partition: partition)
    }
    func close(by deadline: Deadline) -> Bool { session.close(by: deadline) }
}

/// Counts the records that a worker writes.
final class OutputCount: Sendable {
    private struct State {
        var counts: [Int] = []
        var keys: Set<[UInt8]> = []
    }

    private let keyedTopic: Int?
    private let state = Mutex(State())

    /// - Parameter keyedTopic: an output whose keys are counted, too; nil: no keys are
    ///   counted, because counting very many takes time.
    init(keyedTopic: Int? = nil) { self.keyedTopic = keyedTopic }

    func hooks(_ others: SessionHooks) -> SessionHooks {
        var hooks = others
        hooks.appended = { outputs in
            self.state.withLock { state in
                for (index, record) in outputs.records.enumerated() {
                    let topic = Int(record.topic)
                    while state.counts.count <= topic { state.counts.append(0) }
                    state.counts[topic] += 1
                    guard topic == self.keyedTopic else { continue }
                    outputs.withRecord(index) { key, value in
                        if value.baseAddress == nil {
                            state.keys.remove(Array(key))
                        } else {
                            state.keys.insert(Array(key))
                        }
                    }
                }
            }
        }
        return hooks
    }

    func count(of topic: Int) -> Int { state.withLock { topic < $0.counts.count ? $0.counts[topic] : 0 } }
    /// Number of keys that have a value.
    var keys: Int { state.withLock { $0.keys.count } }
}

// MARK: Meters

/// The cost of a stretch of work.
struct Spending: Sendable {
    var cpuMicroseconds: Double = 0
    var wallMicroseconds: Double = 0
    /// CPU time of the broker meanwhile; nil: it is not known.
    var brokerMicroseconds: Double?
    var commits: Double = 0
    /// Commits from the start of the process on.
    var allCommits: Double = 0
    /// Only if a part of the records was measured.
    var records: Double = 0
}

/// Measures from one moment to another, on any threads. CPU time is that of the whole process.
final class Meter: Sendable {
    private struct Start {
        let cpu = bench_cpu_microseconds()
        let wall = ContinuousClock.now
        let broker: Double?
        let commits: Int
        let records: Int
    }

    private struct State {
        var start: Start?
        var commits = 0
        var positions: [TopicPartition: NextOffset] = [:]
        var resumed: Set<TopicPartition> = []
        var spending: Spending?
    }

    private let broker: Int32?
    private let state = Mutex(State())
    let done = Latch()

    /// - Parameter broker: a process whose CPU time is measured, too.
    init(broker: Int32? = nil) { self.broker = broker }

    private var brokerMicroseconds: Double? { broker.flatMap { try? cpuSeconds($0) }.map { $0 * 1e6 } }

    /// The second call changes nothing.
    func start(at records: Int = 0) {
        state.withLock { state in
            if state.start != nil { return }
            state.start = Start(broker: brokerMicroseconds, commits: state.commits, records: records)
        }
    }

    func stop(at records: Int = 0) {
        state.withLock { state in
            guard state.spending == nil, let start = state.start else { return }
            let cpu = bench_cpu_microseconds() - start.cpu
            let taken = start.wall.duration(to: .now)
            var spending = Spending(
                cpuMicroseconds: Double(cpu), wallMicroseconds: taken.fractionalSeconds * 1e6,
                commits: Double(state.commits - start.commits), allCommits: Double(state.commits),
                records: Double(records - start.records))
            if let before = start.broker, let now = brokerMicroseconds { spending.brokerMicroseconds = now - before }
            state.spending = spending
        }
        done.open()
    }

    /// nil: the end was not reached in time.
    func spending(within limit: Duration) -> Spending? {
        done.wait(for: limit)
        return state.withLock { $0.spending }
    }

    /// From the first records to the commit of the last of `records`.
    func hooks(records: Int) -> SessionHooks {
        SessionHooks(
            polled: { event in if event == .records { self.start() } },
            committed: { positions in if self.count(positions) >= records { self.stop(at: records) } })
    }

    /// From a commit to another one: each is the first one with this many records.
    func hooks(from first: Int, to last: Int) -> SessionHooks {
        SessionHooks(committed: { positions in
            let total = self.count(positions)
            self.committed(total, from: first, to: last)
        })
    }

    /// The same for a loop that counts by itself.
    func hasCommitted(_ total: Int, from first: Int, to last: Int) {
        state.withLock { $0.commits += 1 }
        committed(total, from: first, to: last)
    }

    private func committed(_ total: Int, from first: Int, to last: Int) {
        if total >= first { start(at: total) }
        if total >= last { stop(at: total) }
    }

    /// - Returns: the number of records that are committed so far.
    private func count(_ positions: [TopicPartition: NextOffset]) -> Int {
        state.withLock { state in
            state.commits += 1
            state.positions.merge(positions) { $1 }
            return Int(state.positions.values.reduce(0) { $0 + $1.value })
        }
    }

    /// From the assignment until all partitions are restored.
    func hooks(restoring partitions: Int32) -> SessionHooks {
        SessionHooks(
            polled: { event in if case .assigned = event { self.start() } },
            resumed: { resumed in
                let count = self.state.withLock { state in
                    state.resumed.formUnion(resumed)
                    return state.resumed.count
                }
                if count == Int(partitions) { self.stop() }
            })
    }
}
