// A session in Kafka: one member of a group and one transactional producer, under one identity.

internal import CRDKafka
internal import Log
internal import Platform

/// The identity is the producer's transactional id: the next session with it fences this one and ends its open
/// transaction. If the session keeps its place, the identity is also the member's instance id: a restart within the
/// session timeout keeps the partitions.
final class KafkaSession: LogSession {
    private let identity: String
    private let consumer: Consumer
    private let producer: TransactionalProducer
    private let deliveries: Deliveries
    private let lender: RecordLender
    private let outputs: [ProducerTopic]
    private let outputNames: [String]
    /// The fault that ended the session: every later call throws it again.
    private var failure: LogFault?
    /// Of one answer of a broker: under more load than this, answers do not wait.
    private static let fetchBytes = 64 << 10

    let grown: [String: Int32]
    private var isClosed = false
    private var closing: [ClosingClient] = []
    private var lease: Lease
    private let bootClock: @Sendable () -> Duration

    private init(
        _ options: SessionOptions, _ consumer: Consumer, _ producer: TransactionalProducer, _ deliveries: Deliveries,
        _ outputs: [ProducerTopic], _ grown: [String: Int32]
    ) {
        self.grown = grown
        identity = options.identity
        self.consumer = consumer
        self.producer = producer
        self.deliveries = deliveries
        self.outputs = outputs
        outputNames = options.outputs
        lender = RecordLender(topics: options.inputs)
        lease = Lease(sessionTimeout: options.sessionTimeout)
        bootClock = options.bootClock
    }

    // MARK: Opening

    static func open(
        _ options: SessionOptions, _ properties: ClientProperties, by deadline: Deadline
    ) throws(LogFault) -> KafkaSession {
        let deliveries = Deliveries()
        let steps = OpeningSteps(tell: options.onEvent)
        let (consumer, producer) = try makeClients(options, properties, deliveries)
        let fault: LogFault
        do throws(KafkaFault) {
            var outputs: [ProducerTopic] = []
            for topic in options.outputs { outputs.append(try producer.topic(topic)) }
            // A missing topic would show much later, as a silent input or a transaction that fails. The question comes
            // first, because it waits until a broker is known: a producer that looks for its coordinator earlier than
            // that looks again only after half a second.
            let (read, written) = try persisting(until: deadline) { () throws(KafkaFault) in
                (
                    try consumer.partitionCounts(options.inputs, by: deadline),
                    try producer.partitionCounts(by: deadline)
                )
            }
            let found = zip(options.inputs + options.outputs, read + written).map { (topic: $0, count: $1) }
            switch Result(catching: { () throws(LogFault) in try options.grown(found) }) {
            case .failure(let error): fault = error
            case .success(let grown):
                deliveries.reset(partitions: written)
                steps.done("the topics are known")
                // Ends the open transaction of an earlier session of this identity, for which the group's offsets wait.
                // It also comes before joining: a member without a producer would keep partitions that it cannot serve.
                try producer.start(by: deadline)
                steps.done("the producer is ready")
                try consumer.subscribe(answeringLater: options.inputs)
                return KafkaSession(options, consumer, producer, deliveries, outputs, grown)
            }
        } catch {
            fault = LogFault(error, identity: options.identity)
        }
        consumer.close(by: Deadline(after: closingLimit))
        producer.close(by: Deadline(after: closingLimit))
        throw fault
    }

    private static func makeClients(
        _ options: SessionOptions, _ properties: ClientProperties, _ deliveries: Deliveries
    ) throws(LogFault) -> (Consumer, TransactionalProducer) {
        let tell = options.onEvent
        let onEvent: ClientEventHandler = { event in LogEvent(event).map(tell) }
        var reading = Consumer.Configuration(
            clientID: options.identity, groupID: options.group,
            instanceID: options.keepsPlace ? options.identity : nil, properties: properties)
        reading.fetchWait = options.fetchWait
        reading.fetchBytes = Self.fetchBytes
        reading.sessionTimeout = options.sessionTimeout
        reading.readAhead(bytes: options.readAheadBytes)
        reading.onEvent = onEvent
        reading.tellsStatistics = true
        var writing = TransactionalProducer.Configuration(transactionalID: options.identity, properties: properties)
        writing.transactionTimeout = options.transactionTimeout
        writing.onEvent = onEvent
        do throws(PropertyFault) {
            let producer = try TransactionalProducer(writing) { deliveries.note($0) }
            do throws(PropertyFault) {
                return (try Consumer(reading), producer)
            } catch {
                producer.close(by: Deadline(after: closingLimit))
                throw error
            }
        } catch {
            throw LogFault(error)
        }
    }

