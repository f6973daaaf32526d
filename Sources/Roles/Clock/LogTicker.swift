// A ticker for any log, for a process that has all partitions to itself and its own clock.

public import Contract
public import Log
public import Platform
import Records
public import Service
public import Telemetry

/// Appends a tick to each partition of `notifications`, in the given environments, that has been silent for `interval`.
///
/// It ticks in sandbox as in production, without a limit: the log of a process with its own clock exists only for a
/// while.
///
/// It does not coordinate with other processes: two of them would both tick. Use `Ticker` there, whose members divide
/// the partitions by a consumer group of Kafka.
public final class LogTicker: ServicePart {
    public struct Configuration: Sendable {
        public var prefix: TopicPrefix
        public var partitions: Int32
        public var environments = Environment.allCases
        /// Silence after which a tick is due, by the given clock.
        public var interval: Duration
        /// Time between two looks at the log, by the real clock.
        public var lookInterval: Duration = .milliseconds(50)
        /// The program and its version, for the header `app` of each tick.
        public var app: String

        public init(prefix: TopicPrefix, partitions: Int32, interval: Duration, app: String) {
            self.prefix = prefix
            self.partitions = partitions
            self.interval = interval
            self.app = app
        }
    }

    public let name = "clock"
    private let part: ThreadPart

    /// - Parameter now: milliseconds since 1970; never runs backwards.
    public init(
        _ configuration: Configuration, log: any RecordLog, now: @escaping @Sendable () -> Int64, metrics: Metrics,
        logger: Logger
    ) {
        let instruments = configuration.environments.map { TickerMetrics(metrics, $0) }
        part = ThreadPart(name) { stop in
            var members: [Member] = []
            defer { for member in members { member.close() } }
            for (environment, metrics) in zip(configuration.environments, instruments) {
                members.append(try Member(configuration, environment, log: log, metrics: metrics))
            }
            while !stop.wait(for: configuration.lookInterval) {
                for member in members {
                    do throws(LogFault) {
                        try member.look(now: now)
                    } catch {
                        guard error.remedy == .retrySameCall else { throw error }
                        logger.debug("retrying a request", ["part": "clock", "reason": .string(error.words)])
                    }
                }
            }
        }
    }

    public func start(failed: @escaping @Sendable (any Error) -> Void) throws { try part.start(failed: failed) }
    public func stop(by deadline: Deadline) throws { try part.stop(by: deadline) }
}

/// The partitions of one environment. For use by one thread.
private final class Member {
    private let topic: String
    private let app: String
    private let reader: any LogReader
    private let writer: any LogWriter
    private let metrics: TickerMetrics
    private let partitions: [TopicPartition]
    private var schedule: TickSchedule
    private let batch = RecordBatch()
    private let ticks = OutputBatch()

    private static let answerLimit: Duration = .seconds(5)
    private static let closeLimit: Duration = .seconds(2)

    init(
        _ configuration: LogTicker.Configuration, _ environment: Environment, log: any RecordLog,
        metrics: TickerMetrics
    ) throws(LogFault) {
        let names = Names(prefix: configuration.prefix, environment: environment)
        topic = names.topic(.notifications)
        app = configuration.app
        self.metrics = metrics
        let clientID = "perennial-clock-\(environment.rawValue)"
        reader = try log.openReader(ReaderOptions(name: clientID, group: names.clockGroup, topics: [topic]))
        writer = try log.openWriter(WriterOptions(name: clientID, topics: [topic]))
        partitions = (0..<configuration.partitions).map { [topic] in TopicPartition(topic, $0) }
        schedule = TickSchedule(interval: max(1, configuration.interval.wholeMilliseconds))
        schedule.take(over: partitions.map(\.partition))
        metrics.partitions.set(Double(partitions.count))
        metrics.isWorking.set(1)
    }

    func close() {
        metrics.isWorking.set(0)
        metrics.partitions.set(0)
        reader.close(by: Deadline(after: Self.closeLimit))
        writer.close(by: Deadline(after: Self.closeLimit))
    }

    func look(now: () -> Int64) throws(LogFault) {
        let ends = try reader.ends(.all, of: partitions, by: Deadline(after: Self.answerLimit))
        // Read after the ends: the records before them have timestamps that are not later.
        let time = now()
        for (partition, end) in ends { schedule.saw(end: end.value, of: partition.partition, at: time) }
        let unread = schedule.unread(at: time)
        if !unread.isEmpty { try read(unread) }
        let due = schedule.due(at: time)
        if !due.isEmpty { try tick(due.map(\.partition), time) }
    }

    /// Reads the timestamps of the records before these ends. The next look requests those that do not arrive in time.
    private func read(_ ends: [Int32: Int64]) throws(LogFault) {
        var starts: [TopicPartition: NextOffset] = [:]
        for (partition, end) in ends { starts[TopicPartition(topic, partition)] = NextOffset(end - 1) }
        do throws(LogFault) {
            try reader.read(from: starts)
            let deadline = Deadline(after: Self.answerLimit)
            var left = Set(ends.keys)
            while !left.isEmpty, !deadline.hasPassed {
                let batch = batch
                try reader.poll(into: batch, limit: 100, wait: .milliseconds(20))
                for index in 0..<batch.count {
                    let number = batch[index].partition
                    guard left.remove(number) != nil else { continue }
                    let record = TickSchedule.Record(
                        timestamp: batch[index].timestamp, isTick: batch[index].key == nil)
                    schedule.read(record, before: ends[number, default: 0], of: number)
                }
            }
            batch.removeAll()
            // Fetches nothing more until the next look.
            try reader.read(from: [:])
        } catch {
            // Retention has deleted the last record, so nothing is known about it, and a tick is due at once.
            guard error.cause == .positionGone else { throw error }
            for (partition, end) in ends { schedule.read(nil, before: end, of: partition) }
        }
    }

    private func tick(_ due: [Int32], _ time: Int64) throws(LogFault) {
        ticks.removeAll()
        let value = TickRecord.value(time)
        for partition in due {
            ticks.append(
                topic: 0, partition: partition, timestamp: time, key: nil, value: value,
                headers: TickRecord.headers(partition: partition, time, app: app))
        }
        let offsets = try writer.append(ticks, by: Deadline(after: Self.answerLimit))
        for (partition, offset) in zip(due, offsets) {
            schedule.ticked(partition, at: offset, timestamp: time)
            metrics.ticks.add()
        }
    }
}
