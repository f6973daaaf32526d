import Consumption
import Contract
import HTTP
import JSON
import Log
import MemoryLog
import Platform
import Store
import Testing

@testable import ReadAPI

/// A record of `consumption`, written by hand.
private struct Step {
    var id = "u-1"
    var of = "1"
    var kind = "requested"
    var at = signed
    /// Members of JSON, the usual ones null.
    var members = #""policy":null,"httpStatus":null,"errorCode":null,"attempt":null,"retryAt":null,"detail":null"#
    var signed = Step.signed

    /// A week before the clock of the tests.
    static let signed: Int64 = 1_771_000_000_000

    var json: String {
        #"{"v":1,"id":"\#(id)","originalTransactionId":"\#(of)","transactionId":"t-\#(of)","kind":"\#(kind)","#
            + #""at":\#(at),"deadline":\#(signed + 43_200_000),"requestReason":"OTHER",\#(members)}"#
    }

    var write: Rig.Write { Rig.Write(topic: .consumption, key: of, value: json) }

    static let decided = #"""
        "policy":{"version":"2026-11","rule":"rest"},"body":{"customerConsented":true,"refundPreference":"DECLINE"},
        "facts":{"price":9990,"currency":"USD"},"detail":null
        """#

    /// A request that was answered at the second attempt and then declined.
    static func all(_ id: String = "u-1", of subscription: String = "1", signed: Int64 = signed) -> [Rig.Write] {
        [
            Step(id: id, of: subscription, at: signed, signed: signed),
            Step(id: id, of: subscription, kind: "decided", at: signed + 500, members: decided, signed: signed),
            Step(
                id: id, of: subscription, kind: "retrying", at: signed + 1_000,
                members: #""httpStatus":429,"attempt":1,"retryAt":\#(signed + 5_000)"#, signed: signed),
            Step(
                id: id, of: subscription, kind: "sent", at: signed + 6_000, members: #""httpStatus":202,"attempt":2"#,
                signed: signed),
            Step(
                id: id, of: subscription, kind: "outcome", at: signed + 86_400_000, members: #""detail":"declined""#,
                signed: signed),
        ].map(\.write)
    }
}

@Suite struct `Refund requests asked for` {
    private func ids(_ answer: JSONValue?) -> [String?]? { answer?["refunds"]?.array?.map { $0["id"]?.string } }

    @Test func `are told with what was asked, decided and sent, and what Apple did`() throws {
        let rig = try Rig()
        try rig.write(Step.all())
        rig.settle()
        let refund = try #require(rig.refund("u-1")?["refund"])
        #expect(rig.refunds("1")?["refunds"]?.array == [refund])
        #expect(refund["state"]?.string == "sent" && refund["outcome"]?.string == "declined")
        #expect(refund["requestReason"]?.string == "OTHER" && refund["transactionId"]?.string == "t-1")
        #expect(refund["requestedAt"]?.integer == Step.signed)
        #expect(refund["policy"]?["rule"]?.string == "rest")
        #expect(refund["body"]?["refundPreference"]?.string == "DECLINE")
        #expect(refund["facts"]?["price"]?.integer == 9_990)
        #expect(refund["margin"]?.integer == 43_194_000)
        #expect(refund["steps"]?.array?.map { $0["kind"]?.string } == ["requested", "decided", "retrying", "sent"])
    }

    @Test func `name the topic and the partition that they rest on`() throws {
        let rig = try Rig()
        try rig.write(Step.all())
        rig.settle()
        for answer in [rig.refunds("1"), rig.refund("u-1")] {
            let position = try #require(answer?["position"]?.array)
            #expect(position.count == 1)
            #expect(position.first?["topic"]?.string == "appstore.production.consumption")
            #expect(position.first?["offset"]?.integer == 5)
            #expect(
                position.first?["partition"]?.integer == Int64(Partitioner.partition(of: Array("1".utf8), count: 3)))
        }
    }

    @Test func `are found in whatever partition they are, in capitals too, and only those that are meant`() throws {
        let rig = try Rig()
        for number in 1...9 { try rig.write(Step.all("u-\(number)", of: "\(number)")) }
        try rig.write(Step.all("u-later", of: "1", signed: Step.signed + 60_000))
        try rig.write(Step.all("u-other", of: "11"))
        rig.settle()
        for number in 1...9 {
            #expect(rig.refund("U-\(number)")?["refund"]?["originalTransactionId"]?.string == "\(number)")
        }
        // Newest first.
        #expect(ids(rig.refunds("1")) == ["u-later", "u-1"])
        #expect(rig.status(.refund, "u-99") == 404)
    }

    @Test func `are none of a subscription that has none, and 404 of one that nobody knows`() throws {
        let rig = try Rig()
        #expect(rig.status(.refunds, "1") == 503 && rig.status(.refund, "u-1") == 503)
        try rig.write(.subscription(Record(id: "1")))
        rig.settle()
        #expect(ids(rig.refunds("1")) == [])
        #expect(rig.status(.refunds, "2") == 404)
        #expect(rig.status(.refund, "u-1") == 404)
    }

    @Test func `grow record by record, over restarts, and lose none`() throws {
        let rig = try Rig()
        var steps = Step.all()
        let last = steps.removeLast()
        for step in steps {
            try rig.write(step)
            rig.settle()
        }
        #expect(rig.refund("u-1")?["refund"]?["outcome"] == .null)
        rig.following.close()
        let next = try Rig(memory: rig.memory, disk: rig.disk, time: rig.time, makesTopics: false)
        try next.write(last)
        next.settle()
        #expect(next.metric("perennial_api_store_wipes_total") == 0)
        #expect(next.refund("u-1")?["refund"]?["outcome"]?.string == "declined")
        #expect(next.refund("u-1")?["refund"]?["steps"]?.array?.count == 4)
        // The topic is not compacted, so every record of a key counts.
        #expect(next.metric(#"perennial_api_records_total{topic="consumption"}"#) == 1)
    }

    @Test func `are the same when the copy is built anew`() throws {
        let rig = try Rig()
        try rig.write(Step.all() + Step.all("u-2", of: "1", signed: Step.signed + 1))
        rig.settle()
        let told = rig.refunds("1")
        rig.following.close()
        let next = try Rig(memory: rig.memory, time: rig.time, makesTopics: false)
        next.settle()
        #expect(told != nil && next.refunds("1") == told)
    }

    @Test func `keep what tells the most of too many records, and count the others`() throws {
        let rig = try Rig(partitions: 1)
        var steps = Array(Step.all().prefix(2))
        for number in 1...300 {
            steps.append(
                Step(kind: "retrying", members: #""httpStatus":500,"attempt":\#(number)"#).write)
        }
        steps += Step.all().suffix(2)
        try rig.write(steps)
        rig.settle()
        let refund = try #require(rig.refund("u-1")?["refund"])
        #expect(refund["state"]?.string == "sent" && refund["outcome"]?.string == "declined")
        #expect(refund["body"]?["refundPreference"]?.string == "DECLINE")
        let kept = try #require(refund["steps"]?.array)
        // The outcome is also a record, but not a step.
        #expect(kept.count == KeptRefund.limitRecords - 1)
        #expect(refund["stepsLeftOut"]?.integer == Int64(304 - KeptRefund.limitRecords))
        #expect(kept.contains { $0["attempt"]?.integer == 1 } && kept.contains { $0["attempt"]?.integer == 300 })
    }

    @Test func `are forgotten as long after their deadline as the topic keeps records`() throws {
        let rig = try Rig(partitions: 1)
        let old = Step.signed - KeptRefund.keptFor - 2 * 43_200_000
        try rig.write(Step.all("u-old", signed: old) + Step.all("u-new", of: "2"))
        rig.settle()
        // It disappears with the next record.
        try rig.write(Step.all("u-next", of: "3"))
        rig.settle()
        #expect(rig.status(.refund, "u-old") == 404 && rig.status(.refunds, "1") == 404)
        #expect(ids(rig.refunds("2")) == ["u-new"] && ids(rig.refunds("3")) == ["u-next"])
    }

    @Test(
        arguments: [
            ("not JSON", "json"), ("{}", "shape"), (nil, "shape"),
            (#"{"v":1,"id":"u","originalTransactionId":"1","kind":"new","at":1,"deadline":2}"#, "shape"),
            (#"{"v":1,"id":"u","originalTransactionId":"2","kind":"sent","at":1,"deadline":2}"#, "key"),
        ] as [(String?, String)])
    func `keep out what no answer can be given from`(_ value: String?, _ cause: String) throws {
        let rig = try Rig(partitions: 1)
        try rig.write(Step.all())
        try rig.write(.init(topic: .consumption, key: "1", value: value))
        rig.settle()
        #expect(rig.trouble == nil)
        #expect(ids(rig.refunds("1")) == ["u-1"])
        #expect(rig.metric(#"perennial_api_records_kept_out_total{topic="consumption",cause="\#(cause)"}"#) == 1)
    }

    @Test func `need their topic, and say how it is made`() throws {
        let memory = MemoryLog(clock: .manual())
        let topics = FollowedTopic.allCases.filter { $0 != .consumption }.map {
            NewTopic(Rig.names.topic($0.id), partitions: 3, isCompacted: $0.isCompacted)
        }
        try memory.create(topics, by: soon)
        let rig = try Rig(memory: memory, makesTopics: false)
        rig.settle(steps: 2)
        #expect(rig.trouble == "the topic appstore.production.consumption is missing: run perennial topics apply")
    }

    @Test func `wait before a record of a later schema`() throws {
        let rig = try Rig(partitions: 1)
        var later = Step().write
        later.headers = Rig.headers(.consumption, schema: "consumption/2")
        try rig.write(later)
        rig.settle()
        #expect(rig.trouble?.contains("consumption/2, and this build reads up to 1: upgrade perennial api") == true)
        #expect(rig.status(.refunds, "1") == 503)
    }

    @Test func `are answered with an error of the parameter when the id is none`() throws {
        let rig = try Rig(partitions: 1)
        rig.settle()
        let long = String(repeating: "7", count: 257)
        for (route, parameter) in [(Question.Route.refunds, "originalTransactionId"), (.refund, "notificationUUID")] {
            let answer = rig.endpoint.answer(route, long[...].utf8, query: nil)
            #expect(answer.status == 400)
            #expect(try JSONValue.read(answer.body)["parameter"]?.string == parameter)
        }
    }

    @Test(
        arguments: [
            ("/v1/subscriptions/1/refunds", Question.Route.refunds), ("/v1/refunds/u-1", .refund),
            ("/v1/refunds/", nil), ("/v1/refunds", nil), ("/v1/refunds/a/b", nil),
            ("/v1/subscriptions/1/refunds/", nil), ("/v1/subscriptions//refunds", nil),
        ] as [(String, Question.Route?)])
    func `have these paths`(_ path: String, _ route: Question.Route?) {
        #expect(Question.route(path)?.route == route)
    }

    @Test func `of two subscriptions one of which begins with the other are told apart`() throws {
        let rig = try Rig(partitions: 1)
        try rig.write(Step.all("2u", of: "1") + Step.all("u", of: "12"))
        rig.settle()
        #expect(ids(rig.refunds("1")) == ["2u"] && ids(rig.refunds("12")) == ["u"])
    }

    @Test func `are read again as they were kept`() throws {
        var kept = KeptRefund()
        kept.append(.decided, [1, 2, 3])
        kept.append(.sent, [])
        #expect(KeptRefund(kept.bytes) == kept)
        #expect(KeptRefund(Array(kept.bytes.dropLast())) == nil && KeptRefund([]) == nil)
    }
}
