import Contract
import JSON
import Records
import Schemas
import Testing

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

private func notification(_ content: VerifiedNotification.Content, subtype: String? = "BILLING_RECOVERY")
    -> VerifiedNotification
{
    VerifiedNotification(
        environment: .production, notificationUUID: "u-1", notificationType: "DID_RENEW", subtype: subtype,
        signedDate: 1_771_000_000_000, bundleId: "com.example.app", appAppleId: subtype == nil ? nil : 123,
        bundleVersion: "7", status: subtype == nil ? nil : 1, consumptionRequestReason: nil, content: content,
        key: "2000000123456789", sha256: Array(repeating: 0xab, count: 32), leafSerial: "47c2", flags: [])
}

private func value(_ content: VerifiedNotification.Content, subtype: String? = "BILLING_RECOVERY") -> String {
    String(
        decoding: NotificationRecord.value(
            notification(content, subtype: subtype), receivedDate: 1_771_000_000_420, source: .push), as: UTF8.self)
}

private let hash = String(repeating: "ab", count: 32)
private let transaction =
    #"{ "transactionId":"1","originalTransactionId":"1","bundleId":"b","productId":"p","environment":"Production","new":1.50 }"#
private let renewal = #"{"originalTransactionId":"1","environment":"Production","autoRenewStatus":1}"#

@Suite struct `The record of a notification` {
    @Test func `has the members of the contract in their order, Apple's parts byte for byte`() {
        let expected =
            #"{"v":1,"notificationUUID":"u-1","notificationType":"DID_RENEW","subtype":"BILLING_RECOVERY","#
            + #""signedDate":1771000000000,"receivedDate":1771000000420,"source":"push","environment":"Production","#
            + #""bundleId":"com.example.app","appAppleId":123,"bundleVersion":"7","status":1,"#
            + #""consumptionRequestReason":null,"transaction":\#(transaction),"renewalInfo":\#(renewal),"#
            + #""evidence":{"sha256":"\#(hash)","leaf":"47c2"}}"#
        #expect(value(.data(transaction: bytes(transaction), renewalInfo: bytes(renewal))) == expected)
    }

    @Test func `has null for what is absent`() throws {
        let json = try JSONValue.read(bytes(value(.data(transaction: nil, renewalInfo: nil), subtype: nil)))
        for name in ["subtype", "appAppleId", "status", "consumptionRequestReason", "transaction", "renewalInfo"] {
            #expect(json[name] == .null, "\(name)")
        }
    }

    @Test func `has the other contents in place of transaction and renewalInfo`() throws {
        let contents: [(String, VerifiedNotification.Content)] = [
            ("summary", .summary(bytes("{\"a\":1}"))),
            ("externalPurchaseToken", .externalPurchaseToken(bytes("{\"a\":1}"))),
            ("appData", .appData(bytes("{\"a\":1}"))),
        ]
        for (name, content) in contents {
            let json = try JSONValue.read(bytes(value(content)))
            #expect(json[name] == (try JSONValue.read(bytes("{\"a\":1}"))))
            #expect(json["transaction"] == nil && json["renewalInfo"] == nil)
        }
    }

