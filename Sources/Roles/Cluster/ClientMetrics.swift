// What clients of Kafka say of themselves, as metrics.

import Configuration
import Kafka
import Synchronization
import Telemetry

/// Give `watch` to the properties that clients are made with.
final class ClientMetrics: Sendable {
    private struct Reading {
        let client: String
        let connected: Int
        let queued: Int64
        let at: Duration
    }

    private struct State {
        /// By handle: a client of an id may be replaced by another one.
        var readings: [String: Reading] = [:]
        var known: Set<String> = []
    }

    /// A client that has said nothing for so long is gone.
    private static let silence: Duration = .seconds(60)

    private let metrics: Metrics
    private let elapsed: @Sendable () -> Duration
    private let state = Mutex(State())

    init(_ metrics: Metrics, elapsed: @escaping @Sendable () -> Duration) {
        self.metrics = metrics
        self.elapsed = elapsed
    }

    convenience init(_ metrics: Metrics) {
        let start = ContinuousClock.now
        self.init(metrics, elapsed: { start.duration(to: .now) })
    }

    var watch: @Sendable (String, ClientEvent?) -> Void { { client, event in self.hear(client, event) } }

    private func hear(_ client: String, _ event: ClientEvent?) {
        register(client)
        switch event {
        case .error?: errors(client).add()
        case .statistics(let json)?:
            guard let statistics = try? Statistics(json: json) else { return }
            let reading = Reading(
                client: client, connected: statistics.connectedBrokers, queued: statistics.queuedRecords,
                at: elapsed())
            state.withLock { $0.readings[statistics.client] = reading }
        case .log, .producerReplaced, .advice, nil: break
        }
    }

    /// When it is made: an error that comes first is to be seen as one more than none.
    private func register(_ client: String) {
        guard state.withLock({ $0.known.insert(client).inserted }) else { return }
        _ = errors(client)
        metrics.gauge(
            "perennial_kafka_brokers_connected",
            help: "Brokers of the cluster that the client is connected to; it connects to those that it needs.",
            labels: ["client": client]
        ) { Double(self.sum(client) { Int64($0.connected) }) }
        metrics.gauge(
            "perennial_kafka_queued_records", help: "Records that wait in the client to be written.",
            labels: ["client": client]
        ) { Double(self.sum(client, \.queued)) }
    }

    private func errors(_ client: String) -> Counter {
        metrics.counter(
            "perennial_kafka_errors_total",
            help: "Troubles that the client met and deals with itself, such as lost connections.",
            labels: ["client": client])
    }

    private func sum(_ client: String, _ value: (Reading) -> Int64) -> Int64 {
        let now = elapsed()
        return state.withLock { state in
            state.readings = state.readings.filter { now - $0.value.at <= Self.silence }
            return state.readings.values.filter { $0.client == client }.reduce(0) { $0 + value($1) }
        }
    }
}

extension Configuration {
    /// The same, with metrics of every client that is made with it.
    func watched(by metrics: Metrics) -> Configuration {
        var copy = self
        copy.kafka.watch = ClientMetrics(metrics).watch
        return copy
    }
}
