// From settings as text to clients of Kafka.

package import Configuration
package import Kafka
package import Log
package import Settings
package import Telemetry

extension ClientProperties {
    init(_ entries: [PassThroughEntry]) {
        self.init(
            entries.map { Property(kind: $0.scope.flatMap(ClientKind.init(rawValue:)), name: $0.name, value: $0.value) }
        )
    }

    /// What librdkafka or this build has against a property, without asking a broker.
    package static func complaints(_ entry: PassThroughEntry) -> [PropertyComplaint] {
        ClientProperties([entry]).faults().map { PropertyComplaint(reason: $0.reason, words: $0.description) }
    }

    /// The log of everything that is configured. The demo alone can have another one.
    package func makeLog() -> any RecordLog { KafkaLog(self) }
}

extension Configuration {
    /// The properties of every client.
    package var clientProperties: ClientProperties { ClientProperties(kafka) }

    /// The same; clients that are made with them report to these metrics.
    package func clientProperties(reportingTo metrics: Metrics) -> ClientProperties {
        var properties = clientProperties
        properties.watch = ClientMetrics(metrics).watch
        return properties
    }
}
