// A sender over a log in memory. Time stands still until the test moves it.

import Contract
import JSON
import Log
import MemoryLog
import Notices
import Platform
import Runtime
import Synchronization
import Telemetry

@testable import Consumption
@testable import ConsumptionSender

/// Answers as the test says, and records its requests.
final class FakeCarrier: Carrier {
    struct Call: Sendable {
        let dispatch: Dispatch
        let at: Int64
    }

    typealias Answering = @Sendable (Dispatch) -> Delivery?

    private struct State {
        var answering: Answering = { _ in Delivery(.answered(status: 202)) }
        var calls: [Call] = []
        var held: [(dispatch: Dispatch, completion: @Sendable (Delivery) -> Void)] = []
        var isSlow = false
        var unanswered: [@Sendable () -> Void] = []
        var renewed: [String] = []
    }

    private let state = Mutex(State())
    private let now: @Sendable () -> Int64

    init(now: @escaping @Sendable () -> Int64) { self.now = now }

    /// nil: the request waits for its connection until `connect` or `answer`.
    func answer(_ answering: @escaping Answering) { state.withLock { $0.answering = answering } }
    func answer(status: Int) { answer { _ in Delivery(.answered(status: status)) } }
    func hold() { answer { _ in nil } }
    /// Requests that are sent get their answer from `finish`.
    func beSlow() { state.withLock { $0.isSlow = true } }

    /// The requests that were sent.
    var calls: [Call] { state.withLock { $0.calls } }
    var bodies: [String] { calls.map { String(decoding: $0.dispatch.body, as: UTF8.self) } }
    var renewed: [String] { state.withLock { $0.renewed } }
    var heldCount: Int { state.withLock { $0.held.count } }

    func send(_ dispatch: Dispatch, completion: @escaping @Sendable (Delivery) -> Void) {
        guard let delivery = state.withLock({ $0.answering })(dispatch) else {
            return state.withLock { $0.held.append((dispatch, completion)) }
        }
        go(dispatch, delivery, completion)
    }

    /// The held requests get their connection, and an answer.
    func connect(_ delivery: Delivery = Delivery(.answered(status: 202))) {
        let held = state.withLock { state in
            let held = state.held
            state.held = []
            return held
        }
        for (dispatch, completion) in held { go(dispatch, delivery, completion) }
    }

    private func go(
        _ dispatch: Dispatch, _ delivery: Delivery, _ completion: @escaping @Sendable (Delivery) -> Void
    ) {
        guard dispatch.mayBegin() else { return completion(Delivery(.withdrawn)) }
        let at = now()
        let isSlow = state.withLock { state in
            state.calls.append(Call(dispatch: dispatch, at: at))
            if state.isSlow { state.unanswered.append { completion(delivery) } }
            return state.isSlow
        }
        if !isSlow { completion(delivery) }
    }

    func finish() {
        let unanswered = state.withLock { state in
            let unanswered = state.unanswered
            state.unanswered = []
            state.isSlow = false
            return unanswered
        }
        for answer in unanswered { answer() }
    }

    func renewToken(of bundleId: String) { state.withLock { $0.renewed.append(bundleId) } }
}

/// A log that refuses appends of non-transactional writers for as long as the test says.
final class StubbornLog: RecordLog {
    private let log: any RecordLog
    private let refusal = Mutex<LogFault?>(nil)

    init(_ log: any RecordLog) { self.log = log }

    func refuse(_ fault: LogFault?) { refusal.withLock { $0 = fault } }

    func topics(_ names: [String], by deadline: Deadline) throws(LogFault) -> [String: TopicShape] {
        try log.topics(names, by: deadline)
    }
    func create(_ topics: [NewTopic], by deadline: Deadline) throws(LogFault) { try log.create(topics, by: deadline) }
    func openSession(_ options: SessionOptions, by deadline: Deadline) throws(LogFault) -> any LogSession {
        try log.openSession(options, by: deadline)
    }
    func settle(_ identity: String, by deadline: Deadline) throws(LogFault) { try log.settle(identity, by: deadline) }
    func openReader(_ options: ReaderOptions) throws(LogFault) -> any LogReader { try log.openReader(options) }
    func openWriter(_ options: WriterOptions) throws(LogFault) -> any LogWriter {
        StubbornWriter(try log.openWriter(options)) { self.refusal.withLock { $0 } }
    }

    private final class StubbornWriter: LogWriter {
        private let writer: any LogWriter
        private let refusal: () -> LogFault?

        init(_ writer: any LogWriter, _ refusal: @escaping () -> LogFault?) {
            self.writer = writer
            self.refusal = refusal
        }

        func append(_ outputs: OutputBatch, by deadline: Deadline) throws(LogFault) -> [Int64] {
            if let refusal = refusal() { throw refusal }
            return try writer.append(outputs, by: deadline)
        }
        func close(by deadline: Deadline) -> Bool { writer.close(by: deadline) }
    }
}

