import Foundation
import JSON
import Testing
import TruthCheck

extension RealBroker {
    @Suite(.serialized) struct `Entitlements of a whole installation` {
        private static let leeway: Int64 = 3_600_000

        @Test func `are what the truth says of every customer, however often workers and ingest were killed`()
            async throws
        {
            let installation = try await Installation.make("whole", try await Broker.shared(), partitions: 6)
            let store = try await Scene.store(seed: 21, subscribers: Scene.subscribers(ordinarily: 1_500))
            let scene = try await Scene(installation, store, "entitlements", ["--apps", store.apps])
            try await scene.play()
            try await judge(scene, store)
        }

        /// Nothing of the workers is asked.
        private func judge(_ scene: Scene, _ store: MakeBelieveStore) async throws {
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
            #expect(truth.subscriptionCount >= Scene.subscribers(ordinarily: 1_500) * 9 / 10)
            #expect(truth.moving(until: scene.ended) < truth.subscriptionCount / 5)
            print(
                "whole: \(truth.subscriptionCount) subscriptions, \(events.values.reduce(0) { $0 + $1.count }) events, "
                    + "\(scene.blows) kills")
        }
    }
}
