// The transactional producer: outputs and input offsets become visible together, or not at all.

internal import CRDKafka
public import Log
public import Platform
import Synchronization

/// Writes records in transactions under a stable identity. One thread owns it; every call except `send` may block.
///
/// The order of a cycle: `begin`, `send`..., `sendOffsets`, `commit`; or `abort` at any point after `begin`.
///
/// If a request of the transaction protocol times out, or its connection breaks, librdkafka sends it again. The first
/// copy may still reach the broker, and would then affect the *next* transaction of this producer: an EndTxn would
/// commit half of it, a TxnOffsetCommit would set offsets back. Brokers refuse it only if the producer's epoch has
/// changed. So a producer in whose transaction a request may have been sent twice is *suspect*, and `begin` replaces it
/// by a new one with the same identity, whose start increases the epoch.
public final class TransactionalProducer {
    public struct Configuration {
        /// `<group>.<slot>-<thread>`: the next producer that starts with it ends the open transaction of this one, and
        /// fences it.
        public var transactionalID: String
        public var properties: ClientProperties
        /// A dead worker's open transaction blocks readers for this long at most.
        public var transactionTimeout: Duration = .seconds(10)
        public var queuedRecords = 100_000
        public var queuedKilobytes = 128 * 1024
        public var onEvent: ClientEventHandler = { _ in }

        public init(transactionalID: String, properties: ClientProperties) {
            self.transactionalID = transactionalID
            self.properties = properties
        }
    }

    public enum State: Sendable {
        /// Created, but `start` has not succeeded yet.
        case new
        /// Between transactions.
        case idle
        case inTransaction
        /// Only `rebuild` and `close` are possible.
        case failed
    }

    public private(set) var state = State.new
    /// How often a suspect producer was replaced.
    public private(set) var replacements = 0
    /// Why the next `begin` replaces the producer; nil if it is not suspect.
    public private(set) var suspicion: String?
    private var lastReason = ""
    /// Why a new client was created that has not started yet because no broker answered in time.
    private var unfinishedReplacement: String?

    private let configuration: Configuration
    private let conf: ClientConf
    private let onDelivery: (DeliveryReport) -> Void
    /// Internal for tests, which simulate slow calls.
    var times: CallTimes
    private var rate = ReplacementRate()
    private var core: ProducerCore
    private var topicNames: [String] = []
    private var signsSeen: UInt64 = 0
    /// As of the begin of the open transaction.
    private var unconfirmedBefore = 0

    /// - Parameter onDelivery: called on the owner's thread inside any call; reports of an aborted transaction have the
    ///   code of a purge.
    public init(
        _ configuration: Configuration, onDelivery: @escaping (DeliveryReport) -> Void = { _ in }
    ) throws(PropertyFault) {
        self.configuration = configuration
        self.onDelivery = onDelivery
        var conf = try ClientConf(clientID: configuration.transactionalID)
        let milliseconds = configuration.transactionTimeout.wholeMilliseconds
        let timeout = String(milliseconds)
        // Records wait for others of their partition: no reader sees them before the commit, which flushes without this
        // wait. A request has records of one partition, so a shorter wait than a cycle makes several requests of each
        // partition. Without linger every few records are one request, which costs a fifth of a worker's time.
        try conf.set("linger.ms", "500")
        try conf.set("retry.backoff.ms", "100")
        // A lost request is sent again while its transaction still has time: at least twice.
        try conf.set("socket.timeout.ms", String(milliseconds / 3))
        try conf.set("queue.buffering.max.messages", String(configuration.queuedRecords))
        try conf.set("queue.buffering.max.kbytes", String(configuration.queuedKilobytes))
        try conf.apply(configuration.properties, to: .producer)
        try conf.set("transactional.id", configuration.transactionalID)
        try conf.set("transaction.timeout.ms", timeout)
        // A record that outlived its transaction could only be aborted.
        try conf.set("message.timeout.ms", timeout)
        guard let patience = Int64(conf.get("socket.timeout.ms") ?? ""), patience < milliseconds else {
            throw PropertyFault(
                property: "socket.timeout.ms",
                reason:
                    "must be below the transaction timeout of \(milliseconds) ms: otherwise a lost request is never "
                    + "sent again")
        }
        // Only newer versions of librdkafka have the second property.
        times = CallTimes(
            backoff: .milliseconds(Int(conf.get("retry.backoff.ms") ?? "") ?? 100),
            longest: conf.get("retry.backoff.max.ms").flatMap { Int($0) }.map { .milliseconds($0) })
        core = try Self.makeCore(configuration, conf, times.backoff, onDelivery)
        self.conf = conf
    }

