// One record in librdkafka's fetch buffer.

internal import CRDKafka
public import Log

/// Owns one consumed message, and returns it when it goes out of scope.
///
/// Key and value point into the buffer of a whole fetch response, which stays in memory as long as one of its records
/// exists: copy what outlives the cycle, and keep no record.
public struct ConsumedRecord: ~Copyable {
    private let message: UnsafeMutablePointer<rd_kafka_message_t>

    init(owning message: UnsafeMutablePointer<rd_kafka_message_t>) {
        self.message = message
    }

    deinit { rd_kafka_message_destroy(message) }

    /// Created anew at each call.
    public var topic: String { String(cString: rd_kafka_topic_name(message.pointee.rkt)) }
    public var partition: Int32 { message.pointee.partition }
    public var offset: Int64 { message.pointee.offset }
    public var topicPartition: TopicPartition { TopicPartition(topic, partition) }

    /// nil when the record has no key.
    public var key: Span<UInt8>? {
        @_lifetime(borrow self)
        get {
            guard let address = message.pointee.key else { return nil }
            return _overrideLifetime(bytes(address, message.pointee.key_len), borrowing: self)
        }
    }

    /// nil is a tombstone.
    public var value: Span<UInt8>? {
        @_lifetime(borrow self)
        get {
            guard let address = message.pointee.payload else { return nil }
            return _overrideLifetime(bytes(address, message.pointee.len), borrowing: self)
        }
    }

    /// The key's bytes, as a copy.
    public func copyOfKey() -> [UInt8]? { copy(message.pointee.key, message.pointee.key_len) }

    /// The value's bytes, as a copy.
    public func copyOfValue() -> [UInt8]? { copy(message.pointee.payload, message.pointee.len) }

    private func copy(_ address: UnsafeMutableRawPointer?, _ count: Int) -> [UInt8]? {
        address.map { [UInt8](UnsafeRawBufferPointer(start: $0, count: count)) }
    }

    @_lifetime(borrow self)
    private func bytes(_ address: UnsafeMutableRawPointer, _ count: Int) -> Span<UInt8> {
        let span = Span<UInt8>(_unsafeStart: address.assumingMemoryBound(to: UInt8.self), count: count)
        return _overrideLifetime(span, borrowing: self)
    }

    /// Milliseconds since 1970, as the producer or the broker set it; nil if the record has no timestamp.
    public var timestamp: Int64? {
        var type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE
        let milliseconds = rd_kafka_message_timestamp(message, &type)
        return type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? nil : milliseconds
    }

    /// All headers, copied.
    public var headers: [RecordHeader] { copyHeaders(of: message) }
}

/// The consumer's current membership: the member, and the generation that fences it.
public struct GroupMetadata: ~Copyable {
    let raw: OpaquePointer

    init(owning raw: OpaquePointer) { self.raw = raw }

    deinit { rd_kafka_consumer_group_metadata_destroy(raw) }
}
