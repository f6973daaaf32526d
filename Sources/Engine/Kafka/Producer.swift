// The idempotent producer, for records written outside of transactions (ingest, tools).

internal import CRDKafka
public import Log
public import Platform

/// Writes records with acks=all, once and in order per partition, and reports the outcome of each.
///
/// One thread owns it: it calls `send`, `poll`, `flush` and `close`, and gets the delivery reports.
public final class Producer {
    public struct Configuration {
        public var clientID: String
        public var properties: ClientProperties
        /// Records that may wait for the broker; a further one is refused with `queueFull`.
        public var queuedRecords = 20_000
        /// Bytes that may wait for the broker: 20,000 notifications of 3 KB.
        public var queuedKilobytes = 64 * 1024
        /// How long records are collected for a batch. 1 ms adds no latency that a person notices, and saves most
        /// requests.
        public var lingerMilliseconds = 1
        /// The longest time from `send` to the report.
        public var deliveryTimeout: Duration = .seconds(30)
        /// Interval of the event `statistics`; nil: as the properties say, which by default is never.
        public var statisticsInterval: Duration?
        public var onEvent: ClientEventHandler = { _ in }

        public init(clientID: String, properties: ClientProperties) {
            self.clientID = clientID
            self.properties = properties
        }
    }

    private var core: ProducerCore
    private let context: ClientContext
    private var isClosed = false
    private var topicIndices: [String: Int] = [:]

    /// Does not connect; `partitionCounts` or the first record does.
    /// - Parameter onDelivery: called inside `poll`, `flush` and `close`, once for each record that `send` accepted.
    public init(
        _ configuration: Configuration, onDelivery: @escaping (DeliveryReport) -> Void
    ) throws(PropertyFault) {
        context = ClientContext(
            events: configuration.properties.watching(configuration.clientID, configuration.onEvent),
            onDelivery: onDelivery)
        var conf = try ClientConf(clientID: configuration.clientID)
        try conf.set("linger.ms", String(configuration.lingerMilliseconds))
        try conf.set("queue.buffering.max.messages", String(configuration.queuedRecords))
        try conf.set("queue.buffering.max.kbytes", String(configuration.queuedKilobytes))
        try conf.apply(configuration.properties, to: .producer)
        try conf.set("message.timeout.ms", String(configuration.deliveryTimeout.wholeMilliseconds))
        if let interval = configuration.statisticsInterval {
            try conf.set("statistics.interval.ms", String(interval.wholeMilliseconds))
        }
        try conf.set("enable.idempotence", "true")
        try conf.set("acks", "all")
        conf.install(context, for: RD_KAFKA_PRODUCER)
        core = try ProducerCore(conf: conf, context: context, label: "producer \(configuration.clientID)")
    }

    /// The topic to pass to `send`; asking again returns the same one.
    public func topic(_ name: String) throws(KafkaFault) -> ProducerTopic {
        if let index = topicIndices[name] { return ProducerTopic(index: index) }
        try core.addTopic(name)
        topicIndices[name] = topicIndices.count
        return ProducerTopic(index: topicIndices.count - 1)
    }

    /// Connects, and returns the number of partitions of each topic, in the order in which the topics were added.
    /// Blocks.
    public func partitionCounts(by deadline: Deadline) throws(KafkaFault) -> [Int32] {
        try core.partitionCounts(by: deadline)
    }

    /// Sends one record; its bytes are copied. Does not block.
    ///
    /// Throws `queueFull` (retry after `poll`) if too many records wait for the broker.
    public func send(
        to topic: ProducerTopic, partition: Int32, key: Span<UInt8>?, value: Span<UInt8>?,
        headers: [RecordHeader] = [], timestamp: Int64? = nil, token: UInt = 0
    ) throws(KafkaFault) {
        try core.send(
            topic, partition: partition, key: key, value: value, headers: headers, timestamp: timestamp, token: token)
    }

    /// The same for a record of a batch.
    func send(_ outputs: OutputBatch, _ index: Int, to topic: ProducerTopic, token: UInt) throws(KafkaFault) {
        try core.send(outputs, index, to: topic, token: token)
    }

    /// Handles delivery reports; waits at most `timeout` for the first.
    @discardableResult
    public func poll(_ timeout: Duration = .zero) -> Int { core.poll(timeout) }

    /// Waits until every record has its report; throws `timedOut` if some have none by the deadline.
    public func flush(by deadline: Deadline) throws(KafkaFault) { try core.flush(by: deadline) }

    /// Records without a report yet.
    public var outstanding: Int { core.outstanding }

    /// Set if the producer can never write again (a lost sequence, a revoked right): create a new one.
    public var fatalFault: KafkaFault? { core.handle.fatalFault }

    /// The latest faults of brokers, oldest first.
    public var recentFaults: [(code: KafkaCode, detail: String)] { context.recentFaults }

    /// Flushes and closes the client. Records without a report after the flush are purged, and reported as purged.
    /// False: the client itself was not closed by the deadline.
    @discardableResult
    public func close(by deadline: Deadline) -> Bool {
        guard !isClosed else { return true }
        isClosed = true
        // If the flush used up all the time, the client would be leaked whenever a broker is down. Purging and destroying
        // take milliseconds, and now and then one second: librdkafka's thread of a broker may sleep that long.
        let reserve = min(.seconds(2), deadline.remaining / 2)
        do {
            try core.flush(by: Deadline(after: deadline.remaining - reserve))
        } catch {
            rd_kafka_purge(core.handle.raw, Int32(RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT))
            // librdkafka's threads report purged records after a short time.
            let end = Deadline(after: reserve / 2)
            while core.outstanding > 0, !end.hasPassed { core.poll(.milliseconds(10)) }
        }
        return core.close(by: deadline)
    }
}
