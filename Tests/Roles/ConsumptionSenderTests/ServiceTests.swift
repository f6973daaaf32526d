import Contract
import Log
import MemoryLog
import Platform
import Runtime
import Synchronization
import Telemetry
import TestTraits
import Testing

@testable import Consumption
@testable import ConsumptionSender

@Suite(.ownThreads) struct `The sender as a part of a process` {
    @Test func `ends when what is on the wire is answered and its row is written`() throws {
        let clock = MemoryLog.Clock.real()
        let log = try SenderBench.memoryLog(clock, partitions: 1)
        let carrier = FakeCarrier { clock.now }
        carrier.beSlow()
        let ownership = Ownership(threads: 1, bootClock: BootClock.now)
        ownership.set([0], until: BootClock.now() + .seconds(3_600), thread: 0)
        let health = Health()
        let service = SenderService(
            SenderOptions(SenderBench.names, partitions: 1, rate: 50, app: "perennial/test"),
            worker: WorkerView(ownership: ownership, positions: PlayedWorker().positions), carrier: carrier, log: log,
            health: health, metrics: Metrics(), logger: Logger { _ in })
        try service.start { Issue.record("\($0)") }
        // A separate bench that only writes and reads.
        let bench = try SenderBench(clock, log, partitions: 1, rate: 1)
        try bench.decide("1")
        let patience = Deadline(after: .seconds(60))
        while carrier.calls.isEmpty, !patience.hasPassed { pause(for: .milliseconds(5)) }
        #expect(carrier.calls.count == 1)
        #expect(try bench.rows().isEmpty)
        let stopped = Latch()
        let stopping = WorkerThread.start("stopping") {
            defer { stopped.open() }
            try service.stop(by: Deadline(after: .seconds(30)))
        }
        // It has nothing else to do, and still has not ended.
        #expect(!stopped.wait(until: Deadline(after: .milliseconds(300))))
        carrier.finish()
        #expect(stopped.wait(until: Deadline(after: .seconds(60))))
        if case .failure(let error)? = stopping.result { Issue.record("\(error)") }
        #expect(try bench.rows().map(\.httpStatus) == [202])
    }
}
