// What an installation has written, and how it is judged. The workers themselves are not asked.

import Foundation
import JSON
import Kafka
import KafkaTestKit
import Log
import PlainChurn
import Platform
import Testing
import TruthCheck

extension Installation {
    /// - Parameter starts: first offsets of partitions that are not read from their first record.
    func read(
        _ topic: String, from starts: [Int32: Int64] = [:], within limit: Duration = patience
    ) async throws -> [WholeRecord] {
        try await broker.read(self.topic(topic), from: starts, within: limit) { WholeRecord($0) }
    }

    /// Every value of each key, in order; nil is a tombstone.
    func values(of topic: String, within limit: Duration = patience) async throws -> [String: [JSONValue?]] {
        var values: [String: [JSONValue?]] = [:]
        for record in try await read(topic, within: limit) {
            let key = String(decoding: record.key ?? [], as: UTF8.self)
            values[key, default: []].append(record.value.isEmpty ? nil : try JSONValue.read(record.value))
        }
        return values
    }

    /// Whether a worker has committed every record of `notifications`.
    func isDealtWith(by worker: String) async throws -> Bool {
        let (topic, group) = (topic("notifications"), topic(worker))
        let (broker, partitions) = (broker, Int32(partitions))
        return try await blocking {
            let admin = try Admin(clientID: "watch", properties: broker.properties)
            defer { admin.close(by: Deadline(after: patience)) }
            let committed = try admin.offsets(ofGroup: group, by: Deadline(after: patience))
            let reader = try KafkaLog(broker.properties).openReader(
                ReaderOptions(name: "watch", group: "watch", topics: [topic]))
            defer { reader.close(by: Deadline(after: patience)) }
            let all = (0..<partitions).map { TopicPartition(topic, $0) }
            let ends = try reader.ends(.committed, of: all, by: Deadline(after: patience))
            return all.allSatisfy { committed[$0] == ends[$0] }
        }
    }
}

extension MakeBelieveStore {
    /// A hundred days until the last midnight: what is true then hardly changes before the test ends.
    static func ofAHundredDays(
        seed: Int, subscribers: Int, adding options: [String] = [], program: String? = nil
    ) async throws -> MakeBelieveStore {
        let today = WallClock.milliseconds() / 86_400_000
        let first = Date(timeIntervalSince1970: Double((today - 100) * 86_400)).ISO8601Format().prefix(10)
        return try await open(
            telling: [
                "--from", "\(first)", "--days", "100", "--seed", "\(seed)", "--subscribers", "\(subscribers)",
                "--duplicates", "5", "--reorder", "10", "--delays", "5",
            ] + options, keepsPayloads: false, program: program)
    }

    /// What ingest has lost is not the workers' fault; it is reported here.
    func expectKept(in notifications: [WholeRecord]) throws {
        var kept: Set<String> = []
        for record in notifications where !record.value.isEmpty {
            if let uuid = try JSONValue.read(record.value)["notificationUUID"]?.string { kept.insert(uuid) }
        }
        try expectKept(in: kept)
    }

    /// - Parameter kept: the `notificationUUID` of every notification that was ever stored.
    func expectKept(in kept: Set<String>) throws {
        let lost = try lost(from: kept)
        #expect(lost.isEmpty, "answered 200 and lost: \(lost.count): \(lost.prefix(8))")
    }

    func lost(from kept: Set<String>) throws -> [Answered] { try answers().filter { !kept.contains($0.uuid) } }
}

/// Compares the entitlements of every customer with what has happened in the store.
struct EntitlementsJudge {
    private static let leeway: Int64 = 3_600_000
    /// Ticks come every few seconds, and less often while ingest is dead.
    private static let margin: Int64 = 120_000

    let truth: TruthCheck
    let values: Int
    let events: Int

    /// - Parameter ended: when ingest ended, in milliseconds since 1970.
    init(
        _ installation: Installation, _ store: MakeBelieveStore, ended: Int64, within limit: Duration = patience
    ) async throws {
        truth = try TruthCheck(lines: store.truth(), leeway: Self.leeway)
        let entitlements = try await installation.values(of: "entitlements", within: limit)
        let told = try await installation.values(of: "entitlement-events", within: limit)
        let accounts = try await installation.values(of: "accounts", within: limit)
        let wrong = truth.wrong(
            entitlements: entitlements.compactMapValues(\.last).compactMapValues(\.self),
            accounts: accounts.compactMapValues(\.last).compactMapValues(\.self), clock: ended, margin: Self.margin)
        #expect(wrong.isEmpty, "\(wrong.count): \(wrong.prefix(8).joined(separator: "\n"))")
        let outcomes = truth.wrongOutcomes(
            told.mapValues { $0.compactMap(\.self) }, clock: ended, margin: Self.margin)
        #expect(outcomes.isEmpty, "\(outcomes.count): \(outcomes.prefix(8).joined(separator: "\n"))")
        let chain = ChainCheck.wrong(
            values: entitlements.mapValues { $0.compactMap(\.self) }, events: told.mapValues { $0.compactMap(\.self) })
        #expect(chain.isEmpty, "\(chain.count): \(chain.prefix(8).joined(separator: "\n"))")
        #expect(try await installation.values(of: "entitlements.dead-letters").isEmpty)
        values = entitlements.values.reduce(0) { $0 + $1.count }
        events = told.values.reduce(0) { $0 + $1.count }
        #expect(truth.moving(until: ended) < truth.subscriptionCount / 5)
    }
}

/// Compares the cells and events of churn with what the plain implementation counts.
struct ChurnJudge {
    let judge: PlainJudge
    let events: Int

    /// - Parameter notifications: all that were ever stored; they count up to the last tick of each partition.
    init(_ installation: Installation, notifications: [WholeRecord], zone: String) async throws {
        var judge = PlainJudge(zone: zone)
        for record in notifications {
            judge.hear(
                partition: record.partition, timestamp: record.timestamp ?? 0, key: record.key, value: record.value)
        }
        try await self.init(installation, judge)
    }

    /// - Parameter judge: has heard all notifications that were ever stored.
    init(_ installation: Installation, _ judge: PlainJudge, within limit: Duration = patience) async throws {
        var judge = judge
        for record in try await installation.read("churn-cells", within: limit) {
            judge.see(cell: record.key ?? [], record.value.isEmpty ? nil : record.value)
        }
        let told = try await installation.read("churn-events", within: limit)
        for record in told { judge.see(event: record.value) }
        let wrong = judge.wrong()
        #expect(wrong.isEmpty, "\(wrong.count): \(wrong.prefix(8).joined(separator: "\n"))")
        #expect(try await installation.read("churn.dead-letters").isEmpty)
        let ids = told.compactMap { $0.header("id") }
        #expect(Set(ids).count == told.count)
        self.judge = judge
        events = told.count
    }
}
