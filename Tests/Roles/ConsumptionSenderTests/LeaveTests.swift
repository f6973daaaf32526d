import Contract
import Log
import MemoryLog
import Platform
import Synchronization
import Testing

@testable import Consumption
@testable import ConsumptionSender

@Suite struct `Leave to send` {
    // MARK: The case

    @Test(arguments: [ConsumptionRecord.Kind.withheld, .sent, .failed, .expired])
    func `is gone when before the attempt the worker has told that the request is`(_ kind: ConsumptionRecord.Kind)
        throws
    {
        let bench = try SenderBench()
        try bench.input(.usage)
        bench.worker.stand(at: [0, 0, 0])
        try bench.decide("1")
        bench.run()
        try bench.tell(kind, "1")
        bench.worker.beAtTheEnd()
        bench.run(for: .seconds(5))
        #expect(bench.carrier.calls.isEmpty)
        #expect(try bench.rows().isEmpty)
    }

    @Test(arguments: [ConsumptionRecord.Kind.withheld, .sent, .failed, .expired])
    func `is gone while the attempt waits for its connection when the request is`(_ kind: ConsumptionRecord.Kind)
        throws
    {
        let bench = try SenderBench()
        bench.carrier.hold()
        try bench.decide("1")
        bench.run()
        #expect(bench.carrier.heldCount == 1)
        try bench.tell(kind, "1")
        bench.run(for: .milliseconds(50))
        bench.carrier.connect()
        bench.run(for: .seconds(5))
        #expect(bench.carrier.calls.isEmpty)
        #expect(bench.carrier.heldCount == 0)
        #expect(try bench.rows().isEmpty)
        #expect(bench.metric(#"perennial_consumption_attempts_total{result="withdrawn"}"#) == "1")
    }

    @Test func `comes back with consent, for the same bytes`() throws {
        let bench = try SenderBench()
        try bench.input(.usage)
        bench.worker.stand(at: [0, 0, 0])
        try bench.decide("1")
        try bench.tell(.withheld, "1")
        try bench.decide("1")
        bench.worker.beAtTheEnd()
        bench.run()
        #expect(bench.carrier.bodies == [#"{"of":"1"}"#])
    }

    // MARK: Looks

    @Test(arguments: [TopicID.notifications, .usage, .consumptionAttempts])
    func `waits for the worker to pass what its inputs have had since`(_ input: TopicID) throws {
        let bench = try SenderBench()
        try bench.input(input)
        bench.worker.stand(at: [0, 0, 0])
        try bench.decide("1")
        bench.run(for: .seconds(10))
        #expect(bench.carrier.calls.isEmpty)
        let order: [TopicID] = [.notifications, .usage, .consumptionAttempts]
        bench.worker.stand(at: order.map { $0 == input ? 1 : 0 })
        // That look began long ago, so another one follows.
        bench.run()
        #expect(bench.carrier.calls.count == 1)
    }

    @Test func `is looked at again for what is due later`() throws {
        let bench = try SenderBench()
        bench.carrier.answer(status: 500)
        try bench.decide("1")
        bench.run(until: { !bench.carrier.calls.isEmpty })
        // Consent was withdrawn between the first attempt and the second; the worker has not read it.
        try bench.input(.usage)
        bench.worker.stand(at: [0, 0, 10])
        bench.run(for: .seconds(20))
        #expect(bench.carrier.calls.count == 1)
        try bench.tell(.withheld, "1")
        bench.worker.beAtTheEnd()
        bench.run(for: .seconds(20))
        #expect(bench.carrier.calls.count == 1)
    }

    @Test func `needs what the worker wrote when it had passed the look`() throws {
        let clock = MemoryLog.Clock.manual(startingAt: SenderBench.start)
        let stalling = Stalling()
        let bench = try SenderBench(
            clock, try SenderBench.memoryLog(clock, partitions: 1, faults: stalling), partitions: 1, rate: 50)
        bench.own([0])
        try bench.input(.usage)
        bench.worker.stand(at: [0, 0, 0])
        try bench.decide("1")
        bench.run()
        // The worker has written its record, and reading it takes a while.
        stalling.stall(polls: 30)
        try bench.tell(.withheld, "1")
        bench.worker.stand(at: [0, 1, 0])
        bench.run(for: .seconds(5))
        #expect(bench.carrier.calls.isEmpty)
    }

    // MARK: The lease

