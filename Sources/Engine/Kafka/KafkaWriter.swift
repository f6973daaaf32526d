// A writer to Kafka.

internal import Log
internal import Platform

/// Appends records with acks=all and waits for their acknowledgements.
final class KafkaWriter: LogWriter {
    private let options: WriterOptions
    private let properties: ClientProperties
    private var producer: Producer?
    private var topics: [ProducerTopic] = []
    /// The producer has looked up its topics: a record for a missing topic would only time out.
    private var knowsTopics = false
    private let answers = Answers()
    private var isClosed = false

    /// The outcome of the records of one call; a report's token is the index of the record.
    private final class Answers {
        var offsets: [Int64] = []
        var failure: KafkaCode?

        func note(_ report: DeliveryReport) {
            if let failure = report.failure {
                // The first failure has the cause; the records behind it fail because of it.
                if self.failure == nil { self.failure = failure }
            } else {
                offsets[Int(report.token)] = report.offset
            }
        }
    }

    init(_ options: WriterOptions, _ properties: ClientProperties) throws(LogFault) {
        self.options = options
        self.properties = properties
        // Reports a missing topic now, not at the first record.
        _ = try ready()
    }

    func append(_ outputs: OutputBatch, by deadline: Deadline) throws(LogFault) -> [Int64] {
        if isClosed { throw LogFault(.stop, .misuse, "the writer is closed") }
        if outputs.isEmpty { return [] }
        let producer = try ready()
        answers.offsets = Array(repeating: -1, count: outputs.count)
        answers.failure = nil
        do throws(KafkaFault) {
            if !knowsTopics {
                _ = try persisting(until: deadline) { () throws(KafkaFault) in
                    try producer.partitionCounts(by: deadline)
                }
                knowsTopics = true
            }
            for index in 0..<outputs.count { try send(outputs, index, with: producer, by: deadline) }
            try producer.flush(by: deadline)
            if let failure = answers.failure {
                throw KafkaFault(failure.remedyOutsideTransactions, failure, operation: "append records")
            }
        } catch {
            // The next call must get neither late reports of this call, nor the sequence of a producer that had a
            // record refused: 2.0.2 continues with sequence numbers that the broker does not expect.
            producer.close(by: Deadline(after: closingLimit))
            self.producer = nil
            knowsTopics = false
            throw LogFault(error)
        }
        return answers.offsets
    }

    private func send(
        _ outputs: OutputBatch, _ index: Int, with producer: Producer, by deadline: Deadline
    ) throws(KafkaFault) {
        let topic = Int(outputs.records[index].topic)
        precondition(topics.indices.contains(topic), "an output must use one of the writer's topics")
        while true {
            do throws(KafkaFault) {
                return try producer.send(outputs, index, to: topics[topic], token: UInt(index))
            } catch {
                if error.code != .queueFull { throw error }
                if deadline.hasPassed { throw KafkaFault(.retrySameCall, .timedOut, operation: "append records") }
                producer.poll(.milliseconds(10))
            }
        }
    }

    private func ready() throws(LogFault) -> Producer {
        if let producer { return producer }
        let made: Producer
        do throws(PropertyFault) {
            made = try Producer(.init(clientID: options.name, properties: properties)) { [answers] in answers.note($0) }
        } catch {
            throw LogFault(error)
        }
        do throws(KafkaFault) {
            var topics: [ProducerTopic] = []
            for name in options.topics { topics.append(try made.topic(name)) }
            self.topics = topics
        } catch {
            made.close(by: Deadline(after: closingLimit))
            throw LogFault(error)
        }
        producer = made
        return made
    }

    func close(by deadline: Deadline) -> Bool {
        if isClosed { return true }
        isClosed = true
        return producer?.close(by: deadline) ?? true
    }
}
