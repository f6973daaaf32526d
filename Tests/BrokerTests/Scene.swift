// A whole installation that is struck again and again while a make-believe store tells it everything.

import Foundation
import Glibc
import JSON
import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

/// Ingest and two workers of a kind, which are killed and come back.
final class Scene {
    let port: UInt16
    private let installation: Installation
    private let store: MakeBelieveStore
    private let command: String
    private let settings: [String]
    private let disks: ScratchDirectory
    private var ingest: ServiceProcess
    private var workers: [ServiceProcess] = []
    /// When ingest ended, in milliseconds since 1970: the clock of no partition goes on after that.
    private(set) var ended: Int64 = 0
    private(set) var blows = 0

    /// - Parameter command: of the workers, with settings of its own.
    init(_ installation: Installation, _ store: MakeBelieveStore, _ command: String, _ settings: [String]) async throws
    {
        self.installation = installation
        self.store = store
        self.command = command
        self.settings = settings
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
                command, "--worker.slot", "\(slot)", "--state.directory", disk(slot),
            ] + settings + installation.settings)
    }

    private func disk(_ slot: Int) -> String { "\(disks.path)/disk-\(slot)" }

    /// `ordinarily`, unless `PERENNIAL_TEST_SUBSCRIBERS` asks for more.
    static func subscribers(ordinarily: Int) -> Int {
        getenv("PERENNIAL_TEST_SUBSCRIBERS").flatMap { Int(String(cString: $0)) } ?? ordinarily
    }

    /// A hundred days until the last midnight: what is true then hardly changes until the test ends.
    static func store(seed: Int, subscribers: Int) async throws -> MakeBelieveStore {
        let today = WallClock.milliseconds() / 86_400_000
        let first = Date(timeIntervalSince1970: Double((today - 100) * 86_400)).ISO8601Format().prefix(10)
        return try await MakeBelieveStore.open(
            telling: [
                "--from", "\(first)", "--days", "100", "--seed", "\(seed)", "--subscribers", "\(subscribers)",
                "--duplicates", "5", "--reorder", "10", "--delays", "5",
            ], keepsPayloads: false)
    }

    /// Everything is posted while somebody strikes, and dealt with in the end. What ingest has lost then is none of the workers'
    /// faults, and told here.
    func play() async throws {
        let simulator = try store.post(to: port)
        var dice = Dice()
        while simulator.isRunning {
            try await Task.sleep(for: .milliseconds(Int.random(in: 1_000...4_000, using: &dice)))
            try await strike(&dice)
            blows += 1
        }
        // 0: whatever was not taken was sent again, and taken.
        #expect(try await simulator.wait() == .exited(code: 0), "\(simulator.lastLines(10))")
        try await end()
        #expect(blows >= 3)
        let kept = Set(
            try await values(of: "notifications").values.joined().compactMap { $0?["notificationUUID"]?.string })
        let lost = try store.answers().filter { !kept.contains($0.uuid) }
        #expect(lost.isEmpty, "answered 200 and lost: \(lost.count): \(lost.prefix(8))")
    }

    /// `kill -9` of one of the three; it is started again at once, a worker sometimes without its disk.
    private func strike(_ dice: inout Dice) async throws {
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
    private func end() async throws {
        try await ingest.stop()
        ended = WallClock.milliseconds()
        let topic = installation.topic("notifications")
        let group = "\(installation.prefix).production.\(command)"
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

    func read(_ topic: String) async throws -> [WholeRecord] {
        try await installation.broker.readWhole(installation.topic(topic))
    }

    /// Every value of each key, in order; nil is a tombstone.
    func values(of topic: String) async throws -> [String: [JSONValue?]] {
        var values: [String: [JSONValue?]] = [:]
        for record in try await read(topic) {
            let key = String(decoding: record.key ?? [], as: UTF8.self)
            values[key, default: []].append(record.value.isEmpty ? nil : try JSONValue.read(record.value))
        }
        return values
    }
}
