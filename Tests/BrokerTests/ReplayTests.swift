import Foundation
import JSON
import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

extension RealBroker {
    @Suite(.serialized) struct `A replay` {
        @Test func `of two processes writes what the live worker writes, however often all of them are killed`()
            async throws
        {
            let scene = try await ReplayScene.make(
                "again", partitions: 6, subscribers: Scene.subscribers(ordinarily: 900))
            var live = try scene.startLive("entitlements")
            // Slow enough that a kill hits the middle of it.
            let options = ["--name", "same", "--rate", "\(Scene.subscribers(ordinarily: 900) / 2)"]
            var replays = try (0..<2).map { try scene.startReplay("entitlements", slot: $0, options) }
            let group = scene.group("entitlements") + ".replay-same"
            try await waitUntil("the replay has started", within: patience) {
                try await scene.positions(group).values.reduce(0) { $0 + $1.value } > 500
            }
            for index in replays.indices { replays[index].killNow() }
            live.process.killNow()
            for process in replays + [live.process] { _ = try await process.wait() }
            let struck = try await scene.positions(group)
            live = try scene.startLive("entitlements")
            // One of them restarts without its disk.
            replays = try (0..<2).map {
                try scene.startReplay("entitlements", slot: $0, disk: $0 == 0 ? "fresh" : nil, options)
            }
            for process in replays {
                let ending = try await process.wait(within: .seconds(900))
                #expect(ending == .exited(code: 0), "\(process.lastLines(20))")
                #expect(process.standardError.contains("perennial replay: same of entitlements is at its end"))
            }
            let total = try await scene.positions(group).values.reduce(0) { $0 + $1.value }
            #expect(struck.values.reduce(0) { $0 + $1.value } < total, "the kill came too late: no work was left")
            try await scene.waitUntilDealtWith(by: scene.group("entitlements"))
            try await live.stop()
            try await expectSame(scene, "same")
            print("replay: \(total) records of notifications")
        }

        /// Equal byte for byte, because the code is the same.
        private func expectSame(_ scene: ReplayScene, _ name: String) async throws {
            let events = try await scene.sequences("entitlement-events")
            #expect(events.values.reduce(0) { $0 + $1.count } > 500, "a judge without cases")
            let shadows = try await scene.sequences("entitlement-events", of: name)
            #expect(shadows.keys.sorted() == events.keys.sorted())
            for (partition, live) in events {
                let shadow = shadows[partition] ?? []
                #expect(shadow.count == live.count, "partition \(partition)")
                let first = zip(live, shadow).first { !$0.isSame(as: $1) }
                #expect(first == nil, "partition \(partition) differs at offset \(first?.0.offset ?? -1)")
            }
            for topic in ["entitlements", "accounts"] {
                let live = try await scene.last(topic)
                let shadow = try await scene.last(topic, of: name)
                #expect(live.count > 100, "a judge without cases")
                #expect(Set(live.keys) == Set(shadow.keys))
                #expect(live.allSatisfy { key, record in shadow[key]?.isSame(as: record) ?? false }, "\(topic) differs")
            }
            #expect(try await scene.read("entitlements.dead-letters", of: name).isEmpty)
        }

        @Test func `counts what the live worker counts, and one with --from puts out the tail of it`() async throws {
            let scene = try await ReplayScene.make("tail", partitions: 3, subscribers: 150)
            let live = try scene.startLive("churn")
            let all = try await scene.tool("churn", ["--name", "all"])
            #expect(all.code == 0, "\(all.words)")
            // In the middle of the story.
            let tail = try await scene.tool("churn", ["--name", "tail", "--from", "2026-04-01"])
            #expect(tail.code == 0, "\(tail.words)")
            try await scene.waitUntilDealtWith(by: scene.group("churn"))
            try await live.stop()
            let cells = try await scene.last("churn-cells")
            let shadowCells = try await scene.last("churn-cells", of: "all")
            #expect(cells.count > 100 && Set(cells.keys) == Set(shadowCells.keys))
            #expect(cells.allSatisfy { key, record in shadowCells[key]?.isSame(as: record) ?? false })
            let events = try await scene.sequences("churn-events")
            let allEvents = try await scene.sequences("churn-events", of: "all")
            let tailEvents = try await scene.sequences("churn-events", of: "tail")
            let start = try await scene.places(at: 1_775_001_600_000)
            for (partition, live) in events {
                let loud = live.filter { $0.sourceOffset >= start[partition]! }
                #expect(!loud.isEmpty && loud.count < live.count, "a judge without cases")
                #expect(allEvents[partition]!.elementsEqual(live) { $0.isSame(as: $1) })
                #expect(tailEvents[partition]!.elementsEqual(loud) { $0.isSame(as: $1) })
            }
            // Cells that have changed since then: their records hold the whole cell.
            let tailCells = try await scene.last("churn-cells", of: "tail")
            #expect(!tailCells.isEmpty && tailCells.count < cells.count)
            #expect(tailCells.allSatisfy { key, record in cells[key]?.isSame(as: record) ?? false })
        }

