import Contract
import Foundation
import Glibc
import JSON
import Kafka
import KafkaTestKit
import Log
import Platform
import Testing
import TruthCheck

extension RealBroker {
    @Suite(.serialized) struct `Entitlements of a whole installation` {
        private static let leeway: Int64 = 3_600_000

        /// 1,500 in the ordinary run; `PERENNIAL_TEST_SUBSCRIBERS` asks for more.
        private static var subscribers: Int {
            getenv("PERENNIAL_TEST_SUBSCRIBERS").flatMap { Int(String(cString: $0)) } ?? 1_500
        }

        @Test func `are what the truth says of every customer, however often workers and ingest were killed`()
            async throws
        {
            let installation = try await Installation.make("whole", try await Broker.shared(), partitions: 6)
            // Of a hundred days until the last midnight: what is true then hardly changes until the test ends.
            let today = WallClock.milliseconds() / 86_400_000
            let first = Date(timeIntervalSince1970: Double((today - 100) * 86_400)).ISO8601Format().prefix(10)
            let store = try await MakeBelieveStore.open(
                telling: [
                    "--from", "\(first)", "--days", "100", "--seed", "21", "--subscribers", "\(Self.subscribers)",
                    "--duplicates", "5", "--reorder", "10", "--delays", "5",
                ], keepsPayloads: false)
            let scene = try await Scene(installation, store)
            let simulator = try store.post(to: scene.port)
            var dice = Dice()
            var blows = 0
            while simulator.isRunning {
                try await Task.sleep(for: .milliseconds(Int.random(in: 1_000...4_000, using: &dice)))
                try await scene.strike(&dice)
                blows += 1
            }
            // 0: whatever was not taken was sent again, and taken.
            #expect(try await simulator.wait() == .exited(code: 0), "\(simulator.lastLines(10))")
            try await scene.end()
            try await judge(scene, store, blows: blows)
        }

        /// Nothing of the workers is asked.
        private func judge(_ scene: Scene, _ store: MakeBelieveStore, blows: Int) async throws {
            // Else the workers would be blamed for what ingest has lost.
            let kept = Set(
                try await scene.values(of: "notifications").values.joined().compactMap {
                    $0?["notificationUUID"]?.string
                })
            let lost = try store.answers().filter { !kept.contains($0.uuid) }
            #expect(lost.isEmpty, "answered 200 and lost: \(lost.count): \(lost.prefix(8))")
            let truth = try TruthCheck(lines: store.truth(), leeway: Self.leeway)
            let entitlements = try await scene.values(of: "entitlements")
            let events = try await scene.values(of: "entitlement-events")
            let accounts = try await scene.values(of: "accounts")
            let wrong = truth.wrong(
                entitlements: entitlements.compactMapValues(\.last).compactMapValues(\.self),
                accounts: accounts.compactMapValues(\.last).compactMapValues(\.self), clock: scene.ended,
                // Ticks come every few seconds, and less so while ingest is dead.
                margin: 120_000)
            #expect(wrong.isEmpty, "\(wrong.count): \(wrong.prefix(8).joined(separator: "\n"))")
            let outcomes = truth.wrongOutcomes(
                events.mapValues { $0.compactMap(\.self) }, clock: scene.ended, margin: 120_000)
            #expect(outcomes.isEmpty, "\(outcomes.count): \(outcomes.prefix(8).joined(separator: "\n"))")
            let chain = ChainCheck.wrong(
                values: entitlements.mapValues { $0.compactMap(\.self) },
                events: events.mapValues { $0.compactMap(\.self) })
            #expect(chain.isEmpty, "\(chain.count): \(chain.prefix(8).joined(separator: "\n"))")
            #expect(try await scene.values(of: "entitlements.dead-letters").isEmpty)
            // A judge without cases would be content with anything.
            #expect(truth.subscriptionCount >= Self.subscribers * 9 / 10)
            #expect(truth.moving(until: scene.ended) < truth.subscriptionCount / 5)
            #expect(blows >= 3)
            print(
                "whole: \(truth.subscriptionCount) subscriptions, \(events.values.reduce(0) { $0 + $1.count }) events, "
                    + "\(blows) kills")
        }
    }
}

/// Ingest and two workers, which are killed and come back.
private final class Scene {
    let port: UInt16
    private let installation: Installation
    private let store: MakeBelieveStore
    private let disks: ScratchDirectory
    private var ingest: ServiceProcess
    private var workers: [ServiceProcess] = []
    /// When ingest ended, in milliseconds since 1970: the clock of no partition goes on after that.
    private(set) var ended: Int64 = 0

    init(_ installation: Installation, _ store: MakeBelieveStore) async throws {
        self.installation = installation
        self.store = store
        port = try Ports.free()
        disks = try ScratchDirectory("whole")
        ingest = try Self.startIngest(installation, store, port)
        for slot in 0..<2 { workers.append(try startWorker(slot)) }
        try await ingest.waitUntilReady()
    }

    private static func startIngest(_ installation: Installation, _ store: MakeBelieveStore, _ port: UInt16) throws
        -> ServiceProcess
    {
        try ServiceProcess(
            ["ingest", "--ingest.plaintext", "true", "--ingest.listen", "127.0.0.1:\(port)"] + store.ingestSettings
                + installation.settings)
    }

    private func startWorker(_ slot: Int) throws -> ServiceProcess {
        try ServiceProcess(
            [
                "entitlements", "--worker.slot", "\(slot)", "--state.directory", disk(slot), "--apps", store.apps,
            ] + installation.settings)
    }

    private func disk(_ slot: Int) -> String { "\(disks.path)/disk-\(slot)" }

    /// `kill -9` of one of the three; it is started again at once, a worker sometimes without its disk.
    func strike(_ dice: inout Dice) async throws {
        let victim = Int.random(in: 0..<3, using: &dice)
        if victim == 2 {
            ingest.process.killNow()
            _ = try await ingest.process.wait()
            ingest = try Self.startIngest(installation, store, port)
            return try await ingest.waitUntilReady()
        }
        workers[victim].process.killNow()
        _ = try await workers[victim].process.wait()
        if Int.random(in: 0..<3, using: &dice) == 0 { try FileManager.default.removeItem(atPath: disk(victim)) }
        workers[victim] = try startWorker(victim)
    }

    /// Nothing comes any more, and the workers have dealt with what came.
    func end() async throws {
        try await ingest.stop()
        ended = WallClock.milliseconds()
        let topic = installation.topic("notifications")
        let group = "\(installation.prefix).production.entitlements"
        let (broker, partitions) = (installation.broker, Int32(installation.partitions))
        try await waitUntil("the workers have dealt with everything", within: .seconds(180)) {
            try await blocking {
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
        for worker in workers { try await worker.stop() }
    }

    /// Every value of each key, in order; nil is a tombstone.
    func values(of topic: String) async throws -> [String: [JSONValue?]] {
        var values: [String: [JSONValue?]] = [:]
        for record in try await installation.broker.readWhole(installation.topic(topic)) {
            let key = String(decoding: record.key ?? [], as: UTF8.self)
            values[key, default: []].append(record.value.isEmpty ? nil : try JSONValue.read(record.value))
        }
        return values
    }
}
