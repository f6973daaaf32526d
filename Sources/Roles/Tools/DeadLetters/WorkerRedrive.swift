// `dead-letters redrive WORKER`: publishes records that a worker could not process to their topics again.

import Cluster
import CommandLine
import Configuration
import Contract
import JSON
import Kafka
import Log
import Platform

/// For use after the code or the settings were corrected. The worker reads the record like a new one. It may have processed the
/// record already, but it recognises repetitions anyway.
struct WorkerRedrive {
    enum Verdict: Equatable {
        case back(ToolRecord)
        /// A timer that could not fire is not a record and cannot be published.
        case timer
        /// The same for a key that could not be settled.
        case settling
        /// Lost records cannot be restored.
        case gap
        /// The header names a topic that the worker does not read. Nothing is written there.
        case foreign
    }

    /// The results for the letters of one reason.
    private struct Tally {
        var back = 0
        var timers = 0
        var settled = 0
        var gaps = 0
        var foreign = 0
    }

    let query: LetterQuery
    let worker: WorkerName
    let configuration: Configuration
    let output: Output

    func run(_ scans: [LetterScan]) throws(ToolFault) -> ExitCode {
        let topics = scans.flatMap { scan in worker.inputs.map(names(scan.environment).topic) }
        var tallies: [String: Tally] = [:]
        try query.redrive(scans, to: topics, configuration) { letter, record in
            let verdict = Self.verdict(
                letter.marks, key: record.copyOfKey(), value: record.copyOfValue(), written: record.timestamp ?? 0,
                inputs: worker.inputs.map(names(letter.environment).topic),
                partitions: Int32(configuration.topicPlan.partitions))
            switch verdict {
            case .back(let record):
                tallies[letter.reason, default: Tally()].back += 1
                return [record]
            case .timer: tallies[letter.reason, default: Tally()].timers += 1
            case .settling: tallies[letter.reason, default: Tally()].settled += 1
            case .gap: tallies[letter.reason, default: Tally()].gaps += 1
            case .foreign: tallies[letter.reason, default: Tally()].foreign += 1
            }
            return []
        }
        report(tallies)
        return .done
    }

    private func names(_ environment: Contract.Environment) -> Names {
        Names(prefix: configuration.topicPlan.prefix, environment: environment)
    }

    /// - Parameter inputs: the names of the topics that the worker reads.
    static func verdict(
        _ marks: LetterMarks, key: [UInt8]?, value: [UInt8]?, written: Int64, inputs: [String], partitions: Int32
    ) -> Verdict {
        if marks.timer != nil { return .timer }
        if marks.isOfSettling { return .settling }
        if marks.gap != nil { return .gap }
        guard let source = marks.source.flatMap(place), inputs.contains(source.topic) else { return .foreign }
        // A record without a key goes back to its partition.
        let partition = key.map { Partitioner.partition(of: $0, count: partitions) } ?? source.partition
        guard partition < partitions else { return .foreign }
        // The record may have been redriven before.
        let attempts = marks.own.last { $0.isNamed(HeaderName.attempt) }?.value
            .flatMap { Int(String(decoding: $0, as: UTF8.self)) }
        let headers =
            marks.own.filter { !$0.isNamed(HeaderName.attempt) } + [
                RecordHeader(HeaderName.attempt, "\(max(0, min(attempts ?? 0, 1_000_000)) + 1)")
            ]
        return .back(
            ToolRecord(
                topic: source.topic, partition: partition, key: key, value: value, headers: headers,
                timestamp: marks.firstTimestamp ?? written))
    }

    /// `topic:partition:offset`; names of topics have no colon.
    private static func place(_ source: String) -> TopicPartition? {
        let parts = source.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3, let partition = Int32(parts[1]), partition >= 0, Int64(parts[2]) != nil else {
            return nil
        }
        return TopicPartition(String(parts[0]), partition)
    }

    private func report(_ tallies: [String: Tally]) {
        for (reason, tally) in tallies.sorted(by: { $0.key < $1.key }) {
            output.data(query.isJSON ? Self.json(reason, tally) : Self.text(reason, tally))
        }
        let back = tallies.values.reduce(0) { $0 + $1.back }
        if tallies.isEmpty {
            output.message("perennial dead-letters: no letters found")
        } else if query.applies {
            output.message("perennial dead-letters: \(back) records are published to the topics that they came from")
        } else {
            output.message(
                "perennial dead-letters: nothing was written; --apply publishes the \(back) that can be redriven")
        }
    }

    private static func text(_ reason: String, _ tally: Tally) -> String {
        "\(printable(reason))  can be redriven: \(tally.back)  timers: \(tally.timers)  settled keys: \(tally.settled)  "
            + "gaps: \(tally.gaps)  from a topic that the worker does not read: \(tally.foreign)"
    }

    private static func json(_ reason: String, _ tally: Tally) -> String {
        var writer = JSONWriter()
        writer.object { line in
            line.member("reason", reason)
            line.member("back", tally.back)
            line.member("timers", tally.timers)
            line.member("settled", tally.settled)
            line.member("gaps", tally.gaps)
            line.member("foreign", tally.foreign)
        }
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}