/// Readers get no records for this many polls.
final class Stalling: LogFaults {
    private let polls = Mutex(0)

    func stall(polls count: Int) { polls.withLock { $0 = count } }

    func fault(at step: LogStep, of identity: String) -> InjectedFault? {
        guard step == .restore else { return nil }
        return polls.withLock { polls in
            guard polls > 0 else { return nil }
            defer { polls = 0 }
            return InjectedFault(.stall, polls)
        }
    }
}

/// Lines of a log, for tests that count them.
final class Lines: Sendable {
    private let kept = Mutex<[String]>([])

    var logger: Logger {
        Logger(level: .info, format: .text) { line in
            self.kept.withLock { $0.append(String(decoding: line, as: UTF8.self)) }
        }
    }

    func count(_ words: String) -> Int { kept.withLock { $0.count { $0.contains(words) } } }
}

/// The worker's positions, which the test sets.
final class PlayedWorker: Sendable {
    private let places = Mutex<[Int32: [Int64]]>([:])

    /// Positions in its inputs: at the end of everything, unless a test says otherwise.
    func stand(at places: [Int64], in partition: Int32 = 0) { self.places.withLock { $0[partition] = places } }
    func beAtTheEnd() { places.withLock { $0 = [:] } }
    var positions: @Sendable (Int32) -> [NextOffset]? {
        { partition in
            self.places.withLock { $0[partition] ?? [.max, .max, .max] }.map { NextOffset($0) }
        }
    }
}

/// Drives one sender. The test plays the worker, unless it passes one.
final class SenderBench {
    static let start: Int64 = 1_700_000_000_000
    static let app = "com.example.app"
    static let names = Names(prefix: TopicPrefix("t")!, environment: .production)

    let clock: MemoryLog.Clock
    let log: any RecordLog
    let partitions: Int32
    let carrier: FakeCarrier
    let metrics = Metrics()
    let lines = Lines()
    let ownership: Ownership
    let worker = PlayedWorker()
    let troubles: SenderTroubles
    let sender: Sender
    private let writer: any LogWriter
    private static let topics: [TopicID] = [.consumption, .notifications, .usage, .consumptionAttempts]

    static func memoryLog(
        _ clock: MemoryLog.Clock, partitions: Int32, faults: (any LogFaults)? = nil
    ) throws -> MemoryLog {
        let log = MemoryLog(clock: clock, faults: faults)
        try log.create(
            topics.map { NewTopic(names.topic($0), partitions: partitions) }, by: Deadline(after: .seconds(1)))
        return log
    }

    /// Owns every partition of an empty log for ever.
    convenience init(partitions: Int32 = 1, rate: Int = 1000, jitter: Double = 1) throws {
        let clock = MemoryLog.Clock.manual(startingAt: Self.start)
        try self.init(
            clock, try Self.memoryLog(clock, partitions: partitions), partitions: partitions, rate: rate,
            jitter: jitter)
        own(Array(0..<partitions))
    }

    /// - Parameter view: the view of a worker; nil: the test plays the worker.
    init(
        _ clock: MemoryLog.Clock, _ log: any RecordLog, partitions: Int32, rate: Int, jitter: Double = 1,
        view: WorkerView? = nil, wall: (@Sendable () -> Int64)? = nil
    ) throws {
        self.clock = clock
        self.log = log
        self.partitions = partitions
        carrier = FakeCarrier { clock.now }
        ownership = view?.ownership ?? Ownership(threads: 1, bootClock: { .milliseconds(clock.now) })
        writer = try log.openWriter(WriterOptions(name: "feeder", topics: Self.topics.map(Self.names.topic)))
        let counts = SenderMetrics(metrics)
        troubles = SenderTroubles(counts.troubles, logger: lines.logger)
        sender = Sender(
            SenderOptions(Self.names, partitions: partitions, rate: rate, app: "perennial/test"),
            worker: view ?? WorkerView(ownership: ownership, positions: worker.positions), carrier: carrier, log: log,
            time: SenderTime(
                wall: wall ?? { clock.now }, elapsed: { .milliseconds(clock.now - Self.start) }, jitter: { jitter }),
            troubles: troubles, metrics: counts, logger: lines.logger)
    }

    // MARK: Time

    func own(_ partitions: [Int32], for duration: Duration = .seconds(1_000_000)) {
        ownership.set(partitions, until: .milliseconds(clock.now) + duration, thread: 0)
    }

    func step() { _ = sender.step() }

    /// A step every 10 ms, for this long.
    func run(for duration: Duration = .milliseconds(300), until done: () -> Bool = { false }) {
        let end = clock.now + duration.wholeMilliseconds
        while clock.now < end, !done() {
            step()
            clock.advance(by: .milliseconds(10))
        }
    }

