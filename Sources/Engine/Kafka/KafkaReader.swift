// A reader of Kafka.

internal import Log
internal import Platform

/// Reads given partitions, as a client of committed records without a group.
final class KafkaReader: LogReader {
    private let options: ReaderOptions
    private let properties: ClientProperties
    private let consumer: Consumer
    private let lender: RecordLender
    /// Sees open and aborted transactions. Created at its first use: most readers never need it.
    private var witness: Consumer?
    private var isClosed = false

    init(_ options: ReaderOptions, _ properties: ClientProperties) throws(LogFault) {
        self.options = options
        self.properties = properties
        var reading = Consumer.Configuration(clientID: options.name, groupID: options.group, properties: properties)
        if options.readsAhead {
            reading.readAhead(bytes: options.readAheadBytes)
        }
        reading.fetchWait = options.fetchWait
        reading.tellsStatistics = options.isPolledAlways
        consumer = try Self.make(reading)
        lender = RecordLender(topics: options.topics)
    }

    private static func make(_ configuration: Consumer.Configuration) throws(LogFault) -> Consumer {
        do throws(PropertyFault) { return try Consumer(configuration) } catch { throw LogFault(error) }
    }

    private func calling<Answer>(_ body: () throws(KafkaFault) -> Answer) throws(LogFault) -> Answer {
        if isClosed { throw LogFault(.stop, .misuse, "the reader is closed") }
        do throws(KafkaFault) { return try body() } catch { throw LogFault(error) }
    }

    // MARK: Requests

    func beginnings(
        of partitions: [TopicPartition], by deadline: Deadline
    ) throws(LogFault) -> [TopicPartition: NextOffset] {
        try calling { () throws(KafkaFault) in try consumer.beginnings(of: partitions, by: deadline) }
    }

    func ends(
        _ kind: EndKind, of partitions: [TopicPartition], by deadline: Deadline
    ) throws(LogFault) -> [TopicPartition: NextOffset] {
        let asked =
            switch kind {
            case .committed: consumer
            case .all: try makeWitness()
            }
        return try calling { () throws(KafkaFault) in try asked.ends(of: partitions, by: deadline) }
    }

    /// The broker's answer depends on the isolation level of the client.
    private func makeWitness() throws(LogFault) -> Consumer {
        if let witness { return witness }
        var asking = Consumer.Configuration(clientID: options.name, groupID: options.group, properties: properties)
        asking.readsUncommitted = true
        let made = try Self.make(asking)
        witness = made
        return made
    }

    func offsets(
        at timestamp: Int64, in partitions: [TopicPartition], by deadline: Deadline
    ) throws(LogFault) -> [TopicPartition: NextOffset] {
        try calling { () throws(KafkaFault) in try consumer.offsets(at: timestamp, in: partitions, by: deadline) }
    }

    // MARK: Reading

    func read(from starts: [TopicPartition: NextOffset]) throws(LogFault) {
        if let stranger = starts.keys.first(where: { !options.topics.contains($0.topic) }) {
            throw LogFault(.stop, .misuse, "\(stranger) belongs to no topic of the reader")
        }
        try calling { () throws(KafkaFault) in
            lender.forgetTopics()
            try consumer.assign(starts)
        }
    }

    func poll(into batch: RecordBatch, limit: Int, wait: Duration) throws(LogFault) {
        try calling { () throws(KafkaFault) in
            try lender.fill(batch, from: consumer, limit: limit, wait: wait)
        }
    }

    func position(of partition: TopicPartition) -> NextOffset? { consumer.position(of: partition) }

    func close(by deadline: Deadline) -> Bool {
        if isClosed { return true }
        isClosed = true
        // A client with a lent record never closes.
        lender.takeBack()
        let isWitnessGone = witness?.close(by: deadline) ?? true
        return consumer.close(by: deadline) && isWitnessGone
    }
}
