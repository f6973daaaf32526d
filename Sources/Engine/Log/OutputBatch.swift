// Records that will be appended to a log.

/// Records in the order in which they will be appended, as bytes in one buffer: once the buffer has grown, adding a
/// record allocates nothing. The records of a failed step can be removed again.
///
/// A record is added in parts: `begin`, its headers, then `end` with key and value. For use by one thread.
public final class OutputBatch {
    public struct Record {
        /// Index of one of the writer's topics.
        public var topic: Int32
        public var partition: Int32
        /// Milliseconds since 1970.
        public var timestamp: Int64
        var headers: Range<Int>
        /// nil is null.
        var key: Range<Int>?
        var value: Range<Int>?
    }

    /// The size of a batch at some moment.
    public struct Mark {
        let records: Int
        let bytes: Int
    }

    // Unchecked: the checks at run time cost a fiftieth of a worker's whole loop. They would find a change of the batch
    // inside a closure that uses its bytes, which the rules of `withRecord` and `forEachHeader` forbid.
    @exclusivity(unchecked) public private(set) var records: [Record] = []
    @exclusivity(unchecked) private var bytes: [UInt8] = []
    @exclusivity(unchecked) private var open: Record?

    public init() {}

    public var count: Int { records.count }
    public var isEmpty: Bool { records.isEmpty }
    /// Bytes of all records together, including their descriptions.
    public var byteCount: Int { bytes.count }

    // MARK: Adding

    public func begin(topic: Int, partition: Int32, timestamp: Int64) {
        precondition(open == nil, "a record is already open")
        open = Record(
            topic: Int32(topic), partition: partition, timestamp: timestamp, headers: bytes.count..<bytes.count)
    }

    /// Names may repeat; the order is kept. A nil value is null.
    public func header(_ name: StaticString, _ value: Span<UInt8>?) {
        precondition(open != nil, "begin a record before its headers")
        name.withUTF8Buffer { put(UnsafeRawBufferPointer($0)) }
        put(value)
    }

    public func header(_ header: RecordHeader) {
        precondition(open != nil, "begin a record before its headers")
        put(Array(header.name.utf8).span)
        if let value = header.value { put(value.span) } else { put(nil) }
    }

    /// Headers that many records share, encoded once.
    public func headers(_ encoded: EncodedHeaders) {
        precondition(open != nil, "begin a record before its headers")
        bytes.append(contentsOf: encoded.bytes)
    }

    public func end(key: Span<UInt8>?, value: Span<UInt8>?) {
        guard var record = open else { preconditionFailure("begin a record before its end") }
        open = nil
        record.headers = record.headers.lowerBound..<bytes.count
        record.key = keep(key)
        record.value = keep(value)
        records.append(record)
    }

    /// Appends a whole record, where speed does not matter.
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

    // MARK: Rolling back

    public var mark: Mark { Mark(records: records.count, bytes: bytes.count) }

    /// Removes the records added since the mark, including an open one.
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

    // MARK: For logs; the closures must not change the batch

    /// Calls `body` with key and value of a record; a nil address is null.
    public func withRecord<R>(
        _ index: Int, _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> R
    ) -> R {
        let record = records[index]
        return bytes.withUnsafeBytes { bytes in
            body(Self.slice(bytes, record.key), Self.slice(bytes, record.value))
        }
    }

    /// Calls `body` with each header of a record, in order; a nil address of the value is null.
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

    // MARK: Bytes

    private func keep(_ span: Span<UInt8>?) -> Range<Int>? {
        guard let span else { return nil }
        let start = bytes.count
        // A buffer of bytes is copied in one step, a raw buffer byte by byte.
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

    /// Writes the length of a name or value before its bytes; -1 is null.
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

/// Headers in the form in which a batch stores them.
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
