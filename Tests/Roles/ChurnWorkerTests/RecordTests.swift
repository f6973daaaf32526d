import Churn
import ChurnWorker
import Configuration
import Contract
import JSON
import MakeBelieve
import Runtime
import Schemas
import Testing
import WorkerTestKit
import Zone

/// A trial that converts, fails and is lost; a commitment; a refund; a lifetime purchase, and a purchase without a country.
private func busyShop() throws -> Shop {
    let shop = try Shop()
    try shop.tell(start("1", ["offerDiscountType": "\"FREE_TRIAL\"", "price": "0"]))
    try shop.tell(renewal(of: 2))
    try shop.tell(
        Told(
            "DID_FAIL_TO_RENEW", "GRACE_PERIOD", at: d(60),
            bought("2", from: d(30), to: d(60), signed: d(60), ["storefront": "\"USA\""]),
            renewal(1, at: d(60), signed: d(60), ["gracePeriodExpiresDate": "\(d(76))"])))
    try shop.tick(d(130))
    try shop.tell(
        start(
            at: d(131),
            [
                "billingPlanType": "\"MONTHLY\"",
                "commitmentInfo": "{\"billingPeriodNumber\":1,\"totalBillingPeriods\":12}",
            ]), of: "2000")
    let forEver = ["type": "\"Non-Consumable\""]
    try shop.tell(Told("ONE_TIME_CHARGE", at: d(132), bought("3", from: d(132), to: nil, signed: d(132), forEver)))
    try shop.tell(
        Told(
            "REFUND", at: d(133),
            bought(
                "3", from: d(132), to: nil, signed: d(133), forEver.merging(["revocationDate": "\(d(133))"]) { $1 })),
        of: "3000")
    try shop.tell(
        Told(
            "SUBSCRIBED", at: d(134),
            bought("4", from: d(134), to: d(164), signed: d(134), ["currency": "null", "storefront": "\"a|b\""])),
        of: "4000")
    try shop.tick(d(200))
    return shop
}

@Suite struct `What the counting worker writes` {
    @Test func `has exactly the members of the contract, in its order`() throws {
        let shop = try Shop()
        let partition = Shop.partition(of: "1000")
        var told = start()
        told.signed = d(0) + 5
        try shop.tell(told, received: d(0) + 9)
        let sums =
            #""counts":{"started":1,"charged":1,"activeDelta":1},"money":{"revenue":9990,"mrrNew":9990}"#
        let key = "\(partition)|2026-01-01|com.example.one|pro|BILLED_UPFRONT|USA|USD"
        let cell = try #require(try shop.seen(.churnCells).first)
        #expect(
            cell.valueText
                == #"{"v":1,"partition":\#(partition),"day":"2026-01-01","bundleId":"com.example.one","productId":"pro","#
                + #""billingPlan":"BILLED_UPFRONT","storefront":"USA","currency":"USD",\#(sums),"#
                + #""asOf":\#(d(0) + 9),"offset":0}"#)
        #expect(cell.keyText == key)
        #expect(cell.partition == partition && cell.timestamp == d(0) + 9)

        let event = try #require(try shop.seen(.churnEvents).first)
        #expect(
            event.valueText
                == #"{"v":1,"id":"\#(partition)-0-0","originalTransactionId":"1000","cell":"\#(key)",\#(sums),"#
                + #""at":\#(d(0) + 5),"cause":{"notificationUUID":"u-\#(d(0) + 5)","type":"SUBSCRIBED","#
                + #""subtype":"INITIAL_BUY","signedDate":\#(d(0) + 5),"partition":\#(partition),"offset":0}}"#)
        #expect(event.keyText == "1000")
        #expect(event.partition == partition && event.timestamp == d(0) + 9)
        #expect(event.header("id") == "\(partition)-0-0")
    }

