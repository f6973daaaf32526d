// Writes records for a tool, outside of transactions.

import Configuration
import Contract
import Kafka
import Log
import Platform

/// One record with its place.
struct ToolRecord: Equatable {
    var topic: String
    var partition: Int32
    var key: [UInt8]?
    var value: [UInt8]?
    var headers: [RecordHeader]
    /// Milliseconds since 1970.
    var timestamp: Int64
}

/// Sends records as ingest does, and remembers the first that Kafka did not take. One thread.
final class ToolPublisher {
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
    private var topics: [String: ProducerTopic] = [:]
    private var trouble: ToolFault?

    /// - Parameters:
    ///   - tool: the command that writes.
    ///   - names: of every topic that may be written to.
    init(_ configuration: Configuration, as tool: CommandName, topics names: [String]) throws(ToolFault) {
        let reports = Reports()
        self.reports = reports
        partitions = Int32(configuration.topicPlan.partitions)
        do throws(PropertyFault) {
            var options = Producer.Configuration(
                clientID: "perennial-\(tool.rawValue)", properties: configuration.kafka)
            options.deliveryTimeout = Self.finishLimit / 2
            producer = try Producer(options) { report in
                if let failure = report.failure {
                    reports.failure = reports.failure ?? failure
                } else {
                    reports.written += 1
                }
            }
        } catch {
            throw ToolFault(error)
        }
        do {
            try open(names)
        } catch {
            close()
            throw error
        }
    }

    /// All of them have to be there, with the partitions that keys are spread over.
    private func open(_ names: [String]) throws(ToolFault) {
        let counts = try ToolFault.asking { () throws(KafkaFault) in
            for name in names { topics[name] = try producer.topic(name) }
            return try producer.partitionCounts(by: Deadline(after: .seconds(10)))
        }
        for (name, count) in zip(names, counts) where count != partitions {
            throw ToolFault(.wrongUsage, LogFault.partitions(of: name, are: count, not: partitions).words)
        }
    }

    /// Waits when too much is on its way.
    func publish(_ record: ToolRecord) {
        guard let topic = topics[record.topic] else {
            preconditionFailure("\(record.topic) was not named before")
        }
        let deadline = Deadline(after: Self.finishLimit)
        while producer.outstanding >= Self.window, !deadline.hasPassed { producer.poll(.milliseconds(20)) }
        do throws(KafkaFault) {
            try producer.send(
                to: topic, partition: record.partition, key: record.key?.span, value: record.value?.span,
                headers: record.headers, timestamp: record.timestamp)
        } catch {
            trouble = trouble ?? ToolFault(error)
        }
        producer.poll()
    }

    /// Why it is no use to go on.
    var fault: ToolFault? {
        if let trouble { return trouble }
        guard let failure = reports.failure ?? producer.fatalFault?.code else { return nil }
        return ToolFault(
            .gaveUp,
            "Kafka did not take everything: \(failure.explanation) (\(failure.name)). \(reports.written) records are written; "
                + "running it again is safe")
    }

    /// Returns when Kafka has acknowledged everything.
    func finish() throws(ToolFault) {
        do throws(KafkaFault) {
            try producer.flush(by: Deadline(after: Self.finishLimit))
        } catch {
            throw fault ?? ToolFault(error)
        }
        if let fault { throw fault }
    }

    func close() { producer.close(by: Deadline(after: .seconds(5))) }
}
