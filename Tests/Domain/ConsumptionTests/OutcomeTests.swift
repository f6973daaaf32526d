import JSON
import MakeBelieve
import Notices
import Testing

@testable import Consumption

@Suite struct `What Apple did in the end` {
    @Test func `is told once for each notification, at every request that it ends, in whatever order they come`() throws
    {
        let words: [(String, Int64)] = [
            (request("q1"), asked), (request("q2", signed: asked + 10), asked + 10),
            (outcome("REFUND", "r1", signed: asked + 20), asked + 20),
            (outcome("REFUND_REVERSED", "r2", signed: asked + 30), asked + 30),
            (request("q3", signed: asked + 25), asked + 25),
            (outcome("REFUND_DECLINED", "r3", of: "8", signed: asked + 40), asked + 40),
        ]
        var random = PolicyDice(seed: 4)
        for _ in 0..<60 {
            var order = words + words
            for place in order.indices.dropLast() { order.swapAt(place, place + random.roll(order.count - place)) }
            var desk = Desk()
            for (text, _) in order { try desk.hear(text, at: asked + 100) }
            func told(_ id: String) -> [String] {
                desk.told(about: id).filter { $0.kind == .outcome }.map { "\($0.word) \($0.at - asked)" }.sorted()
            }
            #expect(told("q1") == ["outcome refunded 20", "outcome reversed 30"])
            #expect(told("q2") == ["outcome refunded 20", "outcome reversed 30"])
            #expect(told("q3") == ["outcome reversed 30"])
            #expect(desk.told.count { $0.kind == .requested } == 3)
        }
    }

    @Test func `may follow anything, and a request of its own instant is ended by it`() throws {
        for (status, last) in [(202, "sent"), (400, "failed")] {
            var desk = Desk()
            try desk.say(whole)
            try desk.ask()
            try desk.attempt(1, Int64(status))
            try desk.hear(outcome("REFUND", "r", signed: asked), at: asked + 9)
            #expect(desk.words == ["requested", "decided", last, "outcome refunded"])
        }
        var old = Desk()
        try old.ask(at: asked + day)
        try old.hear(outcome("REFUND_DECLINED", "r", signed: asked + hour), at: asked + 2 * day)
        #expect(old.words == ["requested", "expired", "outcome declined"])
    }

    private static let refunds: [(percentage: String?, amount: Int)] = [
        (nil, 9_990), ("100000", 9_990), ("50000", 4_995), ("33333", 3_330), ("0", 0), ("200000", 9_990), ("-5", 0),
    ]

    @Test(arguments: refunds)
    func `is a refund of so much of the price`(percentage: String?, amount: Int) throws {
        var desk = Desk()
        try desk.ask()
        var more = ["revocationDate": "\(asked + 5)"]
        more["revocationPercentage"] = percentage
        try desk.hear(outcome("REFUND", "r", signed: asked + 5, more), at: asked + 5)
        let record = try #require(desk.told.first { $0.kind == .outcome })
        #expect(record.amount == ConsumptionRecord.Amount(value: Int64(amount), currency: "USD"))
        #expect(record.at == asked + 5)
    }

    @Test func `has no amount where the transaction tells none, and where nothing was paid back`() throws {
        let cases: [(String, [String: String])] = [
            ("REFUND", ["price": "null"]), ("REFUND_DECLINED", [:]), ("REFUND_REVERSED", [:]),
        ]
        for (type, more) in cases {
            var desk = Desk()
            try desk.ask()
            try desk.hear(outcome(type, "r", signed: asked + 5, more), at: asked + 5)
            let record = try #require(desk.told.first { $0.kind == .outcome })
            #expect(record.amount == nil)
            #expect(!record.text.contains("currency"))
        }
    }

