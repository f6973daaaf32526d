import Configuration
import Contract
import Foundation
import Log
import MemoryLog
import Platform
import Settings
import Testing

@testable import Cluster
@testable import CommandLine
@testable import Roles
@testable import Tools
@testable import Workers

/// Live topics and topics of a replay in memory, and the comparison of them.
final class DiffDesk {
    static let partitions: Int32 = 2

    let names = Names(prefix: TopicPrefix("appstore")!, environment: .production)
    let shadow = ShadowName("next")!
    let worker: WorkerName
    let log = MemoryLog(clock: .manual())
    private let topics: [String]
    private let writer: any LogWriter
    /// Both groups have committed this many notifications of each partition.
    var position: (shadow: Int64?, live: Int64?) = (100, 100)
    /// The replay need not have read what came after this time.
    var begunAt: Int64 = .max
    var from: String?

    init(_ worker: WorkerName, notifications: Int64 = 100) throws {
        self.worker = worker
        let outputs = DiffedTopic.all(of: worker).map(\.id)
        let live = (worker.inputs + outputs).map(names.topic)
        topics = live + outputs.map { [shadow, names] in shadow.shadow(of: names.topic($0)) }
        let soon = Deadline(after: .seconds(60))
        try log.create(
            topics.map { NewTopic($0, partitions: Self.partitions, isCompacted: $0.contains("accounts")) }, by: soon)
        writer = try log.openWriter(WriterOptions(name: "test", topics: topics))
        for partition in 0..<Self.partitions {
            for number in 0..<notifications {
                try write(names.topic(.notifications), partition, nil, "{}", [], at: number)
            }
        }
    }

    /// Texts are quoted with `'`; nil is a tombstone.
    func write(
        _ topic: String, _ partition: Int32, _ key: String?, _ value: String?, _ headers: [RecordHeader], at time: Int64
    ) throws {
        let batch = OutputBatch()
        batch.append(
            topic: try #require(topics.firstIndex(of: topic)), partition: partition, timestamp: time,
            key: key.map { Array($0.utf8) }, value: value.map { Array($0.replacing("'", with: "\"").utf8) },
            headers: headers)
        _ = try writer.append(batch, by: Deadline(after: .seconds(60)))
    }

    /// A record caused by the notification at this offset of its partition. Live records have the headers of builds before
    /// 0.2: a comparison looks at values.
    private func output(
        _ topic: String, _ id: TopicID, _ key: String, _ value: String?, from source: Int64, _ partition: Int32,
        schema: String?, at time: Int64
    ) throws {
        let type = Self.types[id] ?? ""
        let old = [RecordHeader("type", type), RecordHeader("rules", "0123456789abcdef")]
        try write(
            topic, partition, key, value,
            (topic == names.topic(id) ? old : []) + [
                RecordHeader("schema", schema ?? "\(type)/1"),
                RecordHeader("source", "\(names.topic(.notifications)):\(partition):\(source)"),
            ], at: time)
    }

    private static let types: [TopicID: String] = [
        .entitlements: "entitlement", .accounts: "account", .churnCells: "churn-cell", .consumption: "consumption",
    ]

    func live(
        _ id: TopicID, _ key: String, _ value: String?, from source: Int64 = 1, _ partition: Int32 = 0,
        schema: String? = nil, at time: Int64 = 1
    ) throws {
        try output(names.topic(id), id, key, value, from: source, partition, schema: schema, at: time)
    }

    func replayed(
        _ id: TopicID, _ key: String, _ value: String?, from source: Int64 = 1, _ partition: Int32 = 0,
        schema: String? = nil, at time: Int64 = 1
    ) throws {
        try output(
            shadow.shadow(of: names.topic(id)), id, key, value, from: source, partition, schema: schema, at: time)
    }

    /// Writes the same record on both sides.
    func both(_ id: TopicID, _ key: String, _ value: String?, from source: Int64 = 1, _ partition: Int32 = 0) throws {
        try live(id, key, value, from: source, partition)
        try replayed(id, key, value, from: source, partition)
    }

    struct Answer {
        let code: ExitCode
        let lines: String
        let messages: [String]

        var objects: [[String: Any]] {
            get throws {
                try lines.split(separator: "\n").map { line in
                    try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
                }
            }
        }

        /// same, different, only here, only there, newer, left out.
        var counts: [Int] {
            get throws {
                let total = try #require(try objects.last)
                #expect(total["kind"] as? String == "total")
                return try ["same", "different", "onlyHere", "onlyThere", "newer", "leftOut"].map {
                    try #require(total[$0] as? Int)
                }
            }
        }

        func samples(_ verdict: String? = nil) throws -> [[String: Any]] {
            try objects.filter { $0["kind"] as? String == "sample" }
                .filter { verdict == nil || $0["verdict"] as? String == verdict }
        }
    }

    private func positions(_ count: Int64?) -> [TopicPartition: NextOffset] {
        guard let count else { return [:] }
        return Dictionary(
            uniqueKeysWithValues: (0..<Self.partitions).map {
                (TopicPartition(names.topic(.notifications), $0), NextOffset(count))
            })
    }

    /// As the command works, but with another log.
    func diff(
        _ arguments: [String] = ["--format", "json"], partitions: Int32 = DiffDesk.partitions,
        counts change: (inout [String: Int32]) -> Void = { _ in }
    ) throws -> Answer {
        let recorder = Recorder()
        let invocation = Invocation(
            ParsedArguments([worker.rawValue, "--name", "next"] + arguments, options: Command.diff.options), of: .diff,
            output: recorder.output, program: .standard)
        var counts = Dictionary(uniqueKeysWithValues: topics.map { ($0, Self.partitions) })
        change(&counts)
        let plan = try #require(
            ReplayPlan(
                Array(
                    "{\"v\":1,\"app\":\"perennial/1\",\"from\":\(from.map { "\"\($0)\"" } ?? "null"),".utf8)
                    + Array("\"begunAt\":\(begunAt),\"silentBefore\":[]}".utf8)))
        var code = ExitCode.done
        do throws(ToolFault) {
            let query = try DiffQuery(invocation, temporary: nil)
            let identity = ReplayIdentity(worker: worker, names: names, shadow: query.name)
            code = try DiffRun(
                query: query, identity: identity, partitions: partitions, log: log,
                output: recorder.output, partitionCounts: counts,
                positions: InputPositions(shadow: positions(position.shadow), live: positions(position.live)),
                plan: plan
            ).run()
        } catch {
            for line in error.lines { recorder.output.message("perennial diff: \(line)") }
            code = error.code
        }
        return Answer(code: code, lines: recorder.data, messages: recorder.messages)
    }
}
