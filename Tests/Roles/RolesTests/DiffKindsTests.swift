import Configuration
import Contract
import Foundation
import Log
import MemoryLog
import Platform
import Testing

@Suite struct `A replay of what is counted` {
    private func key(_ day: String, _ currency: String = "USD", _ product: String = "pro") -> String {
        "0|\(day)|com.example.app|\(product)|BILLED_UPFRONT|USA|\(currency)"
    }

    private func cell(
        _ day: String, _ counts: String, _ money: String = "", _ currency: String = "USD", product: String = "pro",
        asOf: String = "2027-01-20"
    ) -> String {
        "{'v':1,'partition':0,'day':'\(day)','bundleId':'com.example.app','productId':'\(product)',"
            + "'billingPlan':'BILLED_UPFRONT','storefront':'USA','currency':'\(currency)','counts':{\(counts)},"
            + "'money':{\(money)},'asOf':\(at(asOf)),'offset':1}"
    }

    /// A thousand paying subscriptions, of which 41 lapse in October; the replay counts 39.
    private func desk() throws -> DiffDesk {
        let desk = try DiffDesk(.churn)
        try desk.both(.churnCells, key("2026-09-01"), cell("2026-09-01", "'started':1000,'activeDelta':1000"))
        try desk.live(.churnCells, key("2026-10-05"), cell("2026-10-05", "'lapsedVoluntary':41,'activeDelta':-41"))
        try desk.replayed(
            .churnCells, key("2026-10-05"),
            cell("2026-10-05", "'lapsedVoluntary':39,'activeDelta':-39", asOf: "2027-01-19"))
        return desk
    }

    @Test func `is compared as numbers, and means something for the rates of each month`() throws {
        let desk = try desk()
        try desk.both(.churnCells, key("2026-11-05"), cell("2026-11-05", "'lapsedVoluntary':10,'activeDelta':-10"))
        let answer = try desk.diff([])
        #expect(answer.code == .no)
        #expect(answer.lines.contains(/counts.lapsedVoluntary +39 +41/))
        #expect(answer.lines.contains(/counts.activeDelta +-39 +-41/))
        #expect(answer.lines.contains("gross churn of 2026-10: 4.10 % -> 3.90 %"))
        #expect(answer.lines.contains("voluntary churn of 2026-10: 4.10 % -> 3.90 %"))
        // The averages are over 959 and 961.
        #expect(answer.lines.contains("gross churn of 2026-11: 1.04 % -> 1.04 %") == false)
        #expect(answer.lines.contains("gross churn of 2026-11: 1.0428 % -> 1.0406 %"))
        #expect(!answer.lines.contains("2026-09:"), "nothing differs before")
        #expect(!answer.lines.contains("billing failures"), "rates that are the same are not told")

        let objects = try desk.diff().objects
        let rate = try #require(
            objects.first { $0["kind"] as? String == "rate" && $0["rate"] as? String == "grossChurn" })
        #expect(rate["month"] as? String == "2026-10" && rate["formula"] as? String == "sum of lapsed* / Paying(a)")
        let (live, shadow) = (
            try #require(rate["live"] as? [String: Any]), try #require(rate["shadow"] as? [String: Any])
        )
        #expect(live["numerator"] as? Int == 41 && live["denominator"] as? Int == 1000)
        #expect(shadow["value"] as? Double == 0.039)
    }

    @Test func `has the same rates as inspect metrics`() throws {
        let metrics = try MetricsDesk()
        try metrics.tellStory()
        let told = try metrics.inspect(MetricsDesk.month)
        let desk = try DiffDesk(.churn)
        try desk.both(
            .churnCells, key("2026-10-01"), cell("2026-10-01", "'activeDelta':1390,'graceDelta':24"))
        // The story's losses of November, in one cell.
        try desk.live(
            .churnCells, key("2026-11-12"),
            cell("2026-11-12", "'lapsedVoluntary':43,'lapsedBilling':12,'lapsedPrice':2,'lapsedRefund':4,'regained':6"))
        let answer = try desk.diff([])
        let shown = try #require(told.lines.firstMatch(of: /gross churn +([0-9.]+ %)/)).1
        #expect(answer.lines.contains("gross churn of 2026-11: \(shown) -> 0.00 %"))
    }

    @Test func `tells money by currency`() throws {
        let desk = try DiffDesk(.churn)
        try desk.both(.churnCells, key("2026-09-01"), cell("2026-09-01", "", "'mrrNew':100000"))
        try desk.live(.churnCells, key("2026-10-05"), cell("2026-10-05", "", "'mrrContraction':-10000"))
        try desk.replayed(.churnCells, key("2026-10-05"), cell("2026-10-05", "", "'mrrContraction':-20000"))
        let answer = try desk.diff([])
        #expect(answer.lines.contains("gross revenue retention of 2026-10, USD: 90.00 % -> 80.00 %"))
    }

    @Test func `lacks no cell that counts nothing`() throws {
        let desk = try DiffDesk(.churn)
        try desk.live(.churnCells, key("2026-10-05"), cell("2026-10-05", ""))
        try desk.replayed(.churnCells, key("2026-10-06"), nil)
        try desk.live(.churnCells, key("2026-10-07"), cell("2026-10-07", "'failed':0,'renewed':1"))
        try desk.replayed(.churnCells, key("2026-10-07"), cell("2026-10-07", "'renewed':1"))
        let answer = try desk.diff()
        #expect(answer.code == .done)
        #expect(try answer.counts == [1, 0, 0, 0, 0, 0])
    }

    @Test func `has no other rates because of cells that are newer`() throws {
        let desk = try desk()
        desk.position = (90, 100)
        desk.begunAt = 50
        try desk.live(
            .churnCells, key("2026-10-06"), cell("2026-10-06", "'lapsedVoluntary':100,'activeDelta':-100"), from: 95)
        let answer = try desk.diff([])
        // 141 and 139 of 1000: newer records count on both sides.
        #expect(answer.lines.contains("gross churn of 2026-10: 14.10 % -> 13.90 %"))
        try desk.replayed(
            .churnCells, key("2026-10-05"), cell("2026-10-05", "'lapsedVoluntary':41,'activeDelta':-41"))
        let same = try desk.diff([])
        #expect(same.code == .done)
        #expect(!same.lines.contains("RATES"))
    }
}