    @Test(arguments: [(TopicID.churnCells, "churn-cell"), (.churnEvents, "churn-event")])
    func `obeys its JSON Schema, and has the headers of the contract`(_ id: TopicID, _ type: String) throws {
        let shop = try busyShop()
        let schema = try Schema(type)
        let records = try shop.seen(id).filter { $0.value != nil }
        #expect(records.count > 5)
        for record in records {
            let value = try JSONValue.read(record.value ?? [])
            #expect(schema.problems(of: value) == [], "\(record)")
            #expect(value.object?.members.map(\.name) == schema.order, "\(record)")
            #expect(record.header("schema") == "\(type)/1")
            let app = try #require(record.header("app"))
            #expect(app.hasPrefix("perennial/test+") && app.count == "perennial/test+".count + 16)
            #expect(record.header("type") == nil && record.header("rules") == nil)
            #expect(
                record.header("source")?.hasPrefix("shop.production.notifications:\(record.partition):") == true)
        }
        #expect(try shop.letters() == [])
        #expect(try shop.wrong() == [])
    }

    @Test func `knows in its schemas every counter that there is, and no other`() throws {
        for type in ["churn-cell", "churn-event"] {
            let schema = try Schema(type)
            #expect(schema.names(of: "counts") == ChurnCounter.allCases.filter { !$0.isMoney }.map(\.name))
            #expect(schema.names(of: "money") == ChurnCounter.allCases.filter(\.isMoney).map(\.name))
        }
    }

    @Test func `is one record for each cell that a commit changes, and one for each change of it`() throws {
        let shop = try Shop()
        let ids = ["1000"] + Shop.neighbours(of: "1000", 4)
        for id in ids { try shop.tell(start(), of: id) }
        #expect(try shop.seen(.churnCells).map(\.keyText) == [Shop.cell("2026-01-01")])
        #expect(try shop.seen(.churnEvents).map(\.keyText) == ids)
        #expect(try shop.cells()[Shop.cell("2026-01-01")]?["counts"]?["started"]?.integer == 5)
        for id in ids {
            try shop.tell(renewal(of: 2), of: id)
            try shop.work()
        }
        #expect(try shop.seen(.churnCells).map(\.keyText).count { $0 == Shop.cell("2026-01-31") } == 5)
        #expect(try shop.wrong() == [])
    }

    @Test func `tells by time alone without a cause, as of the moment it was due`() throws {
        let shop = try Shop()
        try shop.tell(start())
        try shop.tick(d(40))
        let event = try #require(try shop.seen(.churnEvents).last)
        let value = try JSONValue.read(event.value ?? [])
        #expect(value["at"]?.integer == d(30) && value["cause"] == .null)
        #expect(event.timestamp == d(30))
        #expect(event.header("source")?.hasSuffix(":\(Shop.partition(of: "1000")):1") == true)
        #expect(value["counts"]?["activeDelta"]?.integer == -1)
        // The cell names the record that moved the clock.
        #expect(try shop.cells()[Shop.cell("2026-01-31")]?.mark == [d(40), 1])
    }

    @Test func `is nothing when a notification comes again, or says nothing new`() throws {
        let shop = try Shop()
        for received in [d(0), d(0) + 5, d(1)] { try shop.tell(start(), received: received) }
        try shop.tell(Told("TEST", at: d(2)), of: "a test")
        #expect(try shop.seen(.churnCells).count == 1)
        #expect(try shop.seen(.churnEvents).count == 1)
        #expect(try shop.letters() == [])
    }

    @Test func `is a tombstone for a cell that has returned to nothing, until it has something again`() throws {
        let shop = try Shop()
        try shop.tell(start())
        try shop.tick(d(31))
        #expect(try shop.cells()[Shop.cell("2026-01-31")] != nil)
        // Another product from the next day on: nothing was counted under the first product on that day.
        let longer = bought("1", from: d(0), to: d(35), signed: d(29), ["storefront": "\"USA\""])
        try shop.tell(Told("RENEWAL_EXTENDED", at: d(29), longer), received: d(32))
        let tombstone = try #require(try shop.seen(.churnCells).last)
        #expect(tombstone.keyText == Shop.cell("2026-01-31") && tombstone.value == nil)
        #expect(tombstone.timestamp == d(32))
        #expect(try shop.cells().keys.sorted() == [Shop.cell("2026-01-01")])
        #expect(try shop.wrong() == [])
        try shop.tell(start(at: d(30) + hour), of: Shop.neighbours(of: "1000", 1)[0], received: d(33))
        #expect(try shop.cells()[Shop.cell("2026-01-31")]?["counts"]?["started"]?.integer == 1)
        #expect(try shop.wrong() == [])
    }

    @Test func `says the same rules for the same days, and others for others`() throws {
        func rules(_ zone: String) throws -> String? { makeProcessor(zone: try .init(name: zone)).definition.rules }
        #expect(try rules("Europe/Berlin") == rules("Europe/Berlin"))
        #expect(try rules("Europe/Berlin") != rules("America/New_York"))
    }
}
