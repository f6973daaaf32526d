import Glibc
import KafkaTestKit
import Testing

/// nil: the long run was not asked for.
private let manySeconds = getenv("PERENNIAL_TEST_MANY_SECONDS").flatMap { Int(String(cString: $0)) }

extension RealBroker {
    @Suite(
        .serialized,
        .enabled(if: BrokerSource.current.canStartBrokers, Comment(rawValue: BrokerSource.privateSkipLine)),
        .enabled(if: manySeconds != nil, "make many, or make nightly PART=many")
    )
    struct `Many processes on three brokers` {
        @Test func `write what the truth says, whatever happens to processes, disks and brokers`() async throws {
            var options = KafkaOptions()
            options.nodes = 3
            let cluster = try await KafkaCluster.start(BrokerSource.current.requireDistribution(), options)
            do {
                let run = try await ManyRun(seconds: try #require(manySeconds), cluster)
                try await run.play()
                try await run.judge()
            } catch {
                await cluster.close()
                throw error
            }
            // What is missing then is not the fault of the processes that wrote it.
            #expect(!cluster.hasSkippedMarkers, "a broker has skipped the markers of a transaction: run it again")
            await cluster.close()
        }
    }
}
