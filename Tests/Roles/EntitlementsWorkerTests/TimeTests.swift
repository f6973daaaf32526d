import Contract
import JSON
import MakeBelieve
import Testing
import WorkerTestKit

private func start(_ status: Int = 1) -> Told {
    Told(
        "SUBSCRIBED", "INITIAL_BUY", at: d(0), bought("1", from: d(0), to: d(30), signed: d(0)),
        renewal(status, at: d(30), signed: d(0)), status: 1)
}

@Suite struct `Time alone` {
    @Test func `ends leeway, and the late word of a renewal takes it back`() throws {
        let shop = try Shop()
        try shop.tell(start())
        try shop.tick(d(30) + hour - 1)
        #expect(try shop.values().map(\.words) == ["active until 30d1h"])
        try shop.tick(d(30) + hour)
        try shop.tell(
            Told(
                "DID_RENEW", at: d(30), bought("2", from: d(30), to: d(60), signed: d(30)),
                renewal(1, at: d(60), signed: d(30)), status: 1), received: d(30) + 2 * hour)
        #expect(
            try shop.values().map(\.words) == [
                "active until 30d1h", "expired unknown since 30d1h", "active until 60d1h",
            ])
        #expect(try shop.events() == ["started 0d", "expired 30d1h", "renewed 30d"])
    }

    @Test func `ends grace, then the retrying after 60 days, at the moments they were due`() throws {
        let shop = try Shop()
        try shop.tell(start())
        try shop.tell(
            Told(
                "DID_FAIL_TO_RENEW", "GRACE_PERIOD", at: d(29),
                bought("1", from: d(0), to: d(30), signed: d(29)),
                renewal(
                    1, at: d(30), signed: d(29),
                    ["isInBillingRetryPeriod": "true", "gracePeriodExpiresDate": "\(d(46))"]), status: 4))
        // The clock moves only once, long after: every change is reported, each with its own time.
        try shop.tick(d(200))
        #expect(
            try shop.values().map(\.words) == [
                "active until 30d1h", "active until 46d", "grace until 46d", "billing_retry since 46d",
                "expired billing since 46d",
            ])
        #expect(try shop.values().map { $0["asOf"]?.integer } == [d(0), d(29), d(30), d(46), d(90)])
        #expect(
            try shop.events() == [
                "started 0d", "entered_grace 30d", "entered_billing_retry 46d", "access_ended 46d", "expired 90d",
            ])
    }

    @Test func `lets an early renewal take over when it begins`() throws {
        let shop = try Shop()
        try shop.tell(start())
        try shop.tell(
            Told(
                "DID_RENEW", at: d(29), bought("2", from: d(30), to: d(60), signed: d(29), ["price": "12990"]),
                renewal(1, at: d(60), signed: d(29)), status: 1))
        try shop.tick(d(31))
        let values = try shop.values()
        #expect(values.map { $0["price"]?.integer } == [9990, 9990, 12990])
        #expect(values.map { $0["asOf"]?.integer } == [d(0), d(29), d(30)])
        #expect(try shop.events() == ["started 0d", "renewed 30d"])
    }

    @Test func `ends a pass whose length only the app knows, and never a purchase for ever`() throws {
        let shop = try Shop()
        let pass = ["type": "\"Non-Renewing Subscription\"", "productId": "\"season\""]
        try shop.tell(Told("ONE_TIME_CHARGE", at: d(0), bought("1", from: d(0), to: nil, signed: d(0), pass)))
        let forEver = ["type": "\"Non-Consumable\""]
        try shop.tell(
            Told("ONE_TIME_CHARGE", at: d(0), bought("2", from: d(0), to: nil, signed: d(0), forEver)), of: "2000")
        try shop.tick(d(5_000))
        #expect(try shop.values().map(\.words) == ["active until 31d", "expired since 31d"])
        #expect(try shop.events() == ["purchased 0d", "expired 31d"])
        #expect(try shop.values("2000").map(\.words) == ["owned until ever"])
    }

    @Test func `is told once after a crash, as without one`() throws {
        func run(_ disturb: (Shop) throws -> Void) throws -> [String] {
            let shop = try Shop()
            try shop.tell(start(0))
            try shop.work()
            try disturb(shop)
            try shop.tick(d(40))
            return try shop.seen(.entitlements).map(\.valueText) + shop.seen(.entitlementEvents).map(\.valueText)
        }
        let undisturbed = try run { _ in }
        let crashed = try run { shop in
            let process = shop.simulation.processes[0]
            shop.simulation.crash(process)
            shop.simulation.loseDisk(of: process)
            shop.simulation.start(process)
        }
        #expect(undisturbed == crashed)
        #expect(undisturbed.count == 4)
    }

    /// Settings change while timers set under other settings are waiting.
    @Test(arguments: [0, 3 * hour])
    func `tells at the time of an old timer what new rules say`(_ leeway: Int64) throws {
        let shop = try Shop()
        try shop.tell(start())
        try shop.work()
        let simulation = shop.simulation
        simulation.stop(simulation.processes[0])
        simulation.processor = makeProcessor(leeway: leeway)
        simulation.start(simulation.processes[0])
        try shop.tick(d(40))
        let ended =
            leeway == 0 ? ["expired unknown since 30d"] : ["active until 30d3h", "expired unknown since 30d3h"]
        #expect(try shop.values().map(\.words) == ["active until 30d1h"] + ended)
        #expect(try shop.events().last?.hasPrefix("expired") == true)
    }

    /// The answer is the same before and after: the only change is that it rests on another purchase.
    @Test func `tells a renewal that was known before when it begins, without another value`() throws {
        let shop = try Shop()
        try shop.tell(start())
        try shop.tell(
            Told(
                "DID_RENEW", at: d(29), bought("2", from: d(30), to: d(60), signed: d(29)),
                renewal(1, at: d(60), signed: d(29)), status: 1))
        try shop.tick(d(31))
        #expect(try shop.values().map(\.words) == ["active until 30d1h", "active until 60d1h"])
        #expect(try shop.events() == ["started 0d", "renewed 30d"])
        let event = try JSONValue.read(try #require(try shop.seen(.entitlementEvents).last?.value))
        #expect(event["sequence"]?.integer == 2 && event["cause"] == .null && event["historic"] == .bool(false))
    }
}

@Suite struct `History` {
    @Test func `that comes at once is the net change, and marked as past`() throws {
        let shop = try Shop()
        for month in 0..<6 as Range<Int64> {
            try shop.tell(
                Told(
                    month == 0 ? "SUBSCRIBED" : "DID_RENEW", at: d(30 * month),
                    bought("\(month)", from: d(30 * month), to: d(30 * month + 30), signed: d(30 * month)),
                    renewal(1, at: d(30 * month + 30), signed: d(30 * month)), status: 1), received: d(170) + month)
        }
        let events = try shop.events()
        #expect(events.last == "renewed 150d !")
        #expect(events.allSatisfy { $0.hasSuffix("!") }, "\(events)")
        #expect(try shop.values().last?.words == "active until 180d1h")
        #expect(try shop.values().last?["since"]?.integer == d(0))
    }

    @Test func `is what took effect more than 24 hours before the clock, not what did at 24 hours`() throws {
        for (late, isHistoric) in [(day, false), (day + 1, true)] {
            let shop = try Shop()
            try shop.tell(start(), received: d(0) + late)
            #expect(try shop.events() == ["started 0d\(isHistoric ? " !" : "")"])
        }
    }
}
