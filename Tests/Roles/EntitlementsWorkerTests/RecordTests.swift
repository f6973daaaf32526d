import Contract
import EntitlementsWorker
import JSON
import Log
import MakeBelieve
import Runtime
import Schemas
import Testing
import WorkerTestKit

private let token = "7E3FB204-2AD2-4D2A-8A4B-1E7C7B0F9D11"

/// A customer who starts with a trial, pays, fails to pay, and gets a refund; a commitment; a lifetime purchase.
private func busyShop() throws -> Shop {
    let shop = try Shop()
    try shop.tell(
        Told(
            "SUBSCRIBED", "INITIAL_BUY", at: d(0),
            bought(
                "1", from: d(0), to: d(30), signed: d(0), token: token,
                ["offerType": "1", "offerDiscountType": "\"FREE_TRIAL\"", "price": "0"]),
            renewal(1, at: d(30), signed: d(0), ["renewalPrice": "9990", "priceIncreaseStatus": "0"]), status: 1))
    try shop.tell(
        Told(
            "DID_FAIL_TO_RENEW", "GRACE_PERIOD", at: d(30),
            bought("1", from: d(0), to: d(30), signed: d(30), token: token),
            renewal(
                1, at: d(30), signed: d(30),
                ["isInBillingRetryPeriod": "true", "gracePeriodExpiresDate": "\(d(46))"]), status: 4))
    try shop.tick(d(47))
    try shop.tell(
        Told(
            "SUBSCRIBED", "INITIAL_BUY", at: d(47),
            bought(
                "2", from: d(47), to: d(77), signed: d(47),
                [
                    "billingPlanType": "\"MONTHLY\"",
                    "commitmentInfo":
                        "{\"billingPeriodNumber\":4,\"totalBillingPeriods\":12,\"commitmentExpiresDate\":\(d(300)),\"commitmentPrice\":119880}",
                ]),
            renewal(1, at: d(77), signed: d(47), ["commitmentInfo": "{\"commitmentAutoRenewStatus\":1}"]), status: 1),
        of: "2000")
    try shop.tell(
        Told(
            "ONE_TIME_CHARGE", at: d(48),
            bought("3", from: d(48), to: nil, signed: d(48), ["type": "\"Non-Consumable\""])), of: "3000")
    try shop.tell(
        Told(
            "REFUND", at: d(49),
            bought(
                "3", from: d(48), to: nil, signed: d(49),
                ["type": "\"Non-Consumable\"", "revocationDate": "\(d(49))", "revocationReason": "1"])), of: "3000")
    return shop
}

