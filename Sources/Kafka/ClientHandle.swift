// The one owner of a librdkafka client.

internal import CRDKafka
internal import Log
internal import Platform
import Synchronization

/// Owns an `rd_kafka_t` together with the context its callbacks use. One thread.
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
            // The library owns the configuration only when it made a client.
            rd_kafka_conf_destroy(copy)
            throw PropertyFault(property: "*", reason: Self.reason(text(of: message)))
        }
        client = raw
        self.context = context
        self.label = label
    }

    /// The library's words, and what it takes for granted.
    private static func reason(_ words: String) -> String {
        "a Kafka client cannot be made of these properties: \(words)"
            + (words.contains("sasl.kerberos") ? "; kafka.sasl.mechanisms is not set, and Kerberos is its default" : "")
    }

    /// The library's handle, which is freed by `close`.
    var raw: OpaquePointer {
        precondition(!isClosed, "a closed client is not used")
        return client
    }

    // `rd_kafka_destroy` waits for everything still alive, so it must not hide in a deinit: an owner that was not closed
    // leaks the client and says so.
    deinit {
        if isClosed { return }
        context.tell(.log(.error, facility: "CLOSE", message: "\(label) was not closed before its owner went away"))
        _ = Unmanaged.passRetained(context)
    }

    /// Destroys the client; false when that is not over by the deadline. Then it goes on beside us, and the process should
    /// end without waiting for it.
    ///
    /// - Parameter leaving: a consumer says goodbye to its group first, which gives its partitions to others at once.
    mutating func close(by deadline: Deadline, leaving: Bool = false) -> Bool {
        if isClosed { return true }
        let doomed = Doomed(raw: raw, context: context, leavesBy: leaving ? deadline : nil)
        isClosed = true
        let thread = WorkerThread.start("kafka-close") { doomed.destroy() }
        // Short steps: an ordinary close takes a few milliseconds.
        while !thread.isFinished && !deadline.hasPassed { pause(for: .milliseconds(1)) }
        return thread.isFinished
    }

    /// What the library knows of a fatal error, which ends this client for good.
    var fatalFault: KafkaFault? {
        var message = [CChar](repeating: 0, count: 512)
        let code = KafkaCode(rd_kafka_fatal_error(raw, &message, message.count))
        guard code != .none else { return nil }
        return KafkaFault(
            code.isAuthorisation ? .stopProcess : .rebuildClient, code, operation: "go on with this client",
            detail: text(of: message))
    }
}

/// Carries the handle to the thread that destroys it. Unchecked: the owner has given it up, so exactly one thread has it.
private final class Doomed: @unchecked Sendable {
    private let raw: OpaquePointer
    private let context: ClientContext
    private let leavesBy: Deadline?

    init(raw: OpaquePointer, context: ClientContext, leavesBy: Deadline?) {
        self.raw = raw
        self.context = context
        self.leavesBy = leavesBy
    }

    /// Whatever the group says from here on is answered with giving everything back: the owner has done so already.
    private func leave(by deadline: Deadline) {
        let raw = raw
        context.onRebalance = { _, _ in rd_kafka_assign(raw, nil) }
        let queue = rd_kafka_queue_new(raw)
        defer { rd_kafka_queue_destroy(queue) }
        if let failure = rd_kafka_consumer_close_queue(raw, queue) { return rd_kafka_error_destroy(failure) }
        while rd_kafka_consumer_closed(raw) == 0 && !deadline.hasPassed {
            // Serves the callback. What was fetched and not given yet comes this way too and is dropped.
            if let message = rd_kafka_consume_queue(queue, 10) { rd_kafka_message_destroy(message) }
        }
    }

    func destroy() {
        if let leavesBy { leave(by: leavesBy) }
        // A consumer has been closed by its owner, or had no time for it: its hooks must not be called on this thread.
        rd_kafka_destroy_flags(raw, Int32(RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE))
        // Nothing of the library runs any more: the context may go.
        withExtendedLifetime(context) {}
    }
}

/// Owns an `rd_kafka_topic_partition_list_t`.
struct TopicPartitionList: ~Copyable {
    let raw: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>

    init(capacity: Int) {
        raw = rd_kafka_topic_partition_list_new(Int32(capacity))
    }

    /// Takes ownership of a list that the library made.
    init(owning raw: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) {
        self.raw = raw
    }

    deinit { rd_kafka_topic_partition_list_destroy(raw) }

    func append(_ partition: TopicPartition, offset: Int64 = Int64(RD_KAFKA_OFFSET_INVALID)) {
        rd_kafka_topic_partition_list_add(raw, partition.topic, partition.partition).pointee.offset = offset
    }

    var count: Int { Int(raw.pointee.cnt) }

    /// `body` may read the element's topic only during the call.
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
