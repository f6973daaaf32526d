// Records on their way into a log.

/// Records in the order they are to be appended, as bytes in one buffer: adding one allocates nothing once the buffer has
/// grown, and what a failed step has added can be taken back.
///
/// A record is added piece by piece: `begin`, its headers, `end` with key and value. One thread.
public final class OutputBatch {
    public struct Record {
        /// Which of the writer's topics.
        public var topic: Int32
        public var partition: Int32
        /// Milliseconds since 1970.
        public var timestamp: Int64
        var headers: Range<Int>
        /// nil is null.
        var key: Range<Int>?
        var value: Range<Int>?
    }

    /// How full a batch was at some moment.
    public struct Mark {
        let records: Int
        let bytes: Int
    }

    // Unchecked: the checks at run time are a fiftieth of a worker's whole loop. What they would find, a change of the batch inside
    // a closure that it has lent its bytes to, is against the rules of `withRecord` and `forEachHeader`.
    @exclusivity(unchecked) public private(set) var records: [Record] = []
    @exclusivity(unchecked) private var bytes: [UInt8] = []
    @exclusivity(unchecked) private var open: Record?

    public init() {}

    public var count: Int { records.count }
    public var isEmpty: Bool { records.isEmpty }
    /// Of all records together, what describes them included.
    public var byteCount: Int { bytes.count }

    // MARK: Adding

    public func begin(topic: Int, partition: Int32, timestamp: Int64) {
        precondition(open == nil, "one record after the other")
        open = Record(
            topic: Int32(topic), partition: partition, timestamp: timestamp, headers: bytes.count..<bytes.count)
    }

    /// Names may repeat; the order is kept. A nil value is null.
    public func header(_ name: StaticString, _ value: Span<UInt8>?) {
        precondition(open != nil, "a header belongs to a record")
        name.withUTF8Buffer { put(UnsafeRawBufferPointer($0)) }
        put(value)
    }

    public func header(_ header: RecordHeader) {
        precondition(open != nil, "a header belongs to a record")
        put(Array(header.name.utf8).span)
        if let value = header.value { put(value.span) } else { put(nil) }
    }

    /// Headers that are the same for many records, encoded once.
    public func headers(_ encoded: EncodedHeaders) {
        precondition(open != nil, "headers belong to a record")
        bytes.append(contentsOf: encoded.bytes)
    }

    public func end(key: Span<UInt8>?, value: Span<UInt8>?) {
        guard var record = open else { preconditionFailure("a record begins before it ends") }
        open = nil
        record.headers = record.headers.lowerBound..<bytes.count
        record.key = keep(key)
        record.value = keep(value)
        records.append(record)
    }

    /// All at once, where speed does not matter.
    public func append(
        topic: Int, partition: Int32, timestamp: Int64, key: [UInt8]?, value: [UInt8]?, headers: [RecordHeader] = []
    ) {
        begin(topic: topic, partition: partition, timestamp: timestamp)
        for header in headers { self.header(header) }
        switch (key, value) {
        case (nil, nil): end(key: nil, value: nil)
        case (let key?, nil): end(key: key.span, value: nil)
        case (nil, let value?): end(key: nil, value: value.span)
        case (let key?, let value?): end(key: key.span, value: value.span)
        }
    }

    // MARK: Taking back

    public var mark: Mark { Mark(records: records.count, bytes: bytes.count) }

    /// Takes back what was added since, a record that was begun and not ended included.
    public func rollBack(to mark: Mark) {
        open = nil
        records.removeLast(records.count - mark.records)
        bytes.removeLast(bytes.count - mark.bytes)
    }

    public func removeAll() {
        open = nil
        records.removeAll(keepingCapacity: true)
        bytes.removeAll(keepingCapacity: true)
    }

    // MARK: For logs; the batch must not change inside the closures.

    /// Calls with key and value of a record; a nil address is null.
    public func withRecord<R>(
        _ index: Int, _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> R
    ) -> R {
        let record = records[index]
        return bytes.withUnsafeBytes { bytes in
            body(Self.slice(bytes, record.key), Self.slice(bytes, record.value))
        }
    }

    /// Calls with each header of a record, in order; a nil address of the value is null.
    public func forEachHeader(
        _ index: Int, _ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Void
    ) {
        let range = records[index].headers
        bytes.withUnsafeBytes { bytes in
            var position = range.lowerBound
            while position < range.upperBound {
                let name = Self.take(bytes, &position)
                body(name, Self.take(bytes, &position))
            }
        }
    }

    /// Where speed does not matter.
    public func headers(of index: Int) -> [RecordHeader] {
        var headers: [RecordHeader] = []
        forEachHeader(index) { name, value in
            headers.append(
                RecordHeader(
                    String(decoding: name, as: UTF8.self), value.baseAddress == nil ? nil : [UInt8](value)))
        }
        return headers
    }

    // MARK: Bytes

    private func keep(_ span: Span<UInt8>?) -> Range<Int>? {
        guard let span else { return nil }
        let start = bytes.count
        // A buffer of bytes is copied in one step, a raw one byte by byte.
        span.withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
        return start..<bytes.count
    }

    private func put(_ span: Span<UInt8>?) {
        guard let span else { return put(count: -1) }
        span.withUnsafeBytes { put($0) }
    }

    private func put(_ buffer: UnsafeRawBufferPointer) {
        put(count: Int32(buffer.count))
        bytes.append(contentsOf: buffer.assumingMemoryBound(to: UInt8.self))
    }

    /// Before the bytes of a name or value; -1 is null.
    private func put(count: Int32) {
        withUnsafeBytes(of: count) { bytes.append(contentsOf: $0) }
    }

    private static func take(_ bytes: UnsafeRawBufferPointer, _ position: inout Int) -> UnsafeRawBufferPointer {
        let count = bytes.loadUnaligned(fromByteOffset: position, as: Int32.self)
        position += 4
        guard count >= 0 else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        defer { position += Int(count) }
        return slice(bytes, position..<position + Int(count))
    }

    private static func slice(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>?) -> UnsafeRawBufferPointer {
        guard let range else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        guard let base = bytes.baseAddress else { return UnsafeRawBufferPointer(start: empty, count: 0) }
        return UnsafeRawBufferPointer(start: base + range.lowerBound, count: range.count)
    }

    /// An address for empty bytes, which are not null.
    nonisolated(unsafe) private static let empty = UnsafeRawPointer(bitPattern: 1)
}

/// Headers in the form in which a batch keeps them.
public struct EncodedHeaders: Sendable {
    let bytes: [UInt8]

    public init(_ headers: [RecordHeader]) {
        var bytes: [UInt8] = []
        func put(_ text: [UInt8]?) {
            withUnsafeBytes(of: Int32(text?.count ?? -1)) { bytes.append(contentsOf: $0) }
            bytes.append(contentsOf: text ?? [])
        }
        for header in headers {
            put(Array(header.name.utf8))
            put(header.value)
        }
        self.bytes = bytes
    }
}