    private static func makeCore(
        _ configuration: Configuration, _ template: borrowing ClientConf, _ retryBackoff: Duration,
        _ onDelivery: @escaping (DeliveryReport) -> Void
    ) throws(PropertyFault) -> ProducerCore {
        let context = ClientContext(
            events: configuration.properties.watching(configuration.transactionalID, configuration.onEvent),
            onDelivery: onDelivery)
        var conf = ClientConf(owning: template.duplicate())
        try conf.set("retry.backoff.ms", String(retryBackoff.wholeMilliseconds))
        conf.install(context, for: RD_KAFKA_PRODUCER)
        return try ProducerCore(
            conf: conf, context: context, label: "producer \(configuration.transactionalID)")
    }

    // MARK: Life

    /// Fences older producers of this identity and waits until their open transaction has ended.
    ///
    /// Throws `retrySameCall` if no broker answered in time.
    public func start(by deadline: Deadline) throws(KafkaFault) {
        precondition(state == .new, "call start once, before the first transaction")
        try repeating(until: deadline, "start the transactional producer") { raw, timeout in
            rd_kafka_init_transactions(raw, timeout)
        }
        // Earlier errors do not count: this client had no transaction then that a late request could belong to.
        core.poll(.zero)
        signsSeen = signs
        state = .idle
    }

    /// Closes this client in any state, and starts a new one with the same identity, which aborts the old transaction
    /// if it was not committed. The caller continues from the group's committed offsets.
    public func rebuild(by deadline: Deadline) throws(KafkaFault) {
        state = .failed
        _ = core.close(by: deadline)
        // Only here: the limit for calls belongs to the client that makes them.
        times.adapt()
        do {
            core = try Self.makeCore(configuration, conf, times.backoff, onDelivery)
        } catch {
            throw KafkaFault(.stopProcess, .invalidConfiguration, operation: "create a producer", detail: "\(error)")
        }
        for name in topicNames { try core.addTopic(name) }
        suspicion = nil
        state = .new
        try start(by: deadline)
    }

    /// Closes the client; aborts an open transaction first, if the deadline allows. False if it was not closed by the
    /// deadline.
    @discardableResult
    public func close(by deadline: Deadline) -> Bool { beginClosing(by: deadline).wait(until: deadline) }

    /// Aborts an open transaction, if the deadline allows, and then does not wait for the client's end.
    func beginClosing(by deadline: Deadline) -> ClosingClient {
        if state == .inTransaction {
            // After a failure the successor or the transaction timeout ends the transaction; none of it becomes
            // visible.
            do { try abort(by: Deadline(after: min(deadline.remaining, configuration.transactionTimeout))) } catch {
                core.handle.context.tell(.log(.warning, facility: "CLOSE", message: "\(error)"))
            }
        }
        state = .failed
        return core.beginClosing(by: deadline)
    }

    // MARK: Sending

    /// The topic to pass to `send`; asking again returns the same one, and it stays valid after a replacement.
    public func topic(_ name: String) throws(KafkaFault) -> ProducerTopic {
        if let index = topicNames.firstIndex(of: name) { return ProducerTopic(index: index) }
        try core.addTopic(name)
        topicNames.append(name)
        return ProducerTopic(index: topicNames.count - 1)
    }

    /// Connects, and returns the number of partitions of each topic, in the order in which the topics were added.
    public func partitionCounts(by deadline: Deadline) throws(KafkaFault) -> [Int32] {
        try core.partitionCounts(by: deadline)
    }

    /// Adds one record to the open transaction; its bytes are copied. Does not block. `queueFull`: `poll`, then retry.
    /// `abortTransaction`: the transaction has failed meanwhile, for example because a record was not delivered.
    public func send(
        to topic: ProducerTopic, partition: Int32, key: Span<UInt8>?, value: Span<UInt8>?,
        headers: [RecordHeader] = [], timestamp: Int64? = nil, token: UInt = 0
    ) throws(KafkaFault) {
        precondition(state == .inTransaction, "records belong to a transaction")
        do throws(KafkaFault) {
            try core.send(
                topic, partition: partition, key: key, value: value, headers: headers, timestamp: timestamp,
                token: token)
        } catch {
            throw notTaken(error)
        }
    }

