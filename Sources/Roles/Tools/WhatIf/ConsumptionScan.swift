// Reads the records of the topic `consumption`, one partition after another.

import Cluster
import CommandLine
import Consumption
import Contract
import JSON
import Log
import Platform
import Records
import Settings

/// One thread.
final class ConsumptionScan {
    struct Place: Equatable {
        let partition: Int32
        /// The offset after the last record that was read.
        let next: Int64
        /// The greatest timestamp; nil: nothing was read.
        let clock: Int64?
    }

    /// The clock of ingest may be behind Apple's, so a request may be in a record with an earlier timestamp.
    private static let skew: Int64 = 3_600_000

    private let reader: any LogReader
    private let topic: String
    private var json = JSONDocument()
    private(set) var headers = HeaderCheck(.consumption)
    private(set) var places: [Place] = []
    /// Records that this version cannot read.
    private(set) var unreadable = 0

    init(_ reader: any LogReader, topic: String) {
        self.reader = reader
        self.topic = topic
    }

    /// Reads each partition to the end that it has when its reading begins.
    ///
    /// - Parameters:
    ///   - since: only requests that Apple signed at or after this time are needed; `body` may also get older ones.
    ///   - progress: the fraction of all offsets that was read, 0 to 1, and the partition that is being read.
    ///   - isEnough: called after each partition; true ends the reading.
    ///   - body: also gets the greatest timestamp so far.
    func run(
        _ partitions: [Int32], since: Int64?, progress: (Double, TopicPartition) -> Void,
        isEnough: () -> Bool = { false },
        _ body: (ConsumptionRecord, _ clock: Int64) throws(ToolFault) -> Void
    ) throws(ToolFault) {
        for (index, number) in partitions.enumerated() {
            let scan = PartitionScan(reader: reader, partition: TopicPartition(topic, number))
            let start = try since.map { time throws(ToolFault) in try scan.start(at: adding(time, -Self.skew)) } ?? nil
            var clock: Int64?
            let end = try scan.run(
                from: start,
                progress: { progress((Double(index) + $0) / Double(partitions.count), scan.partition) },
                { record throws(ToolFault) in
                    let now = max(clock ?? record.timestamp, record.timestamp)
                    clock = now
                    guard let read = self.read(record) else { return }
                    try body(read, now)
                })
            places.append(Place(partition: number, next: end.value, clock: clock))
            if isEnough() { return }
        }
    }

    private func read(_ record: borrowing RecordView) -> ConsumptionRecord? {
        switch headers.meaning(of: record) {
        case .known: break
        case .unknownType: return nil
        case .newer, .strange: return refused()
        }
        guard let value = record.value else { return refused() }
        do throws(JSONFault) { try json.read(value) } catch { return refused() }
        return ConsumptionRecord(json) ?? refused()
    }

    private func refused() -> ConsumptionRecord? {
        unreadable += 1
        return nil
    }

    func writePosition(to json: inout JSONWriter) {
        json.array { list in
            for found in places {
                list.object { place in
                    place.member("topic", topic)
                    place.member("partition", found.partition)
                    place.member("offset", found.next)
                    place.member("asOf", orNull: found.clock)
                }
            }
        }
    }
}

/// Requests that Apple signed at or after `from`, and before `to`.
struct RequestPeriod: Sendable, Equatable {
    let from: Int64?
    let to: Int64?

    init(_ invocation: Invocation, now: Int64) throws(ToolFault) {
        from = try Self.time("from", invocation, now)
        to = try Self.time("to", invocation, now)
        if let from, let to, from >= to { throw ToolFault(.wrongUsage, "--to must be after --from") }
    }

    private static func time(_ name: String, _ invocation: Invocation, _ now: Int64) throws(ToolFault) -> Int64? {
        guard let text = invocation.option(name) else { return nil }
        guard let time = pointInTime(text, now: now) else {
            throw ToolFault(
                .wrongUsage,
                "--\(name) takes 2026-11-20, 2026-11-20T10:00:00Z (UTC), 2h or 7d (ago), not \(quoted(text))")
        }
        return time
    }

    func contains(_ instant: Int64) -> Bool { (from ?? .min) <= instant && instant < (to ?? .max) }

    /// `from 2026-11-01 00:00 until 2026-12-01 00:00`; empty if the period has no ends.
    var words: String {
        [from.map { "from \(shownTime($0))" }, to.map { "until \(shownTime($0))" }].compactMap { $0 }
            .joined(separator: " ")
    }
}