    /// The generation in which the partitions were assigned. It is not read anew at each commit: librdkafka forgets the
    /// generation on its own thread as soon as it hears of a rebalance, and a group without members accepts offsets
    /// without a generation from any client.
    private final class Membership {
        let metadata: GroupMetadata

        init(_ metadata: consuming GroupMetadata) { self.metadata = metadata }
    }

    private var membership: Membership?

    /// - Parameter body: calls into Kafka. A fault that ends the session is kept.
    private func calling<Answer>(_ body: () throws(KafkaFault) -> Answer) throws(LogFault) -> Answer {
        if let failure { throw failure }
        do throws(KafkaFault) {
            return try body()
        } catch {
            let refusal = deliveries.refusal.map { KafkaRefusal(code: $0.code, topic: outputNames[$0.topic]) }
            let fault = LogFault(error, identity: identity, refusal: refusal, outputs: outputNames)
            if fault.remedy == .rebuild || fault.remedy == .stop { failure = fault }
            throw fault
        }
    }

    // MARK: Reading

    func poll(into batch: RecordBatch, limit: Int, wait: Duration) throws(LogFault) -> SessionEvent {
        // The time before the wait: what arrived during the wait says nothing about later.
        let now = bootClock()
        let event = try calling { () throws(KafkaFault) -> SessionEvent in
            // The owner already has the records that librdkafka delivered before the rebalance: the event comes after
            // them.
            if consumer.unanswered == nil {
                try lender.fill(batch, from: consumer, limit: limit, wait: wait)
                if !batch.isEmpty { return .records }
            }
            batch.removeAll()
            if let said = consumer.unanswered { return said }
            return consumer.gone.isEmpty ? .nothing : .positionGone(consumer.gone.removeFirst())
        }
        // There may be a rebalance even if records were delivered.
        if consumer.unanswered == nil { lease.extend(at: now) } else { lease.end() }
        return event
    }

    func committed(
        _ partitions: [TopicPartition], by deadline: Deadline
    ) throws(LogFault) -> [TopicPartition: NextOffset] {
        try calling { () throws(KafkaFault) in try consumer.committed(partitions, by: deadline) }
    }

    func beginnings(of partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]
    {
        try calling { () throws(KafkaFault) in try consumer.beginnings(of: partitions, by: deadline) }
    }

    func take(_ starts: [TopicPartition: NextOffset], paused: Set<TopicPartition>) throws(LogFault) {
        guard case .assigned(let partitions) = consumer.unanswered else {
            throw misuse("partitions must be taken once, after the group has assigned them")
        }
        if let missing = partitions.first(where: { starts[$0] == nil }) {
            throw misuse("\(missing) was assigned but has no start")
        }
        try calling { () throws(KafkaFault) in
            lender.forgetTopics()
            membership = Membership(try consumer.groupMetadata())
            try consumer.take(starts.filter { partitions.contains($0.key) }, paused: paused)
        }
        // Not confirmed: the assignment may have waited here while the process was stopped. A commit confirms it.
    }

    func giveBack() throws(LogFault) {
        if let failure { throw failure }
        switch consumer.unanswered {
        case .revoked, .lost:
            membership = nil
            lease.end()
            consumer.giveBack()
        default: throw misuse("partitions must be given back once, after the group has revoked them")
        }
    }

    func pause(_ partitions: [TopicPartition]) throws(LogFault) {
        try calling { () throws(KafkaFault) in try consumer.pause(partitions) }
    }

    func resume(_ partitions: [TopicPartition]) throws(LogFault) {
        try calling { () throws(KafkaFault) in try consumer.resume(partitions) }
    }

    func seek(to positions: [TopicPartition: NextOffset]) throws(LogFault) {
        try calling { () throws(KafkaFault) in try consumer.seek(to: positions) }
    }

    func position(of partition: TopicPartition) -> NextOffset? { consumer.position(of: partition) }

    // MARK: Writing

