import Log

/// Records that a test makes itself, lent in the same way as a log lends them.
final class HeldRecords: RecordAccess {
    struct Record {
        var topic = 0
        var partition: Int32 = 0
        var offset: Int64
        var timestamp: Int64
        var key: [UInt8]?
        var value: [UInt8]?
        var headers: [RecordHeader] = []
    }

    private var records: [Record] = []
    private var blocks: [UnsafeMutableRawBufferPointer] = []

    deinit { for block in blocks { block.deallocate() } }

    func lend(_ record: Record, into batch: RecordBatch) {
        batch.begin(self)
        records.append(record)
        batch.append(
            RawRecord(
                topic: Int32(record.topic), partition: record.partition, offset: record.offset,
                timestamp: record.timestamp, key: keep(record.key), value: keep(record.value),
                handle: UnsafeMutableRawPointer(bitPattern: records.count)!))
    }

    private func keep(_ bytes: [UInt8]?) -> UnsafeRawBufferPointer {
        guard let bytes else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        let block = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, bytes.count), alignment: 1)
        block.copyBytes(from: bytes)
        blocks.append(block)
        return UnsafeRawBufferPointer(start: block.baseAddress, count: bytes.count)
    }

    func header(_ name: StaticString, of handle: UnsafeMutableRawPointer) -> UnsafeRawBufferPointer? {
        let header = headers(of: handle).last { $0.name == name.description }
        return header?.value.map { keep($0) }
    }

    func headers(of handle: UnsafeMutableRawPointer) -> [RecordHeader] {
        records[Int(bitPattern: handle) - 1].headers
    }

    func release(_ handle: UnsafeMutableRawPointer) {}
}
