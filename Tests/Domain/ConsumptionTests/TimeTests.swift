import Contract
import JSON
import MakeBelieve
import Notices
import Testing

@testable import Consumption

@Suite struct `When a request is decided` {
    @Test func `at once where all is known that the answer asks about`() throws {
        let known: [([String: String], String)] = [
            ([:], whole), (Bought.subscription, delivered), (Bought.pass, whole),
            ([:], #""consented":true,"deliveryStatus":"UNDELIVERED_OTHER""#),
        ]
        for (purchase, usage) in known {
            var before = Desk()
            try before.say(usage)
            try before.ask("q", purchase)
            #expect(before.words == ["requested", "decided"])
            #expect(before.told.map(\.at) == [asked, asked])
            var behind = Desk()
            try behind.ask("q", purchase)
            #expect(behind.words == ["requested"])
            try behind.pass(until: asked + 5)
            try behind.say(usage)
            #expect(behind.words == ["requested", "decided"])
            #expect(behind.told.last?.at == asked + 5)
        }
    }

    @Test func `later where something is missing: more may come, until the wait is over`() throws {
        let incomplete: [([String: String], String)] = [
            ([:], delivered), (Bought.pass, delivered), (Bought.forEver, delivered),
            ([:], #""consented":true,"consumptionPercentage":5"#), (Bought.subscription, #""consented":true"#),
        ]
        for (purchase, usage) in incomplete {
            var desk = Desk()
            try desk.say(usage)
            try desk.ask("q", purchase)
            try desk.pass(until: asked + hour - 1)
            #expect(desk.words == ["requested"])
            try desk.pass(until: asked + hour)
            #expect(desk.words == ["requested", "decided"])
            #expect(desk.told.last?.at == asked + hour)
            // A row that comes now is too late for this answer.
            let body = desk.body
            try desk.say(#""deliveryStatus":"UNDELIVERED_OTHER""#)
            #expect(desk.words == ["requested", "decided"] && desk.body == body)
        }
    }

    @Test func `counts the wait from the record, and ends it half an hour before the deadline`() throws {
        let cases: [(Int64, Int64, Int64)] = [
            (0, hour, hour), (3 * hour, hour, 4 * hour), (11 * hour, hour, 11 * hour + 30 * minute),
            (0, 24 * hour, 11 * hour + 30 * minute), (0, Int64.max, 11 * hour + 30 * minute), (5, 0, 5),
            (11 * hour + 31 * minute, hour, 11 * hour + 31 * minute), (12 * hour - 1, hour, 12 * hour - 1),
        ]
        for (late, wait, due) in cases {
            var desk = Desk(Desk.rules(wait: wait))
            try desk.say(#""consented":true"#)
            try desk.ask(at: asked + late)
            try desk.pass(until: asked + due - 1)
            #expect((desk.decision == nil) == (late < due))
            try desk.pass(until: asked + due)
            #expect(desk.decision?.at == asked + due)
            #expect(desk.decision?.deadline == asked + 12 * hour)
        }
    }

    @Test func `never for one that is as old as its deadline when it arrives`() throws {
        let cases: [(Int64, Bool)] = [(12 * hour - 1, false), (12 * hour, true), (157 * hour, true)]
        for (late, isTooLate) in cases {
            var desk = Desk()
            try desk.say(whole)
            try desk.ask(at: asked + late)
            try desk.say(whole)
            try desk.pass(until: asked + 200 * hour)
            #expect(desk.words == (isTooLate ? ["requested", "expired"] : ["requested", "decided", "expired"]))
            #expect(desk.tooLate == (isTooLate ? 1 : 0))
        }
    }

    @Test func `and is over a minute behind the deadline, if nothing was sent`() throws {
        var desk = Desk()
        try desk.say(whole)
        try desk.ask()
        try desk.pass(until: asked + 12 * hour + minute - 1)
        #expect(desk.words == ["requested", "decided"])
        try desk.pass(until: asked + 12 * hour + minute)
        #expect(desk.words == ["requested", "decided", "expired"])
        #expect(desk.told.last?.at == asked + 12 * hour + minute)
        try desk.say(#""consented":false"#)
        try desk.attempt(1, 202)
        #expect(desk.words.count == 3)
        #expect(desk.lateAcceptances == 1)
    }

    @Test func `counts in time that jumps as in time that passes`() throws {
        var desk = Desk()
        try desk.say(#""consented":true"#)
        try desk.ask()
        try desk.pass(until: asked + 100 * day)
        #expect(desk.words == ["requested", "decided", "expired"])
        #expect(desk.told.map(\.at) == [asked, asked + hour, asked + 12 * hour + minute])
    }

    @Test(arguments: [Int64.min, .min + 1, -1, 0, .max - 1, .max])
    func `of an absurd date does not trap, and comes to an end`(signed: Int64) throws {
        for usage in [whole, #""consented":true,"accountCreatedAt":\#(signed),"playTimeSeconds":\#(signed)"#] {
            for purchase in [[:], Bought.pass, Bought.advanced] {
                var desk = Desk()
                try desk.say(usage)
                try desk.ask("q", signed: signed, at: asked, purchase.merging(["purchaseDate": "\(signed)"]) { $1 })
                try desk.hear(outcome("REFUND", "r", signed: signed, ["price": "\(Int64.max)"]), at: asked)
                try desk.pass(until: .max)
                #expect(desk.words.first == "requested")
            }
        }
    }
}

@Suite struct `What is not answered` {
    @Test func `has no transaction, or one that cannot be told`() throws {
        let without = [
            "null", "7", "{}", "{\"sealed\":\"x\"}", "{\"transactionId\":\"7\"}", "{\"purchaseDate\":1}",
            "{\"transactionId\":\"\",\"purchaseDate\":1}", "{\"transactionId\":7,\"purchaseDate\":1}",
            "{\"sealed\":\"x\",\"transactionId\":\"7\",\"purchaseDate\":1}",
        ]
        for transaction in without {
            var desk = Desk()
            try desk.say(whole)
            try desk.hear(notification("CONSUMPTION_REQUEST", "q", signed: asked, transaction), at: asked)
            try desk.say(whole)
            try desk.pass(until: asked + day)
            #expect(desk.words == ["requested", "withheld no_transaction"])
            #expect(desk.told.allSatisfy { $0.transactionId == nil && $0.requestReason == nil })
        }
    }

    private static let others: [([String: String], String)] = [
        (["bundleId": #""com.example.two""#], "foreign_app"), (["bundleId": "null"], "foreign_app"),
        (["inAppOwnershipType": #""FAMILY_SHARED""#], "family_shared"),
        (["inAppOwnershipType": #""ASSIGNED""#], "assigned"), (["inAppOwnershipType": #""NEWS""#], "assigned"),
        // The first reason that applies is given.
        (["bundleId": #""com.example.two""#, "inAppOwnershipType": #""FAMILY_SHARED""#], "foreign_app"),
    ]

    @Test(arguments: others)
    func `is of another app, of a family or of an organisation`(_ purchase: [String: String], why: String) throws {
        for isBefore in [true, false] {
            var desk = Desk()
            if isBefore { try desk.say(whole) }
            try desk.ask("q", purchase)
            #expect(desk.words == ["requested", "withheld \(why)"])
            if !isBefore { try desk.say(whole) }
            try desk.pass(until: asked + day)
            #expect(desk.words == ["requested", "withheld \(why)"])
            #expect(desk.told.last?.facts == nil && desk.told.last?.body == nil)
        }
    }

    @Test func `was settled by a later word of Apple`() throws {
        let cases: [(String, Int64, Bool)] = [
            ("REFUND", asked + 1, true), ("REFUND_DECLINED", asked + 1, true), ("REFUND_REVERSED", asked + 1, false),
            ("REFUND", asked, false), ("REFUND_DECLINED", asked - 1, false), ("REFUND", asked + day, true),
        ]
        for (type, signed, isSettled) in cases {
            for isBefore in [true, false] {
                var desk = Desk()
                try desk.say(whole)
                let word = outcome(type, "r", signed: signed)
                if isBefore { try desk.hear(word, at: asked) }
                try desk.ask(at: asked)
                if !isBefore { try desk.hear(word, at: asked) }
                #expect(desk.words.contains("withheld settled") == isSettled, "\(type) \(desk.words)")
                #expect(desk.words.contains("decided") == !(isBefore && isSettled))
            }
        }
    }

    @Test func `is settled for its own purchase only, and by no consent opened again`() throws {
        var desk = Desk()
        try desk.ask()
        try desk.hear(outcome("REFUND", "r", of: "8", signed: asked + 1), at: asked + 1)
        try desk.pass(until: asked + hour)
        #expect(desk.words == ["requested", "withheld no_consent"])
        try desk.hear(outcome("REFUND_DECLINED", "r2", signed: asked + 2 * hour), at: asked + 2 * hour)
        try desk.say(whole)
        #expect(desk.words == ["requested", "withheld no_consent", "outcome declined", "withheld settled"])
    }

    @Test func `is what the policy withholds, with the facts that it saw and no body`() throws {
        let withhold = try policy(
            rules: #"{"name":"never","when":{"reason":"UNINTENDED_PURCHASE"},"answer":{"withhold":true}}"#)
        var desk = Desk(Desk.rules(withhold))
        try desk.say(whole)
        try desk.ask()
        #expect(desk.words == ["requested", "withheld policy"])
        let record = try #require(desk.told.last)
        #expect(record.policy == ConsumptionRecord.Policy(version: "1", rule: "never"))
        #expect(record.body == nil && record.facts != nil)
        try desk.say(whole)
        try desk.pass(until: asked + day)
        #expect(desk.words.count == 2)
        // Without consent the policy is not applied.
        var other = Desk(Desk.rules(withhold))
        try other.ask()
        try other.pass(until: asked + day)
        #expect(other.words == ["requested", "withheld no_consent"])
    }
}

@Suite struct `Several requests` {
    @Test func `for one purchase are answered each, with one count of it`() throws {
        var desk = Desk()
        try desk.say(whole)
        try desk.ask("q1")
        try desk.ask("q2", signed: asked + minute)
        try desk.ask("q3", of: "8", signed: asked + 2 * minute)
        try desk.ask("q1")
        #expect(desk.told(about: "q1").map(\.word) == ["requested", "decided"])
        #expect(desk.told(about: "q2").map(\.word) == ["requested", "decided"])
        #expect(desk.told(about: "q1").last?.body == desk.told(about: "q2").last?.body)
        try desk.pass(until: asked + 3 * hour)
        #expect(desk.told(about: "q3").map(\.word) == ["requested", "withheld no_consent"])
        try desk.say(whole, of: "8")
        #expect(try desk.facts()["refundsRequested"]?.integer == 2)
        try desk.attempt(1, 202, of: "q1")
        #expect(desk.told(about: "q2").map(\.word) == ["requested", "decided"])
    }

    @Test func `of a commitment are of the month that each is about`() throws {
        var desk = Desk()
        for month in 1...2 {
            let id = "\(month)"
            try desk.say(#""consented":true,"deliveryStatus":"DELIVERED""#, of: id)
            try desk.ask(
                "q\(id)", of: id, signed: asked + Int64(month),
                Bought.subscription.merging([
                    "billingPlanType": #""MONTHLY""#, "commitmentInfo": #"{"billingPeriodNumber":\#(month)}"#,
                ]) { $1 })
            #expect(try desk.facts()["commitmentPeriod"]?.integer == Int64(month))
            #expect(desk.told.last?.transactionId == Text(id))
        }
    }
}