    func append(_ outputs: OutputBatch) throws(LogFault) {
        if outputs.isEmpty { return }
        try calling { () throws(KafkaFault) in
            try begin()
            for index in 0..<outputs.count { try send(outputs, index) }
            // Handles delivery reports: in a long transaction they would otherwise accumulate without limit.
            producer.poll()
        }
    }

    private func begin() throws(KafkaFault) {
        if producer.state == .inTransaction { return }
        try producer.begin()
        deliveries.begin()
    }

    private func send(_ outputs: OutputBatch, _ index: Int) throws(KafkaFault) {
        let topic = Int(outputs.records[index].topic)
        precondition(self.outputs.indices.contains(topic), "an output must use one of the session's topics")
        while true {
            do throws(KafkaFault) {
                return try producer.send(outputs, index, to: self.outputs[topic], token: UInt(topic), lending: true)
            } catch {
                switch (error.code, error.remedy) {
                // Records that wait for others of their partition are sent now. This ends by itself: records that are
                // not delivered within the transaction timeout fail, and with them the transaction.
                case (.queueFull, _): try producer.flush(by: Deadline(after: .milliseconds(10)))
                // Not `retrySameCall`: the records before this one are already in the transaction.
                case (_, .retrySameCall):
                    throw KafkaFault(.stopProcess, error.code, operation: error.operation, detail: error.detail)
                default: throw error
                }
            }
        }
    }

    var ownedUntil: Duration? { failure == nil ? lease.until : nil }

    func commit(_ positions: [TopicPartition: NextOffset]) throws(LogFault) {
        let now = bootClock()
        try calling { () throws(KafkaFault) in
            if producer.state != .inTransaction && positions.isEmpty {
                deliveries.begin()
                return deliveries.commit()
            }
            try requireOwned(positions)
            try begin()
            if !positions.isEmpty {
                guard let membership else {
                    throw KafkaFault(
                        .rebuildClient, .invalidConfiguration, operation: "commit offsets",
                        detail: "partitions are owned, but the generation of the group is unknown")
                }
                try producer.sendOffsets(positions, of: membership.metadata)
            }
            try producer.commit()
            deliveries.commit()
        }
        if !positions.isEmpty, consumer.unanswered == nil { lease.confirm(at: now) }
    }

    /// The broker rejects a member of an old generation. It does not check which partitions the member owns: a member
    /// that has rejoined could commit offsets of partitions that another one owns now.
    private func requireOwned(_ positions: [TopicPartition: NextOffset]) throws(KafkaFault) {
        let lost = if case .lost = consumer.unanswered { true } else { false }
        for partition in positions.keys where lost || !consumer.owns(partition) {
            throw KafkaFault(
                .abortTransaction, .illegalGeneration, operation: "commit an offset of \(partition)",
                detail: "the group has assigned the partition to another member")
        }
    }

    func abort() throws(LogFault) {
        try calling { () throws(KafkaFault) in
            if producer.state == .inTransaction { try producer.abort() }
        }
    }

    func appendedEnd(topic: Int, partition: Int32) -> NextOffset? {
        deliveries.end(topic: topic, partition: partition)
    }

    // MARK: Closing

    func beginClosing(by deadline: Deadline) {
        if isClosed { return }
        isClosed = true
        failure = misuse("the session is closed")
        // A client with a lent record never closes.
        lender.takeBack()
        // The producer comes first: until its transaction is aborted, the next owner's request for offsets waits. An
        // abort that no broker answers must leave time for closing the member.
        let writer = producer.beginClosing(by: Deadline(after: deadline.remaining / 2))
        closing = [writer, consumer.beginClosing(by: deadline)]
    }

    func close(by deadline: Deadline) -> Bool {
        beginClosing(by: deadline)
        return closing.allSatisfy { $0.wait(until: deadline) }
    }

    private func misuse(_ words: String) -> LogFault { LogFault(.stop, .misuse, words) }
}

/// Tells how long the steps of an opening take, counted from its beginning.
private struct OpeningSteps {
    let tell: @Sendable (LogEvent) -> Void
    private let start = ContinuousClock.now

    init(tell: @escaping @Sendable (LogEvent) -> Void) { self.tell = tell }

    func done(_ step: String) {
        tell(.message(.debug, "opening a session: \(step) after \(start.duration(to: .now).wholeMilliseconds) ms"))
    }
}
