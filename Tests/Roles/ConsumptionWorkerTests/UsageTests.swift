import Consumption
import Contract
import JSON
import Log
import MakeBelieve
import Notices
import Telemetry
import Testing
import WorkerTestKit

private let asked = d(10)

@Suite struct `Usage as an app's backend writes it` {
    @Test func `needs no headers, and decides at once`() throws {
        let metrics = Metrics()
        let shop = try Shop(metrics: metrics)
        try shop.ask(request(at: asked), at: asked)
        #expect(try shop.kinds() == ["requested"])
        try shop.say(usage())
        #expect(try shop.kinds() == ["requested", "decided"])
        #expect(readings(metrics)["perennial_consumption_usage_rows_total"] == 1)
    }

    @Test(arguments: [nil, "", "elsewhere", "1000"] as [String?])
    func `belongs to the id in its value, whatever its key and wherever it lies, and counts once`(key: String?) throws {
        let home = Shop.partition(of: "1000")
        for partition in 0..<Shop.partitions {
            let metrics = Metrics()
            let shop = try Shop(metrics: metrics)
            try shop.say(
                usage(), key: key, partition: partition, headers: [RecordHeader("mine", "kept")], at: asked - 5)
            try shop.ask(request(at: asked), at: asked)
            #expect(try shop.kinds() == ["requested", "decided"])
            #expect(readings(metrics)["perennial_consumption_usage_rows_total"] == 1)
            let rows = try shop.seen(.usage)
            #expect(rows.count == (partition == home ? 1 : 2))
            let copies = rows.filter { $0.header("rerouted") != nil }
            #expect(copies.count == rows.count - 1)
            for copy in copies {
                #expect(copy.keyText == "1000" && copy.partition == home && copy.value == usage())
                #expect(copy.header("mine") == "kept" && copy.timestamp == asked - 5)
                #expect(copy.header("rerouted") == "shop.production.usage:\(partition):0")
            }
            #expect(try shop.letters() == [])
        }
    }

