// One record in memory.

internal import Log

struct RecordShape {
    var offset: Int64
    var timestamp: Int64
    /// When the log appended it; the age of a tombstone is counted from then.
    var appended: Int64
    /// Byte counts; -1 is null.
    var headers: Int32
    var key: Int32
    var value: Int32
}

/// One allocation: the shape, then headers, key and value, one after the other. It never changes after its creation, so
/// lent records are read without a lock.
///
/// A header is the length and the bytes of its name, then the length (-1 is null) and the bytes of its value.
final class StoredRecord: ManagedBuffer<RecordShape, UInt8> {
    static func make(
        of outputs: OutputBatch, _ index: Int, offset: Int64, timestamp: Int64, appended: Int64
    ) -> StoredRecord {
        var headers = 0
        outputs.forEachHeader(index) { name, value in headers += 8 + name.count + value.count }
        return outputs.withRecord(index) { key, value in
            let shape = RecordShape(
                offset: offset, timestamp: timestamp, appended: appended, headers: Int32(headers),
                key: key.baseAddress == nil ? -1 : Int32(key.count),
                value: value.baseAddress == nil ? -1 : Int32(value.count))
            let made = create(minimumCapacity: headers + key.count + value.count) { _ in shape }
            let record = unsafeDowncast(made, to: StoredRecord.self)
            var position = record.bytes
            func put(_ part: UnsafeRawBufferPointer) {
                guard part.count > 0, let address = part.baseAddress else { return }
                position.copyMemory(from: address, byteCount: part.count)
                position += part.count
            }
            func put(count: Int) {
                position.storeBytes(of: Int32(count), as: Int32.self)
                position += 4
            }
            outputs.forEachHeader(index) { name, value in
                put(count: name.count)
                put(name)
                put(count: value.baseAddress == nil ? -1 : value.count)
                put(value)
            }
            put(key)
            put(value)
            return record
        }
    }

    /// Valid as long as the record: the bytes are part of its allocation.
    private var bytes: UnsafeMutableRawPointer {
        withUnsafeMutablePointerToElements { UnsafeMutableRawPointer($0) }
    }

    var offset: Int64 { header.offset }
    var timestamp: Int64 { header.timestamp }
    var isTombstone: Bool { header.value < 0 }

    var key: UnsafeRawBufferPointer {
        let shape = header
        return slice(from: Int(shape.headers), count: shape.key)
    }

    var value: UnsafeRawBufferPointer {
        let shape = header
        return slice(from: Int(shape.headers) + Int(max(0, shape.key)), count: shape.value)
    }

    private func slice(from start: Int, count: Int32) -> UnsafeRawBufferPointer {
        guard count >= 0 else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(start: bytes + start, count: Int(count))
    }

    /// Lends the record to a batch, which returns it to `StoredRecordAccess`.
    func lend(as topic: Int32, of partition: Int32) -> RawRecord {
        RawRecord(
            topic: topic, partition: partition, offset: offset, timestamp: timestamp, key: key, value: value,
            handle: Unmanaged.passRetained(self).toOpaque())
    }

    func forEachHeader(_ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Void) {
        var position = 0
        let end = Int(header.headers)
        func take() -> UnsafeRawBufferPointer {
            let count = bytes.loadUnaligned(fromByteOffset: position, as: Int32.self)
            position += 4
            defer { position += Int(max(0, count)) }
            return slice(from: position, count: count)
        }
        while position < end {
            let name = take()
            body(name, take())
        }
    }
}

/// Releases the retain of a lent record.
final class StoredRecordAccess: RecordAccess, Sendable {
    static let shared = StoredRecordAccess()

    func header(_ name: StaticString, of handle: UnsafeMutableRawPointer) -> UnsafeRawBufferPointer? {
        var found: UnsafeRawBufferPointer?
        name.withUTF8Buffer { wanted in
            record(handle).forEachHeader { name, value in
                if name.elementsEqual(wanted) { found = value }
            }
        }
        return found?.baseAddress == nil ? nil : found
    }

    func headers(of handle: UnsafeMutableRawPointer) -> [RecordHeader] {
        var headers: [RecordHeader] = []
        record(handle).forEachHeader { name, value in
            headers.append(
                RecordHeader(String(decoding: name, as: UTF8.self), value.baseAddress == nil ? nil : [UInt8](value)))
        }
        return headers
    }

    func release(_ handle: UnsafeMutableRawPointer) { Unmanaged<StoredRecord>.fromOpaque(handle).release() }

    private func record(_ handle: UnsafeMutableRawPointer) -> StoredRecord {
        Unmanaged<StoredRecord>.fromOpaque(handle).takeUnretainedValue()
    }
}

/// A key as compaction compares it: by bytes, not as text.
struct StoredKey: Hashable {
    let record: StoredRecord

    static func == (left: StoredKey, right: StoredKey) -> Bool { left.record.key.elementsEqual(right.record.key) }
    func hash(into hasher: inout Hasher) { hasher.combine(bytes: record.key) }
}