    @Test func `counts purchases that are refunded and not given back, by their newest payloads, whatever their order`()
        throws
    {
        let refund = outcome("REFUND", "r1", of: "5", signed: d(2), ["revocationDate": "\(d(2))"])
        let reversed = outcome("REFUND_REVERSED", "r2", of: "5", signed: d(3))
        let renewed = notification(
            "DID_RENEW", "n", signed: d(2), coins("6", signed: d(2), ["revocationDate": "\(d(2))"]))
        let family = notification(
            "REVOKE", "f", signed: d(2),
            coins("9", signed: d(2), ["revocationDate": "\(d(2))", "revocationType": #""FAMILY_REVOKE""#]))
        let upgraded = notification(
            "DID_CHANGE_RENEWAL_PREF", "u", signed: d(2),
            coins("10", signed: d(2), ["revocationDate": "\(d(2))", "isUpgraded": "true"]))
        let cases: [([String], Int)] = [
            ([], 0), ([refund], 1), ([refund, reversed], 0), ([reversed, refund], 0), ([refund, refund], 1),
            ([renewed, refund], 2), ([family, upgraded], 0),
        ]
        for (heard, count) in cases {
            var desk = Desk()
            for text in heard { try desk.hear(text, at: d(4)) }
            try desk.say(whole)
            try desk.ask()
            #expect(try desk.facts()["refundsGranted"]?.integer == Int64(count))
        }
    }
}

@Suite struct `A second policy` {
    private static let two = #"""
        {"version":"1","rules":[{"name":"a","when":{"reason":"LEGAL"},"answer":{"withhold":true}},
        {"name":"b","when":{},"answer":{"refundPreference":"DECLINE"}}],
        "shadow":{"version":"2","defaults":{"sampleContentProvided":true},"rules":[
        {"name":"c","when":{"consumptionPercentage":{"from":50000}},"answer":{"withhold":true}},
        {"name":"d","when":{"consumptionPercentage":{"from":10}},"answer":{"refundPreference":"GRANT_FULL"}}]}}
        """#

    private static let seconds: [(percentage: Int, rule: String?)] = [(60_000, "c"), (40_000, "d"), (1, nil)]

    @Test(arguments: seconds)
    func `is told right behind what it belongs to, with its own policy and body`(percentage: Int, rule: String?) throws
    {
        for reason in ["UNINTENDED_PURCHASE", "LEGAL"] {
            var desk = Desk(Desk.rules(try policy(Self.two)))
            try desk.say(#"\#(delivered),"consumptionPercentage":\#(percentage)"#)
            let text = request().replacing("UNINTENDED_PURCHASE", with: reason)
            try desk.hear(text, at: asked)
            let first = reason == "LEGAL" ? "withheld policy" : "decided"
            #expect(desk.words == ["requested", first, rule == "c" ? "shadow policy" : "shadow"])
            let shadow = try #require(desk.told.last)
            #expect(shadow.policy == ConsumptionRecord.Policy(version: "2", rule: rule.map { Text($0) }))
            let preference = rule == "d" ? #","refundPreference":"GRANT_FULL""# : ""
            #expect(
                shadow.bodyText
                    == (rule == "c"
                        ? nil
                        : #"{"customerConsented":true,"sampleContentProvided":true,"deliveryStatus":"DELIVERED","#
                            + #""consumptionPercentage":\#(percentage)\#(preference)}"#))
            #expect(shadow.facts == nil)
            // The shadow is written once: it does not follow a repeated decision.
            try desk.say(#""consented":false"#)
            try desk.pass(until: asked + minute)
            try desk.say(#""consented":true"#)
            #expect(desk.told.count { $0.kind == .decided } == (reason == "LEGAL" ? 0 : 2))
            #expect(desk.told.count { $0.kind == .shadow } == 1)
        }
    }

    @Test func `has nothing to say of what no policy was asked about`() throws {
        var desk = Desk(Desk.rules(try policy(Self.two)))
        try desk.ask("q", ["inAppOwnershipType": #""FAMILY_SHARED""#])
        try desk.ask("q2", signed: asked + 1)
        try desk.pass(until: asked + day)
        #expect(desk.words == ["requested", "withheld family_shared", "requested", "withheld no_consent"])
    }
}
