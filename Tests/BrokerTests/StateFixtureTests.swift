import Foundation
import JSON
import KafkaTestKit
import Testing

/// What old builds have written, in Kafka again, and this build's workers and commands on it.
private struct StateStage: Sendable {
    /// The workers that promotion supports.
    static let workers = ["entitlements", "churn"]
    private static let name = "again"

    let fixture: StateFixture
    let scene: ReplayScene

    static func make(_ name: String) async throws -> StateStage {
        let fixture = try await StateFixture.read(name)
        return StateStage(fixture: fixture, scene: try ReplayScene.over(try await fixture.laid()))
    }

    /// Input that follows the answer to the open request.
    func step(_ number: Int) -> [StateFixture.Record] { fixture.later[number] }

    func each(_ body: @escaping @Sendable (String) async throws -> Void) async throws {
        try await withThrowingTaskGroup { group in
            for worker in Self.workers { group.addTask { try await body(worker) } }
            try await group.waitForAll()
        }
    }

    /// With an empty disk: everything that it knows comes from the changelog.
    func start(_ worker: String, _ disk: String) async throws -> ServiceProcess {
        let live = try scene.startLive(worker, ["--worker.leave", "true"], disk: disk)
        try await live.waitUntilReady()
        return live
    }

    /// The workers continue with the input that follows, and stop.
    ///
    /// - Parameter restores: whether the state is that of the fixture.
    func goOn(_ number: Int, _ disk: String, restores: Bool = false) async throws {
        let lives = try await withThrowingTaskGroup(of: (String, ServiceProcess).self) { group in
            for worker in Self.workers { group.addTask { (worker, try await start(worker, disk)) } }
            return try await group.reduce(into: [String: ServiceProcess]()) { $0[$1.0] = $1.1 }
        }
        try await scene.tell(step(number))
        try await each { worker in
            let live = lives[worker]!
            try await scene.waitUntilDealtWith(by: scene.group(worker))
            if restores { try await expectRestored(live, worker, told: step(number)) }
            try await live.stop()
        }
    }

    /// The state was not rebuilt from the beginning of the log.
    func expectRestored(_ live: ServiceProcess, _ worker: String, told: [StateFixture.Record]) async throws {
        let kept = fixture.records(of: "\(worker).changelog").count
        #expect(kept > 20, "a judge without cases")
        #expect(try await live.sum("perennial_restore_records_total") == Double(kept))
        #expect(try await live.sum("perennial_store_wipes_total") == 0)
        let consumed = try await live.sum("perennial_records_consumed_total")
        let (before, now) = (fixture.records(of: "notifications").count, told.count)
        #expect(
            now < before && consumed >= Double(told.count { $0.topic == "notifications" }) && consumed < Double(before))
    }

    // MARK: Commands

    func replay(_ worker: String) async throws {
        let replay = try await scene.tool(worker, ["--name", Self.name])
        #expect(replay.code == 0, "\(replay.words)")
    }

    func diff(_ worker: String) async throws {
        let diff = try await scene.program(["diff", worker, "--name", Self.name])
        #expect(diff.code == 0, "\(diff.words)")
    }

    func promote(_ worker: String, _ options: [String]) async throws {
        let promotion = try await promotion(worker, options)
        #expect(promotion.code == 0, "\(promotion.words)")
    }

    /// The last live values are from another version, and only that version goes back to them.
    func expectThatOnlyItsBuildGoesBack(_ worker: String) async throws {
        let promotion = try await promotion(worker, ["--back"])
        #expect(promotion.code == 1, "\(promotion.words)")
        #expect(
            promotion.words.contains("\(Self.name) of \(worker) was started by perennial/0.1.0"), "\(promotion.words)")
    }

    private func promotion(_ worker: String, _ options: [String]) async throws -> ProgramResult {
        try await run(
            productPath("perennial"),
            ["promote", worker, "--name", Self.name, "--apply"] + options + scene.settings(0, "replay-0"),
            environment: .only([:]), workingDirectory: "/")
    }

    /// The replay has read everything from the beginning.
    func expectAnswersOfReplay(_ worker: String, _ sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let isChurn = worker == "churn"
        let topics = ["entitlements", "accounts"]
        let live = try await isChurn ? scene.cells() : scene.values(topics)
        let wanted = try await isChurn ? scene.cells(of: Self.name) : scene.values(topics, of: Self.name)
        #expect(wanted.count > 30, "a judge without cases", sourceLocation: sourceLocation)
        let wrong = Set(live.keys).union(wanted.keys).filter { live[$0] != wanted[$0] }
        #expect(wrong.isEmpty, "\(wrong.count) of \(wanted.count)", sourceLocation: sourceLocation)
        for key in wrong.sorted().prefix(3) {
            print("\(key): \(live[key] as Any), and of all from the beginning \(wanted[key] as Any)")
        }
        #expect(try await scene.read("\(worker).dead-letters").isEmpty, sourceLocation: sourceLocation)
    }

    /// Sequences grow with every value of a key, whichever build wrote it.
    func expectGrowing() async throws {
        var last: [[UInt8]: Int64] = [:]
        for record in try await scene.read("entitlements") where !record.value.isEmpty {
            let sequence = try JSONValue.read(record.value)["sequence"]?.integer ?? -1
            #expect(sequence > last[record.key ?? []] ?? 0)
            last[record.key ?? []] = sequence
        }
        #expect(last.count > 20, "a judge without cases")
    }
}

