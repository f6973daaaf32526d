import Foundation
import KafkaTestKit
import Testing

extension RealBroker {
    @Suite(.serialized) struct `A comparison with a replay` {
        /// The output of the command.
        private struct Answer {
            var code: Int32
            var words: String
            var counts: [String: Int] = [:]
            /// The keys that differ, each with its topic.
            var keys: Set<String> = []
            var rates: [[String: Any]] = []
        }

        private func diff(_ scene: ReplayScene, _ worker: String, _ name: String, _ options: [String] = []) async throws
            -> Answer
        {
            let result = try await scene.program(
                ["diff", worker, "--name", name, "--format", "json", "--samples", "1000000"] + options)
            var answer = Answer(code: result.code, words: result.words)
            for line in result.standardOutput.split(separator: "\n") {
                let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
                switch object["kind"] as? String {
                case "sample":
                    let topic = try #require(object["topic"] as? String)
                    answer.keys.insert("\(topic.split(separator: ".").last!) \(try #require(object["key"] as? String))")
                case "total": answer.counts = object.compactMapValues { $0 as? Int }
                case "rate": answer.rates.append(object)
                default: break
                }
            }
            return answer
        }

        private func replay(_ scene: ReplayScene, _ worker: String, _ name: String, _ settings: [String]) async throws {
            let result = try await run(
                productPath("perennial"),
                ["replay", worker, "--name", name, "--worker.slot", "0", "--state.directory", scene.disks.file(name)]
                    + settings + scene.installation.settings, environment: .only([:]), workingDirectory: "/",
                timeout: patience * 3)
            #expect(result.code == 0, "\(result.words)")
        }

        @Test func `finds nothing with the same rules, and exactly what other rules make another`() async throws {
            let scene = try await ReplayScene.make("diff", partitions: 2, subscribers: 120)
            let live = try scene.startLive("entitlements")
            try await scene.waitUntilDealtWith(by: scene.group("entitlements"))
            let topics = ["entitlements", "accounts"]
            let before = try await scene.values(topics)
            #expect(before.count > 100)

            let same = try await scene.tool("entitlements", ["--name", "same"])
            #expect(same.code == 0, "\(same.words)")
            let equal = try await diff(scene, "entitlements", "same")
            #expect(equal.code == 0 && equal.keys.isEmpty, "\(equal.words)")
            #expect(equal.counts["same"] == before.count)

            let apps = try scene.disks.write(
                #"[{"bundleId":"com.example.reader","appAppleId":1500000001,"#
                    + #""entitlements":{"all":["a"],"more":["com.example.reader.basic.month"]}}]"#,
                to: "other-apps.json")
            try await replay(scene, "entitlements", "other", ["--apps", apps])
            let after = try await scene.values(topics, of: "other")
            let wanted = Set(before.keys).union(after.keys).filter { before[$0] != after[$0] }
            let other = try await diff(scene, "entitlements", "other")
            #expect(other.code == 1 && other.keys == wanted, "\(other.words)")
            #expect(wanted.count > 20 && wanted.count < before.count)
            #expect(other.counts["same"] == before.count - wanted.count)

            // A replay that has not read as far as the live worker.
            try await scene.feed(subscribers: 20, seed: 12)
            try await scene.waitUntilDealtWith(by: scene.group("entitlements"))
            let late = try await diff(scene, "entitlements", "same")
            #expect(late.code == 2 && late.words.contains("same is not at its end"), "\(late.words)")
            let newer = try await diff(scene, "entitlements", "same", ["--unfinished"])
            #expect(newer.code == 0 && newer.keys.isEmpty, "\(newer.words)")
            #expect(newer.counts["newer"] ?? 0 > 10)

            let none = try await diff(scene, "entitlements", "none")
            #expect(none.code == 2 && none.words.contains("there is no replay none of entitlements"), "\(none.words)")
            #expect(none.words.contains("there are: other, same"))
            try await live.stop()
        }

        @Test func `finds the days that another time zone moves, and the rates of their months`() async throws {
            let scene = try await ReplayScene.make("diff-churn", partitions: 2, subscribers: 120)
            let live = try scene.startLive("churn")
            try await scene.waitUntilDealtWith(by: scene.group("churn"))
            try await replay(scene, "churn", "same", [])
            let equal = try await diff(scene, "churn", "same")
            #expect(equal.code == 0 && equal.keys.isEmpty && equal.rates.isEmpty, "\(equal.words)")

            try await replay(scene, "churn", "tokyo", ["--churn.zone", "Asia/Tokyo"])
            let (before, after) = (try await scene.cells(), try await scene.cells(of: "tokyo"))
            let wanted = Set(before.keys).union(after.keys).filter { before[$0] != after[$0] }
            let moved = try await diff(scene, "churn", "tokyo")
            #expect(moved.code == 1 && moved.keys == wanted, "\(moved.keys.symmetricDifference(wanted).prefix(9))")
            #expect(wanted.count > 50 && !moved.rates.isEmpty)
            #expect(moved.counts["same"] == Set(before.keys).union(after.keys).count - wanted.count)
            try await live.stop()
        }
    }
}
