import Contract
import Log
import MemoryLog
import Platform
import Testing

@testable import Consumption
@testable import ConsumptionSender

@Suite struct `An attempt that Apple did not take` {
    @Test(arguments: [500, 503, 408, nil])
    func `is tried again, a little later each time`(_ status: Int?) throws {
        let bench = try SenderBench()
        bench.carrier.answer { _ in status.map { Delivery(.answered(status: $0)) } ?? Delivery(.unanswered("cut")) }
        try bench.decide("1")
        bench.run(for: .seconds(40))
        let times = bench.times
        try #require(times.count == 6)
        let gaps = zip(times.dropFirst(), times).map { $0 - $1 }
        for (gap, wait) in zip(gaps, [1_000, 2_000, 4_000, 8_000, 16_000]) {
            #expect((Int64(wait)..<Int64(wait) + 100).contains(gap))
        }
        #expect(Set(bench.carrier.bodies).count == 1)
        #expect(try bench.rows().map(\.number) == [1, 2, 3, 4, 5, 6])
        #expect(try bench.rows().allSatisfy { $0.httpStatus == status.map(Int64.init) })
    }

    @Test func `is tried again when its row says, whatever of it the worker has told`() throws {
        for isHeard in [false, true] {
            let bench = try SenderBench(jitter: 0.3)
            bench.carrier.answer(status: 500)
            try bench.decide("1")
            for _ in 0..<5 {
                let count = try bench.rows().count
                bench.run(for: .seconds(60), until: { (try? bench.rows().count) != count })
                let row = try #require(try bench.rows().last)
                if isHeard { try bench.hear(row) }
                let due = try #require(row.retryAt)
                bench.run(for: .milliseconds(due - bench.clock.now - 20))
                #expect(bench.carrier.calls.count == count + 1)
                bench.run(for: .milliseconds(150))
                #expect(bench.carrier.calls.count == count + 2)
                break
            }
        }
    }

    @Test func `is tried a last time at the last moment, and not behind it`() throws {
        let bench = try SenderBench()
        bench.carrier.answer(status: 500)
        try bench.decide("1", in: .seconds(200))
        bench.run(for: .seconds(400))
        let last = try #require(bench.times.last)
        #expect((160_000..<170_000).contains(last))
        // With doubling, a pause of 127 s would be followed by one of 255 s.
        #expect(bench.times.count == 9)
    }

    @Test(arguments: [400, 403, 404, 200])
    func `is not tried again when Apple will never take it`(_ status: Int) throws {
        let bench = try SenderBench()
        bench.carrier.answer(status: status)
        try bench.decide("1")
        bench.run(for: .seconds(30))
        #expect(bench.carrier.calls.count == 1)
        #expect(try bench.rows().map(\.retryAt) == [nil])
    }

    @Test func `goes on from what the log says after a restart`() throws {
        let bench = try SenderBench()
        try bench.decide("1")
        try bench.tell(.retrying, "1") {
            $0.attempt = 4
            $0.retryAt = SenderBench.start + 5_000
        }
        bench.run(for: .milliseconds(4_990))
        #expect(bench.carrier.calls.isEmpty)
        bench.run(for: .milliseconds(200))
        #expect(bench.carrier.calls.count == 1)
        #expect(try bench.rows().map(\.number) == [5])
    }

    // MARK: 429

    @Test func `stops its app until Apple's time, and no other`() throws {
        let bench = try SenderBench()
        let until = SenderBench.start + 90_000
        bench.carrier.answer {
            $0.bundleId == "busy"
                ? Delivery(.answered(status: 429), retryAfter: until) : Delivery(.answered(status: 202))
        }
        try bench.decide("1", app: "busy")
        bench.run()
        #expect(bench.carrier.calls.count == 1)
        #expect(try bench.rows().map(\.retryAt) == [until])
        bench.carrier.answer(status: 202)
        try bench.decide("2", app: "busy")
        try bench.decide("3", app: "quiet")
        bench.run(for: .milliseconds(until - bench.clock.now))
        #expect(bench.ids == ["1", "3"])
        bench.run(for: .milliseconds(200))
        #expect(Set(bench.ids.suffix(2)) == ["1", "2"])
    }

