// Joins the records of two topics by key, in little memory: the records are on disk, in several files, so that each file has few
// keys. The files are read one after another.

import Cluster
import Platform

/// `here` is the shadow, `there` is the live topic.
enum Side: UInt8, Sendable { case here = 0, there = 1 }

/// A record of one side.
struct JoinedRecord: Equatable {
    /// nil: the key was deleted.
    var value: [UInt8]?
    var isNewer: Bool
    var offset: Int64
    var timestamp: Int64
}

struct JoinedKey {
    var key: [UInt8]
    /// The last record of each side, or all records in order if all are kept.
    var here: [JoinedRecord]
    var there: [JoinedRecord]
}

/// One thread.
final class KeyJoin {
    /// Records per file, and so about the greatest number of keys in a file.
    private static let recordsPerFile: Int64 = 50_000
    /// Each file has a buffer and a descriptor.
    private static let limitFiles = 128
    private static let chunkBytes = 1 << 20

    /// The header of each record in a file: side, whether it is newer, lengths of key and value (below zero: deleted), offset, time.
    private struct Head {
        static let count = 28
        var side: Side
        var isNewer: Bool
        var keyCount: Int
        var valueCount: Int
        var offset: Int64
        var timestamp: Int64

        var count: Int { Head.count + keyCount + max(0, valueCount) }
    }

    private struct Entry {
        var head: Head
        /// Position of the value in the file.
        var place: Int64
        /// The previous entry of this key and side; -1: there is none.
        var previous: Int
    }

    private let keepsAll: Bool
    private let files: [ScratchFile]
    private var record: [UInt8] = []
    private var index = KeyIndex()
    private var entries: [Entry] = []
    /// The last entry of each key and side; -1: there is none.
    private var last: [(here: Int, there: Int)] = []

    /// - Parameters:
    ///   - records: the expected number of records of both sides.
    ///   - keepsAll: keeps every record of a key, not only the last.
    init(in directory: String, records: Int64, keepsAll: Bool) throws(ToolFault) {
        self.keepsAll = keepsAll
        var count = 1
        while count < Self.limitFiles, Int64(count) * Self.recordsPerFile < records { count *= 2 }
        var files: [ScratchFile] = []
        for _ in 0..<count {
            files.append(try scratch(directory) { () throws(SystemFailure) in try ScratchFile(in: directory) })
        }
        self.files = files
        self.directory = directory
    }

    private let directory: String

    func add(
        _ side: Side, key: Span<UInt8>, value: Span<UInt8>?, isNewer: Bool, offset: Int64, timestamp: Int64
    ) throws(ToolFault) {
        record.removeAll(keepingCapacity: true)
        record.append(side.rawValue)
        record.append(isNewer ? 1 : 0)
        append(UInt16(0))
        append(UInt32(key.count))
        // Written like this because an optional span has no `map`.
        var valueCount: Int32 = -1
        if let value { valueCount = Int32(value.count) }
        append(valueCount)
        append(offset)
        append(timestamp)
        let hash = key.withUnsafeBytes { bytes in
            record.append(contentsOf: bytes)
            return KeyIndex.hash(bytes)
        }
        if let value { value.withUnsafeBytes { record.append(contentsOf: $0) } }
        // The upper bits, because `KeyIndex` uses the lower ones.
        let file = files[Int(truncatingIfNeeded: hash >> 40) & (files.count - 1)]
        try scratch(directory) { () throws(SystemFailure) in try file.append(record) }
    }

    private func append(_ number: some FixedWidthInteger) {
        withUnsafeBytes(of: number.littleEndian) { record.append(contentsOf: $0) }
    }

    /// Calls `body` once for every key of both sides, with the fraction of keys before it. Afterwards the join is empty.
    func eachKey(_ body: (JoinedKey, _ part: Double) throws(ToolFault) -> Void) throws(ToolFault) {
        // The files have about equal numbers of keys.
        for (place, file) in files.enumerated() {
            try look(through: file)
            for number in 0..<index.count {
                let part = (Double(place) + Double(number) / Double(index.count)) / Double(files.count)
                try body(
                    JoinedKey(
                        key: Array(index.key(number)), here: try records(to: last[number].here, in: file),
                        there: try records(to: last[number].there, in: file)), part)
            }
            try scratch(directory) { () throws(SystemFailure) in try file.empty() }
        }
    }

