import Contract
import Log
import LogTestKit
import MemoryLog
import Notices
import Platform
import Synchronization
import Testing

@testable import Consumption
@testable import ConsumptionSender

@Suite struct `A sender` {
    @Test func `sends what is decided once, as it was decided, and writes what came of it`() throws {
        let bench = try SenderBench()
        try bench.decide("1")
        bench.run(for: .seconds(5))
        let call = try #require(bench.carrier.calls.first)
        #expect(bench.carrier.calls.count == 1)
        #expect(call.dispatch.bundleId == SenderBench.app)
        #expect(call.dispatch.transactionId == "t-1")
        #expect(!call.dispatch.isV1)
        #expect(bench.carrier.bodies == [#"{"of":"1"}"#])
        let rows = try bench.rows()
        #expect(rows.map(\.id) == ["1"])
        #expect(rows.map(\.number) == [1])
        #expect(rows.map(\.httpStatus) == [202])
        #expect(rows.map(\.retryAt) == [nil])
        #expect(bench.metric(#"perennial_consumption_attempts_total{result="sent"}"#) == "1")
    }

    @Test func `names the type of its rows as a worker of 0.1 needs it, because one may read them during an upgrade`()
        throws
    {
        let bench = try SenderBench()
        try bench.decide("1")
        bench.run(for: .seconds(5))
        let rows = try bench.rows()
        #expect(rows.count == 1)
        #expect(try bench.countOfTypedRows() == rows.count)
    }

