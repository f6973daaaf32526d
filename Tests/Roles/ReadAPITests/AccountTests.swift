import HTTP
import JSON
import Testing

@testable import ReadAPI

/// What follows from the records of one account.
@Suite struct `An account` {
    /// Milliseconds of the tests' clock.
    private let now = TestTime().now
    private let day: Int64 = 86_400_000

    private func rig(_ records: Record...) throws -> Rig {
        let rig = try Rig()
        try rig.write(records.map { .binding(token, $0) })
        rig.settle()
        return rig
    }

    /// Ends this many days from now.
    private func lasting(_ id: String, days: Int64, _ bundleId: String = "com.example.app") -> Record {
        Record(id: id, bundleId: bundleId).with("accessUntil", "\(now + days * day)")
    }

    private func advice(_ rig: Rig) -> [String] {
        (rig.account(token)?["advice"]?.array ?? []).map {
            "\($0["kind"]?.string ?? "?") \($0["originalTransactionId"]?.string ?? "?") \($0["url"]?.string ?? "?")"
        }
    }

    @Test func `has an answer of these members, the records as they were written`() throws {
        let record = lasting("1", days: 3).with("productId", #""caf\u00e9 \/ 1""#)
        let rig = try rig(record)
        let body = rig.endpoint.answer(.account, token[...].utf8, query: nil).body
        let partition = try #require(rig.account(token)?["position"]?.array?.first?["partition"]?.integer)
        // The greatest timestamp of the partition's records.
        let asOf = 1_771_000_000_000
        #expect(
            String(decoding: body, as: UTF8.self) == """
                {"appAccountToken":"\(token)","asOf":\(rig.time.now),"entitlements":{"premium":{"access":true,"accessUntil":\(now + 3 * day),\
                "originalTransactionId":"1","bundleId":"com.example.app","environment":"Production"}},"subscriptions":[\(record.json)],"advice":[],\
                "position":[{"topic":"appstore.production.accounts","partition":\(partition),"offset":1,\
                "asOf":\(asOf),"behind":1000}]}
                """)
    }

    @Test func `is found by its token in any case, and nobody else's records with it`() throws {
        let rig = try rig(lasting("1", days: 3))
        try rig.write(.binding(otherToken, Record(id: "2")), .binding("\(token)0", Record(id: "3")))
        rig.settle()
        let answer = try #require(rig.account(token.uppercased()))
        #expect(answer["appAccountToken"]?.string == token)
        #expect(answer["subscriptions"]?.array?.map { $0["originalTransactionId"]?.string } == ["1"])
    }

    @Test func `has an entitlement that two apps give for as long as the longer lasts`() throws {
        for ids in [("1", "2"), ("2", "1")] {
            let rig = try rig(
                lasting(ids.0, days: 3, "com.example.ios"), lasting(ids.1, days: 30, "com.example.mac"))
            let premium = rig.account(token)?["entitlements"]?["premium"]
            #expect(premium?["originalTransactionId"]?.string == ids.1)
            #expect(premium?["bundleId"]?.string == "com.example.mac")
            #expect(premium?["accessUntil"]?.integer == now + 30 * day)
        }
    }

