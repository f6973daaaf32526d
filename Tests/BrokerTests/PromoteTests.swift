import JSON
import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

extension RealBroker {
    @Suite(.serialized) struct `A promotion` {
        /// A worker with the old rules, a replay with the new ones, and readers of their output.
        private struct Stage {
            let scene: ReplayScene
            private let oldApps: String
            private let newApps: String

            static func make(_ label: String, subscribers: Int = 200) async throws -> Stage {
                let scene = try await ReplayScene.make(label, partitions: 3, subscribers: subscribers)
                let file = try scene.disks.write(
                    #"[{"bundleId":"com.example.reader","appAppleId":1500000001,"#
                        + #""entitlements":{"all":["a"],"more":["com.example.reader.pro.monthly"]}},"#
                        + #"{"bundleId":"com.example.player","appAppleId":1500000002}]"#, to: "new-apps.json")
                let old = try scene.disks.write(
                    #"[{"bundleId":"com.example.reader","appAppleId":1500000001,"entitlements":{"all":["a"]}},"#
                        + #"{"bundleId":"com.example.player","appAppleId":1500000002}]"#, to: "old-apps.json")
                return Stage(scene: scene, oldApps: old, newApps: file)
            }

            private func settings(_ disk: String, isNew: Bool) -> [String] {
                ["--apps", isNew ? newApps : oldApps] + (isNew ? ["--entitlements.leeway.ms", "86400000"] : [])
                    + ["--worker.slot", "0", "--state.directory", scene.disks.file(disk)] + scene.installation.settings
            }

            /// It leaves the group when it is stopped.
            func startLive(isNew: Bool) throws -> ServiceProcess {
                try ServiceProcess(
                    ["entitlements", "--worker.leave", "true"] + settings("live", isNew: isNew))
            }

            func dealWithAll(isNew: Bool) async throws {
                let live = try startLive(isNew: isNew)
                try await live.waitUntilReady()
                try await scene.waitUntilDealtWith(by: scene.group("entitlements"))
                try await live.stop()
            }

            func replay(_ name: String, isNew: Bool = true) async throws {
                let result = try await run(
                    productPath("perennial"),
                    ["replay", "entitlements", "--name", name] + settings(name, isNew: isNew),
                    environment: .only([:]), workingDirectory: "/")
                #expect(result.code == 0, "\(result.words)")
            }

            private func promotion(_ options: [String], isNew: Bool) -> [String] {
                ["promote", "entitlements", "--name", "better"] + options + settings("better", isNew: isNew)
            }

            func promote(_ options: [String], isNew: Bool = true) async throws -> ProgramResult {
                try await run(
                    productPath("perennial"), promotion(options, isNew: isNew), environment: .only([:]),
                    workingDirectory: "/")
            }

            /// With settings that do not name the apps.
            func promoteWithoutApps() async throws -> ProgramResult {
                try await run(
                    productPath("perennial"),
                    ["promote", "entitlements", "--name", "better", "--apply", "--state.directory"]
                        + [scene.disks.file("better")] + scene.installation.settings, environment: .only([:]),
                    workingDirectory: "/")
            }

            /// Starts the promotion, and kills it when it says that a step begins.
            ///
            /// - Returns: whether the promotion was killed before its last step.
            @discardableResult
            func kill(at step: String) async throws -> Bool {
                let process = try ChildProcess(
                    productPath("perennial"), promotion(["--apply"], isNew: true), environment: .only([:]),
                    workingDirectory: "/")
                try await waitUntil("\(step): \(process.lastLines(9))", within: patience * 3) {
                    process.standardError.contains("perennial promote: \(step)")
                }
                process.killNow()
                let ending = try await process.wait()
                return ending != .exited(code: 0) && !process.standardError.contains("perennial promote: ends")
            }

            /// The kill may come too late, because a small state moves quickly. Then the promotion starts again.
            func killMarked() async throws {
                for _ in 0..<20 where try await kill(at: "moves partition 0") { return }
                Issue.record("it was never killed between the mark and the end")
            }

            /// The value of every key, without its history.
            func answers(of name: String? = nil) async throws -> [[UInt8]: JSONValue] {
                try await scene.last("entitlements", of: name).mapValues { record in
                    guard case .object(let object) = try JSONValue.read(record.value) else { return .null }
                    return .object(
                        JSONObject(object.members.filter { !["sequence", "asOf", "cause"].contains($0.name) }))
                }
            }

            /// Reads the last value of each key.
            func sequences() async throws -> [[UInt8]: Int64] {
                try await scene.last("entitlements").mapValues {
                    try JSONValue.read($0.value)["sequence"]?.integer ?? -1
                }
            }

            /// One more value for each key that has changed, however often the promotion was started.
            func expectOneMore(after before: [[UInt8]: JSONValue], _ sequencesBefore: [[UInt8]: Int64]) async throws {
                let (after, sequences) = (try await answers(), try await sequences())
                let wrong = after.filter { key, answer in
                    sequences[key] != (sequencesBefore[key] ?? 0) + (before[key] == answer ? 0 : 1)
                }
                #expect(wrong.isEmpty, "\(wrong.count) of \(after.count)")
            }

            /// For a reader of the topic, sequences grow with every value of a key.
            func expectGrowing(_ topic: String) async throws {
                var last: [[UInt8]: Int64] = [:]
                for record in try await scene.read(topic) where !record.value.isEmpty {
                    let sequence = try JSONValue.read(record.value)["sequence"]?.integer ?? -1
                    #expect(sequence > last[record.key ?? []] ?? 0)
                    last[record.key ?? []] = sequence
                }
                #expect(last.count > 50, "a judge without cases")
            }
        }

        @Test(arguments: ["keeps the state", "marks the state", "moves partition 0", "moves partition 2", "ends"])
        func `killed at a step ends right when it is run once more`(step: String) async throws {
            let stage = try await Stage.make("promote-at", subscribers: 80)
            try await stage.dealWithAll(isNew: false)
            try await stage.replay("better")
            let (before, sequencesBefore) = (try await stage.answers(), try await stage.sequences())
            try await stage.kill(at: step)
            let done = try await stage.promote(["--apply"])
            #expect(done.code == 0 && done.standardError.contains("better is live"), "\(done.words)")
            let after = try await stage.answers()
            #expect(after == (try await stage.answers(of: "better")))
            #expect(after.count { before[$0.key] != $0.value } > 8, "a judge without cases")
            try await stage.expectOneMore(after: before, sequencesBefore)
            try await stage.expectGrowing("entitlements")
        }

        @Test func `killed again and again ends right, while ingest writes and readers read, and is taken back`()
            async throws
        {
            let stage = try await Stage.make("promote")
            let scene = stage.scene
            let live = try stage.startLive(isNew: false)
            try await scene.waitUntilDealtWith(by: scene.group("entitlements"))
            try await stage.replay("better")
            let running = try await stage.promote([])
            #expect(running.code == 1 && running.standardOutput.contains("worker is running"), "\(running.words)")
            // More records come than the replay has read; then the worker stops, and more records come.
            try await scene.feed(subscribers: 40, seed: 12)
            try await scene.waitUntilDealtWith(by: scene.group("entitlements"))
            try await live.stop()
            let before = try await stage.answers()
            let sequencesBefore = try await stage.sequences()
            try await scene.feed(subscribers: 40, seed: 13)
            let dry = try await stage.promote([])
            #expect(dry.code == 0 && dry.standardError.contains("nothing was written"), "\(dry.words)")
            #expect(try await stage.sequences() == sequencesBefore)

            let reading = try await startReading(scene)
            try await stage.kill(at: "keeps the state")
            // The state is marked: no worker uses it.
            try await stage.killMarked()
            let refused = try stage.startLive(isNew: true)
            try await waitUntil("the mark is seen: \(refused.process.lastLines(5))", within: patience) {
                try await refused.reasons().contains("perennial promote entitlements --name better --apply")
            }
            try await refused.stop()
            let done = try await stage.promote(["--apply"])
            #expect(done.code == 0 && done.standardError.contains("better is live"), "\(done.words)")
            let after = try await stage.answers()
            #expect(after == (try await stage.answers(of: "better")))
            let changed = after.count { before[$0.key] != $0.value }
            #expect(changed > 20 && changed < after.count)
            try await stage.expectOneMore(after: before, sequencesBefore)
            try await stage.expectGrowing("entitlements")
            try await stage.expectGrowing("accounts")
            try await reading.stop()

            // The disk of the old worker is still there, and the worker continues with the new rules.
            try await stage.dealWithAll(isNew: true)
            try await stage.replay("check")
            #expect(try await stage.answers() == stage.answers(of: "check"))
            try await stage.expectGrowing("entitlements")

            let back = try await stage.promote(["--back", "--apply"], isNew: false)
            #expect(back.code == 0, "\(back.words)")
            try await stage.replay("old", isNew: false)
            #expect(try await stage.answers() == stage.answers(of: "old"))
            try await stage.dealWithAll(isNew: false)
            try await stage.expectGrowing("entitlements")
            try await stage.expectGrowing("accounts")
        }

        /// Asks the read API for one subscription again and again.
        private func startReading(_ scene: ReplayScene) async throws -> Reading {
            let key = try #require(try await scene.last("entitlements").keys.min { $0.lexicographicallyPrecedes($1) })
            return try await Reading(scene, String(decoding: key, as: UTF8.self))
        }

        private struct Reading {
            private let api: APIProcess
            private let isOver = Latch()
            private let asking: Task<Int, any Error>

            init(_ scene: ReplayScene, _ id: String) async throws {
                // The story has dates in the past, so every waiting record looks old.
                let api = try APIProcess(
                    scene.installation, try ScratchDirectory("promote-api"), ["--api.max.behind.ms", "315360000000"])
                try await api.service.waitUntilReady()
                self.api = api
                // The task is not cancelled, because its open request would then end with an error.
                asking = Task { [isOver] in
                    var (last, answers): (Int64, Int) = (0, 0)
                    while !isOver.isOpen {
                        let sequence = try #require(try await api.sequence(of: id))
                        #expect(sequence >= last)
                        last = sequence
                        answers += 1
                        pause(for: .milliseconds(30))
                    }
                    return answers
                }
            }

            func stop() async throws {
                isOver.open()
                #expect(try await asking.value > 20, "a judge without cases")
                try await api.service.stop()
            }
        }

        @Test func `is refused with every reason at once, and for what cannot be promoted`() async throws {
            let stage = try await Stage.make("promote-no")
            let scene = stage.scene
            try await stage.dealWithAll(isNew: false)
            let missing = try await stage.promote([])
            #expect(
                missing.code == 1 && missing.standardError.contains("there is no replay better"), "\(missing.words)")
            let back = try await stage.promote(["--back"])
            #expect(back.code == 1 && back.standardError.contains("was not kept"), "\(back.words)")
            try await stage.replay("better")
            // Settings other than those of the replay, and apps that are in the log but not in the settings.
            let other = try await stage.promoteWithoutApps()
            #expect(other.code == 1, "\(other.words)")
            #expect(other.standardOutput.contains("was started with other settings"))
            #expect(
                other.standardOutput.contains(
                    "the setting apps does not contain com.example.player, com.example.reader"))
            try await scene.feed(subscribers: 20, seed: 12)
            try await stage.dealWithAll(isNew: false)
            let lag = try await stage.promote(["--max-lag", "5"])
            #expect(lag.code == 1 && lag.standardOutput.contains("records behind the live worker"), "\(lag.words)")
            try await scene.feed(subscribers: 20, seed: 13)
            try await stage.replay("better")
            let ahead = try await stage.promote([])
            #expect(
                ahead.code == 1 && ahead.standardOutput.contains("is ahead of the live worker in"), "\(ahead.words)")
            #expect(try await scene.topics().allSatisfy { !$0.contains("before-better") })
        }
    }
}
