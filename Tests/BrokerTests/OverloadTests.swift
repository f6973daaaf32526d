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
                prefix: "overload-\(UInt32.random(in: 0 ... .max))", roots: fixture.rootPEM, apps: fixture.appsFile)
            let overload = try await Overload(of: ingest, bodies: fixture.bodies, seconds: Self.seconds)
            let outcome = overload.outcome
            print("overload: \(overload)")
            #expect(ingest.process.isRunning, "\(ingest.process.lastLines(20))")
            // Of twice the capacity, more than half is more than it can do. What the machine's other work leaves the load to send
            // with varies by more than the rest of this.
            #expect(overload.offered > 0.6)
            #expect(outcome.answered(200) > 0 && outcome.answered(503) > 0)
            #expect(outcome.answered == outcome.answered(200) + outcome.answered(503), "\(outcome)")
            // Who is not taken at once waits in the backlog; nobody who was taken is cut off.
            #expect(outcome.broken == 0, "\(outcome)")
            #expect(overload.peakMemoryBytes < Overload.memoryLimitBytes)
            #expect(try #require(overload.recovery) < Overload.recoveryLimit)
            let ending = try await ingest.process.terminate(within: .seconds(30))
            #expect(ending == .exited(code: 0), "\(ingest.process.lastLines(20))")
        }
    }
}