    /// Scans a file for its keys and the positions of their records.
    private func look(through file: ScratchFile) throws(ToolFault) {
        index.removeAll()
        entries.removeAll(keepingCapacity: true)
        last.removeAll(keepingCapacity: true)
        try scratch(directory) { () throws(SystemFailure) in
            try file.flush()
            var chunk = [UInt8](repeating: 0, count: Self.chunkBytes)
            var place: Int64 = 0
            while place < file.count {
                let filled = try read(file, at: place, into: &chunk)
                let used = chunk.withUnsafeBytes { note(UnsafeRawBufferPointer(rebasing: $0[..<filled]), from: place) }
                // The header and key of one record are larger than a chunk.
                if used == 0 { chunk = [UInt8](repeating: 0, count: chunk.count * 2) }
                place += used
            }
        }
    }

    private func read(_ file: ScratchFile, at place: Int64, into chunk: inout [UInt8]) throws(SystemFailure) -> Int {
        let result = chunk.withUnsafeMutableBytes { bytes in
            Result { () throws(SystemFailure) in try file.read(at: place, into: bytes) }
        }
        return try result.get()
    }

    /// - Returns: the distance to the next record; its value need not be in the chunk.
    private func note(_ chunk: UnsafeRawBufferPointer, from start: Int64) -> Int64 {
        var at = 0
        while chunk.count - at >= Head.count {
            let head = head(chunk, at: at)
            guard chunk.count - at >= Head.count + head.keyCount else { break }
            let keyStart = at + Head.count
            let key = UnsafeRawBufferPointer(rebasing: chunk[keyStart..<keyStart + head.keyCount])
            note(head, key, valueAt: start + Int64(keyStart + head.keyCount))
            at += head.count
            if at >= chunk.count { break }
        }
        return Int64(at)
    }

    private func head(_ chunk: UnsafeRawBufferPointer, at: Int) -> Head {
        func number<Number: FixedWidthInteger>(_ offset: Int, _: Number.Type) -> Number {
            Number(littleEndian: chunk.loadUnaligned(fromByteOffset: at + offset, as: Number.self))
        }
        return Head(
            side: chunk[at] == Side.here.rawValue ? .here : .there,
            isNewer: chunk[at + 1] != 0,
            keyCount: Int(number(4, UInt32.self)), valueCount: Int(number(8, Int32.self)),
            offset: number(12, Int64.self), timestamp: number(20, Int64.self))
    }

    private func note(_ head: Head, _ key: UnsafeRawBufferPointer, valueAt place: Int64) {
        let (number, isNew) = index.number(of: key)
        if isNew { last.append((-1, -1)) }
        let before = head.side == .here ? last[number].here : last[number].there
        if before >= 0, !keepsAll {
            // The last one wins.
            entries[before] = Entry(head: head, place: place, previous: -1)
            return
        }
        entries.append(Entry(head: head, place: place, previous: before))
        if head.side == .here { last[number].here = entries.count - 1 } else { last[number].there = entries.count - 1 }
    }

    private func records(to last: Int, in file: ScratchFile) throws(ToolFault) -> [JoinedRecord] {
        var found: [JoinedRecord] = []
        var next = last
        while next >= 0 {
            let entry = entries[next]
            found.append(
                JoinedRecord(
                    value: try value(of: entry, in: file), isNewer: entry.head.isNewer, offset: entry.head.offset,
                    timestamp: entry.head.timestamp))
            next = entry.previous
        }
        return found.reversed()
    }

    private func value(of entry: Entry, in file: ScratchFile) throws(ToolFault) -> [UInt8]? {
        let count = entry.head.valueCount
        guard count >= 0 else { return nil }
        return try scratch(directory) { () throws(SystemFailure) in
            var failure: SystemFailure?
            let value = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
                do throws(SystemFailure) {
                    filled = try file.read(
                        at: entry.place,
                        into: UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<count]))
                } catch { failure = error }
            }
            if let failure { throw failure }
            return value
        }
    }
}

/// A system error in the scratch directory ends the run, with what to do.
private func scratch<Answer>(
    _ directory: String, _ body: () throws(SystemFailure) -> Answer
) throws(ToolFault) -> Answer {
    do throws(SystemFailure) {
        return try body()
    } catch {
        throw ToolFault(
            .gaveUp,
            "\(error): set --scratch to a writable directory with room for the largest partition of both topics (now: "
                + "\(directory))")
    }
}
