// Writes records for a tool, outside of transactions.

package import Configuration
import Contract
import Kafka
package import Log
import Platform

/// One record with its topic and partition.
package struct ToolRecord: Equatable {
    var topic: String
    var partition: Int32
    var key: [UInt8]?
    var value: [UInt8]?
    var headers: [RecordHeader]
    /// Milliseconds since 1970.
    var timestamp: Int64

    package init(
        topic: String, partition: Int32, key: [UInt8]? = nil, value: [UInt8]? = nil, headers: [RecordHeader],
        timestamp: Int64
    ) {
        self.topic = topic
        self.partition = partition
        self.key = key
        self.value = value
        self.headers = headers
        self.timestamp = timestamp
    }
}

/// The records that Kafka has not acknowledged, in the order in which they were published.
struct Unacknowledged {
    private var records: [UInt: ToolRecord] = [:]
    private var next: UInt = 0
    private(set) var written = 0
    /// Why the first failed record since the last call of `again` failed.
    private(set) var failure: KafkaCode?

    /// Returns the number that the delivery report of this record has.
    mutating func add(_ record: ToolRecord) -> UInt {
        records[next] = record
        defer { next += 1 }
        return next
    }

    /// Every record after a failed one counts as failed and is sent again after it, so that the last of two records with one key
    /// stays the last.
    mutating func note(_ failure: KafkaCode?, of number: UInt) {
        if let failure { self.failure = self.failure ?? failure }
        guard self.failure == nil else { return }
        records[number] = nil
        written += 1
    }

    /// The records to send again, in order.
    mutating func again() -> [(key: UInt, value: ToolRecord)] {
        failure = nil
        return records.sorted { $0.key < $1.key }
    }
}

/// Sends records as ingest does, outside of transactions. Another producer sends again what Kafka did not acknowledge. One thread.
package final class ToolPublisher {
    /// Records in flight: a few batches, and at most 20 MB of ordinary notifications.
    private static let window = 1000
    private static let finishLimit: Duration = .seconds(60)
    /// Producers in a row that may fail to write even one record.
    private static let limitProducers = 5

    private final class Reports {
        var records = Unacknowledged()
    }

    private let clientID: String
    private let properties: ClientProperties
    private let names: [String]
    private let partitions: Int32
    private let reports = Reports()
    private var producer: Producer
    private var topics: [String: ProducerTopic] = [:]
    private var trouble: ToolFault?
    private var producersInVain = 0
    private var writtenBefore = 0

    /// - Parameters:
    ///   - tool: the command that writes.
    ///   - names: every topic that may be written to.
    package init(_ configuration: Configuration, as tool: CommandName, topics names: [String]) throws(ToolFault) {
        clientID = "perennial-\(tool.rawValue)"
        properties = configuration.clientProperties
        self.names = names
        partitions = Int32(configuration.topicPlan.partitions)
        producer = try Self.makeProducer(clientID, properties, reports)
        do {
            try open()
        } catch {
            close()
            throw error
        }
    }

    private static func makeProducer(
        _ clientID: String, _ properties: ClientProperties, _ reports: Reports
    ) throws(ToolFault) -> Producer {
        do throws(PropertyFault) {
            var options = Producer.Configuration(clientID: clientID, properties: properties)
            options.deliveryTimeout = finishLimit / 2
            return try Producer(options) { reports.records.note($0.failure, of: $0.token) }
        } catch {
            throw ToolFault(error)
        }
    }

    /// All topics must exist, with the number of partitions that keys are spread over.
    private func open() throws(ToolFault) {
        let counts = try ToolFault.asking { () throws(KafkaFault) in
            topics = [:]
            for name in names { topics[name] = try producer.topic(name) }
            return try producer.partitionCounts(by: Deadline(after: .seconds(10)))
        }
        for (name, count) in zip(names, counts) where count != partitions {
            throw ToolFault(.wrongUsage, LogFault.partitions(of: name, are: count, not: partitions).words)
        }
    }

    /// Waits while too many records are in flight.
    package func publish(_ record: ToolRecord) {
        let deadline = Deadline(after: Self.finishLimit)
        while producer.outstanding >= Self.window, !deadline.hasPassed { producer.poll(.milliseconds(20)) }
        send(record, reports.records.add(record))
        producer.poll()
        if let failure { renew(after: failure) }
    }

    private func send(_ record: ToolRecord, _ number: UInt) {
        guard let topic = topics[record.topic] else {
            preconditionFailure("\(record.topic) is not one of the topics of this publisher")
        }
        do throws(KafkaFault) {
            try producer.send(
                to: topic, partition: record.partition, key: record.key?.span, value: record.value?.span,
                headers: record.headers, timestamp: record.timestamp, token: number)
        } catch {
            trouble = trouble ?? ToolFault(error)
        }
    }

    private var failure: KafkaCode? { reports.records.failure ?? producer.fatalFault?.code }

    /// After one refused record, a producer continues with a sequence number that the broker does not expect. So another producer
    /// sends every unacknowledged record again, unless Kafka would refuse it in the same way.
    private func renew(after failure: KafkaCode) {
        guard trouble == nil else { return }
        producersInVain = reports.records.written > writtenBefore ? 1 : producersInVain + 1
        writtenBefore = reports.records.written
        guard failure.mayPassWithAnotherProducer, producersInVain <= Self.limitProducers else {
            trouble = ToolFault(
                .gaveUp,
                "Kafka did not accept all records: \(failure.explanation) (\(failure.name)). \(reports.records.written) records "
                    + "are written. It is safe to run the command again")
            return
        }
        close()
        do throws(ToolFault) {
            producer = try Self.makeProducer(clientID, properties, reports)
            let records = reports.records.again()
            try open()
            for (number, record) in records { send(record, number) }
        } catch {
            trouble = error
        }
    }

    /// Why nothing more can be written.
    package var fault: ToolFault? { trouble }

    /// Returns when Kafka has acknowledged everything.
    package func finish() throws(ToolFault) {
        let deadline = Deadline(after: Self.finishLimit)
        repeat {
            do throws(KafkaFault) {
                try producer.flush(by: deadline)
            } catch {
                throw trouble ?? ToolFault(error)
            }
            guard let failure else { break }
            renew(after: failure)
        } while trouble == nil
        if let trouble { throw trouble }
    }

    package func close() { producer.close(by: Deadline(after: .seconds(5))) }
}

extension KafkaCode {
    fileprivate var mayPassWithAnotherProducer: Bool {
        switch remedyOutsideTransactions {
        case .retrySameCall, .rebuildClient, .abortTransaction: self != .deliveryTimedOut
        case .stopProcess: false
        }
    }
}
