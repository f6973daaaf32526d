import KafkaTestKit
import Platform
import Testing

extension RealBroker {
    @Suite(
        .serialized, .enabled(if: BrokerSource.current.canStartBrokers, Comment(rawValue: BrokerSource.privateSkipLine))
    )
    struct `An ingest whose broker is gone` {
        /// Its parts end side by side. Well below the 25 s after which a service stops waiting for its parts.
        private static let limit: Duration = .seconds(12)

        @Test func `ends with 0 at SIGTERM, in time`() async throws {
            let cluster = try await KafkaCluster.start(BrokerSource.current.requireDistribution())
            let installation = try await Installation.make(
                "stop", Broker(bootstrap: cluster.bootstrapServers), partitions: 12)
            let store = try await MakeBelieveStore.open(telling: ["--seed", "5", "--subscribers", "1"])
            let bodies = try ["00000000.jws", "00000001.jws"].map { MakeBelieveStore.body(try store.payload($0)) }
            let ingest = try ServiceProcess(
                ["ingest", "--ingest.plaintext", "true", "--ingest.listen", "127.0.0.1:0", "--log.level", "debug"]
                    // The clock always has a request in flight.
                    + ["--tick.interval.ms", "100"] + store.ingestSettings + installation.settings)
            try await ingest.waitUntilReady()
            let port = try await ingest.port("ingest listens")
            try await waitUntil("a post is taken", within: patience) {
                try await store.post(body: bodies[0], to: port) == 200
            }
            try await cluster.broker.kill9()
            // A record is pending, too: Kafka has acknowledged only the first.
            #expect(try await store.post(body: bodies[1], to: port) == 503)
            let start = ContinuousClock.now
            let ending = try await ingest.process.terminate(within: .seconds(40))
            let taken = start.duration(to: .now)
            print("an ingest whose broker is gone ended after \(taken)")
            #expect(ending == .exited(code: 0), "\(ingest.process.lastLines(20))")
            #expect(taken < Self.limit, "\(ingest.process.lastLines(20))")
            await cluster.close()
        }
    }
}