    @Test func `is had for what is owned, and for nothing else`() throws {
        let bench = try SenderBench(partitions: 2)
        bench.own([1])
        try bench.decide("0", partition: 0)
        try bench.decide("1", partition: 1)
        bench.run(for: .seconds(2))
        #expect(bench.ids == ["1"])
        bench.own([])
        try bench.decide("2", partition: 1)
        bench.run(for: .seconds(2))
        #expect(bench.ids == ["1"])
    }

    @Test func `ends with the lease, also for what waits for its connection`() throws {
        let bench = try SenderBench()
        bench.own([0], for: .seconds(2))
        bench.carrier.hold()
        try bench.decide("1")
        bench.run()
        #expect(bench.carrier.heldCount == 1)
        bench.pass(.seconds(3))
        bench.carrier.connect()
        #expect(bench.carrier.calls.isEmpty)
    }

    @Test func `is looked for anew when the lease had ended`() throws {
        let bench = try SenderBench(rate: 2)
        bench.own([0], for: .milliseconds(200))
        try bench.decide("1")
        try bench.decide("2")
        bench.run(until: { bench.carrier.calls.count == 1 })
        // Another process owned the partition for a moment, and consent was withdrawn.
        try bench.input(.usage)
        bench.worker.stand(at: [0, 0, 10])
        bench.pass(.milliseconds(250))
        bench.own([0])
        bench.run(for: .seconds(5))
        #expect(bench.ids == ["1"])
        bench.worker.beAtTheEnd()
        bench.run(for: .seconds(2))
        #expect(bench.ids == ["1", "2"])
    }

    @Test func `of an attempt ends when the process was stopped, or it has waited for long`() throws {
        let bench = try SenderBench()
        bench.carrier.hold()
        try bench.decide("1")
        bench.run()
        bench.pass(.seconds(11))
        bench.carrier.connect()
        #expect(bench.carrier.calls.isEmpty)
        bench.carrier.answer(status: 202)
        bench.run(for: .seconds(3))
        #expect(bench.carrier.calls.count == 1)
        #expect(try bench.rows().map(\.number) == [1])
    }

    @Test func `is not given again to what is under way when its partition leaves and returns`() throws {
        let bench = try SenderBench()
        bench.carrier.beSlow()
        bench.carrier.answer(status: 500)
        try bench.decide("1")
        bench.run()
        #expect(bench.carrier.calls.count == 1)
        bench.own([])
        bench.run()
        bench.own([0])
        bench.run(for: .seconds(60))
        #expect(bench.carrier.calls.count == 1)
        bench.carrier.finish()
        bench.run(for: .seconds(3))
        #expect(try bench.rows().map(\.number) == [1, 2])
        #expect(bench.carrier.calls.count == 2)
    }

    // MARK: The deadline

    @Test(arguments: [(29, 0), (30, 0), (31, 1)])
    func `is not given in the last seconds before the deadline`(_ seconds: Int, _ calls: Int) throws {
        let bench = try SenderBench()
        try bench.decide("1", in: .seconds(seconds))
        bench.run(for: .seconds(60))
        #expect(bench.carrier.calls.count == calls)
    }

    @Test func `ends before the deadline for what waits for its connection`() throws {
        let clock = MemoryLog.Clock.manual(startingAt: SenderBench.start)
        let behind = Mutex<Int64>(0)
        let bench = try SenderBench(
            clock, try SenderBench.memoryLog(clock, partitions: 1), partitions: 1, rate: 50,
            wall: { clock.now + behind.withLock { $0 } })
        bench.own([0])
        bench.carrier.hold()
        try bench.decide("1", in: .seconds(60))
        bench.run()
        #expect(bench.carrier.heldCount == 1)
        // A host's clock that was slow is corrected: it is later than it seemed to be.
        behind.withLock { $0 = 45_000 }
        bench.carrier.connect()
        #expect(bench.carrier.calls.isEmpty)
        bench.carrier.answer(status: 202)
        bench.run(for: .seconds(90))
        #expect(bench.carrier.calls.isEmpty)
    }

    @Test func `is there in time when a clock that was ahead is set back`() throws {
        let clock = MemoryLog.Clock.manual(startingAt: SenderBench.start)
        let ahead = Mutex<Int64>(13 * 3_600_000)
        let bench = try SenderBench(
            clock, try SenderBench.memoryLog(clock, partitions: 1), partitions: 1, rate: 50,
            wall: { clock.now + ahead.withLock { $0 } })
        bench.own([0])
        try bench.decide("1")
        bench.run(for: .seconds(5))
        #expect(bench.carrier.calls.isEmpty)
        ahead.withLock { $0 = 0 }
        bench.run(for: .seconds(70))
        #expect(bench.carrier.calls.count == 1)
    }
}
