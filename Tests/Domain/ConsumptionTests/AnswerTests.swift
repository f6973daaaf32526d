import JSON
import MakeBelieve
import Notices
import Testing

@testable import Consumption

/// The decision at the end of the wait, from one row of usage and one policy.
private func answer(
    _ usage: String, _ purchase: [String: String] = [:], policy: RefundPolicy? = nil,
    before: (inout Desk) throws -> Void = { _ in }
) throws -> Desk {
    var desk = Desk(Desk.rules(policy))
    try before(&desk)
    try desk.say(usage.isEmpty ? #""consented":true"# : #""consented":true,"# + usage)
    try desk.ask(purchase)
    try desk.pass(until: asked + hour)
    return desk
}

/// The members that vary.
private func rest(_ desk: Desk) -> String? {
    desk.body?.replacing(#"{"customerConsented":true,"sampleContentProvided":false,"#, with: "{")
}

private func always(_ preference: String) throws -> RefundPolicy {
    try policy(rules: #"{"name":"a","when":{},"answer":{"refundPreference":\#(preference)}}"#)
}

extension Desk {
    fileprivate mutating func ask(_ more: [String: String]) throws { try ask("q", more) }
}

@Suite struct `An answer by the facts` {
    @Test(arguments: [
        "DELIVERED", "UNDELIVERED_QUALITY_ISSUE", "UNDELIVERED_WRONG_ITEM", "UNDELIVERED_SERVER_OUTAGE",
        "UNDELIVERED_OTHER",
    ])
    func `says how it was delivered, and how much was used only of what was`(_ status: String) throws {
        let isDelivered = status == "DELIVERED"
        let desk = try answer(#""deliveryStatus":"\#(status)","consumptionPercentage":70000"#)
        let percentage = isDelivered ? #","consumptionPercentage":70000"# : ""
        #expect(rest(desk) == #"{"deliveryStatus":"\#(status)"\#(percentage)}"#)
        #expect(desk.told.last?.at == asked)
    }

    @Test func `never says how much was used of what renews by itself, whoever says it`() throws {
        for usage in [#""consumptionPercentage":50000"#, #""deliveryStatus":"DELIVERED","consumptionPercentage":0"#] {
            for preference in ["GRANT_FULL", "GRANT_PRORATED"] {
                let desk = try answer(usage, Bought.subscription, policy: try always("\"\(preference)\""))
                #expect(rest(desk) == #"{"deliveryStatus":"DELIVERED","refundPreference":"\#(preference)"}"#)
                #expect(desk.decision?.detail == nil)
            }
        }
    }

    @Test(arguments: [0, 1, 99_999, 100_000])
    func `says how much was used of everything else`(_ percentage: Int) throws {
        for purchase in [[:], Bought.pass, Bought.forEver, ["type": "null"], ["type": #""New Kind""#]] {
            let desk = try answer(#""consumptionPercentage":\#(percentage)"#, purchase)
            #expect(rest(desk) == #"{"deliveryStatus":"DELIVERED","consumptionPercentage":\#(percentage)}"#)
        }
    }

    /// How long ago a pass of ten days was bought, and how much of it has passed.
    private static let shares: [(age: Int64, share: Int)] = [
        (day, 10_000), (0, 0), (-5, 0), (1, 0), (8_640, 1), (8_639, 0), (100 * day, 100_000), (10 * day, 100_000),
        (10 * day - 1, 99_999),
    ]

    @Test(arguments: shares)
    func `of a pass says how much of its time has passed, rounded down`(age: Int64, share: Int) throws {
        let desk = try answer("", Bought.pass.merging(["purchaseDate": "\(asked - age)"]) { $1 })
        #expect(rest(desk) == #"{"deliveryStatus":"DELIVERED","consumptionPercentage":\#(share)}"#)
        #expect(try desk.facts()["assumed"]?.array?.compactMap(\.string).last == "consumptionPercentage")
    }

    @Test func `of a pass takes the word of usage over the time, and none where nobody knows its length`() throws {
        let told = try answer(#""consumptionPercentage":3"#, Bought.pass)
        #expect(rest(told) == #"{"deliveryStatus":"DELIVERED","consumptionPercentage":3}"#)
        let unknown = try answer("", Bought.pass.merging(["productId": #""other""#]) { $1 })
        #expect(rest(unknown) == #"{"deliveryStatus":"DELIVERED"}"#)
        let foreign = try answer(#""deliveryStatus":"UNDELIVERED_OTHER""#, Bought.pass)
        #expect(rest(foreign) == #"{"deliveryStatus":"UNDELIVERED_OTHER"}"#)
    }

    @Test func `says that a sample was provided where usage, the policy or a trial in the log says so`() throws {
        func trial(_ desk: inout Desk) throws {
            try desk.hear(
                notification(
                    "SUBSCRIBED", "s", signed: d(1),
                    coins("1", signed: d(1), ["offerType": "1", "offerDiscountType": #""FREE_TRIAL""#])), at: d(1))
        }
        func old(_ desk: inout Desk) throws {
            try desk.hear(
                notification(
                    "SUBSCRIBED", "s", signed: d(1), coins("1", signed: d(1), ["offerType": "1", "price": "0"])),
                at: d(1))
        }
        func paid(_ desk: inout Desk) throws {
            try desk.hear(
                notification(
                    "SUBSCRIBED", "s", signed: d(1),
                    coins(
                        "1", signed: d(1), ["offerType": "1", "offerDiscountType": #""PAY_AS_YOU_GO""#, "price": "0"])),
                at: d(1))
        }
        func sample(_ desk: Desk) throws -> Bool? {
            try JSONValue.read(try #require(desk.decision?.body))["sampleContentProvided"]?.bool
        }
        let defaults = try policy(#"{"version":"1","defaults":{"sampleContentProvided":false},"rules":[]}"#)
        let generous = try policy(#"{"version":"1","defaults":{"sampleContentProvided":true},"rules":[]}"#)
        #expect(try sample(answer("")) == false)
        #expect(try sample(answer("", before: trial)) == true)
        #expect(try sample(answer("", before: old)) == true)
        #expect(try sample(answer("", before: paid)) == false)
        #expect(try sample(answer("", policy: defaults, before: trial)) == false)
        #expect(try sample(answer("", policy: generous)) == true)
        #expect(try sample(answer(#""sampleContentProvided":true"#, policy: defaults)) == true)
        #expect(try sample(answer(#""sampleContentProvided":false"#, policy: generous, before: trial)) == false)
    }

    @Test func `lists what it has filled in, and nothing that was said`() throws {
        func assumed(_ desk: Desk) throws -> [String]? { try desk.facts()["assumed"]?.array?.compactMap(\.string) }
        #expect(try assumed(answer("")) == ["deliveryStatus", "sampleContentProvided"])
        #expect(try assumed(answer(#""deliveryStatus":"DELIVERED""#)) == ["sampleContentProvided"])
        #expect(try assumed(answer(#""sampleContentProvided":false"#)) == ["deliveryStatus"])
        #expect(
            try assumed(answer("", Bought.pass))
                == ["deliveryStatus", "sampleContentProvided", "consumptionPercentage"])
        let all = #""deliveryStatus":"DELIVERED","sampleContentProvided":true,"consumptionPercentage":0"#
        #expect(try assumed(answer(all, Bought.pass)) == [])
    }

    @Test func `has the delivery of the policy's defaults where usage says none`() throws {
        let broken = try policy(
            #"{"version":"1","defaults":{"deliveryStatus":"UNDELIVERED_SERVER_OUTAGE"},"rules":[]}"#)
        #expect(
            rest(try answer(#""consumptionPercentage":1"#, policy: broken))
                == #"{"deliveryStatus":"UNDELIVERED_SERVER_OUTAGE"}"#)
        let said = try answer(#""deliveryStatus":"DELIVERED""#, policy: broken)
        #expect(rest(said) == #"{"deliveryStatus":"DELIVERED"}"#)
    }

    private static let parts: [(percentage: String?, isAsked: Bool)] = [
        (nil, false), ("0", false), ("1", true), ("99999", true), ("100000", false),
    ]

    @Test(arguments: parts)
    func `asks for a part of the money only where the part is known, between nothing and all`(
        percentage: String?, isAsked: Bool
    ) throws {
        let usage = percentage.map { "\"consumptionPercentage\":\($0)" } ?? ""
        for source in ["rule", "usage"] {
            let desk =
                source == "rule"
                ? try answer(usage, policy: try always(#""GRANT_PRORATED""#))
                : try answer(
                    [usage, #""refundPreference":"GRANT_PRORATED""#].filter { !$0.isEmpty }.joined(separator: ","))
            #expect((desk.body?.contains("GRANT_PRORATED") == true) == isAsked)
            #expect(desk.decision?.detail == (isAsked ? nil : "no_percentage"))
        }
        // Nothing is known about content that was not delivered.
        let undelivered = try answer(
            #""deliveryStatus":"UNDELIVERED_OTHER""# + (usage.isEmpty ? "" : "," + usage),
            policy: try always(#""GRANT_PRORATED""#))
        #expect(rest(undelivered) == #"{"deliveryStatus":"UNDELIVERED_OTHER"}"#)
        #expect(undelivered.decision?.detail == "no_percentage")
    }

    @Test func `prefers what the rule says, then what usage says, then nothing`() throws {
        let said = #""refundPreference":"DECLINE""#
        #expect(rest(try answer(said)) == #"{"deliveryStatus":"DELIVERED","refundPreference":"DECLINE"}"#)
        #expect(rest(try answer("")) == #"{"deliveryStatus":"DELIVERED"}"#)
        let full = try always(#""GRANT_FULL""#)
        #expect(
            rest(try answer(said, policy: full)) == #"{"deliveryStatus":"DELIVERED","refundPreference":"GRANT_FULL"}"#)
        let none = try always("null")
        #expect(rest(try answer(said, policy: none)) == #"{"deliveryStatus":"DELIVERED","refundPreference":"DECLINE"}"#)
        #expect(rest(try answer("", policy: none)) == #"{"deliveryStatus":"DELIVERED"}"#)
        // If no rule matches, the body has no refund preference.
        let other = try policy(when: #"{"reason":"LEGAL"}"#)
        let desk = try answer(said, policy: other)
        #expect(rest(desk) == #"{"deliveryStatus":"DELIVERED"}"#)
        #expect(desk.decision?.policy == ConsumptionRecord.Policy(version: "1", rule: nil))
    }

    @Test func `takes each member from the row of the purchase, else from that for all; null takes nothing back`()
        throws
    {
        var desk = Desk()
        try desk.say(
            #""consented":true,"deliveryStatus":"UNDELIVERED_OTHER","refundPreference":"DECLINE","sampleContentProvided":true"#,
            of: nil)
        try desk.say(#""deliveryStatus":"DELIVERED","consumptionPercentage":5"#)
        try desk.say(#""deliveryStatus":null,"consumptionPercentage":null,"refundPreference":null"#)
        try desk.say(#""consumptionPercentage":9"#, of: nil)
        try desk.ask()
        #expect(
            desk.body == #"{"customerConsented":true,"sampleContentProvided":true,"deliveryStatus":"DELIVERED","#
                + #""consumptionPercentage":5,"refundPreference":"DECLINE"}"#)
    }

    @Test func `tells the policy what it may test`() throws {
        var desk = Desk(Desk.rules(try policy(rules: "")))
        try desk.hear(outcome("REFUND", "r1", of: "5", signed: d(2), ["revocationDate": "\(d(2))"]), at: d(2))
        try desk.hear(outcome("REFUND", "r2", of: "6", signed: d(2), ["revocationDate": "\(d(2))"]), at: d(2))
        try desk.hear(outcome("REFUND_REVERSED", "r3", of: "6", signed: d(3)), at: d(3))
        try desk.ask("p", of: "5", signed: d(1), at: d(3))
        try desk.ask("p2", of: "5", signed: d(1) + 1, at: d(3))
        try desk.say(whole)
        try desk.ask(
            "q",
            [
                "billingPlanType": #""MONTHLY""#,
                "commitmentInfo": #"{"billingPeriodNumber":3,"totalBillingPeriods":12}"#,
                "offerType": "2",
            ])
        let facts = try desk.facts()
        let told = [
            "productId", "productType", "bundleId", "storefront", "reason", "billingPlan", "offerType",
            "deliveryStatus",
        ].map { facts[$0]?.string }
        #expect(
            told == [
                "coins.100", "Consumable", "com.example.one", "USA", "UNINTENDED_PURCHASE", "MONTHLY", "promotional",
                "DELIVERED",
            ])
        let numbers = [
            "commitmentPeriod", "consumptionPercentage", "daysSincePurchase", "refundsRequested", "refundsGranted",
        ].map { facts[$0]?.integer }
        #expect(numbers == [3, 40_000, 10, 2, 1])
    }

    @Test func `counts days from the purchase as whole ones, and a plan that is not named as paid at once`() throws {
        for (bought, days) in [(asked - day, 1), (asked - day + 1, 0), (asked + day, 0), (asked - 30 * day, 30)] {
            let desk = try answer("", Bought.subscription.merging(["purchaseDate": "\(bought)"]) { $1 })
            #expect(try desk.facts()["daysSincePurchase"]?.integer == Int64(days))
            #expect(try desk.facts()["billingPlan"] == .string("BILLED_UPFRONT"))
        }
        #expect(try answer("").facts()["billingPlan"] == .null)
    }
}
