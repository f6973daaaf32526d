// The ticker: keeps the clock of every partition of `notifications` going while no notifications come.

public import Contract
public import Kafka
public import Platform
public import Service
import Synchronization
public import Telemetry

/// Appends a tick to each partition of `notifications`, of both environments, that has been quiet for `interval`.
///
/// The processes that run one share the partitions as members of a consumer group, so each partition has one that ticks. A
/// condition of health says what is wrong; nothing that is wrong outside the process ends it.
public final class Ticker: ServicePart {
    public struct Configuration: Sendable {
        public var prefix: TopicPrefix
        /// A topic with another count is refused: it is not the one that keys were spread over.
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

    public let name = "clock"
    private let parts: [ThreadPart]

    /// Adds the condition `clock` to `health`.
    public init(_ configuration: Configuration, health: Health, metrics: Metrics, logger: Logger) {
        let status = TickerStatus()
        health.condition(name) { status.reason }
        // Environments share nothing, so that a topic missing in one does not hold up the other.
        parts = Environment.allCases.map { environment in
            let names = Names(prefix: configuration.prefix, environment: environment)
            let instruments = TickerMetrics(metrics, environment)
            status.set("\(names.topic(.notifications)) has not been seen yet", for: environment)
            return ThreadPart("clock-\(environment.rawValue)") { stop in
                let keeper = TickerKeeper(
                    configuration, names: names, metrics: instruments, logger: logger,
                    setReason: { status.set($0, for: environment) })
                try keeper.run(until: stop)
            }
        }
    }

    public func start(failed: @escaping @Sendable (any Error) -> Void) throws {
        for part in parts { try part.start(failed: failed) }
    }

    public func stop(by deadline: Deadline) throws {
        var failure: (any Error)?
        for part in parts {
            do { try part.stop(by: deadline) } catch { failure = error }
        }
        if let failure { throw failure }
    }
}

/// Why ticks do not come, of each environment.
private final class TickerStatus: Sendable {
    private let reasons = Mutex<[Environment: String]>([:])

    func set(_ reason: String?, for environment: Environment) { reasons.withLock { $0[environment] = reason } }

    var reason: String? {
        let known = reasons.withLock { $0 }
        let all = Environment.allCases.compactMap { environment in
            known[environment].map { "\(environment.rawValue): \($0)" }
        }
        return all.isEmpty ? nil : all.joined(separator: "; ")
    }
}

/// What a ticker counts, of one environment.
struct TickerMetrics: Sendable {
    /// Why a member had to start anew.
    enum Cause: String, CaseIterable { case topics, timestamp, kafka }

    let ticks: Counter
    let partitions: Gauge
    let rebalances: Counter
    let lateness: Histogram
    private let faults: [Cause: Counter]

    init(_ metrics: Metrics, _ environment: Environment) {
        let name = environment.rawValue
        ticks = metrics.counter(
            "perennial_clock_ticks_total", help: "Ticks that Kafka has acknowledged.", labels: ["environment": name])
        partitions = metrics.gauge(
            "perennial_clock_partitions", help: "Partitions of notifications that this process ticks.",
            labels: ["environment": name])
        rebalances = metrics.counter(
            "perennial_clock_rebalances_total", help: "Times that partitions were given to this process anew.",
            labels: ["environment": name])
        lateness = metrics.histogram(
            "perennial_clock_lateness_seconds", help: "From the time a tick was due to its acknowledgement.",
            bounds: Histogram.latencySeconds, labels: ["environment": name])
        faults = Dictionary(
            uniqueKeysWithValues: Cause.allCases.map { cause in
                let counter = metrics.counter(
                    "perennial_clock_faults_total",
                    help:
                        "Times that this process stopped ticking and began anew: topics are not as they should be, the "
                        + "broker refused the time of a tick, or Kafka could not be worked with.",
                    labels: ["environment": name, "cause": cause.rawValue])
                return (cause, counter)
            })
    }

    func count(_ cause: Cause) { faults[cause]?.add() }
}