    @Test func `follows its schema`() throws {
        let schema = try Schema("notification")
        for content: VerifiedNotification.Content in [
            .data(transaction: bytes(transaction), renewalInfo: bytes(renewal)),
            .data(transaction: nil, renewalInfo: nil), .summary(bytes("{}")), .externalPurchaseToken(bytes("{}")),
            .appData(bytes(#"{"appTransaction":{}}"#)),
        ] {
            for subtype in [nil, "UPGRADE"] {
                let json = try JSONValue.read(bytes(value(content, subtype: subtype)))
                #expect(schema.problems(of: json) == [])
                let members = Set(try #require(json.object).members.map(\.name))
                #expect(members.isSuperset(of: schema.required), "what is required is written")
                #expect(members.isSubset(of: schema.properties), "what is written is described")
            }
        }
    }

    @Test(arguments: [
        ("\"v\":1", "\"v\":2"), ("\"source\":\"push\"", "\"source\":\"guess\""), ("Production", "Xcode"),
        ("1771000000420", "1.5"), ("\"47c2\"", "\"47C2\""), ("\"summary\":{}", "\"summary\":null"),
        ("\"summary\":{}", "\"unknown\":{}"),
    ])
    func `has a schema that refuses what is otherwise`(_ from: String, _ to: String) throws {
        let right = value(.summary(bytes("{}")))
        let schema = try Schema("notification")
        #expect(schema.problems(of: try JSONValue.read(bytes(right))) == [])
        #expect(schema.problems(of: try JSONValue.read(bytes(right.replacing(from, with: to)))) != [])
    }
}

@Suite struct `The record of a tick` {
    @Test func `tells the time, and has an id of partition and time`() throws {
        let value = TickRecord.value(1_771_000_000_000)
        #expect(value == bytes(#"{"v":1,"tick":1771000000000}"#))
        #expect(TickRecord.id(partition: 3, 1_771_000_000_000) == "tick-3-1771000000000")
        let schema = try Schema("tick")
        let json = try JSONValue.read(value)
        #expect(schema.problems(of: json) == [])
        #expect(Set(try #require(json.object).members.map(\.name)) == schema.properties)
    }
}

@Suite struct `A record of usage` {
    private func reason(_ text: String) throws -> String? {
        let json = try JSONValue.read(bytes(text))
        do throws(UsageRecord.Fault) {
            _ = try UsageRecord(json)
            return nil
        } catch {
            return error.reason
        }
    }

    private static let whole = #"""
        {"v":1,"originalTransactionId":"2000","transactionId":"2001","consented":true,"consentedAt":1771000000000,
         "deliveryStatus":"DELIVERED","sampleContentProvided":false,"consumptionPercentage":50000,
         "refundPreference":"GRANT_PRORATED","accountCreatedAt":1,"playTimeSeconds":0,"userStatus":1,"platform":1,
         "environment":"Sandbox"}
        """#

    @Test func `is taken with every member, with the two that are needed, and with null for the rest`() throws {
        #expect(try reason(Self.whole) == nil)
        #expect(try reason(#"{"v":1,"originalTransactionId":"2000"}"#) == nil)
        let object = try #require(try JSONValue.read(bytes(Self.whole)).object)
        for member in object.members where member.name != "v" && member.name != "originalTransactionId" {
            #expect(try reason(#"{"v":1,"originalTransactionId":"2000","\#(member.name)":null}"#) == nil)
        }
    }

    @Test func `keeps what it does not know, numbers as they were written`() throws {
        let text = #"{"v":1,"originalTransactionId":"2000","new":{"a":[1.50,1e400]},"platform":2}"#
        let record = try UsageRecord(try JSONValue.read(bytes(text)))
        #expect(record.value == bytes(text))
        #expect(record.originalTransactionId == "2000")
    }

    @Test(arguments: ["[]", "null", "1", "\"text\""])
    func `is refused when it is no object`(_ text: String) throws {
        #expect(try reason(text)?.hasPrefix("must be an object, not ") == true)
    }

    @Test(arguments: [
        ("v", "2"), ("v", "0"), ("v", "\"1\""), ("v", "1.0"), ("v", "null"), ("originalTransactionId", "\"\""),
        ("originalTransactionId", "2000"), ("originalTransactionId", "null"), ("transactionId", "7"),
        ("transactionId", "\"\""), ("consented", "\"true\""), ("consented", "1"), ("consentedAt", "1.5"),
        ("consentedAt", "\"2026\""), ("deliveryStatus", "\"LOST\""), ("deliveryStatus", "\"delivered\""),
        ("deliveryStatus", "0"), ("sampleContentProvided", "0"), ("consumptionPercentage", "-1"),
        ("consumptionPercentage", "100001"), ("consumptionPercentage", "0.5"), ("consumptionPercentage", "\"1\""),
        ("refundPreference", "\"MAYBE\""), ("refundPreference", "1"), ("accountCreatedAt", "\"x\""),
        ("playTimeSeconds", "true"), ("userStatus", "[]"), ("platform", "\"Apple\""),
        ("platform", "-1"), ("platform", "3"), ("userStatus", "-1"), ("userStatus", "5"),
        ("environment", "\"sandbox\""),
        ("environment", "\"\""), ("environment", "1"),
    ])
    func `is refused by a reason that names the member and not its value`(_ name: String, _ json: String) throws {
        let object = try #require(try JSONValue.read(bytes(Self.whole)).object)
        var writer = JSONWriter()
        writer.object { changed in
            for member in object.members {
                changed.name(text: member.name)
                if member.name == name { changed.json(bytes(json)) } else { changed.value(member.value) }
            }
        }
        let reason = try reason(String(decoding: writer.bytes, as: UTF8.self))
        #expect(reason?.hasPrefix("\(name) must be ") == true, "\(reason ?? "taken")")
        #expect(try Schema("usage").problems(of: try JSONValue.read(writer.bytes)) != [], "the schema agrees")
    }

    @Test(arguments: [0, 1, 50_000, 100_000])
    func `takes percentages in thousandths up to all of it`(_ percentage: Int) throws {
        #expect(try reason(#"{"v":1,"originalTransactionId":"2","consumptionPercentage":\#(percentage)}"#) == nil)
    }

    @Test func `takes all of Apple's numbers for platform and userStatus, and both environments`() throws {
        for (name, values) in [
            ("platform", ["0", "1", "2"]), ("userStatus", ["0", "1", "2", "3", "4"]),
            ("environment", ["\"Production\"", "\"Sandbox\"", "null"]),
        ] {
            for value in values {
                #expect(
                    try reason(#"{"v":1,"originalTransactionId":"2","\#(name)":\#(value)}"#) == nil, "\(name) \(value)")
            }
        }
        func environment(_ member: String) throws -> Contract.Environment? {
            try UsageRecord(try JSONValue.read(bytes(#"{"v":1,"originalTransactionId":"2"\#(member)}"#))).environment
        }
        #expect(try environment("") == nil && environment(#","environment":null"#) == nil)
        #expect(try environment(#","environment":"Production""#) == .production)
        #expect(try environment(#","environment":"Sandbox""#) == .sandbox)
    }

    @Test func `follows its schema, which describes each member`() throws {
        let schema = try Schema("usage")
        let json = try JSONValue.read(bytes(Self.whole))
        #expect(schema.problems(of: json) == [])
        #expect(Set(try #require(json.object).members.map(\.name)) == schema.properties)
        #expect(schema.required == ["v", "originalTransactionId"])
    }
}

@Suite struct `The type of a record` {
    @Test func `and its schema are called as in the contract`() {
        #expect(
            RecordType.allCases.map(\.schema) == [
                "notification/1", "tick/1", "entitlement/1", "entitlement-event/1", "account/1", "churn-cell/1",
                "churn-event/1", "usage/1", "consumption/1", "consumption-attempt/1",
            ])
    }
}

@Suite struct `Apple's reason for an end` {
    @Test func `is a number in a renewal info`() {
        #expect(
            (0...6).map { EndReason(expirationIntent: $0) } == [
                .other, .voluntary, .billing, .price, .unavailable, .other, .other,
            ])
    }

    @Test func `is a word in EXPIRED, where another word says nothing`() {
        func reason(_ subtype: String) -> EndReason? {
            bytes(subtype).withUnsafeBufferPointer { EndReason(expiredSubtype: $0) }
        }
        #expect(
            ["VOLUNTARY", "BILLING_RETRY", "PRICE_INCREASE", "PRODUCT_NOT_FOR_SALE"].map(reason) == [
                .voluntary, .billing, .price, .unavailable,
            ])
        for other in ["", "VOLUNTAR", "VOLUNTARY2", "voluntary", "UPGRADE"] { #expect(reason(other) == nil) }
    }
}

@Suite struct `Apple's type of an offer` {
    @Test func `has a word, which stands for it again`() {
        #expect(
            (0...5).map { OfferType.word(of: $0) } == ["0", "introductory", "promotional", "code", "win_back", "5"])
        for type: Int64 in [.min, 0, 1, 2, 3, 4, 5, .max] {
            #expect(OfferType.type(of: OfferType.word(of: type)) == type)
        }
        #expect(OfferType.type(of: "gift") == nil)
    }
}