    @Test func `has what never ends before all that does, and access before none`() throws {
        let revoked = Record(id: "3").with("access", "false").with("state", #""revoked""#)
            .with("accessUntil", "\(now + 90 * day)")
        let rig = try rig(
            lasting("1", days: 30), Record(id: "2").with("accessUntil", "null").with("state", #""owned""#), revoked)
        #expect(rig.account(token)?["entitlements"]?["premium"]?["originalTransactionId"]?.string == "2")
        #expect(rig.account(token)?["entitlements"]?["premium"]?["accessUntil"] == .null)
        let ended = try self.rig(lasting("1", days: 1), revoked)
        #expect(ended.account(token)?["entitlements"]?["premium"]?["originalTransactionId"]?.string == "1")
    }

    /// The worker may be late or stopped: the record itself says when access ends.
    @Test func `loses access by the clock of the reader, not by a record that tells so`() throws {
        let rig = try rig(lasting("1", days: 3))
        let end = now + 3 * day
        func access(at instant: Int64) -> Bool? {
            rig.time.set(now: instant)
            return rig.account(token)?["entitlements"]?["premium"]?["access"]?.bool
        }
        #expect(access(at: end - 1) == true)
        #expect(access(at: end) == false)
    }

    @Test func `shows of what it lost the one that ended last`() throws {
        let rig = try rig(lasting("1", days: -30), lasting("2", days: -3), lasting("3", days: -20))
        let premium = rig.account(token)?["entitlements"]?["premium"]
        #expect(premium?["access"]?.bool == false && premium?["originalTransactionId"]?.string == "2")
    }

    @Test func `has every name that its products are for, sorted by bytes`() throws {
        let rig = try rig(
            lasting("1", days: 3).with("entitlements", #"["zoo","\u00e9","e\u0301","A"]"#),
            lasting("2", days: 3).with("entitlements", "[]"), lasting("3", days: 3).with("entitlements", nil))
        let names = rig.account(token)?["entitlements"]?.object?.members.map { Array($0.name.utf8) }
        #expect(names == [Array("A".utf8), [0x65, 0xcc, 0x81], Array("zoo".utf8), [0xc3, 0xa9]])
    }

    @Test func `moves with its binding to another one`() throws {
        let rig = try rig(lasting("1", days: 3))
        try rig.write(
            .init(topic: .accounts, key: "\(token)|1", value: nil), .binding(otherToken, lasting("1", days: 3)))
        rig.settle()
        let left = try #require(rig.account(token))
        #expect(left["subscriptions"]?.array?.isEmpty == true && left["entitlements"]?.object?.members.isEmpty == true)
        #expect(left["advice"]?.array?.isEmpty == true && left["position"]?.array?.count == 1)
        #expect(rig.account(otherToken)?["entitlements"]?["premium"]?["access"]?.bool == true)
    }

    // MARK: Advice

    private static let manage = "https://apps.apple.com/account/subscriptions"
    private static let billing = "https://apps.apple.com/account/billing"
    private static func millions(_ value: Int64) -> String { "\(TestTime().now + value * 86_400_000)" }

    /// The given members of the only subscription, and the expected advice.
    static let rows: [(what: String, members: [(String, String)], advice: String?)] = [
        ("paid for", [], nil),
        ("renewal off", [("autoRenew", "false")], "renew 1 \(manage)"),
        ("price to consent to", [("priceConsent", #""waiting""#)], "consent_to_price 1 \(manage)"),
        ("consented", [("priceConsent", #""settled""#)], nil),
        ("both", [("autoRenew", "false"), ("priceConsent", #""waiting""#)], "renew 1 \(manage)"),
        (
            "failing before its end", [("retry", #"{"since":1,"until":\#(millions(60))}"#)], "fix_payment 1 \(billing)"
        ),
        ("failing, in sandbox", [("graceUntil", millions(3))], "fix_payment 1 \(billing)"),
        ("in grace", [("state", #""grace""#)], "fix_payment 1 \(billing)"),
        (
            "in billing retry",
            [
                ("state", #""billing_retry""#), ("access", "false"),
                ("retry", #"{"since":1,"until":\#(millions(1))}"#),
            ], "fix_payment 1 \(billing)"
        ),
        (
            "retry is over and nobody has said so",
            [
                ("state", #""billing_retry""#), ("access", "false"),
                ("retry", #"{"since":1,"until":\#(millions(0))}"#),
            ], "resubscribe 1 \(manage)"
        ),
        (
            "in billing retry, in sandbox", [("state", #""billing_retry""#), ("access", "false")],
            "fix_payment 1 \(billing)"
        ),
        ("expired", [("state", #""expired""#), ("access", "false")], "resubscribe 1 \(manage)"),
        ("it has ended without a notification", [("accessUntil", millions(0))], "resubscribe 1 \(manage)"),
        ("refunded", [("state", #""revoked""#), ("access", "false")], nil),
        ("superseded", [("state", #""superseded""#), ("access", "false")], nil),
        ("owned", [("state", #""owned""#), ("billingPlan", "null"), ("accessUntil", "null")], nil),
        ("pass that is over", [("state", #""expired""#), ("billingPlan", "null"), ("access", "false")], nil),
        ("of a later state", [("state", #""dormant""#)], nil),
        (
            "commitment, renewal of the month off",
            [("autoRenew", "false"), ("commitment", #"{"period":4,"of":12,"renews":true}"#)], nil
        ),
        (
            "commitment that ends", [("commitment", #"{"period":4,"of":12,"renews":false}"#)], "renew 1 \(manage)"
        ),
    ]

    @Test(arguments: rows.indices)
    func `advises what its only subscription needs`(_ index: Int) throws {
        let row = Self.rows[index]
        var record = lasting("1", days: 3)
        for (name, json) in row.members { record = record.with(name, json) }
        #expect(advice(try rig(record)) == (row.advice.map { [$0] } ?? []), "\(row.what)")
    }

    /// A customer who pays for both pays twice.
    @Test func `is not advised to pay for what another app gives for longer`() throws {
        let expired = lasting("1", days: -3).with("state", #""expired""#).with("access", "false")
        let other = lasting("2", days: 30, "com.example.mac")
        #expect(advice(try rig(expired, other)) == [])
        #expect(advice(try rig(lasting("1", days: 3).with("autoRenew", "false"), other)) == [])
        // An entitlement that the other does not give still counts.
        let more = expired.with("entitlements", #"["premium","export"]"#)
        #expect(advice(try rig(more, other)) == ["resubscribe 1 \(Self.manage)"])
        // A subscription that renews keeps giving it.
        let ending = other.with("autoRenew", "false")
        #expect(advice(try rig(lasting("1", days: 3), ending)) == [])
        // The advice is to renew the one that lasts longer.
        #expect(
            advice(try rig(lasting("1", days: 3).with("autoRenew", "false"), ending)) == ["renew 2 \(Self.manage)"])
        // Products without named entitlements count as entitlements themselves.
        #expect(advice(try rig(expired.with("entitlements", "[]"), other)) == ["resubscribe 1 \(Self.manage)"])
    }

    // MARK: Limits

    /// Ids grow, so in the order of keys the newest purchase would be left out first.
    @Test func `that is too large shows a part, says so, and has everything that it may use`() throws {
        let rig = try Rig(partitions: 1)
        let coins = Record().with("entitlements", "[]")
        try rig.write((0..<(CopiedRecords.limitRecords + 5)).map { .binding(token, coins.named("\($0)")) })
        try rig.write(.binding(token, lasting("99999999", days: 30)))
        rig.settle()
        let answer = try JSONValue.read(
            rig.endpoint.answer(.account, token[...].utf8, query: nil).body, limits: Self.large)
        #expect(answer["entitlements"]?["premium"]?["access"]?.bool == true)
        #expect(answer["subscriptions"]?.array?.count == CopiedRecords.limitRecords)
        #expect(answer["subscriptionsTruncated"]?.bool == true)
        #expect(try self.rig(Record()).account(token)?["subscriptionsTruncated"] == nil)
    }

    @Test func `whose entitlements do not fit into an answer gets none, for what is left out may be what counts`()
        throws
    {
        let rig = try Rig(partitions: 1)
        let ended = lasting("", days: -3)
        try rig.write((0..<(CopiedRecords.limitRecords + 5)).map { .binding(token, ended.named("\($0)")) })
        rig.settle()
        let answer = rig.endpoint.answer(.account, token[...].utf8, query: nil)
        #expect(answer.status == 422)
        #expect(String(decoding: answer.body, as: UTF8.self) == #"{"error":"account_too_large"}"#)
    }

    @Test func `has a record once, whether it has come to give entitlements or has ceased to`() throws {
        let rig = try rig(lasting("1", days: 3), Record(id: "2").with("entitlements", "[]"))
        try rig.write(
            .binding(token, lasting("1", days: 3).with("entitlements", "[]")), .binding(token, lasting("2", days: 3)))
        rig.settle()
        let answer = try #require(rig.account(token))
        #expect(answer["subscriptions"]?.array?.map { $0["originalTransactionId"]?.string } == ["2", "1"])
        #expect(answer["entitlements"]?["premium"]?["originalTransactionId"]?.string == "2")
        try rig.write(
            .init(topic: .accounts, key: "\(token)|1", value: nil),
            .init(topic: .accounts, key: "\(token)|2", value: nil))
        rig.settle()
        #expect(rig.account(token)?["subscriptions"]?.array?.isEmpty == true)
    }

    private static var large: JSONLimits {
        var limits = JSONLimits()
        limits.bytes = 64 << 20
        return limits
    }
}
