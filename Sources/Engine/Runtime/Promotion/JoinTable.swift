// The last record of every key of one topic partition, on disk, so that two partitions can be compared in little
// memory.

internal import Log
internal import Platform
internal import Store

final class JoinTable {
    private static let bytesPerWrite = 4 << 20

    private let store: any PartitionStore
    private let changes = StoreChanges()

    init(_ stores: any PartitionStores, _ number: Int32) throws(PromotionFault) {
        do throws(StoreFault) {
            try stores.wipe(number)
            store = try stores.open(number)
        } catch {
            throw .store(error.words)
        }
    }

    private func storing<Answer>(_ body: () throws(StoreFault) -> Answer) throws(PromotionFault) -> Answer {
        do throws(StoreFault) { return try body() } catch { throw .store(error.words) }
    }

    /// nil deletes the key.
    func put(_ key: [UInt8], _ value: [UInt8]?) throws(PromotionFault) {
        if let value { changes.put(key.span, value.span) } else { changes.delete(key.span) }
        if changes.bytes.count >= Self.bytesPerWrite { try flush() }
    }

    func flush() throws(PromotionFault) {
        if changes.changes.isEmpty { return }
        try storing { () throws(StoreFault) in try store.write(changes, .none) }
        changes.removeAll()
    }

    /// Does not see what was put and not flushed.
    func value(of key: [UInt8]) throws(PromotionFault) -> [UInt8]? {
        var value: [UInt8] = []
        let isThere = try storing { () throws(StoreFault) in try store.read(key.span, into: &value) }
        return isThere ? value : nil
    }

    /// Calls `body` in the order of the keys. It must not use the table itself.
    func each(_ body: ([UInt8], [UInt8]) throws(PromotionFault) -> Void) throws(PromotionFault) {
        var fault: PromotionFault?
        let all: [UInt8] = []
        try storing { () throws(StoreFault) in
            try store.scan(all.span) { key, value in
                do throws(PromotionFault) {
                    try body(key.withUnsafeBytes { [UInt8]($0) }, value.withUnsafeBytes { [UInt8]($0) })
                    return true
                } catch {
                    fault = error
                    return false
                }
            }
        }
        if let fault { throw fault }
    }

    func close() throws(PromotionFault) { try storing { () throws(StoreFault) in try store.close() } }
}

/// A record as a table stores it: everything except its key.
struct KeptRecord {
    var timestamp: Int64
    var headers: [RecordHeader]
    var value: [UInt8]

    init(_ record: borrowing RecordView, value: [UInt8]) {
        timestamp = record.timestamp
        headers = record.headers
        self.value = value
    }

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(littleEndian: timestamp)
        bytes.append(littleEndian: UInt16(headers.count))
        for header in headers {
            bytes.append(littleEndian: UInt16(header.name.utf8.count))
            bytes.append(contentsOf: header.name.utf8)
            bytes.append(littleEndian: header.value.map { Int32($0.count) } ?? -1)
            bytes.append(contentsOf: header.value ?? [])
        }
        bytes.append(contentsOf: value)
        return bytes
    }

    /// nil: the bytes were not written by this type.
    init?(_ bytes: [UInt8]) {
        var reader = NoteReader(bytes)
        guard let timestamp = reader.take(Int64.self), let count = reader.take(UInt16.self) else { return nil }
        var headers: [RecordHeader] = []
        for _ in 0..<count {
            guard let length = reader.take(UInt16.self), let name = reader.take(count: Int(length)),
                let size = reader.take(Int32.self)
            else { return nil }
            guard let value = reader.take(count: Int(max(0, size))) else { return nil }
            headers.append(RecordHeader(String(decoding: name, as: UTF8.self), size < 0 ? nil : Array(value)))
        }
        self.timestamp = timestamp
        self.headers = headers
        value = Array(reader.remaining)
    }
}
