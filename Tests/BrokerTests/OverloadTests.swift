import IngestTestKit
import KafkaTestKit
import Platform
import Testing

extension RealBroker {
    @Suite(.serialized) struct `An ingest that is asked for too much` {
        /// `make bench ROWS=overload` does the same for a minute.
        private static let seconds = 10.0

        @Test func `answers 200 or 503, keeps its memory bounded, and is itself again within 5 seconds`() async throws {
            let fixture = try NotificationFixture(count: 500)
            let ingest = try await IngestProcess.start(
                productPath("perennial"), bootstrap: try await SharedKafka.bootstrapServers(),
                prefix: "overload-\(UInt32.random(in: 0 ... .max))", roots: fixture.rootPEM, apps: fixture.appsFile,
                // The server accepts only an eighth of the connections from one address that is not a proxy's.
                settings: ["--ingest.trusted.proxies", "127.0.0.1", "--ingest.repeated.ms", "0"])
            var overload: Overload
            var tries = 0
            repeat {
                tries += 1
                overload = try await Overload(of: ingest, bodies: fixture.bodies, seconds: Self.seconds)
                print("overload: \(overload)")
                let outcome = overload.outcome
                #expect(ingest.process.isRunning, "\(ingest.process.lastLines(20))")
                #expect(outcome.answered == outcome.answered(200) + outcome.answered(503), "\(outcome)")
                // A connection that is not accepted at once waits in the backlog; no accepted connection is cut.
                #expect(outcome.broken == 0, "\(outcome)")
                #expect(overload.peakMemoryBytes < Overload.memoryLimitBytes)
                #expect(try #require(overload.recovery) < Overload.recoveryLimit)
                // A machine with other work may have too little CPU to send that much: then this could not be observed.
            } while overload.offered <= 0.8 && tries < 3
            #expect(overload.offered > 0.8)
            #expect(overload.outcome.answered(200) > 0 && overload.outcome.answered(503) > 0)
            let ending = try await ingest.process.terminate(within: .seconds(30))
            #expect(ending == .exited(code: 0), "\(ingest.process.lastLines(20))")
        }
    }
}