@Suite struct `What the worker writes` {
    @Test func `has exactly the members of the contract, in its order`() throws {
        let shop = try Shop()
        try shop.tell(
            Told(
                "DID_RENEW", "BILLING_RECOVERY", at: d(0) + 5,
                bought(
                    "1", from: d(0), to: d(30), signed: d(0), token: token, ["subscriptionGroupIdentifier": "\"21\""]),
                renewal(1, at: d(30), signed: d(0), ["renewalPrice": "9990"]), status: 1),
            received: d(0) + 9)
        let record = try #require(try shop.seen(.entitlements).first)
        let shared =
            #"{"v":1,"originalTransactionId":"1000","environment":"Production","bundleId":"com.example.one","#
            + #""productId":"pro","type":"Auto-Renewable Subscription","subscriptionGroupIdentifier":"21","#
            + #""appAccountToken":"\#(token.lowercased())","ownership":"PURCHASED","entitlements":["premium"],"#
            + #""state":"active","reason":null,"access":true,"accessUntil":\#(d(30) + hour),"since":\#(d(0)),"#
            + #""autoRenew":true,"pendingProductId":null,"pendingBillingPlan":null,"priceConsent":null,"#
            + #""billingPlan":"BILLED_UPFRONT","commitment":null,"graceUntil":null,"retry":null,"offer":null,"#
            + #""introOfferUsed":false,"price":9990,"currency":"USD","renewsAt":\#(d(30)),"renewalPrice":9990,"#
            + #""runs":[{"start":\#(d(0)),"end":\#(d(30))}],"runsTruncated":false,"sequence":1,"asOf":\#(d(0) + 9)"#
        let cause =
            #"{"notificationUUID":"u-\#(d(0) + 5)","type":"DID_RENEW","subtype":"BILLING_RECOVERY","#
            + #""signedDate":\#(d(0) + 5),"partition":\#(record.partition),"offset":0}"#
        #expect(record.valueText == "\(shared),\"cause\":\(cause)}")
        #expect(record.keyText == "1000")
        #expect(record.partition == Shop.partition(of: "1000"))
        #expect(record.timestamp == d(0) + 9)

        let account = try #require(try shop.seen(.accounts).first)
        #expect(account.valueText == "\(shared)}")
        #expect(account.keyText == "\(token.lowercased())|1000")

        let events = try shop.seen(.entitlementEvents)
        let first = try #require(events.first)
        #expect(
            first.valueText
                == #"{"v":1,"id":"\#(first.header("id") ?? "")","originalTransactionId":"1000","kind":"started","at":\#(d(0)),"#
                + #""historic":false,"before":null,"after":{"state":"active","access":true},"sequence":1,"cause":\#(cause)}"#
        )
    }

    @Test(
        arguments: [
            (TopicID.entitlements, "entitlement"), (.entitlementEvents, "entitlement-event"), (.accounts, "account"),
        ])
    func `obeys its JSON Schema, and has the headers of the contract`(_ id: TopicID, _ type: String) throws {
        let shop = try busyShop()
        let schema = try Schema(type)
        var ids: Set<String> = []
        let records = try shop.seen(id).filter { $0.value != nil }
        #expect(!records.isEmpty)
        for record in records {
            let value = try JSONValue.read(record.value ?? [])
            #expect(schema.problems(of: value) == [], "\(record)")
            #expect(Set(value.object?.members.map(\.name) ?? []) == schema.required)
            #expect(record.header("schema") == "\(type)/1")
            let app = try #require(record.header("app"))
            #expect(app.hasPrefix("perennial/test+") && app.count == "perennial/test+".count + 16)
            #expect(record.header("type") == nil && record.header("rules") == nil)
            #expect(record.header("source")?.hasPrefix("shop.production.notifications:") == true)
            let id = try #require(record.header("id"))
            #expect(ids.insert(id).inserted, "\(id) is there twice")
        }
    }

    @Test func `tells by time alone without a cause, as of the moment it was due`() throws {
        let shop = try Shop()
        try shop.tell(
            Told(
                "SUBSCRIBED", at: d(0), bought("1", from: d(0), to: d(30), signed: d(0)),
                renewal(0, at: d(30), signed: d(0))))
        try shop.tick(d(40))
        let values = try shop.values()
        #expect(values.map(\.words) == ["active until 30d", "expired voluntary since 30d"])
        #expect(values.map { $0["asOf"]?.integer } == [d(0), d(30)])
        #expect(values.map { $0["sequence"]?.integer } == [1, 2])
        #expect(values[1]["cause"] == .null)
        #expect(try shop.seen(.entitlements).map(\.timestamp) == [d(0), d(30)])
    }

    @Test func `is nothing when a notification comes again, or says nothing new`() throws {
        let shop = try Shop()
        let told = Told(
            "SUBSCRIBED", at: d(0), bought("1", from: d(0), to: d(30), signed: d(0)),
            renewal(1, at: d(30), signed: d(0)))
        for received in [d(0), d(0) + 5, d(1)] { try shop.tell(told, received: received) }
        try shop.tell(Told("TEST", at: d(2)), of: "a test")
        #expect(try shop.seen(.entitlements).count == 1)
        #expect(try shop.seen(.entitlementEvents).count == 1)
        #expect(try shop.seen(.deadLetters(.entitlements)).isEmpty)
    }

    @Test func `says the same rules for the same apps, and others for others`() throws {
        func rules(_ apps: [App], leeway: Int64 = hour) -> String? {
            makeProcessor(apps: apps, leeway: leeway).definition.rules
        }
        #expect(rules(apps) == rules(apps.reversed()))
        #expect(rules(apps) != rules([apps[0]]))
        #expect(rules(apps) != rules(apps, leeway: 0))
        #expect(rules(apps) != nil)
    }
}

@Suite struct `What the worker cannot read` {
    @Test(arguments: ["", "null", "[]", "{", "\u{0}", "{\"transaction\":"])
    func `is a dead letter when it is no object`(_ text: String) throws {
        let shop = try Shop()
        try shop.feed(Array("1000".utf8), Array(text.utf8), at: d(0))
        try shop.tell(Told("SUBSCRIBED", at: d(0), bought("1", from: d(0), to: d(30), signed: d(0))))
        let letters = try shop.seen(.deadLetters(.entitlements))
        #expect(letters.map { $0.header("reason") } == ["json"], "\(letters)")
        #expect(try shop.values().count == 1, "the next record must be processed")
    }

    @Test func `is a dead letter when it has no key, no value or a key that is no text`() throws {
        let shop = try Shop()
        try shop.feed(Array("1000".utf8), nil, at: d(0))
        let told = Told("SUBSCRIBED", at: d(0), bought("1", from: d(0), to: d(30), signed: d(0)))
        try shop.feed([0xff, 0xfe], told.value, at: d(0))
        let letters = try shop.seen(.deadLetters(.entitlements))
        #expect(Set(letters.map { $0.header("reason") }) == ["no_notification", "key"])
        #expect(try shop.seen(.entitlements).isEmpty)
    }
}
