import JSON
import MakeBelieve
import Testing

@testable import Consumption

/// The body for an Advanced Commerce purchase, decided one hour after the request.
private func body(_ usage: String, _ more: [String: String] = [:], policy: RefundPolicy? = nil) throws -> JSONValue {
    var desk = Desk(Desk.rules(policy))
    try desk.say(#""consented":true"# + (usage.isEmpty ? "" : "," + usage))
    try desk.ask("q", Bought.advanced.merging(more) { $1 })
    try desk.pass(until: asked + hour)
    return try JSONValue.read(try #require(desk.decision?.body))
}

@Suite struct `The body of the older interface` {
    @Test func `has every member, 0 where nothing is known`() throws {
        var desk = Desk()
        try desk.say(#""consented":true"#)
        try desk.ask("q", Bought.advanced)
        try desk.pass(until: asked + hour)
        #expect(
            desk.body == #"{"accountTenure":0,"appAccountToken":"","consumptionStatus":0,"customerConsented":true,"#
                + #""deliveryStatus":0,"lifetimeDollarsPurchased":0,"lifetimeDollarsRefunded":0,"platform":0,"#
                + #""playTime":0,"refundPreference":0,"sampleContentProvided":false,"userStatus":0}"#)
        #expect(try desk.facts()["advancedCommerce"] == .bool(true))
    }

    @Test func `says all that usage says`() throws {
        let usage =
            #""deliveryStatus":"DELIVERED","sampleContentProvided":true,"consumptionPercentage":50000,"#
            + #""refundPreference":"DECLINE","accountCreatedAt":\#(asked - 100 * day),"playTimeSeconds":7200,"#
            + #""userStatus":4,"platform":2"#
        var desk = Desk()
        try desk.say(#""consented":true,"# + usage)
        let token = "3b8c3d2e-5a0f-4b57-8a0e-0f1d2c3b4a59"
        try desk.ask("q", Bought.advanced.merging(["appAccountToken": "\"\(token)\""]) { $1 })
        #expect(
            desk.body == #"{"accountTenure":5,"appAccountToken":"\#(token)","consumptionStatus":2,"#
                + #""customerConsented":true,"deliveryStatus":0,"lifetimeDollarsPurchased":0,"#
                + #""lifetimeDollarsRefunded":0,"platform":2,"playTime":3,"refundPreference":2,"#
                + #""sampleContentProvided":true,"userStatus":4}"#)
    }

    private static let tenures: [(age: Int64, bucket: Int64)] = [
        (-1, 0), (0, 1), (3 * day - 1, 1), (3 * day, 2), (10 * day - 1, 2), (10 * day, 3), (30 * day - 1, 3),
        (30 * day, 4), (90 * day - 1, 4), (90 * day, 5), (180 * day - 1, 5), (180 * day, 6), (365 * day - 1, 6),
        (365 * day, 7), (9_999 * day, 7),
    ]

    @Test(arguments: tenures)
    func `tells the age of the account at the decision, each step from its lower bound`(age: Int64, bucket: Int64)
        throws
    {
        let created = asked + hour - age
        #expect(try body("\"accountCreatedAt\":\(created)")["accountTenure"] == .integer(bucket))
    }

    private static let playTimes: [(seconds: Int64, bucket: Int64)] = [
        (-1, 0), (0, 1), (299, 1), (300, 2), (3_599, 2), (3_600, 3), (21_599, 3), (21_600, 4), (86_399, 4), (86_400, 5),
        (345_599, 5), (345_600, 6), (1_382_399, 6), (1_382_400, 7), (.max, 7), (.min, 0),
    ]

    @Test(arguments: playTimes)
    func `tells how long it was played, each step from its lower bound`(seconds: Int64, bucket: Int64) throws {
        #expect(try body("\"playTimeSeconds\":\(seconds)")["playTime"] == .integer(bucket))
    }

    @Test func `has Apple's older numbers for delivery, consumption and preference`() throws {
        let deliveries: [(String, Int64)] = [
            ("DELIVERED", 0), ("UNDELIVERED_QUALITY_ISSUE", 1), ("UNDELIVERED_WRONG_ITEM", 2),
            ("UNDELIVERED_SERVER_OUTAGE", 3), ("UNDELIVERED_OTHER", 5),
        ]
        for (word, number) in deliveries {
            #expect(try body("\"deliveryStatus\":\"\(word)\"")["deliveryStatus"] == .integer(number))
        }
        for (percentage, number) in [(0, 1), (1, 2), (99_999, 2), (100_000, 3)] {
            let usage = "\"consumptionPercentage\":\(percentage)"
            #expect(try body(usage)["consumptionStatus"] == .integer(Int64(number)))
            #expect(try body(usage, ["type": #""Auto-Renewable Subscription""#])["consumptionStatus"] == .integer(0))
            #expect(try body(usage + #","deliveryStatus":"UNDELIVERED_OTHER""#)["consumptionStatus"] == .integer(0))
        }
        for (word, number) in [("GRANT_FULL", 1), ("DECLINE", 2), ("GRANT_PRORATED", 1)] {
            let usage = "\"consumptionPercentage\":5,\"refundPreference\":\"\(word)\""
            #expect(try body(usage)["refundPreference"] == .integer(Int64(number)))
        }
    }

    @Test func `repeats the age of the first decision`() throws {
        var desk = Desk()
        try desk.say(#"\#(whole),"accountCreatedAt":\#(asked - 3 * day + 1)"#)
        try desk.ask("q", Bought.advanced)
        try desk.pass(until: asked + hour)
        try desk.say(#""consented":false"#)
        try desk.pass(until: asked + 2 * hour)
        try desk.say(#""consented":true"#)
        #expect(desk.words == ["requested", "decided", "withheld no_consent", "decided"])
        #expect(try JSONValue.read(try #require(desk.decision?.body))["accountTenure"] == .integer(1))
    }
}