        @Test func `is refused with other settings, listed, and dropped with everything it made and nothing else`()
            async throws
        {
            let scene = try await ReplayScene.make("list", partitions: 2, subscribers: 20)
            let before = try await scene.topics()
            let nothing = try await scene.tool("entitlements", ["--list"])
            #expect(nothing.code == 0 && nothing.standardOutput.isEmpty, "\(nothing.words)")
            #expect(nothing.standardError.contains("there is no replay"))
            let following = try scene.startReplay("entitlements", ["--name", "one", "--follow"])
            try await waitUntil("it follows: \(following.lastLines(5))", within: patience) {
                following.standardError.contains("continues with new records until SIGTERM")
            }
            // Other processes of the same replay must have the same settings.
            for (options, words) in [
                (["--name", "one", "--entitlements.leeway.ms", "7"], "other settings"),
                (["--name", "one", "--from", "2026-02-01"], "without --from, but this call is with --from 2026-02-01"),
                (["--name", "two", "--from", "0:99999999"], "not 99999999"),
                (["--name", "two", "--from", "5:1"], "there is no partition 5"),
                (["--name", "t.o"], "letters, digits"),
                (["--name", "two", "--rate", "3"], "--rate takes 10"),
            ] {
                let refused = try await scene.tool("entitlements", options, slot: 1)
                #expect(refused.code == 2 && refused.standardError.contains(words), "\(refused.words)")
            }
            let narrow = try await run(
                productPath("perennial"),
                ["replay", "entitlements", "--name", "two", "--kafka.bootstrap.servers", scene.broker.bootstrap]
                    + ["--topic.prefix", scene.installation.prefix, "--partitions", "3"],
                environment: .only([:]), workingDirectory: "/")
            #expect(narrow.code == 2 && narrow.standardError.contains("partitions"), "\(narrow.words)")
            // None of these has left anything behind.
            #expect(try await scene.topics().allSatisfy { !$0.hasSuffix(".replay-two") })
            try await expectListed(scene)
            try await expectStoppable(scene)
            // On the host where it runs, and on a host that has no state of it.
            for slot in 0...1 {
                let busy = try await scene.tool("entitlements", ["--drop", "one"], slot: slot)
                #expect(busy.code == 1 && busy.standardError.contains("Stop it first"), "\(busy.words)")
            }
            #expect(try await following.terminate(within: patience) == .exited(code: 0), "\(following.lastLines(9))")
            #expect(following.standardError.contains("is at its end"))
            let dropped = try await scene.tool("entitlements", ["--drop", "one"])
            #expect(dropped.code == 0, "\(dropped.words)")
            #expect(try await scene.topics().sorted() == before.sorted())
            #expect(!fileExists(scene.disks.file("replay-0") + "/" + scene.group("entitlements") + ".replay-one"))
            let again = try await scene.tool("entitlements", ["--drop", "one"])
            #expect(again.code == 1 && again.standardError.contains("there is no replay one"), "\(again.words)")
            let groups = try await scene.tool("entitlements", ["--list"])
            #expect(groups.standardOutput.isEmpty)
        }