    func pass(_ duration: Duration) { clock.advance(by: duration) }

    // MARK: The log

    /// A record of `consumption`.
    func tell(
        _ kind: ConsumptionRecord.Kind, _ id: String, partition: Int32 = 0, bundleId: String = SenderBench.app,
        body: String? = nil, timestamp: Int64? = nil,
        _ change: (inout ConsumptionRecord) -> Void = { _ in }
    ) throws {
        var record = ConsumptionRecord(
            kind, id: Text(id), originalTransactionId: Text("o-\(id)"), transactionId: Text("t-\(id)"), at: clock.now,
            deadline: clock.now + ConsumptionRules.timeToAnswer, reason: nil)
        if kind == .decided {
            record.body = Array((body ?? #"{"of":"\#(id)"}"#).utf8)
            record.facts = Array(#"{"bundleId":"\#(bundleId)"}"#.utf8)
        }
        change(&record)
        try feed(
            0, partition, key: "o-\(id)", record.value, type: "consumption", schema: "consumption/1",
            timestamp: timestamp)
    }

    func decide(_ id: String, in time: Duration = .seconds(43_200), partition: Int32 = 0, app: String = SenderBench.app)
        throws
    {
        try tell(.decided, id, partition: partition, bundleId: app) {
            $0.deadline = self.clock.now + time.wholeMilliseconds
        }
    }

    func feed(
        _ topic: Int, _ partition: Int32, key: String, _ value: [UInt8], type: String, schema: String,
        timestamp: Int64? = nil
    ) throws {
        let batch = OutputBatch()
        batch.append(
            topic: topic, partition: partition, timestamp: timestamp ?? clock.now, key: Array(key.utf8), value: value,
            headers: [RecordHeader("schema", schema)])
        _ = try writer.append(batch, by: Deadline(after: .seconds(1)))
    }

    /// A record of an input that the worker has not read, such as `.notifications`.
    func input(_ topic: TopicID, partition: Int32 = 0) throws {
        try feed(
            Self.topics.firstIndex(of: topic)!, partition, key: "k", Array("{}".utf8), type: "usage", schema: "usage/1")
    }

    /// Rows of attempts, in the order of the log.
    func rows(partition: Int32 = 0) throws -> [Attempt] {
        var found: [Attempt] = []
        try eachRow(of: partition) { record in
            var json = JSONDocument()
            guard let value = record.value else { return }
            try json.read(value)
            if let row = Attempt(json) { found.append(row) }
        }
        return found
    }

    /// Rows that name their type in a header of its own.
    func countOfTypedRows(partition: Int32 = 0) throws -> Int {
        let kind = RecordKind("consumption-attempt", version: 1)
        var count = 0
        try eachRow(of: partition) { record in
            if let type = record.header(HeaderName.type), kind.isType(type) { count += 1 }
        }
        return count
    }

    private func eachRow(of partition: Int32, _ body: (borrowing RecordView) throws -> Void) throws {
        let topic = Self.names.topic(.consumptionAttempts)
        let reader = try log.openReader(ReaderOptions(name: "onlooker", group: "onlooker", topics: [topic]))
        let deadline = Deadline(after: .seconds(5))
        defer { reader.close(by: deadline) }
        let place = TopicPartition(topic, partition)
        let end = try reader.ends(.committed, of: [place], by: deadline)[place]!
        try reader.read(from: try reader.beginnings(of: [place], by: deadline))
        let batch = RecordBatch()
        while (reader.position(of: place) ?? NextOffset(0)) < end {
            try reader.poll(into: batch, limit: 1000, wait: .zero)
            for index in 0..<batch.count { try body(batch[index]) }
        }
    }

    /// Writes what the worker would write for a row, so that the sender learns of it.
    func hear(_ row: Attempt) throws {
        let kind: ConsumptionRecord.Kind =
            switch row.verdict {
            case .sent: .sent
            case .failed: .failed
            case .retry, .unauthorized: .retrying
            }
        try tell(kind, row.id.description) {
            $0.attempt = row.number
            $0.retryAt = row.retryAt
            $0.httpStatus = row.httpStatus
        }
    }

    /// The value of the series whose name and labels these are.
    func metric(_ series: String) -> String? {
        let lines = String(decoding: metrics.exposition(), as: UTF8.self).split(separator: "\n")
        return lines.first { $0.hasPrefix(series + " ") }.map { String($0.dropFirst(series.count + 1)) }
    }

    var ids: [String] { carrier.calls.map { String($0.dispatch.transactionId.dropFirst(2)) } }
    /// Since the start, in milliseconds.
    var times: [Int64] { carrier.calls.map { $0.at - Self.start } }
}
