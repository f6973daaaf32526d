// The single owner of a librdkafka client.

internal import CRDKafka
internal import Log
internal import Platform
import Synchronization

/// Owns an `rd_kafka_t` and the context of its callbacks. For use by one thread.
struct ClientHandle: ~Copyable {
    private let client: OpaquePointer
    let context: ClientContext
    private let label: String
    private var isClosed = false

    init(
        _ type: rd_kafka_type_t, conf: borrowing ClientConf, context: ClientContext, label: String
    ) throws(PropertyFault) {
        var message = [CChar](repeating: 0, count: 512)
        let copy = conf.duplicate()
        guard let raw = rd_kafka_new(type, copy, &message, message.count) else {
            // librdkafka owns the configuration only if it created a client.
            rd_kafka_conf_destroy(copy)
            throw PropertyFault(property: "*", reason: Self.reason(text(of: message)))
        }
        client = raw
        self.context = context
        self.label = label
    }

    /// librdkafka's message, with the default that it silently assumes.
    private static func reason(_ words: String) -> String {
        "a Kafka client cannot be created with these properties: \(words)"
            + (words.contains("sasl.kerberos") ? "; kafka.sasl.mechanisms is not set, and Kerberos is its default" : "")
    }

    /// librdkafka's handle, which `close` frees.
    var raw: OpaquePointer {
        precondition(!isClosed, "the client is closed")
        return client
    }

    // `rd_kafka_destroy` waits for everything that is still in use, so it must not hide in a deinit: an owner that was
    // not closed leaks the client and logs it.
    deinit {
        if isClosed { return }
        context.tell(.log(.error, facility: "CLOSE", message: "\(label) was not closed before its owner was released"))
        _ = Unmanaged.passRetained(context)
    }

    /// Destroys the client. Returns false if that did not finish by the deadline. It then continues on its own thread,
    /// and the process should end without waiting for it.
    ///
    /// - Parameter leaving: a consumer first leaves its group, which then gives its partitions to others at once.
    mutating func close(by deadline: Deadline, leaving: Bool = false) -> Bool {
        beginClosing(by: deadline, leaving: leaving).wait(until: deadline)
    }

    /// The first half of `close`: does not wait. Several clients of one owner are closed side by side with it.
    mutating func beginClosing(by deadline: Deadline, leaving: Bool = false) -> ClosingClient {
        if isClosed { return ClosingClient() }
        let doomed = Doomed(raw: raw, context: context, leavesBy: leaving ? deadline : nil)
        isClosed = true
        return ClosingClient(thread: WorkerThread.start("kafka-close") { doomed.destroy() })
    }

    /// The fatal error of this client, if it had one: the client cannot be used again.
    var fatalFault: KafkaFault? {
        var message = [CChar](repeating: 0, count: 512)
        let code = KafkaCode(rd_kafka_fatal_error(raw, &message, message.count))
        guard code != .none else { return nil }
        return KafkaFault(
            code.isAuthorisation ? .stopProcess : .rebuildClient, code, operation: "continue with this client",
            detail: text(of: message))
    }
}

/// A client that is being destroyed on a thread of its own.
struct ClosingClient {
    /// nil: it was closed before.
    fileprivate var thread: WorkerThread?

    /// False: it is not destroyed by the deadline.
    func wait(until deadline: Deadline) -> Bool {
        guard let thread else { return true }
        // Short steps: a normal close takes a few milliseconds.
        while !thread.isFinished && !deadline.hasPassed { pause(for: .milliseconds(1)) }
        return thread.isFinished
    }
}

/// Passes the handle to the thread that destroys it. Unchecked: the owner has given it up, so exactly one thread uses
/// it.
private final class Doomed: @unchecked Sendable {
    private let raw: OpaquePointer
    private let context: ClientContext
    private let leavesBy: Deadline?

    init(raw: OpaquePointer, context: ClientContext, leavesBy: Deadline?) {
        self.raw = raw
        self.context = context
        self.leavesBy = leavesBy
    }

    /// Answers every further rebalance by giving up all partitions: the owner has done so already.
    private func leave(by deadline: Deadline) {
        let raw = raw
        context.onRebalance = { _, _ in rd_kafka_assign(raw, nil) }
        let queue = rd_kafka_queue_new(raw)
        defer { rd_kafka_queue_destroy(queue) }
        if let failure = rd_kafka_consumer_close_queue(raw, queue) { return rd_kafka_error_destroy(failure) }
        while rd_kafka_consumer_closed(raw) == 0 && !deadline.hasPassed {
            // Runs the rebalance callback. Records that were fetched and not delivered yet arrive here too, and are
            // dropped.
            if let message = rd_kafka_consume_queue(queue, 10) { rd_kafka_message_destroy(message) }
        }
    }

    func destroy() {
        if let leavesBy { leave(by: leavesBy) }
        // The owner has closed the consumer, or had no time for it: its hooks must not be called on this thread.
        rd_kafka_destroy_flags(raw, Int32(RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE))
        // No thread of librdkafka runs any more: the context may be released.
        withExtendedLifetime(context) {}
    }
}

/// Owns an `rd_kafka_topic_partition_list_t`.
struct TopicPartitionList: ~Copyable {
    let raw: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>

    init(capacity: Int) {
        raw = rd_kafka_topic_partition_list_new(Int32(capacity))
    }

    /// Takes ownership of a list that librdkafka created.
    init(owning raw: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) {
        self.raw = raw
    }

    deinit { rd_kafka_topic_partition_list_destroy(raw) }

    func append(_ partition: TopicPartition, offset: Int64 = Int64(RD_KAFKA_OFFSET_INVALID)) {
        rd_kafka_topic_partition_list_add(raw, partition.topic, partition.partition).pointee.offset = offset
    }

    var count: Int { Int(raw.pointee.cnt) }

    /// `body` may use the element's topic only during the call.
    func forEach<E: Error>(_ body: (rd_kafka_topic_partition_t) throws(E) -> Void) throws(E) {
        for index in 0..<count { try body(raw.pointee.elems[index]) }
    }
}

extension TopicPartition {
    init(_ element: rd_kafka_topic_partition_t) {
        self.init(String(cString: element.topic), element.partition)
    }
}

extension UnsafeMutablePointer<rd_kafka_topic_partition_list_t> {
    var partitions: [TopicPartition] {
        (0..<Int(pointee.cnt)).map { TopicPartition(pointee.elems[$0]) }
    }
}
