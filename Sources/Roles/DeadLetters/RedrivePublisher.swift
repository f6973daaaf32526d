// Writes what a redrive has found to hold.

import Configuration
import Contract
import Ingest
import Kafka
import Log
import Platform

/// Sends records as ingest does, and remembers the first that Kafka did not take. One thread.
final class RedrivePublisher {
    /// Records on their way: a few batches, and 20 MB at most of ordinary notifications.
    private static let window = 1000
    private static let finishLimit: Duration = .seconds(60)

    private final class Reports {
        var failure: KafkaCode?
        var written = 0
    }

    private let producer: Producer
    private let reports: Reports
    private let partitions: Int32
    private let prefix: TopicPrefix
    private var topics: [String: ProducerTopic] = [:]
    private var trouble: DeadLettersFault?

    init(_ configuration: Configuration) throws(DeadLettersFault) {
        let reports = Reports()
        self.reports = reports
        partitions = Int32(configuration.topicPlan.partitions)
        prefix = configuration.topicPlan.prefix
        do throws(PropertyFault) {
            var options = Producer.Configuration(
                clientID: "perennial-dead-letters", properties: configuration.kafka)
            options.deliveryTimeout = Self.finishLimit / 2
            producer = try Producer(options) { report in
                if let failure = report.failure {
                    reports.failure = reports.failure ?? failure
                } else {
                    reports.written += 1
                }
            }
        } catch {
            throw DeadLettersFault(.wrongUsage, error.description)
        }
        do {
            try openTopics(configuration)
        } catch {
            close()
            throw error
        }
    }

    /// All that may be written to have to be there, with the partitions that keys are spread over.
    private func openTopics(_ configuration: Configuration) throws(DeadLettersFault) {
        let ids: [TopicID] =
            configuration.verification.archivesSignedPayloads ? [.notifications, .signed] : [.notifications]
        var names: [String] = []
        do throws(KafkaFault) {
            for environment in Contract.Environment.allCases {
                for id in ids {
                    let name = Names(prefix: prefix, environment: environment).topic(id)
                    topics[name] = try producer.topic(name)
                    names.append(name)
                }
            }
            let counts = try producer.partitionCounts(by: Deadline(after: .seconds(10)))
            for (name, count) in zip(names, counts) where count != partitions {
                trouble = DeadLettersFault(
                    .wrongUsage, "\(name) has \(count) partitions, and partitions is \(partitions): correct the setting"
                )
            }
        } catch {
            throw DeadLettersFault(error)
        }
        if let trouble { throw trouble }
    }

    /// Waits when too much is on its way.
    func publish(_ records: [OutgoingRecord]) {
        for record in records {
            let name = Names(prefix: prefix, environment: record.environment).topic(record.topic)
            guard let topic = topics[name] else { preconditionFailure("a redrive does not write to \(name)") }
            let deadline = Deadline(after: Self.finishLimit)
            while producer.outstanding >= Self.window, !deadline.hasPassed { producer.poll(.milliseconds(20)) }
            do throws(KafkaFault) {
                try producer.send(
                    to: topic, partition: Partitioner.partition(of: record.key, count: partitions),
                    key: record.key.span, value: record.value.span, headers: record.headers,
                    timestamp: record.timestamp)
            } catch {
                trouble = trouble ?? DeadLettersFault(error)
            }
            producer.poll()
        }
    }

    /// Why it is no use to go on.
    var fault: DeadLettersFault? {
        if let trouble { return trouble }
        guard let failure = reports.failure ?? producer.fatalFault?.code else { return nil }
        return DeadLettersFault(
            .gaveUp,
            "Kafka did not take everything: \(failure.explanation) (\(failure.name)). \(reports.written) records are written; "
                + "running it again is safe")
    }

    /// Returns when Kafka has acknowledged everything.
    func finish() throws(DeadLettersFault) {
        do throws(KafkaFault) {
            try producer.flush(by: Deadline(after: Self.finishLimit))
        } catch {
            throw fault ?? DeadLettersFault(error)
        }
        if let fault { throw fault }
    }

    func close() { producer.close(by: Deadline(after: .seconds(5))) }
}