    @Test(arguments: [nil, -5, 1_700_000_000] as [Int64?])
    func `stops its app for a minute when Apple's time is none`(_ retryAfter: Int64?) throws {
        let bench = try SenderBench()
        bench.carrier.answer { _ in Delivery(.answered(status: 429), retryAfter: retryAfter) }
        try bench.decide("1")
        bench.run(for: .seconds(59))
        #expect(bench.carrier.calls.count == 1)
        bench.run(for: .seconds(3))
        #expect(bench.carrier.calls.count == 2)
    }

    @Test func `has Apple's time in its row, also when that is behind the deadline`() throws {
        let bench = try SenderBench()
        let until = SenderBench.start + 1_800_000
        bench.carrier.answer { _ in Delivery(.answered(status: 429), retryAfter: until) }
        try bench.decide("1", in: .seconds(600))
        bench.run(for: .seconds(700))
        #expect(bench.carrier.calls.count == 1)
        #expect(try bench.rows().map(\.retryAt) == [until])
    }
}

@Suite struct `Trouble on the way to Apple` {
    @Test func `with the key is met with a new token at once, then one answer a minute, and told`() throws {
        let bench = try SenderBench()
        bench.carrier.answer { _ in Delivery(.answered(status: 401), advice: "mend it") }
        for number in 0..<10 { try bench.decide("\(number)") }
        bench.run(for: .seconds(2))
        let burst = bench.carrier.calls.count
        #expect(burst >= 2)
        #expect(bench.carrier.renewed.allSatisfy { $0 == SenderBench.app } && !bench.carrier.renewed.isEmpty)
        let words = try #require(bench.troubles.all)
        #expect(words.contains("401") && words.contains("mend it") && words.contains(SenderBench.app))
        #expect(bench.metric(#"perennial_consumption_sender_troubles{cause="unauthorized"}"#) == "1")
        bench.run(for: .seconds(56))
        #expect(bench.carrier.calls.count == burst)
        bench.run(for: .seconds(180))
        #expect(bench.carrier.calls.count == burst + 3)
        bench.carrier.answer(status: 202)
        bench.run(for: .seconds(90))
        #expect(Set(bench.carrier.calls.suffix(10).map(\.dispatch.transactionId)).count == 10)
        #expect(bench.troubles.all == nil)
        #expect(bench.lines.count("do not reach Apple") == 1)
        #expect(bench.lines.count("reach Apple again") == 1)
        #expect(bench.metric(#"perennial_consumption_sender_troubles{cause="unauthorized"}"#) == "0")
    }

    @Test func `with an old token is over with the new one, and not told`() throws {
        let bench = try SenderBench()
        bench.carrier.answer { [carrier = bench.carrier] _ in
            Delivery(.answered(status: carrier.renewed.isEmpty ? 401 : 202))
        }
        try bench.decide("1")
        bench.run(for: .milliseconds(500))
        #expect(bench.carrier.calls.count == 2)
        #expect(try bench.rows().map(\.httpStatus) == [401, 202])
        #expect(bench.lines.count("do not reach Apple") == 0)
    }

    @Test func `is told when the clock is off, once, and gone when it is right`() throws {
        let bench = try SenderBench()
        for ahead: Int64 in [120_000, 121_000] {
            bench.carrier.answer { _ in Delivery(.answered(status: 202), clockAhead: ahead) }
            try bench.decide("\(ahead)")
            bench.run()
            #expect(bench.troubles.all?.contains("\(ahead / 1000) s ahead of") == true)
        }
        #expect(bench.metric("perennial_consumption_clock_ahead_seconds") == "121")
        bench.carrier.answer { _ in Delivery(.answered(status: 202), clockAhead: -2_000) }
        try bench.decide("right")
        bench.run()
        #expect(bench.troubles.all == nil)
        #expect(bench.lines.count("do not reach Apple") == 1)
        bench.carrier.answer { _ in Delivery(.answered(status: 401), clockAhead: -61_000) }
        try bench.decide("behind")
        bench.run()
        #expect(bench.troubles.all?.contains("61 s behind") == true)
    }

