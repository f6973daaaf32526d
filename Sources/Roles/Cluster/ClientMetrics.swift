// Metrics of the Kafka clients of a process.

import Kafka
import Synchronization
import Telemetry

/// Set `watch` in the properties of the clients.
final class ClientMetrics: Sendable {
    private struct Reading {
        let client: String
        let connected: Int
        let queued: Int64
        let at: Duration
    }

    private struct State {
        /// By handle: a client may be replaced by another one with the same id.
        var readings: [String: Reading] = [:]
        var known: Set<String> = []
    }

    /// A client that has sent no statistics for this long is gone.
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

    /// Called when a client is made, so that `increase()` sees its first error.
    private func register(_ client: String) {
        guard state.withLock({ $0.known.insert(client).inserted }) else { return }
        _ = errors(client)
        metrics.gauge(
            "perennial_kafka_brokers_connected",
            help: "Brokers that the client is connected to. A client connects only to the brokers that it needs.",
            labels: ["client": client]
        ) { Double(self.sum(client) { Int64($0.connected) }) }
        metrics.gauge(
            "perennial_kafka_queued_records", help: "Records in the client that wait to be sent to Kafka.",
            labels: ["client": client]
        ) { Double(self.sum(client, \.queued)) }
    }

    private func errors(_ client: String) -> Counter {
        metrics.counter(
            "perennial_kafka_errors_total",
            help: "Errors that the client met and handles itself, such as lost connections.",
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
