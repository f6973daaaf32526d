// The offsets and records of a worker's inputs.

import Cluster
import Contract
import Log
import Platform

/// Asks a log about partitions. One thread.
final class InputSurvey {
    /// Up to this many offsets, records are read and counted one by one; of longer spans only the offsets are counted.
    static let countLimit: Int64 = 1000

    let reader: any LogReader
    private let topics: [String]
    private let deadline: Deadline

    init(_ log: any RecordLog, topics: [String], group: String, by deadline: Deadline) throws(ToolFault) {
        self.topics = topics
        self.deadline = deadline
        do throws(LogFault) {
            reader = try log.openReader(ReaderOptions(name: "perennial-replay", group: group, topics: topics))
        } catch {
            throw ToolFault(error)
        }
    }

    func close() { reader.close(by: Deadline(after: .seconds(2))) }

    private func asking<Answer>(_ body: () throws(LogFault) -> Answer) throws(ToolFault) -> Answer {
        while true {
            do throws(LogFault) {
                return try body()
            } catch {
                if error.remedy != .retrySameCall || deadline.hasPassed { throw ToolFault(error) }
                pause(for: .milliseconds(100))
            }
        }
    }

    func beginnings(_ partitions: [TopicPartition]) throws(ToolFault) -> [TopicPartition: NextOffset] {
        try asking { () throws(LogFault) in try reader.beginnings(of: partitions, by: deadline) }
    }

    func ends(_ partitions: [TopicPartition]) throws(ToolFault) -> [TopicPartition: NextOffset] {
        try asking { () throws(LogFault) in try reader.ends(.committed, of: partitions, by: deadline) }
    }

    func offsets(at time: Int64, _ partitions: [TopicPartition]) throws(ToolFault) -> [TopicPartition: NextOffset] {
        try asking { () throws(LogFault) in try reader.offsets(at: time, in: partitions, by: deadline) }
    }

    /// The timestamps of the first records, in milliseconds since 1970. Partitions that returned none in time are left out.
    func firstTimestamps(
        _ starts: [TopicPartition: NextOffset], until patience: Deadline
    ) throws(ToolFault) -> [TopicPartition: Int64] {
        var found: [TopicPartition: Int64] = [:]
        try read(starts, until: patience) { partition, timestamp, _ in
            found[partition] = found[partition] ?? timestamp
            return found.count < starts.count
        }
        return found
    }

    /// The number of records between two offsets, for spans of at most `countLimit` offsets; nil: they did not arrive in time.
    func count(
        _ spans: [TopicPartition: Range<Int64>], until patience: Deadline
    ) throws(ToolFault) -> [TopicPartition: Int]? {
        var counts = spans.mapValues { _ in 0 }
        var open = Set(spans.filter { !$0.value.isEmpty }.keys)
        if open.isEmpty { return counts }
        try read(spans.filter { !$0.value.isEmpty }.mapValues { NextOffset($0.lowerBound) }, until: patience) {
            partition, _, offset in
            if spans[partition]?.contains(offset) ?? false { counts[partition, default: 0] += 1 }
            return true
        } pause: { reader in
            // The last offset may be the marker of a transaction instead of a record.
            open = open.filter { (reader.position(of: $0)?.value ?? 0) < spans[$0]?.upperBound ?? 0 }
            return !open.isEmpty
        }
        return open.isEmpty ? counts : nil
    }

    /// The program and the rules of the last record in these spans; nil: there is no record.
    func lastHeaders(
        _ starts: [TopicPartition: NextOffset], to ends: [TopicPartition: NextOffset], until patience: Deadline
    ) throws(ToolFault) -> (app: String, rules: String?)? {
        if starts.isEmpty { return nil }
        var last: (timestamp: Int64, app: String, rules: String?)?
        do throws(LogFault) {
            let batch = RecordBatch()
            defer { batch.removeAll() }
            try reader.read(from: starts)
            while !patience.hasPassed,
                starts.keys.contains(where: { reader.position(of: $0) ?? NextOffset(0) < ends[$0]! })
            {
                try reader.poll(into: batch, limit: 1000, wait: .milliseconds(100))
                for index in 0..<batch.count {
                    let record = batch[index]
                    guard let program = text(record.program), record.timestamp >= last?.timestamp ?? .min else {
                        continue
                    }
                    last = (record.timestamp, program, text(record.rules))
                }
            }
        } catch {
            throw ToolFault(error)
        }
        return last.map { ($0.app, $0.rules) }
    }

    /// - Parameters:
    ///   - take: called with each record; false ends the reading.
    ///   - pause: called between two polls; false ends the reading.
    private func read(
        _ starts: [TopicPartition: NextOffset], until patience: Deadline,
        _ take: (_ partition: TopicPartition, _ timestamp: Int64, _ offset: Int64) -> Bool,
        pause: (any LogReader) -> Bool = { _ in true }
    ) throws(ToolFault) {
        if starts.isEmpty { return }
        do throws(LogFault) {
            let batch = RecordBatch()
            defer { batch.removeAll() }
            try reader.read(from: starts)
            while !patience.hasPassed {
                try reader.poll(into: batch, limit: 1000, wait: .milliseconds(100))
                for index in 0..<batch.count {
                    let record = batch[index]
                    let partition = TopicPartition(topics[record.topic], record.partition)
                    if !take(partition, record.timestamp, record.offset) { return }
                }
                if !pause(reader) { return }
            }
        } catch {
            throw ToolFault(error)
        }
    }
}

extension ToolFault {
    init(_ fault: LogFault) { self.init(.gaveUp, fault.words) }
}

private func text(_ bytes: Span<UInt8>?) -> String? { bytes?.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