    private static let garbage: [(row: [UInt8]?, reason: String)] = {
        let texts: [(String, String)] = [
            ("", "json"), ("{", "json"), ("nonsense", "json"), ("[]", "usage"), ("7", "usage"), ("null", "usage"),
            ("{}", "usage"), (#"{"v":1}"#, "usage"), (#"{"originalTransactionId":"1000"}"#, "usage"),
            (#"{"v":2,"originalTransactionId":"1000","consented":true}"#, "usage"),
            (#"{"v":"1","originalTransactionId":"1000"}"#, "usage"),
            (#"{"v":1,"originalTransactionId":1000}"#, "usage"),
            (#"{"v":1,"originalTransactionId":""}"#, "usage"), (#"{"v":1,"originalTransactionId":null}"#, "usage"),
            (String(repeating: "[", count: 50_000), "json"),
            (#"{"v":1,"originalTransactionId":"\#(String(repeating: "x", count: 3_000))"}"#, "usage"),
        ]
        let members = [
            #""consented":"true""#, #""consented":1"#, #""consentedAt":"today""#, #""consentedAt":1.5"#,
            #""consentedAt":99999999999999999999"#, #""deliveryStatus":"delivered""#, #""deliveryStatus":0"#,
            #""sampleContentProvided":"no""#, #""consumptionPercentage":-1"#, #""consumptionPercentage":100001"#,
            #""consumptionPercentage":0.5"#, #""consumptionPercentage":"50""#, #""refundPreference":"PLEASE""#,
            #""accountCreatedAt":"2020""#, #""playTimeSeconds":1.5"#, #""userStatus":5"#, #""userStatus":-1"#,
            #""platform":3"#, #""transactionId":7"#, #""transactionId":"""#, #""environment":"Xcode""#,
        ]
        return texts.map { (Array($0.0.utf8), $0.1) } + members.map { (usage(of: "1000", $0), "usage") }
            + [(nil, "usage"), ([0xff, 0xfe], "json"), (Array(usage().dropLast()), "json")]
    }()

    @Test func `that is garbage goes to the dead letters with its reason, and changes nothing`() throws {
        for (row, reason) in Self.garbage {
            let shop = try Shop()
            try shop.say(row)
            try shop.say(usage())
            try shop.ask(request(at: asked), at: asked)
            #expect(try shop.kinds() == ["requested", "decided"])
            #expect(try shop.letters() == [reason], "\(String(decoding: (row ?? []).prefix(200), as: UTF8.self))")
        }
    }

    @Test(arguments: [
        [RecordHeader("type", "usage"), RecordHeader("schema", "usage/2")], [RecordHeader("schema", "usage/99")],
        [RecordHeader("type", "weather")], [RecordHeader("schema", "weather/1")], [RecordHeader("type", "tick")],
        [RecordHeader("schema", "usage/x")], [RecordHeader("schema", "usage")], [RecordHeader("schema", "")],
        [RecordHeader("schema", "tick/1")],
    ])
    func `of another schema or type never pauses the partition`(_ headers: [RecordHeader]) throws {
        let shop = try Shop()
        try shop.say(usage(of: "1000", #""consented":false"#), headers: headers)
        try shop.say(usage())
        try shop.ask(request(at: asked), at: asked)
        #expect(try shop.kinds() == ["requested", "decided"])
        #expect(try shop.letters().count == 1, "\(headers)")
    }

    @Test func `as 20,000 pieces of garbage delays no decision`() throws {
        let shop = try Shop()
        let home = Shop.partition(of: "1000")
        for number in 0..<20_000 {
            let (row, _) = Self.garbage[number % Self.garbage.count]
            if row.map({ $0.count > 1_000 }) == true { continue }
            try shop.say(row, key: "\(number)", partition: home)
        }
        try shop.say(usage())
        try shop.ask(request(at: asked), at: asked)
        #expect(try shop.kinds() == ["requested", "decided"])
        #expect(try shop.records().last?["at"]?.integer == asked)
        #expect(try shop.letters().count > 18_000)
        #expect(shop.simulation.processes[0].troubles == [])
    }
}

@Suite struct `The consumption worker and what nobody should send` {
    @Test func `works on behind every absurd value of every member`() throws {
        let shop = try Shop()
        let types = ["CONSUMPTION_REQUEST", "REFUND", "REFUND_DECLINED", "REFUND_REVERSED"]
        var count = 0
        for member in Absurdity.members + ["consumptionRequestReason"] {
            for value in Absurdity.values {
                for type in types.prefix(count % 4 + 1) {
                    let text = Absurdity.notification([
                        ("notificationType", "\"\(type)\""), ("notificationUUID", "\"u\(count)\""),
                        ("transaction.bundleId", "\"com.example.one\""), ("signedDate", "\(d(200))"), (member, value),
                    ])
                    try shop.feed(Array("many-\(count % 97)".utf8), Array(text.utf8), at: d(200))
                }
                count += 1
            }
        }
        try shop.say(usage(of: "many-1"))
        try shop.tick(d(203))
        for value in try shop.records() {
            #expect(value["kind"]?.string != nil && value["id"]?.string?.isEmpty == false)
        }
        let letters = Set(try shop.letters())
        #expect(letters.isSubset(of: ["no_uuid"]), "\(letters)")
        #expect(try shop.kinds(of: "many-1").contains("decided"))
    }

    @Test func `puts aside notifications and rows of attempts that are none, and works on`() throws {
        let shop = try Shop()
        for text in ["", "{", "[]", "7"] { try shop.feed(Array("1000".utf8), Array(text.utf8), at: d(1)) }
        for text in ["", "[]", "{}", #"{"v":1,"id":"q","attempt":0,"at":1}"#] {
            try shop.attempt(Array(text.utf8), at: d(1))
        }
        try shop.feed([0xff], request(at: asked), at: asked)
        try shop.say(usage())
        try shop.ask(request(at: asked), at: asked)
        #expect(try shop.kinds() == ["requested", "decided"])
        let letters = try shop.letters()
        #expect(letters.count { $0 == "json" } == 6)
        #expect(letters.count { $0 == "attempt" } == 2)
        #expect(letters.count { $0 == "key" } == 1 && letters.count == 9, "\(letters)")
    }

    @Test func `says of a record what the contract says`() throws {
        let metrics = Metrics()
        let shop = try Shop(metrics: metrics)
        try shop.say(usage())
        try shop.ask(request(at: asked), at: asked + 1)
        try shop.attempt(
            Attempt(id: "q", number: 1, at: asked + 7, httpStatus: 202, errorCode: nil, retryAt: nil).value,
            at: asked + 7)
        let seen = try shop.seen(.consumption)
        #expect(seen.map { $0.header("schema") } == ["consumption/1", "consumption/1", "consumption/1"])
        #expect(seen.allSatisfy { $0.header("app")?.hasPrefix("perennial/test") == true })
        let home = Shop.partition(of: "1000")
        #expect(
            seen.map { $0.header("source") } == [
                "shop.production.notifications:\(home):0", "shop.production.notifications:\(home):0",
                "shop.production.consumption-attempts:\(home):0",
            ])
        #expect(Set(seen.compactMap { $0.header("id") }).count == 3)
        #expect(seen.allSatisfy { $0.keyText == "1000" && $0.partition == home })
        #expect(try shop.kinds() == ["requested", "decided", "sent"])
        let counted = readings(metrics)
        for kind in ["requested", "decided", "sent"] {
            #expect(counted["perennial_consumption_records_total{kind=\"\(kind)\"}"] == 1)
        }
        #expect(counted["perennial_consumption_decisions_total{rule=\"none\"}"] == 1)
        #expect(counted["perennial_consumption_margin_seconds_count"] == 1)
    }

    @Test func `decides and expires by time alone`() throws {
        let shop = try Shop()
        try shop.say(usage(of: "1000", #""consented":true"#))
        try shop.ask(request(at: asked), at: asked)
        try shop.tick(asked + 20 * hour)
        #expect(try shop.kinds() == ["requested", "decided", "expired"])
        #expect(try shop.records().map { $0["at"]?.integer } == [asked, asked + hour, asked + 12 * hour + minute])
    }
}