    /// The same for a record of a batch.
    ///
    /// - Parameter lending: the value is not copied, and the batch's memory is kept until the records of the whole
    ///   transaction are reported: only for transactions of limited size.
    func send(
        _ outputs: OutputBatch, _ index: Int, to topic: ProducerTopic, token: UInt, lending: Bool = false
    ) throws(KafkaFault) {
        precondition(state == .inTransaction, "records belong to a transaction")
        do throws(KafkaFault) {
            try core.send(outputs, index, to: topic, token: token, lending: lending)
        } catch {
            throw notTaken(error)
        }
    }

    /// What the refusal of a record means for the transaction.
    private func notTaken(_ fault: KafkaFault) -> KafkaFault {
        if fault.code == .wrongState {
            // 2.0.2 does not report why it accepts no more records. Between begin and end there is only one reason.
            return KafkaFault(.abortTransaction, fault.code, operation: fault.operation, detail: fault.detail)
        }
        if fault.remedy == .rebuildClient { state = .failed }
        return fault
    }

    @discardableResult
    public func poll(_ timeout: Duration = .zero) -> Int { core.poll(timeout) }

    /// Records without a report yet.
    public var outstanding: Int { core.outstanding }

    // MARK: Transactions

    /// Begins a transaction, with a new producer if this one is suspect; a replacement waits for the broker until
    /// `deadline`.
    ///
    /// Without a replacement nothing is sent and nothing blocks. `retrySameCall`: no broker answered; the next `begin`
    /// continues with the replacement.
    public func begin(by deadline: Deadline = Deadline(after: .seconds(30))) throws(KafkaFault) {
        let replacementsBefore = replacements
        if let reason = unfinishedReplacement, state == .new {
            try start(by: deadline)
            replaced(because: reason)
        }
        precondition(state == .idle, "a transaction can begin only after start, and after the previous one has ended")
        core.poll(.zero)  // handles errors since the last transaction
        noticeSigns()
        if suspicion != nil { try replace(by: deadline) }
        if let count = rate.note(replacements > replacementsBefore) { warn(ofReplacements: count) }
        try failing { () throws(KafkaFault) in
            try KafkaFault.check(rd_kafka_begin_transaction(core.handle.raw), "begin a transaction")
        }
        unconfirmedBefore = core.handle.context.unconfirmedCount
        state = .inTransaction
    }

    /// Adds `positions` of the group to the transaction. An empty list does nothing, and then nothing checks that this
    /// member still belongs to the group: pass the position of every partition for which the transaction writes.
    ///
    /// - Parameter group: read from the consumer for this call; its generation fences a member that the group has
    ///   removed.
    public func sendOffsets(_ positions: [TopicPartition: NextOffset], of group: borrowing GroupMetadata)
        throws(KafkaFault)
    {
        precondition(state == .inTransaction, "offsets belong to a transaction")
        let list = TopicPartitionList(capacity: positions.count)
        for (partition, next) in positions { list.append(partition, offset: next.value) }
        let deadline = Deadline(after: configuration.transactionTimeout)
        try flush(by: deadline)
        try timed(.sendOffsets) { () throws(KafkaFault) in
            try repeating(until: deadline, "send offsets to the transaction", givingUp: .abortTransaction) {
                raw, timeout in
                rd_kafka_send_offsets_to_transaction(raw, list.raw, group.raw, timeout)
            }
        }
    }

    /// Makes everything since `begin` visible. Returns when the broker has confirmed it.
    ///
    /// `abortTransaction`: nothing became visible. `rebuildClient`: the outcome may be unknown; the group's committed
    /// offsets show it.
    public func commit() throws(KafkaFault) {
        precondition(state == .inTransaction, "there is no transaction to commit")
        let deadline = Deadline(after: configuration.transactionTimeout)
        try flush(by: deadline)
        try requireConfirmed()
        try timed(.commit) { () throws(KafkaFault) in
            try repeating(until: deadline, "commit the transaction", givingUp: .rebuildClient) { raw, timeout in
                rd_kafka_commit_transaction(raw, timeout)
            }
        }
        ended()
    }

    /// librdkafka would commit without records that it only assumes to be written.
    private func requireConfirmed() throws(KafkaFault) {
        guard core.handle.context.unconfirmedCount == unconfirmedBefore else {
            throw KafkaFault(.abortTransaction, .unconfirmed, operation: "commit the transaction")
        }
    }

    /// Aborts everything since `begin`. The caller seeks its consumer back to where the transaction began.
    public func abort() throws(KafkaFault) {
        try abort(by: Deadline(after: configuration.transactionTimeout))
    }

