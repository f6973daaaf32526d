// Records that a log lends to its reader.

/// One record as a log's implementation provides it; its addresses are valid until the batch is emptied.
public struct RawRecord {
    /// Index of one of the reader's topics.
    public var topic: Int32
    public var partition: Int32
    public var offset: Int64
    /// Milliseconds since 1970.
    public var timestamp: Int64
    /// A nil address is null; empty bytes have an address.
    public var key: UnsafeRawBufferPointer
    public var value: UnsafeRawBufferPointer
    /// Identifies the rest of the record for the implementation.
    public var handle: UnsafeMutableRawPointer

    public init(
        topic: Int32, partition: Int32, offset: Int64, timestamp: Int64, key: UnsafeRawBufferPointer,
        value: UnsafeRawBufferPointer, handle: UnsafeMutableRawPointer
    ) {
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.handle = handle
    }
}

/// A log's access to the records behind the handles.
public protocol RecordAccess: AnyObject {
    /// The last header with this name; nil if there is none, or its value is null. Valid until `release`.
    func header(_ name: StaticString, of handle: UnsafeMutableRawPointer) -> UnsafeRawBufferPointer?
    /// All headers in order, copied.
    func headers(of handle: UnsafeMutableRawPointer) -> [RecordHeader]
    /// The record is not used any more.
    func release(_ handle: UnsafeMutableRawPointer)
}

/// Records that a log has lent to its reader, in order per partition. They are returned when the batch is emptied, at
/// the latest by the next `poll`. For use by one thread.
///
/// A batch keeps the interface cheap: the log is called once for some hundred records, and the loop over them does not
/// depend on the log.
public final class RecordBatch {
    @usableFromInline var records: [RawRecord] = []
    @usableFromInline var access: (any RecordAccess)?

    public init() {}

    deinit { removeAll() }

    @inlinable public var count: Int { records.count }
    @inlinable public var isEmpty: Bool { records.isEmpty }

    /// Valid until the batch changes.
    @inlinable public subscript(index: Int) -> RecordView {
        @_lifetime(borrow self)
        get { _overrideLifetime(RecordView(records[index], access), borrowing: self) }
    }

    // MARK: For logs

    /// Returns the remaining records of the last poll; `access` lends the next records.
    public func begin(_ access: any RecordAccess) {
        removeAll()
        self.access = access
    }

    @inlinable public func append(_ record: RawRecord) { records.append(record) }

    public func removeAll() {
        if let access { for record in records { access.release(record.handle) } }
        records.removeAll(keepingCapacity: true)
        access = nil
    }
}

/// One record, valid until its batch is emptied.
public struct RecordView: ~Escapable {
    @usableFromInline let raw: RawRecord
    @usableFromInline let access: (any RecordAccess)?

    @_lifetime(immortal)
    @usableFromInline init(_ raw: RawRecord, _ access: (any RecordAccess)?) {
        self.raw = raw
        self.access = access
    }

    /// Index of one of the reader's topics, in the order in which it listed them.
    @inlinable public var topic: Int { Int(raw.topic) }
    @inlinable public var partition: Int32 { raw.partition }
    @inlinable public var offset: Int64 { raw.offset }
    /// Milliseconds since 1970, as the writer or the log set it.
    @inlinable public var timestamp: Int64 { raw.timestamp }

    /// nil if the record has no key.
    public var key: Span<UInt8>? {
        @_lifetime(copy self)
        get {
            guard raw.key.baseAddress != nil else { return nil }
            return _overrideLifetime(Span(_unsafeBytes: raw.key), copying: self)
        }
    }

    /// nil is a tombstone.
    public var value: Span<UInt8>? {
        @_lifetime(copy self)
        get {
            guard raw.value.baseAddress != nil else { return nil }
            return _overrideLifetime(Span(_unsafeBytes: raw.value), copying: self)
        }
    }

    /// The last header with this name; nil if there is none, or its value is null.
    @_lifetime(copy self)
    public func header(_ name: StaticString) -> Span<UInt8>? {
        guard let found = access?.header(name, of: raw.handle) else { return nil }
        return _overrideLifetime(Span(_unsafeBytes: found), copying: self)
    }

    /// All headers in order, copied.
    public var headers: [RecordHeader] { access?.headers(of: raw.handle) ?? [] }

    /// The key's bytes, as a copy.
    public func copyOfKey() -> [UInt8]? { raw.key.baseAddress == nil ? nil : [UInt8](raw.key) }

    /// The value's bytes, as a copy.
    public func copyOfValue() -> [UInt8]? { raw.value.baseAddress == nil ? nil : [UInt8](raw.value) }
}
