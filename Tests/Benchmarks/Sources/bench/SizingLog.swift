// The segments of a topic as they lie on the disk of a broker: records, batches, ends of transactions.

import KafkaTestKit
import Platform

/// What one topic has, in all its partitions.
struct TopicOnDisk {
    /// Length of a record with everything that frames it.
    struct Record {
        let bytes: Int
        let key: [UInt8]?
    }

    private(set) var records: [Record] = []
    private(set) var batches = 0
    /// Bytes of batches with data, their headers included.
    private(set) var bytes = 0
    private(set) var markers = 0
    private(set) var markerBytes = 0

    /// The header of a batch in Kafka's format 2.
    static let headerBytes = 61

    init(_ topic: String, in folder: String) throws {
        let partitions = fileNames(folder).filter { name in
            name.hasPrefix("\(topic)-") && Int(name.dropFirst(topic.utf8.count + 1)) != nil
        }
        for partition in partitions {
            for file in fileNames("\(folder)/\(partition)").sorted() where file.hasSuffix(".log") {
                try read(try readFile("\(folder)/\(partition)/\(file)", limitBytes: 1 << 30))
            }
        }
        guard batches > 0 else { throw NotInTime("records of \(topic) in \(folder)", limit: .zero) }
    }

    private mutating func read(_ segment: [UInt8]) throws {
        var place = 0
        func number(_ offset: Int, _ count: Int) -> Int {
            segment[place + offset..<place + offset + count].reduce(0) { $0 << 8 | Int($1) }
        }
        while place + Self.headerBytes <= segment.count {
            let length = 12 + number(8, 4)
            guard length > Self.headerBytes, place + length <= segment.count, segment[place + 16] == 2 else { return }
            let (attributes, count) = (number(21, 2), number(57, 4))
            if attributes & 0x20 != 0 {
                markers += 1
                markerBytes += length
            } else {
                batches += 1
                bytes += length
                if attributes & 7 == 0 {
                    addRecords(segment[place + Self.headerBytes..<place + length], count)
                } else {
                    // Compressed: its records have no length of their own.
                    records += Array(
                        repeating: Record(bytes: (length - Self.headerBytes) / count, key: nil), count: count)
                }
            }
            place += length
        }
    }

    private mutating func addRecords(_ bytes: ArraySlice<UInt8>, _ count: Int) {
        var place = bytes.startIndex
        func varint() -> Int {
            var (value, shift) = (0, 0)
            while true {
                let byte = Int(bytes[place])
                place += 1
                value |= (byte & 0x7F) << shift
                shift += 7
                if byte & 0x80 == 0 { return (value >> 1) ^ -(value & 1) }
            }
        }
        for _ in 0..<count {
            let start = place
            let end = varint() + place
            place += 1
            _ = varint()
            _ = varint()
            let length = varint()
            records.append(
                Record(bytes: end - start, key: length < 0 ? nil : Array(bytes[place..<place + length])))
            place = end
        }
    }

    var bytesPerRecord: Double { mean(records) }
    func mean(_ records: [Record]) -> Double {
        Double(records.reduce(0) { $0 + $1.bytes }) / Double(records.count)
    }
}