@Suite struct `A replay of what is decided` {
    private func step(
        _ id: String, _ kind: String, _ more: String = "", at time: Int64 = 5, sequence: Int = 1
    ) -> String {
        "{'v':1,'id':'\(id)','originalTransactionId':'s1','transactionId':'t1','kind':'\(kind)','at':\(time),"
            + "'deadline':99,'sequence':\(sequence)\(more.isEmpty ? "" : ",")\(more)}"
    }

    @Test func `is the same request by request, whatever a sender adds and in however many steps it was decided`()
        throws
    {
        let desk = try DiffDesk(.consumption)
        for write in [desk.live, desk.replayed] {
            try write(.consumption, "s1", step("r1", "requested"), 1, 0, nil, 1)
        }
        try desk.live(.consumption, "s1", step("r1", "withheld", "'detail':'no_consent'"))
        try desk.live(.consumption, "s1", step("r1", "decided", "'body':{'a':1}", at: 50))
        try desk.replayed(.consumption, "s1", step("r1", "decided", "'body':{'a':1}", at: 40))
        for kind in ["retrying", "sent", "failed", "expired"] { try desk.live(.consumption, "s1", step("r1", kind)) }
        let answer = try desk.diff()
        #expect(answer.code == .done)
        #expect(try answer.counts == [1, 0, 0, 0, 0, 0])
    }

    @Test func `differs where another decision was taken, and of its kind`() throws {
        let desk = try DiffDesk(.consumption)
        for id in ["r1", "r2", "r3", "r4"] { try desk.both(.consumption, "s1", step(id, "requested")) }
        try desk.live(.consumption, "s1", step("r1", "decided", "'body':{'refundPreference':'DECLINE'}"))
        try desk.replayed(.consumption, "s1", step("r1", "decided", "'body':{'refundPreference':'GRANT_FULL'}"))
        try desk.live(.consumption, "s1", step("r2", "withheld", "'detail':'policy'"))
        try desk.replayed(.consumption, "s1", step("r2", "decided", "'body':{}"))
        try desk.both(.consumption, "s1", step("r3", "outcome", "'detail':'refunded'"))
        try desk.live(.consumption, "s1", step("r4", "outcome", "'detail':'refunded'"))
        try desk.live(.consumption, "s1", step("r5", "requested"))
        try desk.live(.consumption, "s1", step("r6", "sent"))
        let answer = try desk.diff()
        #expect(answer.code == .no)
        #expect(try answer.counts == [1, 3, 0, 1, 0, 0])
        let sample = try #require(try answer.samples("different").first { $0["key"] as? String == "r1" })
        let members = try #require(sample["members"] as? [[String: Any]])
        #expect(members.map { $0["member"] as? String } == ["decision.body.refundPreference"])
    }

    @Test func `says nothing of requests that the live worker went on with`() throws {
        let desk = try DiffDesk(.consumption)
        desk.position = (90, 100)
        desk.begunAt = 50
        try desk.both(.consumption, "s1", step("r1", "requested"))
        try desk.live(.consumption, "s1", step("r1", "decided"), from: 95)
        try desk.live(.consumption, "s1", step("r1", "outcome", "'detail':'refunded'"), from: 89)
        #expect(try desk.diff().counts == [0, 0, 0, 0, 1, 0])
    }

    @Test func `leaves out requests of which Kafka has deleted records`() throws {
        let desk = try DiffDesk(.consumption)
        for (id, time) in [("r1", 10), ("r2", 20), ("r3", 30)] as [(String, Int64)] {
            try desk.replayed(.consumption, "s1", step(id, "requested"), at: time)
            try desk.live(.consumption, "s1", step(id, "requested"), at: time)
        }
        try desk.replayed(.consumption, "s1", step("r4", "requested"), at: 40)
        let partition = TopicPartition(desk.names.topic(.consumption), 0)
        try desk.log.deleteRecords(of: partition, before: NextOffset(1))
        #expect(try desk.diff().counts == [2, 0, 1, 0, 0, 1], "r1 is gone; r4 never was")
        try desk.log.deleteRecords(of: partition, before: NextOffset(3))
        #expect(try desk.diff().counts == [0, 0, 0, 0, 0, 4])
    }

    @Test func `with steps that cannot be read is compared by what they are, per subscription`() throws {
        let desk = try DiffDesk(.consumption)
        try desk.both(.consumption, "s1", "no JSON")
        try desk.live(.consumption, "s2", "{'kind':'later'}")
        try desk.replayed(.consumption, "s2", "{'kind':'latest'}")
        try desk.live(.consumption, "s3", nil)
        let answer = try desk.diff()
        #expect(try answer.counts == [1, 1, 0, 0, 0, 0])
        #expect(try answer.samples().first?["key"] as? String == "s2")
    }
}