extension RealBroker {
    /// Their bytes are in Tests/BrokerTests/Fixtures.
    @Suite(.serialized) struct `A state that another build has kept` {
        @Test(arguments: StateFixture.names)
        func `is gone on with, replayed, promoted over and gone back to`(_ name: String) async throws {
            let stage = try await StateStage.make(name)
            try await stage.goOn(1, "first", restores: true)
            try await stage.each { worker in
                try await stage.replay(worker)
                try await stage.expectAnswersOfReplay(worker)
                try await stage.diff(worker)
                try await stage.promote(worker, [])
                try await stage.expectAnswersOfReplay(worker)
            }
            try await stage.goOn(2, "second")
            try await stage.each { worker in
                try await stage.replay(worker)
                try await stage.expectAnswersOfReplay(worker)
                try await stage.promote(worker, ["--back"])
                try await stage.expectAnswersOfReplay(worker)
            }
            try await stage.goOn(3, "third")
            try await stage.each { worker in
                try await stage.replay(worker)
                try await stage.expectAnswersOfReplay(worker)
                try await stage.diff(worker)
            }
            try await stage.expectGrowing()
        }

        @Test(arguments: StateFixture.names)
        func `is promoted over before a worker of this build has seen it`(_ name: String) async throws {
            let stage = try await StateStage.make(name)
            try await stage.each { worker in
                try await stage.replay(worker)
                try await stage.expectAnswersOfReplay(worker)
                try await stage.diff(worker)
                try await stage.promote(worker, [])
                try await stage.expectAnswersOfReplay(worker)
                try await stage.expectThatOnlyItsBuildGoesBack(worker)
                try await stage.expectAnswersOfReplay(worker)
            }
            try await stage.goOn(1, "first")
            try await stage.each { worker in
                try await stage.replay(worker)
                try await stage.expectAnswersOfReplay(worker)
                try await stage.diff(worker)
            }
            try await stage.expectGrowing()
        }

        /// A promotion of decisions is refused, whichever build made them: the decisions stay.
        @Test(arguments: StateFixture.names)
        func `of refund requests is gone on with, and decided as a replay decides it`(_ name: String) async throws {
            let stage = try await StateStage.make(name)
            let scene = stage.scene
            let before = try await scene.read("consumption")
            func decided() async throws -> [WholeRecord] {
                try await scene.decisions().filter { try JSONValue.read($0.value)["id"]?.string == "open" }
            }
            #expect(before.count > 10, "a judge without cases")
            #expect(try await decided().isEmpty)
            let live = try await stage.start("consumption", "first")
            try await scene.tell(stage.step(0))
            try await waitUntil("the open request is decided: \(live.process.lastLines(5))", within: patience) {
                try await decided().count == 1
            }
            try await stage.expectRestored(live, "consumption", told: stage.step(0))
            // Nothing was written a second time.
            #expect(try await scene.read("consumption").count == before.count + 1)
            let replay = try await scene.tool("consumption", ["--name", "again"])
            #expect(replay.code == 0, "\(replay.words)")
            let diff = try await scene.program(["diff", "consumption", "--name", "again"])
            #expect(diff.code == 0, "\(diff.words)")
            try await live.stop()
        }
    }
}
