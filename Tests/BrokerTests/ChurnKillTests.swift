import Foundation
import JSON
import KafkaTestKit
import PlainChurn
import Platform
import Testing

extension RealBroker {
    @Suite(.serialized) struct `Churn of a whole installation` {
        /// Neither the zone of the brokers nor the default.
        private static let zone = "America/New_York"

        @Test func `is what the plain metrics count, however often workers and ingest were killed`() async throws {
            let installation = try await Installation.make("churn", try await Broker.shared(), partitions: 6)
            let store = try await MakeBelieveStore.ofAHundredDays(
                seed: 22, subscribers: Scene.subscribers(ordinarily: 1_000))
            let scene = try await Scene(installation, store, "churn", ["--churn.zone", Self.zone])
            try await scene.play()

            let found = try await ChurnJudge(
                installation, notifications: try await installation.read("notifications"), zone: Self.zone)
            let judge = found.judge
            try await compare(judge, withInspectOf: installation)
            // Without any cases the judge would find nothing wrong.
            #expect(judge.chainCount >= Scene.subscribers(ordinarily: 1_000) * 9 / 10)
            #expect(judge.cells.count > 500)
            print(
                "churn: \(judge.chainCount) chains, \(judge.cells.count) cells, \(found.events) events, "
                    + "\(scene.blows) kills")
        }

        /// The numbers of subscriptions that finance sees equal the numbers of subscriptions that exist.
        private func compare(_ judge: PlainJudge, withInspectOf installation: Installation) async throws {
            func day(_ distance: Int64) -> String {
                let seconds = Double(WallClock.milliseconds() / 1_000 + distance * 86_400)
                return String(Date(timeIntervalSince1970: seconds).ISO8601Format().prefix(10))
            }
            let shown = try await run(
                productPath("perennial"),
                [
                    "inspect", "metrics", "--from", day(-200), "--to", day(2), "--format", "json", "--churn.zone",
                    Self.zone,
                ] + installation.settings, environment: .only([:]), workingDirectory: "/")
            #expect(shown.code == 0, "\(shown.words)")
            let group = try #require(try JSONValue.read(Array(shown.standardOutput.utf8))["groups"]?.array?.first)
            let standings = judge.standings
            for (name, state) in [("active", "PAID"), ("trials", "FREE"), ("inGrace", "GRACE"), ("inRetry", "RETRY")] {
                let expected = Int64(standings.count { $0.state == state })
                #expect(group["stocks"]?[name]?["end"]?.integer == expected, "\(name)")
            }
            let revenue = try #require(group["money"]?.array).compactMap { $0["stocks"]?["mrr"]?["end"]?.integer }
            #expect(revenue.reduce(0, +) == standings.reduce(0) { $0 + $1.mrr })
        }
    }
}
