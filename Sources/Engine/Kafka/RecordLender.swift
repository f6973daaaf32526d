// Lends librdkafka's messages as the records of a batch.

internal import CRDKafka
internal import Log

/// Lends what a consumer reads, without copying it. For use by one thread.
///
/// A message lies in the buffer of a whole fetch response, which stays in memory as long as one of its messages exists,
/// and a client with such a message cannot be destroyed: take the messages back before closing the consumer.
final class RecordLender: RecordAccess {
    private let topics: [String]
    /// librdkafka's topics that have delivered a record, each with its index. Comparing addresses is cheaper than
    /// comparing names; they are valid for one assignment, after which librdkafka may use an address again.
    private var known: [(topic: OpaquePointer?, index: Int32)] = []
    /// Records come in runs of one topic.
    private var last: (topic: OpaquePointer?, index: Int32) = (nil, -1)
    private weak var batch: RecordBatch?
    private var lent = 0
    /// Of the last `fill`.
    private var lentBytes = 0

    init(topics: [String]) {
        self.topics = topics
    }

    // MARK: Lending

    /// Puts the fetched records into the batch; waits only for the first record.
    func fill(_ batch: RecordBatch, from consumer: Consumer, limit: Int, wait: Duration) throws(KafkaFault) {
        takeBack()
        lentBytes = 0
        batch.begin(self)
        self.batch = batch
        guard limit > 0, let first = try consumer.message(within: wait) else { return }
        lend(first, in: batch)
        while batch.count < limit, let message = try consumer.nextMessage(wait: 0) { lend(message, in: batch) }
        try consumer.keepFetching(records: batch.count, bytes: lentBytes)
    }

    private func lend(_ message: UnsafeMutablePointer<rd_kafka_message_t>, in batch: RecordBatch) {
        lent += 1
        lentBytes += message.pointee.key_len + message.pointee.len
        var kind = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE
        let timestamp = rd_kafka_message_timestamp(message, &kind)
        batch.append(
            RawRecord(
                topic: index(of: message.pointee.rkt), partition: message.pointee.partition,
                offset: message.pointee.offset, timestamp: kind == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? 0 : timestamp,
                key: UnsafeRawBufferPointer(start: message.pointee.key, count: message.pointee.key_len),
                value: UnsafeRawBufferPointer(start: message.pointee.payload, count: message.pointee.len),
                handle: UnsafeMutableRawPointer(message)))
    }

    /// Takes back all lent records, whichever batch has them.
    func takeBack() {
        if lent > 0 { batch?.removeAll() }
    }

    // MARK: Topics

    /// Call this before the first record of another assignment.
    func forgetTopics() {
        known.removeAll(keepingCapacity: true)
        last = (nil, -1)
    }

    private func index(of topic: OpaquePointer?) -> Int32 {
        if topic == last.topic { return last.index }
        if let found = known.first(where: { $0.topic == topic }) {
            last = found
        } else {
            guard let index = topics.firstIndex(of: String(cString: rd_kafka_topic_name(topic))) else {
                preconditionFailure("a record of a topic that was not requested")
            }
            last = (topic, Int32(index))
            known.append(last)
        }
        return last.index
    }

    // MARK: RecordAccess

    func header(_ name: StaticString, of handle: UnsafeMutableRawPointer) -> UnsafeRawBufferPointer? {
        var list: OpaquePointer?
        guard rd_kafka_message_headers(message(handle), &list) == RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
        var value: UnsafeRawPointer?
        var size = 0
        let found = name.utf8Start.withMemoryRebound(to: CChar.self, capacity: name.utf8CodeUnitCount) {
            rd_kafka_header_get_last(list, $0, &value, &size)
        }
        guard found == RD_KAFKA_RESP_ERR_NO_ERROR, let value else { return nil }
        return UnsafeRawBufferPointer(start: value, count: size)
    }

    func headers(of handle: UnsafeMutableRawPointer) -> [RecordHeader] { copyHeaders(of: message(handle)) }

    func release(_ handle: UnsafeMutableRawPointer) {
        lent -= 1
        rd_kafka_message_destroy(message(handle))
    }

    private func message(_ handle: UnsafeMutableRawPointer) -> UnsafeMutablePointer<rd_kafka_message_t> {
        handle.assumingMemoryBound(to: rd_kafka_message_t.self)
    }
}

/// All headers in order.
func copyHeaders(of message: UnsafeMutablePointer<rd_kafka_message_t>) -> [RecordHeader] {
    var list: OpaquePointer?
    guard rd_kafka_message_headers(message, &list) == RD_KAFKA_RESP_ERR_NO_ERROR else { return [] }
    var headers: [RecordHeader] = []
    var name: UnsafePointer<CChar>?
    var value: UnsafeRawPointer?
    var size = 0
    while rd_kafka_header_get_all(list, headers.count, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR {
        let bytes = value.map { [UInt8](UnsafeRawBufferPointer(start: $0, count: size)) }
        headers.append(RecordHeader(String(cString: name!), bytes))
    }
    return headers
}