    @Test func `sends to V1 what only V1 takes`() throws {
        let bench = try SenderBench()
        try bench.tell(.decided, "1") { $0.facts = Array(#"{"bundleId":"b","advancedCommerce":true}"#.utf8) }
        bench.run()
        #expect(bench.carrier.calls.map(\.dispatch.isV1) == [true])
    }

    @Test func `sends the earliest deadline first`() throws {
        let bench = try SenderBench(partitions: 3)
        var dice = SplitMix64(seed: 5)
        let order = (0..<300).shuffled(using: &dice)
        for number in order {
            try bench.decide("\(1000 + number)", in: .seconds(3_600 + number), partition: Int32(number % 3))
        }
        bench.run(for: .seconds(2))
        #expect(bench.ids == (0..<300).map { "\(1000 + $0)" })
    }

    @Test func `sends no faster than its share of the rate, and not much slower`() throws {
        let bench = try SenderBench(partitions: 4, rate: 40)
        bench.own([0, 2])
        for number in 0..<200 { try bench.decide("\(number)", partition: Int32(number % 4)) }
        bench.run(for: .seconds(4))
        let times = bench.times
        for (index, first) in times.enumerated() {
            #expect(times[index...].prefix { $0 < first + 1_000 }.count <= 20)
        }
        #expect(times.count > 60)
        #expect(bench.carrier.calls.allSatisfy { Int($0.dispatch.transactionId.dropFirst(2))! % 2 == 0 })
    }

    @Test func `does not let one app hold up another`() throws {
        let bench = try SenderBench()
        bench.carrier.answer { $0.bundleId == "slow" ? nil : Delivery(.answered(status: 202)) }
        for number in 0..<100 { try bench.decide("slow-\(number)", in: .seconds(100), app: "slow") }
        for number in 0..<50 { try bench.decide("quick-\(number)", app: "zz-quick") }
        bench.run(for: .seconds(2))
        #expect(bench.carrier.heldCount == SenderOptions.usualMaxInFlight)
        #expect(bench.carrier.calls.count == 50)
    }

    @Test func `does not let a partition whose worker is stuck hold up the others`() throws {
        let bench = try SenderBench(partitions: 2)
        try bench.input(.notifications, partition: 0)
        bench.worker.stand(at: [0, 0, 0], in: 0)
        for number in 0..<400 { try bench.decide("stuck-\(number)", in: .seconds(600), partition: 0) }
        for number in 0..<20 { try bench.decide("going-\(number)", partition: 1) }
        bench.run(for: .seconds(2))
        #expect(bench.carrier.calls.count == 20)
        #expect(bench.ids.allSatisfy { $0.hasPrefix("going") })
    }

    @Test func `sends at once what a log whose clock is ahead has decided`() throws {
        let bench = try SenderBench()
        try bench.tell(.decided, "1") { $0.at += 7_200_000 }
        bench.run()
        #expect(bench.carrier.calls.count == 1)
    }

    @Test func `does not send the same request with another body`() throws {
        let bench = try SenderBench()
        try bench.input(.notifications)
        bench.worker.stand(at: [0, 0, 0])
        try bench.tell(.decided, "1", body: #"{"a":1}"#)
        bench.run()
        try bench.tell(.decided, "1", body: #"{"a":2}"#)
        bench.run()
        bench.worker.beAtTheEnd()
        bench.run(for: .seconds(2))
        #expect(bench.carrier.calls.isEmpty)
        #expect(bench.lines.count("another body") == 1)
        try bench.tell(.decided, "1", body: #"{"a":1}"#)
        bench.run()
        #expect(bench.carrier.bodies == [#"{"a":1}"#])
    }

    @Test func `waits at a record of a later build, and says so`() throws {
        let bench = try SenderBench(partitions: 2)
        bench.run()
        #expect(bench.sender.trouble == nil)
        try bench.feed(0, 0, key: "k", Array("{}".utf8), type: "consumption", schema: "consumption/2")
        try bench.decide("1", partition: 0)
        try bench.decide("2", partition: 1)
        bench.run(for: .seconds(2))
        #expect(bench.ids == ["2"])
        let trouble = try #require(bench.sender.trouble)
        #expect(trouble.contains("consumption-0") || trouble.contains("consumption"))
        #expect(bench.metric("perennial_consumption_sender_paused_partitions") == "1")
    }

    @Test func `lives with the greatest and the smallest numbers`() throws {
        let bench = try SenderBench()
        bench.carrier.answer(status: 500)
        for (index, deadline) in [Int64.min, -1, .max].enumerated() {
            try bench.tell(.decided, "\(index)") { $0.deadline = deadline }
        }
        try bench.decide("good")
        try bench.tell(.retrying, "good") {
            $0.attempt = .max
            $0.retryAt = .min
        }
        bench.run(for: .seconds(5))
        #expect(bench.ids == ["good"])
        #expect(try bench.rows().map(\.number) == [1_000_000_001])
        try bench.tell(.retrying, "good") { $0.retryAt = .max }
        bench.run(for: .seconds(5))
        #expect(bench.ids == ["good"])
    }

    @Test func `passes over what is no step, and says so`() throws {
        let bench = try SenderBench()
        try bench.feed(0, 0, key: "k", Array("{".utf8), type: "consumption", schema: "consumption/1")
        try bench.feed(0, 0, key: "k", Array("{}".utf8), type: "consumption", schema: "consumption/1")
        try bench.tell(.decided, "1") { $0.body = nil }
        try bench.decide("2")
        bench.run()
        #expect(bench.ids == ["2"])
        #expect(bench.lines.count("was skipped") == 3)
    }

    @Test func `forgets what was withheld when its time is over`() throws {
        let bench = try SenderBench()
        try bench.tell(.decided, "old", timestamp: 1) { $0.deadline = SenderBench.start }
        try bench.tell(.withheld, "old", timestamp: 2)
        try bench.decide("new")
        let desk = SendDesk()
        let book = AnswerBook(0, desk, logger: bench.lines.logger)
        let topic = SenderBench.names.topic(.consumption)
        let reader = try bench.log.openReader(ReaderOptions(name: "r", group: "r", topics: [topic]))
        defer { reader.close(by: Deadline(after: .seconds(1))) }
        try reader.read(from: [TopicPartition(topic, 0): NextOffset(0)])
        let batch = RecordBatch()
        try reader.poll(into: batch, limit: 10, wait: .zero)
        for index in 0..<batch.count { #expect(book.take(batch[index]) == nil) }
        try book.write([], isLasting: true)
        #expect(Set(book.answers.keys) == ["old", "new"])
        try bench.tell(.requested, "later", timestamp: SenderBench.start + 3_600_001)
        try reader.poll(into: batch, limit: 10, wait: .zero)
        for index in 0..<batch.count { #expect(book.take(batch[index]) == nil) }
        try book.write([], isLasting: true)
        #expect(Set(book.answers.keys) == ["new"])
    }
}

@Suite struct `The end of a sender` {
    @Test func `waits for what is on the wire, and writes its row`() throws {
        let bench = try SenderBench()
        bench.carrier.beSlow()
        try bench.decide("1")
        bench.run()
        #expect(bench.carrier.calls.count == 1)
        #expect(!bench.sender.finishFlights())
        #expect(try bench.rows().isEmpty)
        bench.carrier.finish()
        #expect(bench.sender.finishFlights())
        #expect(try bench.rows().map(\.httpStatus) == [202])
    }

    @Test func `keeps back what is not on the wire yet`() throws {
        let bench = try SenderBench()
        bench.carrier.hold()
        try bench.decide("1")
        bench.run()
        #expect(bench.carrier.heldCount == 1)
        #expect(!bench.sender.finishFlights())
        bench.carrier.connect()
        #expect(bench.sender.finishFlights())
        #expect(bench.carrier.calls.isEmpty)
        #expect(try bench.rows().isEmpty)
    }
}