        @Test func `that cannot go on at a partition says why, and ends when the other ones are at their end`()
            async throws
        {
            let scene = try await ReplayScene.make("stuck", partitions: 2, subscribers: 20)
            let headers = [("type", "notification"), ("schema", "notification/2")].map {
                StateFixture.Header(name: $0, value: FixtureBytes(Array($1.utf8)))
            }
            try await scene.tell([
                StateFixture.Record(
                    topic: "notifications", partition: 1, time: 1_780_000_000_000, key: FixtureBytes([1]),
                    value: FixtureBytes([2]), headers: headers)
            ])
            let stuck = try await scene.tool("churn", ["--name", "stuck"])
            #expect(stuck.code == 3, "\(stuck.words)")
            for words in [
                "stuck of churn cannot continue in partition 1: ", "upgrade this worker",
                "1 of 2 partitions at their end",
            ] {
                #expect(stuck.standardError.contains(words), "\(words) is missing in \(stuck.words)")
            }
            #expect(!stuck.standardError.contains("cannot continue in partition 0"))
            #expect(try await scene.read("churn-events", of: "stuck").contains { $0.partition == 0 })
        }

        /// A signal in the middle stops the replay without a failure, and the same command continues it.
        private func expectStoppable(_ scene: ReplayScene) async throws {
            let slow = try scene.startReplay("churn", disk: "slow", ["--name", "slow", "--rate", "20"])
            let group = scene.group("churn") + ".replay-slow"
            try await waitUntil("the replay has started: \(slow.lastLines(5))", within: patience) {
                try await scene.positions(group).values.contains { $0.value > 0 }
            }
            #expect(try await slow.terminate(within: patience) == .exited(code: 0), "\(slow.lastLines(9))")
            #expect(slow.standardError.contains("has not reached its end; the same command continues it"))
            let rest = try await scene.tool("churn", ["--name", "slow"])
            #expect(rest.code == 0 && rest.standardError.contains("is at its end"), "\(rest.words)")
            #expect(try await scene.tool("churn", ["--drop", "slow"]).code == 0)
        }

        @Test(.enabled(if: BrokerSource.current.canStartBrokers, Comment(rawValue: BrokerSource.privateSkipLine)))
        func `of a log whose beginning is gone is refused, told from when on it would be right, and run on demand`()
            async throws
        {
            let scene = try await ReplayScene.make("lost", partitions: 2, subscribers: 20)
            let topic = scene.installation.topic("notifications")
            let orders = try scene.disks.write(
                #"{"version":1,"partitions":[{"topic":"\#(topic)","partition":1,"offset":40}]}"#, to: "orders.json")
            let first = try #require(
                try await scene.read("notifications").first { $0.partition == 1 && $0.offset == 40 }?.timestamp)
            try await SharedKafka.cluster()?.tool("kafka-delete-records.sh", ["--offset-json-file", orders])
            let day = Date(timeIntervalSince1970: Double(first) / 1000).ISO8601Format().prefix(10)
            let words = ["\(topic)[1] begins at offset 40, of \(day)", "knows only what arrived since \(day)"]
            let refused = try await scene.tool("churn", ["--name", "lost"])
            #expect(refused.code == 2 && refused.standardError.contains("--incomplete"), "\(refused.words)")
            let plan = try await scene.program(["topics", "plan"])
            let check = try await scene.program(["check"])
            for word in words {
                for outcome in [refused, plan, check] {
                    #expect(outcome.words.contains(word), "\(outcome.words)")
                }
            }
            #expect(try await scene.topics().allSatisfy { !$0.contains(".replay-") })
            let run = try await scene.tool("churn", ["--name", "lost", "--incomplete"])
            #expect(
                run.code == 0 && run.standardError.contains("warning: the first notifications"), "\(run.words)"
            )
            #expect(try await scene.read("churn-events", of: "lost").contains { $0.partition == 1 })
        }