    private func abort(by deadline: Deadline) throws(KafkaFault) {
        precondition(state == .inTransaction, "there is no transaction to abort")
        // If an abort overtakes the registration of the partitions, as directly after a commit whose markers are still
        // being written, it ends a transaction that the broker does not know: a fatal error. The flush is bounded,
        // since a leader may be gone.
        try flush(by: Deadline(after: min(deadline.remaining, .seconds(1))))
        try timed(.abort) { () throws(KafkaFault) in
            try repeating(until: deadline, "abort the transaction", givingUp: .rebuildClient) { raw, timeout in
                rd_kafka_abort_transaction(raw, timeout)
            }
        }
        // What the flush had no time for was purged and reported.
        core.takeBack()
        ended()
    }

    private func ended() {
        state = .idle
        noticeSigns()
    }

    /// Waits for the reports of all records, and lets none wait for others of its partition meanwhile.
    ///
    /// Called before any call of the transaction protocol is timed: waiting for produce requests, which are safe
    /// because of their sequence numbers, must not make a producer suspect. A failed delivery shows in the next call.
    func flush(by deadline: Deadline) throws(KafkaFault) {
        while core.outstanding > 0 && !deadline.hasPassed {
            do { try core.flush(by: deadline) } catch  where error.code != .timedOut { throw error } catch {}
        }
        core.takeBack()
    }

    // MARK: Suspicion

    private var signs: UInt64 { core.handle.context.signs.load(ordering: .relaxed) }

    private func noticeSigns() {
        // Read once: a sign that arrived between two reads would look like an old one.
        let now = signs
        defer { signsSeen = now }
        if suspicion == nil && now != signsSeen {
            suspicion = "a request timed out, a connection was lost, or a record was refused"
        }
    }

    private func timed(_ call: CallTimes.Call, _ body: () throws(KafkaFault) -> Void) throws(KafkaFault) {
        let start = ContinuousClock.now
        defer {
            let taken = start.duration(to: .now)
            times.note(call, took: taken)
            if suspicion == nil && taken >= times.limit {
                suspicion = "\(call.rawValue) took \(taken.wholeMilliseconds) ms: it may have been sent twice"
            }
        }
        try body()
    }

    private func replace(by deadline: Deadline) throws(KafkaFault) {
        let reason = suspicion ?? ""
        unfinishedReplacement = reason
        try rebuild(by: deadline)
        replaced(because: reason)
    }

    private func replaced(because reason: String) {
        unfinishedReplacement = nil
        replacements += 1
        lastReason = reason
        configuration.onEvent(.producerReplaced(reason: reason))
    }

    /// A replacement costs more than a transaction, and many times more far from the brokers.
    private func warn(ofReplacements count: Int) {
        let usual = times.usual.wholeMilliseconds
        let advice =
            times.isAtItsEnd
            ? "kafka.producer.retry.backoff.ms is already at its useful maximum (\(times.backoff.wholeMilliseconds)): "
                + "move this process nearer to its brokers, or find out what delays or breaks its connections"
            : "if calls are sometimes slower, set kafka.producer.retry.backoff.ms to "
                + "\(CallTimes.longestBackoff.wholeMilliseconds) (now \(times.backoff.wholeMilliseconds)); if "
                + "connections break, find out why"
        configuration.onEvent(
            .advice(
                "\(count) of the last 100 transactions replaced their producer, which slows them down: \(lastReason). "
                    + "Calls usually take \(usual) ms; \(advice)"))
    }

    // MARK: Retries

    /// Repeats the same call while its fault says so, with a short wait, until the deadline. librdkafka itself
    /// continues where it was, so no other call may come in between.
    private func repeating(
        until deadline: Deadline, _ operation: String, givingUp: KafkaFault.Remedy = .retrySameCall,
        _ call: (OpaquePointer, Int32) -> OpaquePointer?
    ) throws(KafkaFault) {
        try failing { () throws(KafkaFault) in
            while true {
                do throws(KafkaFault) {
                    return try KafkaFault.check(
                        call(core.handle.raw, max(1, deadline.remaining.timeoutMilliseconds)), operation)
                } catch  where error.remedy == .retrySameCall {
                    if deadline.hasPassed {
                        throw KafkaFault(givingUp, error.code, operation: operation, detail: error.detail)
                    }
                    core.poll(.milliseconds(10))
                }
            }
        }
    }

    /// After a fault that ends the client, only `rebuild` and `close` are possible.
    private func failing(_ body: () throws(KafkaFault) -> Void) throws(KafkaFault) {
        do {
            try body()
        } catch {
            if error.remedy == .rebuildClient { state = .failed }
            throw error
        }
    }
}
