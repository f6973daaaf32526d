// A whole installation that is killed again and again while a simulated store posts everything to it.

import Foundation
import Glibc
import KafkaTestKit
import Platform
import Testing

/// Ingest and two workers of one kind, which are killed and restarted.
final class Scene {
    let port: UInt16
    let installation: Installation
    private let store: MakeBelieveStore
    private let command: String
    private let settings: [String]
    private let disks: ScratchDirectory
    private var ingest: ServiceProcess
    private var workers: [ServiceProcess] = []
    /// When ingest ended, in milliseconds since 1970: no partition's clock moves after that.
    private(set) var ended: Int64 = 0
    private(set) var blows = 0

    /// - Parameter command: the workers' command, with settings of its own.
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

    static func startIngest(
        _ installation: Installation, _ store: MakeBelieveStore, _ port: UInt16, program: String? = nil
    ) throws -> ServiceProcess {
        try ServiceProcess(
            ["ingest", "--ingest.plaintext", "true", "--ingest.listen", "127.0.0.1:\(port)"] + store.ingestSettings
                + installation.settings, program: program)
    }

    private func startWorker(_ slot: Int) throws -> ServiceProcess {
        try ServiceProcess(
            [
                command, "--worker.slot", "\(slot)", "--state.directory", disk(slot),
            ] + settings + installation.settings)
    }

    private func disk(_ slot: Int) -> String { "\(disks.path)/disk-\(slot)" }

    /// `ordinarily`, unless `PERENNIAL_TEST_SUBSCRIBERS` sets another number.
    static func subscribers(ordinarily: Int) -> Int {
        getenv("PERENNIAL_TEST_SUBSCRIBERS").flatMap { Int(String(cString: $0)) } ?? ordinarily
    }

    /// Everything is posted during the kills, and processed in the end.
    func play() async throws {
        let simulator = try store.post(to: port)
        var dice = Dice()
        while simulator.isRunning {
            try await Task.sleep(for: .milliseconds(Int.random(in: 1_000...4_000, using: &dice)))
            try await strike(&dice)
            blows += 1
        }
        // Exit code 0: every post that was not accepted was sent again and accepted.
        #expect(try await simulator.wait() == .exited(code: 0), "\(simulator.lastLines(10))")
        try await end()
        #expect(blows >= 3)
        try store.expectKept(in: try await installation.read("notifications"))
    }

    /// `kill -9` of one of the three; it is restarted at once, a worker sometimes without its disk.
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

    /// No more records come, and the workers have processed all that came.
    private func end() async throws {
        try await ingest.stop()
        ended = WallClock.milliseconds()
        try await waitUntil("the workers have processed everything", within: .seconds(180)) {
            try await installation.isDealtWith(by: command)
        }
        for worker in workers { try await worker.stop() }
    }
}
