import Contract
import JSON
import MakeBelieve
import Notices
import Testing

@testable import Consumption

/// A request that is retried, sent and refunded, with the specified policy.
private func story(_ reason: String = "OTHER") throws -> Desk {
    var desk = Desk(Desk.rules(try policy(specifiedPolicy)))
    try desk.say(
        #"\#(whole),"consentedAt":\#(d(1)),"refundPreference":"DECLINE","accountCreatedAt":5,"playTimeSeconds":60,"#
            + #""userStatus":1,"platform":2,"sampleContentProvided":false"#, at: d(2))
    try desk.hear(request().replacing("UNINTENDED_PURCHASE", with: reason), at: asked + 3)
    return desk
}

private let head = #"{"v":1,"id":"q","originalTransactionId":"1000","transactionId":"7","kind":""#
private let deadline = asked + 12 * hour
private let nothing = #""policy":null,"httpStatus":null,"errorCode":null,"attempt":null,"retryAt":null"#

private func facts(_ reason: String, assumed: String = "") -> String {
    #"{"productId":"coins.100","productType":"Consumable","bundleId":"com.example.one","storefront":"USA","#
        + #""reason":"\#(reason)","billingPlan":null,"offerType":null,"deliveryStatus":"DELIVERED","commitmentPeriod":null,"#
        + #""consumptionPercentage":40000,"daysSincePurchase":10,"refundsRequested":1,"refundsGranted":0,"#
        + #""purchaseDate":\#(d(0)),"price":9990,"currency":"USD","quantity":1,"freeTrial":false,"#
        + #""advancedCommerce":false,"assumed":[\#(assumed)],"usage":{"consented":true,"consentedAt":\#(d(1)),"#
        + #""deliveryStatus":"DELIVERED","sampleContentProvided":false,"consumptionPercentage":40000,"#
        + #""refundPreference":"DECLINE","accountCreatedAt":5,"playTimeSeconds":60,"userStatus":1,"platform":2}}"#
}

private let body =
    #"{"customerConsented":true,"sampleContentProvided":false,"deliveryStatus":"DELIVERED","consumptionPercentage":40000"#

@Suite struct `Records of refund requests` {
    @Test func `have exactly the members of the contract, in its order, for each kind`() throws {
        var desk = try story("FULFILLMENT_ISSUE")
        try desk.attempt(1, 429, code: 4_290_000, retryAt: asked + 60, at: asked + 4)
        try desk.attempt(2, 202, at: asked + 61)
        try desk.hear(
            outcome("REFUND", "r", signed: asked + hour, ["revocationDate": "\(asked + hour)"]), at: asked + hour)
        let tail = #""deadline":\#(deadline),"requestReason":"FULFILLMENT_ISSUE","#
        #expect(
            desk.told.map(\.text) == [
                head + #"requested","at":\#(asked),"# + tail + nothing + #","detail":null}"#,
                head + #"decided","at":\#(asked + 3),"# + tail
                    + #""policy":{"version":"2026-11","rule":"rest"},"body":"#
                    + body + #","refundPreference":"DECLINE"},"#
                    + #""httpStatus":null,"errorCode":null,"attempt":null,"retryAt":null,"detail":null,"facts":"#
                    + facts("FULFILLMENT_ISSUE") + "}",
                head + #"shadow","at":\#(asked + 3),"# + tail + #""policy":{"version":"2026-12","rule":null},"body":"#
                    + body + #"},"httpStatus":null,"errorCode":null,"attempt":null,"retryAt":null,"detail":null}"#,
                head + #"retrying","at":\#(asked + 4),"# + tail
                    + #""policy":null,"httpStatus":429,"errorCode":4290000,"attempt":1,"retryAt":\#(asked + 60),"detail":null}"#,
                head + #"sent","at":\#(asked + 61),"# + tail
                    + #""policy":null,"httpStatus":202,"errorCode":null,"attempt":2,"retryAt":null,"detail":null}"#,
                head + #"outcome","at":\#(asked + hour),"# + tail + nothing
                    + #","detail":"refunded","amount":9990,"currency":"USD"}"#,
            ])
        var withheld = try story("LEGAL")
        #expect(
            withheld.told[1].text == head
                + #"withheld","at":\#(asked + 3),"deadline":\#(deadline),"requestReason":"LEGAL","#
                + #""policy":{"version":"2026-11","rule":"legal"},"httpStatus":null,"errorCode":null,"attempt":null,"#
                + #""retryAt":null,"detail":"policy","facts":"# + facts("LEGAL") + "}")
        try withheld.pass(until: asked + day)
        var failed = try story("FULFILLMENT_ISSUE")
        try failed.attempt(1, nil, retryAt: asked + 9, at: asked + 4)
        try failed.attempt(2, 400, code: 4_000_006, at: asked + 9)
        #expect(
            failed.told.last?.text == head + #"failed","at":\#(asked + 9),"# + tail
                + #""policy":null,"httpStatus":400,"errorCode":4000006,"attempt":2,"retryAt":null,"detail":"maybe_sent"}"#
        )
        var expired = try story("FULFILLMENT_ISSUE")
        try expired.pass(until: asked + day)
        #expect(
            expired.told.last?.text == head + #"expired","at":\#(deadline + minute),"# + tail + nothing
                + #","detail":null}"#)
    }

    @Test func `read back as what was written, and what is no record is none`() throws {
        func read(_ bytes: [UInt8]) throws -> ConsumptionRecord? {
            var json = JSONDocument()
            try json.read(bytes.span)
            return ConsumptionRecord(json)
        }
        var desk = try story("FULFILLMENT_ISSUE")
        try desk.attempt(1, nil, retryAt: asked + 9, at: asked + 4)
        try desk.attempt(2, 400, code: 4_000_006, at: asked + 9)
        try desk.hear(outcome("REFUND_DECLINED", "r", signed: asked + hour), at: asked + hour)
        try desk.hear(outcome("REFUND", "r2", signed: asked + hour), at: asked + hour)
        for record in desk.told { #expect(try read(record.value) == record) }
        let good = try #require(desk.told.first).text
        for (from, to) in [
            (#""id":"q""#, #""id":"""#), (#""kind":"requested""#, #""kind":"dreamt""#), (#""at":"#, #""when":"#),
            (#""deadline":"#, #""deadline":null,"x":"#),
            (#""originalTransactionId":"1000""#, #""originalTransactionId":7"#),
        ] { #expect(try read(Array(good.replacing(from, with: to).utf8)) == nil, "\(to)") }
    }

    @Test func `carry facts that another policy can be asked about, with the same verdict`() throws {
        let policies: [RefundPolicy?] = [nil, try policy(specifiedPolicy), try policy(rules: "")]
        for seed in 0..<200 as Range<UInt64> {
            var chance = Chance(seed: seed)
            var members = [#""consented":true"#]
            if chance.yes(50) { members.append(#""deliveryStatus":"\#(chance.of("DELIVERED", "UNDELIVERED_OTHER"))""#) }
            if chance.yes(50) { members.append(#""consumptionPercentage":\#(chance.below(100_001))"#) }
            if chance.yes(50) { members.append(#""refundPreference":"GRANT_PRORATED""#) }
            var desk = Desk(Desk.rules(policies[Int(chance.below(3))]))
            try desk.say(members.joined(separator: ","))
            var purchase = chance.of([:], Bought.subscription, Bought.pass, Bought.advanced)
            if chance.yes(50) { purchase["offerType"] = "\(chance.below(7))" }
            try desk.ask("q", purchase)
            try desk.pass(until: asked + hour)
            let record = try #require(desk.decision)
            var json = JSONDocument()
            let bytes = try #require(record.facts)
            try json.read(bytes.span)
            let read = KnownFacts(json, json.root, transactionId: record.transactionId)
            let facts = try #require(read)
            let verdict = facts.verdict(of: desk.rules.policy)
            #expect(facts.json(verdict) == record.facts, "seed \(seed)")
            #expect(verdict.rule.map { Text($0) } == record.policy?.rule)
            if !facts.purchase.isAdvancedCommerce { #expect(facts.body(verdict, at: record.at) == record.body) }
        }
    }

    @Test func `have a fingerprint of rules that goes with the policy, the apps and the wait, and with nothing else`()
        throws
    {
        let rules = Desk.rules(try policy(specifiedPolicy), periods: ["a": "P1M", "b": "P2M"])
        let spaced = try policy(specifiedPolicy.replacing(",", with: " ,\n "))
        #expect(Desk.rules(spaced, periods: ["b": "P2M", "a": "P1M"]).fingerprint == rules.fingerprint)
        func of(_ apps: [App], _ policy: RefundPolicy? = nil) -> String {
            ConsumptionRules(apps: apps, policy: policy, wait: 1).fingerprint
        }
        let one = App(bundleId: "one", appAppleId: 1, entitlements: [], periods: [])
        let two = App(bundleId: "two", appAppleId: 2, entitlements: [], periods: [])
        let named = App(
            bundleId: "one", appAppleId: 7, entitlements: [App.Entitlement(name: "e", productIds: ["p"])], periods: [])
        #expect(of([one, two]) == of([two, one]) && of([one]) == of([named]))
        let others = [
            rules.fingerprint, Desk.rules(try policy(specifiedPolicy), periods: ["a": "P1M"]).fingerprint,
            Desk.rules(try policy(specifiedPolicy), periods: ["a": "P1M", "b": "P3M"]).fingerprint,
            Desk.rules(try policy(specifiedPolicy), wait: 5, periods: ["a": "P1M", "b": "P2M"]).fingerprint,
            Desk.rules(nil, periods: ["a": "P1M", "b": "P2M"]).fingerprint, of([one]), of([one, two]), of([]),
            Desk.rules(
                try policy(specifiedPolicy.replacing("2026-12", with: "2027")), periods: ["a": "P1M", "b": "P2M"]
            )
            .fingerprint,
            Desk.rules(
                try policy(specifiedPolicy.replacing("50000", with: "50001")), periods: ["a": "P1M", "b": "P2M"]
            )
            .fingerprint,
        ]
        #expect(Set(others).count == others.count)
        #expect(others.allSatisfy { $0.count == 16 })
    }
}