    @Test(arguments: [Delivery(.unanswered("connection refused")), Delivery(.answered(status: 503))])
    func `is told when the API cannot be reached, once, and gone when it answers`(_ delivery: Delivery) throws {
        let bench = try SenderBench()
        bench.carrier.answer { _ in delivery }
        try bench.decide("1")
        bench.run(for: .seconds(2))
        #expect(bench.carrier.calls.count == 2)
        #expect(bench.troubles.all == nil)
        bench.run(for: .seconds(30))
        let words = try #require(bench.troubles.all)
        #expect(words.contains("connection refused") || words.contains("503"))
        #expect(bench.metric(#"perennial_consumption_sender_troubles{cause="unreachable"}"#) == "1")
        bench.carrier.answer(status: 202)
        bench.run(for: .seconds(60))
        #expect(bench.troubles.all == nil)
        #expect(bench.lines.count("do not reach Apple") == 1)
    }

    @Test func `is gone when nothing is left to send`() throws {
        let bench = try SenderBench()
        bench.carrier.answer { _ in Delivery(.unanswered("cut")) }
        try bench.decide("1")
        bench.run(for: .seconds(10))
        #expect(bench.troubles.all != nil)
        try bench.tell(.withheld, "1")
        bench.run()
        #expect(bench.troubles.all == nil)
    }

    @Test(arguments: [LogFault.Remedy.retrySameCall, .rebuild])
    func `with rows that the log refuses stops attempts, and loses none`(_ remedy: LogFault.Remedy) throws {
        let clock = MemoryLog.Clock.manual(startingAt: SenderBench.start)
        let log = StubbornLog(try SenderBench.memoryLog(clock, partitions: 1))
        let bench = try SenderBench(clock, log, partitions: 1, rate: 1000)
        bench.own([0])
        bench.carrier.answer(status: 500)
        try bench.decide("1")
        try bench.decide("2")
        try bench.decide("3", in: .seconds(40_000))
        bench.carrier.answer { Delivery(.answered(status: $0.transactionId == "t-3" ? 202 : 500)) }
        bench.run(until: { bench.carrier.calls.count == 3 })
        log.refuse(LogFault(remedy, .other, "no leader"))
        bench.run(for: .seconds(20))
        #expect(bench.carrier.calls.count == 3)
        #expect(bench.sender.trouble?.contains("no leader") == true)
        #expect(bench.lines.count("cannot be written") == 1)
        #expect(bench.lines.count("written again") == 0)
        log.refuse(nil)
        bench.run(for: .milliseconds(1_500))
        #expect(bench.sender.trouble == nil)
        let rows = try bench.rows().prefix(3)
        #expect(Set(rows.map { "\($0.id) \($0.number) \($0.httpStatus ?? 0)" }) == ["1 1 500", "2 1 500", "3 1 202"])
        bench.run(for: .seconds(20))
        bench.carrier.hold()
        bench.run(for: .milliseconds(100))
        let numbers = try bench.rows().map { "\($0.id) \($0.number)" }
        #expect(Set(numbers).count == numbers.count)
        #expect(numbers.count == bench.carrier.calls.count)
        #expect(numbers.contains("1 3") && numbers.contains("2 3"))
    }

    @Test func `with rows holds back also what was not tried yet`() throws {
        let clock = MemoryLog.Clock.manual(startingAt: SenderBench.start)
        let log = StubbornLog(try SenderBench.memoryLog(clock, partitions: 1))
        let bench = try SenderBench(clock, log, partitions: 1, rate: 2)
        bench.own([0])
        try bench.decide("1")
        try bench.decide("2")
        bench.run(until: { bench.carrier.calls.count == 1 })
        log.refuse(LogFault(.retrySameCall, .timedOut, "no answer"))
        bench.run(for: .seconds(5))
        #expect(bench.carrier.calls.count == 1)
        log.refuse(nil)
        bench.run(for: .seconds(5))
        #expect(bench.ids.count == 2)
    }
}
