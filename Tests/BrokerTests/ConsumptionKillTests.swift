import Foundation
import KafkaTestKit
import Platform
import Testing

extension RealBroker {
    @Suite(.serialized) struct `Answers to refund requests` {
        /// Longer than the group waits for a silent member.
        private static let freeze: Duration = .seconds(36)

        @Test func `reach Apple once each, in time and with consent, however often workers are killed and stopped`()
            async throws
        {
            let installation = try await Installation.make("refunds", try await Broker.shared(), partitions: 6)
            let story = RefundScene.Story(seed: 11, subscribers: Scene.subscribers(ordinarily: 2_750))
            let scene = try await RefundScene(installation, story, replicas: 3)
            var dice = Dice()
            var kills = 0
            var freezes: [RefundScene.Freeze] = []
            // Strikes while answers are being sent.
            try await waitUntil("answers are sent", within: .seconds(120)) { try scene.journal().count > 50 }
            let deadline = Deadline(after: .seconds(75))
            while !deadline.hasPassed {
                try await Task.sleep(for: .milliseconds(Int.random(in: 1_000...4_000, using: &dice)))
                if kills == 4 {
                    // The others are struck meanwhile: by then they own the partitions of the stopped one.
                    let stopped = scene.workers[2].process
                    async let frozen = RefundScene.Freeze(of: stopped, slot: 2, for: Self.freeze)
                    try await Task.sleep(for: .seconds(10))
                    try await scene.kill(Int.random(in: 0..<2, using: &dice), wipes: false)
                    freezes.append(try await frozen)
                } else {
                    // The log of the stopped one after that is evidence.
                    let victims = freezes.isEmpty ? 3 : 2
                    try await scene.kill(
                        Int.random(in: 0..<victims, using: &dice), wipes: Int.random(in: 0..<3, using: &dice) == 0)
                }
                kills += 1
            }
            try await scene.waitUntilSettled(within: .seconds(240))
            try await judge(scene, freezes, kills)
            try await scene.end()
        }

        /// Judged by what Apple's side has received, and by what the simulator knows of consent and dates.
        private func judge(_ scene: RefundScene, _ freezes: [RefundScene.Freeze], _ kills: Int) async throws {
            let histories = try await scene.histories()
            let journal = try scene.journal()
            let truth = try scene.truth()
            let byTransaction = Dictionary(grouping: truth, by: \.transactionId)

            let restless = histories.filter { $0.value.finalCount > 1 || $0.value.bodies.count > 1 }
            #expect(restless.isEmpty, "several final records or bodies: \(restless.prefix(5))")
            let decided = Dictionary(grouping: histories.values, by: \.transactionId).mapValues {
                Set($0.flatMap(\.bodies))
            }
            for entry in journal {
                let requests = byTransaction[entry.transactionId] ?? []
                #expect(
                    decided[entry.transactionId]?.contains(entry.body) == true,
                    "Apple got a body of \(entry.transactionId) that was not decided: \(entry.body)")
                #expect(
                    requests.contains { entry.at <= $0.deadline }, "sent after the deadline: \(entry.transactionId)")
                #expect(
                    requests.contains { $0.answer != "never" }, "without consent: \(entry.transactionId)")
            }
            for request in truth where request.answer == "must" && request.deadline > WallClock.milliseconds() {
                let kinds = histories[request.uuid]?.kinds ?? []
                #expect(
                    kinds.contains("sent") || kinds.contains("failed"), "\(request.uuid) was not answered: \(kinds)")
            }
            try judge(freezes, journal, scene)
            let letters = try await scene.records("consumption.dead-letters")
            #expect(letters.isEmpty, "\(letters.count) dead letters")
            // Without any cases the judge would find nothing wrong.
            let sent = histories.values.count { $0.kinds.contains("sent") }
            #expect(histories.count >= truth.count * 95 / 100 && sent > truth.count / 4)
            #expect(histories.values.contains { $0.kinds.contains("retrying") })
            #expect(kills > 5 && freezes.count == 1)
            print(
                "refunds: \(histories.count) requests, \(sent) sent, \(journal.count) attempts seen by Apple, \(kills) kills, "
                    + "\(freezes.count) freezes")
        }

        /// A request that was in flight may arrive, but nothing new begins before the group has assigned partitions again.
        private func judge(_ freezes: [RefundScene.Freeze], _ journal: [JournalEntry], _ scene: RefundScene) throws {
            for freeze in freezes {
                let readmitted = scene.workers[freeze.slot].log.split(separator: "\n").compactMap { line -> Int64? in
                    guard line.contains("partitions assigned") else { return nil }
                    return line.firstMatch(of: #/"time":"([^"]+)"/#).flatMap { Self.milliseconds(String($0.1)) }
                }.first { $0 > freeze.until }
                let late = journal.filter { entry in
                    entry.slot == freeze.slot && entry.at > freeze.from + 1_000 && entry.at < readmitted ?? .max
                }
                #expect(late.isEmpty, "sent by a process that had been stopped: \(late)")
            }
        }

        private static func milliseconds(_ text: String) -> Int64? {
            let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
            return (try? Date(text, strategy: style)).map { Int64($0.timeIntervalSince1970 * 1_000) }
        }
    }
}
