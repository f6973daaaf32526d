// Records that will be appended to a log.

/// The bytes of a batch's records. They stay at their addresses as long as somebody keeps this object.
public final class OutputMemory {
    let start: UnsafeMutableRawPointer
    let capacity: Int

    init(capacity: Int) {
        self.capacity = capacity
        start = .allocate(byteCount: capacity, alignment: 16)
    }

    deinit { start.deallocate() }
}

/// Records in the order in which they will be appended, as bytes in one buffer: once the buffer has grown, adding a
/// record allocates nothing. The records of a failed step can be removed again.
///
/// A record is added in parts: `begin`, its headers, then `end` with key and value. For use by one thread.
///
/// A log may read the records where they lie, also after `append` has returned: it keeps `memory` as long as it reads.
/// The batch never writes over bytes that somebody else keeps. If it is emptied meanwhile, it continues in other memory.
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
    /// Whoever keeps it can read the records of this moment at their addresses, whatever happens to the batch.
    @exclusivity(unchecked) public private(set) var memory = OutputMemory(capacity: leastCapacity)
    /// Bytes of all records together, including their descriptions.
    @exclusivity(unchecked) public private(set) var byteCount = 0
    @exclusivity(unchecked) private var open: Record?
    /// Memory that a log kept when the batch was emptied. It is used again when nobody else keeps it any more: the first
    /// access to new memory costs more than all else that happens to a record here.
    private var lent: [OutputMemory] = []
    private let spareBytes: Int
    /// So that a search among them stays short.
    private static let mostLent = 64
    private static let leastCapacity = 1024

    /// - Parameter spareBytes: how much memory is kept at most to be used again, besides that of the batch's records.
    public init(spareBytes: Int = 4 << 20) { self.spareBytes = spareBytes }

    public var count: Int { records.count }
    public var isEmpty: Bool { records.isEmpty }

    // MARK: Adding

    public func begin(topic: Int, partition: Int32, timestamp: Int64) {
        precondition(open == nil, "a record is already open")
        open = Record(
            topic: Int32(topic), partition: partition, timestamp: timestamp, headers: byteCount..<byteCount)
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
        encoded.bytes.withUnsafeBytes { add($0) }
    }

    public func end(key: Span<UInt8>?, value: Span<UInt8>?) {
        guard var record = open else { preconditionFailure("begin a record before its end") }
        open = nil
        record.headers = record.headers.lowerBound..<byteCount
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

    public var mark: Mark { Mark(records: records.count, bytes: byteCount) }

    /// Removes the records added since the mark, including an open one.
    public func rollBack(to mark: Mark) {
        open = nil
        records.removeLast(records.count - mark.records)
        cut(to: mark.bytes)
    }

    public func removeAll() {
        open = nil
        records.removeAll(keepingCapacity: true)
        cut(to: 0)
    }

    // MARK: For logs; the closures must not change the batch

    /// Calls `body` with key and value of a record; a nil address is null.
    public func withRecord<R>(
        _ index: Int, _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> R
    ) -> R {
        let record = records[index]
        return body(slice(record.key), slice(record.value))
    }

    /// Calls `body` with each header of a record, in order; a nil address of the value is null.
    public func forEachHeader(
        _ index: Int, _ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Void
    ) {
        let range = records[index].headers
        var position = range.lowerBound
        while position < range.upperBound {
            let name = take(&position)
            body(name, take(&position))
        }
    }

    // MARK: Bytes

    private func keep(_ span: Span<UInt8>?) -> Range<Int>? {
        guard let span else { return nil }
        let start = byteCount
        span.withUnsafeBytes { add($0) }
        return start..<byteCount
    }

    private func put(_ span: Span<UInt8>?) {
        guard let span else { return put(count: -1) }
        span.withUnsafeBytes { put($0) }
    }

    private func put(_ bytes: UnsafeRawBufferPointer) {
        put(count: Int32(bytes.count))
        add(bytes)
    }

    /// Writes the length of a name or value before its bytes; -1 is null.
    private func put(count: Int32) { withUnsafeBytes(of: count) { add($0) } }

    private func add(_ bytes: UnsafeRawBufferPointer) {
        guard let address = bytes.baseAddress else { return }
        if byteCount + bytes.count > memory.capacity { grow(by: bytes.count) }
        (memory.start + byteCount).copyMemory(from: address, byteCount: bytes.count)
        byteCount += bytes.count
    }

    private func grow(by count: Int) {
        // Whoever keeps the former memory has all records there that the batch had by then.
        let capacity = max(memory.capacity * 2, Self.capacity(for: byteCount + count))
        let former = memory
        if let free = free(capacity) {
            move(to: free, keeping: byteCount)
            keepForLater(former)
        } else {
            move(to: OutputMemory(capacity: capacity), keeping: byteCount)
        }
    }

    /// The next record will be written from `count` on, over bytes that somebody may still read.
    private func cut(to count: Int) {
        if count < byteCount, !isKnownUniquelyReferenced(&memory) {
            let former = memory
            // The next records will often take as much.
            let capacity = Self.capacity(for: byteCount)
            move(to: free(capacity) ?? OutputMemory(capacity: capacity), keeping: count)
            keepForLater(former)
        }
        byteCount = count
    }

    /// Few different sizes, so that memory fits again: two for each doubling, because a batch of a little more than a MiB
    /// is usual.
    private static func capacity(for bytes: Int) -> Int {
        var capacity = leastCapacity
        while capacity < bytes {
            if capacity / 2 * 3 >= bytes { return capacity / 2 * 3 }
            capacity *= 2
        }
        return capacity
    }

    private func keepForLater(_ former: OutputMemory) {
        lent.append(former)
        var bytes = lent.reduce(0) { $0 + $1.capacity }
        while bytes > spareBytes || lent.count > Self.mostLent { bytes -= lent.removeFirst().capacity }
    }

    private func move(to other: OutputMemory, keeping count: Int) {
        other.start.copyMemory(from: memory.start, byteCount: count)
        memory = other
    }

    /// The smallest memory that nobody reads: a large one stays for a batch that needs it, and others do not become as
    /// large.
    private func free(_ capacity: Int) -> OutputMemory? {
        var smallest: Int?
        for index in lent.indices where isKnownUniquelyReferenced(&lent[index]) && lent[index].capacity >= capacity {
            if let smallest, lent[smallest].capacity <= lent[index].capacity { continue }
            smallest = index
        }
        return smallest.map { lent.remove(at: $0) }
    }

    private func take(_ position: inout Int) -> UnsafeRawBufferPointer {
        let count = UnsafeRawPointer(memory.start).loadUnaligned(fromByteOffset: position, as: Int32.self)
        position += 4
        guard count >= 0 else { return slice(nil) }
        defer { position += Int(count) }
        return slice(position..<position + Int(count))
    }

    /// Empty bytes have an address: they are not null.
    private func slice(_ range: Range<Int>?) -> UnsafeRawBufferPointer {
        guard let range else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(start: memory.start + range.lowerBound, count: range.count)
    }
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
