import Testing
import TruthCheck

extension RealBroker {
    @Suite(.serialized) struct `Entitlements of a whole installation` {
        @Test func `are what the truth says of every customer, however often workers and ingest were killed`()
            async throws
        {
            let installation = try await Installation.make("whole", try await Broker.shared(), partitions: 6)
            let store = try await MakeBelieveStore.ofAHundredDays(
                seed: 21, subscribers: Scene.subscribers(ordinarily: 1_500))
            let scene = try await Scene(installation, store, "entitlements", ["--apps", store.apps])
            try await scene.play()
            let found = try await EntitlementsJudge(installation, store, ended: scene.ended)
            // Without any cases the judge would find nothing wrong.
            #expect(found.truth.subscriptionCount >= Scene.subscribers(ordinarily: 1_500) * 9 / 10)
            print(
                "whole: \(found.truth.subscriptionCount) subscriptions, \(found.events) events, "
                    + "\(scene.blows) kills")
        }
    }
}
