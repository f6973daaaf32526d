// A Kafka whose CPU time is measured together with that of its clients.

import KafkaTestKit
import Platform

/// A broker of the row's own, with Java as the official scripts start it: the one that the other rows share starts quickly and stays
/// slow. If there are only named servers, the row uses these, and knows nothing of their CPU time.
final class MeasuredBroker: Sendable {
    let bootstrap: String
    private let cluster: KafkaCluster?

    static func start() async throws -> MeasuredBroker {
        guard BrokerSource.current.canStartBrokers else { return MeasuredBroker(try await requireKafka(), nil) }
        var options = KafkaOptions()
        options.java = .usual
        // The topics of a run are gone before the next run.
        options.properties = ["log.segment.delete.delay.ms": "1000"]
        let cluster = try await KafkaCluster.start(BrokerSource.current.requireDistribution(), options)
        return MeasuredBroker(cluster.bootstrapServers, cluster)
    }

    private init(_ bootstrap: String, _ cluster: KafkaCluster?) {
        self.bootstrap = bootstrap
        self.cluster = cluster
    }

    /// nil: it is not a process of this run.
    var processID: Int32? { cluster?.broker.current?.processID }

    func close() async { await cluster?.close() }
}
