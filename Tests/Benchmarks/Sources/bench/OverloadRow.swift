// One minute of twice the load that ingest can serve.

import IngestTestKit
import KafkaTestKit
import Platform

private let seconds = 60.0

func measureOverload(_ report: inout Report) async throws {
    let fixture = try NotificationFixture(count: 1_000)
    let ingest = try await startIngest(fixture, archive: true, bootstrap: try await requireKafka())
    let overload = try await Overload(of: ingest, bodies: fixture.bodies, seconds: seconds)
    report.note("\(overload)")
    let strange = overload.outcome.statuses.keys.filter { ![200, 503].contains($0) }
    if !strange.isEmpty { report.fail("answers other than 200 and 503: \(strange.sorted())") }
    if overload.outcome.answered(503) == 0 || overload.offered < 0.8 {
        report.fail("the load was too small to be an overload")
    }
    if overload.peakMemoryBytes > Overload.memoryLimitBytes {
        report.fail("ingest used more memory than its queues can hold")
    }
    if !ingest.process.isRunning { report.fail("ingest ended: \(ingest.process.lastLines(20))") }
    // The nightly table does not need the exact ratio of a limit that is missed by far.
    let recovery = overload.recovery?.fractionalSeconds ?? .infinity
    report.judge(
        "overload", "recovery within \(Overload.recoveryLimit)",
        ratio: min(99, recovery / Overload.recoveryLimit.fractionalSeconds), .atMost(1))
    _ = try await ingest.process.terminate(within: .seconds(30))
}
