// What both producers share: a handle, its topics, and sending.

internal import CRDKafka
internal import Log
internal import Platform

/// A topic that a producer writes. The producer's `topic(_:)` creates it, and only that producer can use it.
public struct ProducerTopic: Sendable {
    let index: Int
}

/// Owns a producing client and its topic handles. For use by one thread.
struct ProducerCore: ~Copyable {
    private(set) var handle: ClientHandle
    private var topics: [OpaquePointer] = []

    init(conf: borrowing ClientConf, context: ClientContext, label: String) throws(PropertyFault) {
        handle = try ClientHandle(RD_KAFKA_PRODUCER, conf: conf, context: context, label: label)
    }

    /// Topics are appended in the owner's order, so that an index stays valid when the handle is replaced.
    mutating func addTopic(_ name: String) throws(KafkaFault) {
        guard let topic = rd_kafka_topic_new(handle.raw, name, nil) else {
            throw KafkaFault(
                .stopProcess, KafkaCode(rd_kafka_last_error()), operation: "use topic \(name)",
                detail: "\(name) is not a valid topic name")
        }
        topics.append(topic)
    }

    /// librdkafka copies key and value. The delivery report contains the token.
    func send(
        _ topic: ProducerTopic, partition: Int32, key: Span<UInt8>?, value: Span<UInt8>?, headers: [RecordHeader],
        timestamp: Int64?, token: UInt
    ) throws(KafkaFault) {
        let headerList = headers.isEmpty ? nil : makeHeaders(headers)
        let raw = topics[topic.index]
        let failure = withBytes(key) { key, keyCount in
            withBytes(value) { value, valueCount in
                perennial_rdkafka_produce(
                    handle.raw, raw, partition, key, keyCount, value, valueCount, true, headerList, timestamp ?? -1,
                    UnsafeMutableRawPointer(bitPattern: token))
            }
        }
        try answer(failure, headerList)
    }

    /// The same for a record of a batch: librdkafka copies key and headers from there, without an object in between.
    ///
    /// - Parameter lending: librdkafka does not copy the value either. It reads it in the batch's memory until it calls
    ///   the delivery callback, which is what its documentation asks for. So the client's context keeps the memory from
    ///   before the call on, until `takeBack` finds that every record is reported, or else until the client is gone:
    ///   aborts, purges and fatal errors need no rules of their own.
    func send(
        _ outputs: OutputBatch, _ index: Int, to topic: ProducerTopic, token: UInt, lending: Bool = false
    ) throws(KafkaFault) {
        if lending { handle.context.keep(outputs.memory) }
        let record = outputs.records[index]
        var headers: OpaquePointer?
        outputs.forEachHeader(index) { name, value in
            if headers == nil { headers = rd_kafka_headers_new(Self.expectedHeaders) }
            rd_kafka_header_add(
                headers, name.assumingMemoryBound(to: CChar.self).baseAddress, name.count, value.baseAddress,
                value.count)
        }
        let raw = topics[topic.index]
        let failure = outputs.withRecord(index) { key, value in
            perennial_rdkafka_produce(
                handle.raw, raw, record.partition, key.baseAddress, key.count, value.baseAddress, value.count, !lending,
                headers, record.timestamp, UnsafeMutableRawPointer(bitPattern: token))
        }
        try answer(failure, headers)
    }

    /// The number of headers of a derived record, and two more. Further headers only cost librdkafka another
    /// allocation.
    private static let expectedHeaders = 8

    /// If the record is accepted, librdkafka owns the headers.
    private func answer(_ failure: OpaquePointer?, _ headers: OpaquePointer?) throws(KafkaFault) {
        guard let failure else { return }
        if let headers { rd_kafka_headers_destroy(headers) }
        try KafkaFault.check(failure, "send a record")
    }

    /// Runs callbacks, and returns the number of events.
    @discardableResult
    func poll(_ timeout: Duration) -> Int { Int(rd_kafka_poll(handle.raw, timeout.timeoutMilliseconds)) }

    /// Waits until every record has its delivery report.
    func flush(by deadline: Deadline) throws(KafkaFault) {
        try KafkaFault.check(
            rd_kafka_flush(handle.raw, deadline.remaining.timeoutMilliseconds), "flush what was sent")
    }

    /// Records without a delivery report yet, and reports whose callback has not been called yet.
    var outstanding: Int { Int(rd_kafka_outq_len(handle.raw)) }

    /// Gives up the memory of records that were lent, if librdkafka reads none of it any more. Otherwise a later call
    /// does.
    func takeBack() {
        if outstanding == 0 { handle.context.keepNothing() }
    }

    /// Requests the topics' metadata, so that the first record does not wait up to a second for it, and returns the
    /// number of partitions of each.
    func partitionCounts(by deadline: Deadline) throws(KafkaFault) -> [Int32] {
        var counts: [Int32] = []
        for topic in topics { counts.append(try partitionCount(of: topic, handle.raw, by: deadline)) }
        return counts
    }

    /// False if the client was not closed by the deadline.
    mutating func close(by deadline: Deadline) -> Bool { beginClosing(by: deadline).wait(until: deadline) }

    /// Does not wait.
    mutating func beginClosing(by deadline: Deadline) -> ClosingClient {
        // `rd_kafka_destroy` would wait forever for a topic handle that is still open.
        for topic in topics { rd_kafka_topic_destroy(topic) }
        topics = []
        return handle.beginClosing(by: deadline)
    }
}

/// Asks with any client.
func partitionCount(
    of topic: OpaquePointer, _ client: OpaquePointer, by deadline: Deadline
) throws(KafkaFault) -> Int32 {
    let operation = "look up the partitions of \(String(cString: rd_kafka_topic_name(topic)))"
    var answer: UnsafePointer<rd_kafka_metadata>?
    try KafkaFault.check(
        rd_kafka_metadata(client, 0, topic, &answer, deadline.remaining.timeoutMilliseconds), operation)
    guard let answer else { throw KafkaFault(.retrySameCall, .timedOut, operation: operation) }
    defer { rd_kafka_metadata_destroy(answer) }
    let described = answer.pointee.topics[0]
    try KafkaFault.check(described.err, operation)
    return described.partition_cnt
}

/// nil is Kafka's null. An empty span is empty bytes, which still need an address.
private func withBytes<R>(_ span: Span<UInt8>?, _ body: (UnsafeRawPointer?, Int) -> R) -> R {
    guard let span else { return body(nil, 0) }
    return span.withUnsafeBytes { bytes in
        body(bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1), bytes.count)
    }
}

private func makeHeaders(_ headers: [RecordHeader]) -> OpaquePointer? {
    let list = rd_kafka_headers_new(headers.count)
    for header in headers {
        var name = header.name
        name.withUTF8 { name in
            name.withMemoryRebound(to: CChar.self) { name in
                if let value = header.value {
                    value.withUnsafeBytes { bytes in
                        // A nil address would be Kafka's null, and empty bytes are not null.
                        let address = bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1)
                        _ = rd_kafka_header_add(list, name.baseAddress, name.count, address, bytes.count)
                    }
                } else {
                    _ = rd_kafka_header_add(list, name.baseAddress, name.count, nil, 0)
                }
            }
        }
    }
    return list
}