        @Test func `of the worker that answers refund requests decides as that one does, and speaks to nobody`()
            async throws
        {
            let apple = try SilentListener()
            let scene = try await ReplayScene.make("silent", partitions: 2, subscribers: 0)
            let settings = try scene.refundSettings(apple: apple.port)
            try await scene.feedRefundRequest()
            let usage = try await scene.read("usage")
            let replay = try await scene.program(["replay", "consumption", "--name", "quiet"] + settings)
            #expect(replay.code == 0, "\(replay.words)")
            let decided = try await scene.decisions(of: "quiet")
            #expect(decided.count == 1, "a judge without cases")
            #expect(!apple.wasCalled)
            // The replay must not forward a row in the wrong partition.
            #expect(try await scene.read("usage").count == usage.count)
            // The live worker with the same settings calls Apple, and decides the same.
            let live = try ServiceProcess(["consumption"] + settings + scene.installation.settings)
            try await waitUntil("Apple is called: \(live.process.lastLines(5))", within: patience) { apple.wasCalled }
            try await waitUntil("the other row is forwarded", within: patience) {
                try await scene.read("usage").count == usage.count + 1
            }
            // Otherwise it would wait for Apple's answer.
            live.process.killNow()
            _ = try await live.process.wait()
            let decisions = try await scene.decisions()
            #expect(decisions.elementsEqual(decided) { $0.isSame(as: $1, apartFrom: ["id", "source"]) })
            try await expectComparable(scene, settings)
        }

        /// The same policy decides the same. Another policy differs in the only request there is.
        private func expectComparable(_ scene: ReplayScene, _ settings: [String]) async throws {
            func diff(_ name: String) async throws -> (code: Int32, same: Int64?, samples: [JSONValue], words: String) {
                let result = try await scene.program(
                    ["diff", "consumption", "--name", name, "--format", "json"] + settings)
                let lines = try result.standardOutput.split(separator: "\n").map { try JSONValue.read(Array($0.utf8)) }
                return (
                    result.code, lines.first { $0["kind"]?.string == "total" }?["same"]?.integer,
                    lines.filter { $0["kind"]?.string == "sample" }, result.words
                )
            }
            // The live worker has forwarded a row meanwhile.
            let rest = try await scene.program(["replay", "consumption", "--name", "quiet"] + settings)
            #expect(rest.code == 0, "\(rest.words)")
            let same = try await diff("quiet")
            #expect(same.code == 0 && same.same == 1 && same.samples.isEmpty, "\(same.words)")
            let policy = try scene.disks.write(
                #"{"version":"2","rules":[{"name":"all","when":{},"answer":{"refundPreference":"DECLINE"}}]}"#,
                to: "policy.json")
            let replay = try await scene.program(
                ["replay", "consumption", "--name", "other", "--consumption.policy", policy] + settings)
            #expect(replay.code == 0, "\(replay.words)")
            let other = try await diff("other")
            #expect(other.code == 1 && other.same == 0 && other.samples.count == 1, "\(other.words)")
            #expect(other.samples.first?["topic"]?.string == scene.installation.topic("consumption"))
        }

        private func expectListed(_ scene: ReplayScene) async throws {
            let list = try await scene.tool("entitlements", ["--list"])
            #expect(list.code == 0, "\(list.words)")
            for word in ["production  entitlements  one  100 %, lag 0", "members 1", "rules ", "perennial/"] {
                #expect(list.standardOutput.contains(word), "\(list.words)")
            }
            let json = try await scene.tool("entitlements", ["--list", "--format", "json"])
            let line = try JSONValue.read(Array(json.standardOutput.trimmingCharacters(in: .newlines).utf8))
            #expect(line["name"]?.string == "one" && line["members"]?.integer == 1 && line["lag"]?.integer == 0)
            #expect((line["offsets"]?.integer ?? 0) > 20)
        }
    }
}

extension WholeRecord {
    /// Everything but the offset, because ends of transactions take offsets. A decision has two causes, the request
    /// and the row of usage. The one that a worker reads later is named by the headers `id` and `source`, and Kafka
    /// promises no order between two topics.
    func isSame(as other: WholeRecord, apartFrom names: Set<String> = []) -> Bool {
        partition == other.partition && key == other.key && value == other.value && timestamp == other.timestamp
            && headers.filter { !names.contains($0.name) } == other.headers.filter { !names.contains($0.name) }
    }

    /// The place of the record that caused it.
    var sourceOffset: Int64 {
        header("source").flatMap { $0.split(separator: ":").last.flatMap { Int64($0) } } ?? -1
    }
}
