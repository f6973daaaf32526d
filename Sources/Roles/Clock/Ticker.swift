// The ticker: moves the clock of every partition of `notifications` while no notifications arrive.

public import Contract
public import Kafka
public import Platform
public import Service
import Synchronization
public import Telemetry

/// Appends a tick to each partition of `notifications`, in both environments, that was silent for `interval`.
///
/// The processes with a ticker share the partitions as members of a consumer group, so exactly one of them ticks each
/// partition. The log, the gauge `perennial_clock_working` and a health condition say what is wrong. No fault outside
/// the process ends it.
public final class Ticker: ServicePart {
    public struct Configuration: Sendable {
        public var prefix: TopicPrefix
        /// A topic with another number of partitions is refused: keys were not distributed over it.
        public var partitions: Int
        /// Silence after which a tick is due.
        public var interval: Duration
        public var kafka: ClientProperties
        /// The program and its version, for the header `app` of each tick.
        public var app: String

        public init(prefix: TopicPrefix, partitions: Int, interval: Duration, kafka: ClientProperties, app: String) {
            self.prefix = prefix
            self.partitions = partitions
            self.interval = interval
            self.kafka = kafka
            self.app = app
        }
    }

    /// Which faults make the process unready.
    public enum Readiness: Sendable {
        /// For a process whose task is to tick.
        case ticking
        /// For a process with another task: only if brokers refuse the time of this host, with which its own records
        /// would be wrong or refused. If others must write the ticks, or ticks are late, the process can still serve
        /// requests.
        case timeOfHost
    }

    /// How long partitions get ticks after their last notification, in milliseconds; nil: they get ticks forever.
    /// Subscriptions in sandbox renew at least every hour, those of TestFlight once a day: after two days none of them has
    /// a date in the future, even if its last notification was lost.
    static func life(in environment: Environment) -> Int64? { environment == .sandbox ? 2 * 86_400_000 : nil }

    public let name = "clock"
    private let parts: [ThreadPart]

    /// Adds the condition `clock` to `health`.
    public init(
        _ configuration: Configuration, readiness: Readiness, health: Health, metrics: Metrics, logger: Logger
    ) {
        let status = TickerStatus()
        health.condition(name) { status.reason(for: readiness) }
        // Environments share nothing, so that a missing topic in one does not block the other.
        parts = Environment.allCases.map { environment in
            let names = Names(prefix: configuration.prefix, environment: environment)
            let instruments = TickerMetrics(metrics, environment)
            status.set(.init("\(names.topic(.notifications)) has not been found yet"), for: environment)
            return ThreadPart("clock-\(environment.rawValue)", isAlone: true) { stop in
                let keeper = TickerKeeper(
                    configuration, names: names, metrics: instruments, logger: logger,
                    setTrouble: { trouble in
                        status.set(trouble, for: environment)
                        instruments.isWorking.set(trouble == nil ? 1 : 0)
                    })
                try keeper.run(until: stop)
            }
        }
    }

    public func start(failed: @escaping @Sendable (any Error) -> Void) throws {
        for part in parts { try part.start(failed: failed) }
    }

    /// Without a broker, a member needs seconds to end: both end at the same time, and beside the rest of the process.
    public func stopIsNear() {
        for part in parts { part.stopIsNear() }
    }

    public func stop(by deadline: Deadline) throws {
        stopIsNear()
        var failure: (any Error)?
        for part in parts {
            do { try part.stop(by: deadline) } catch { failure = error }
        }
        if let failure { throw failure }
    }
}

/// Why no ticks are written.
struct TickerTrouble: Sendable, Equatable {
    let words: String
    /// Brokers refused the time of this host, and have accepted no tick since.
    let isTimeRefused: Bool

    init(_ words: String, isTimeRefused: Bool = false) {
        self.words = words
        self.isTimeRefused = isTimeRefused
    }
}

/// The trouble of each environment.
final class TickerStatus: Sendable {
    private let troubles = Mutex<[Environment: TickerTrouble]>([:])

    func set(_ trouble: TickerTrouble?, for environment: Environment) {
        troubles.withLock { $0[environment] = trouble }
    }

    func reason(for readiness: Ticker.Readiness) -> String? {
        let known = troubles.withLock { $0 }.filter { readiness == .ticking || $0.value.isTimeRefused }
        let all = Environment.allCases.compactMap { environment in
            known[environment].map { "\(environment.rawValue): \($0.words)" }
        }
        return all.isEmpty ? nil : all.joined(separator: "; ")
    }
}

/// The metrics of a ticker for one environment.
struct TickerMetrics: Sendable {
    /// Why a member had to be replaced.
    enum Cause: String, CaseIterable { case topics, timestamp, kafka }

    let ticks: Counter
    let isWorking: Gauge
    let partitions: Gauge
    let rebalances: Counter
    let lateness: Histogram
    private let faults: [Cause: Counter]

    init(_ metrics: Metrics, _ environment: Environment) {
        let name = environment.rawValue
        ticks = metrics.counter(
            "perennial_clock_ticks_total", help: "Ticks that Kafka has acknowledged.", labels: ["environment": name])
        isWorking = metrics.gauge(
            "perennial_clock_working",
            help: "1 while this process ticks or is ready to tick; 0 while it cannot, for a reason that is logged.",
            labels: ["environment": name])
        isWorking.set(0)
        partitions = metrics.gauge(
            "perennial_clock_partitions", help: "Partitions of notifications to which this process writes ticks.",
            labels: ["environment": name])
        rebalances = metrics.counter(
            "perennial_clock_rebalances_total", help: "Times that partitions were assigned to this process.",
            labels: ["environment": name])
        lateness = metrics.histogram(
            "perennial_clock_lateness_seconds",
            help: "Seconds from the time at which a tick was due to its acknowledgement.",
            bounds: Histogram.latencySeconds, labels: ["environment": name])
        faults = Dictionary(
            uniqueKeysWithValues: Cause.allCases.map { cause in
                let counter = metrics.counter(
                    "perennial_clock_faults_total",
                    help:
                        "Times that this process stopped ticking and started again: the topics were wrong, the broker "
                        + "refused the timestamp of a tick, or a request to Kafka failed.",
                    labels: ["environment": name, "cause": cause.rawValue])
                return (cause, counter)
            })
    }

    func count(_ cause: Cause) { faults[cause]?.add() }
}
