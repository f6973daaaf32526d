import Contract
import JSON
import Log
import MakeBelieve
import Testing
import WorkerTestKit

private let first = "11111111-1111-4111-8111-111111111111"
private let second = "22222222-2222-4222-8222-222222222222"

private func month(_ number: Int64, token: String?, bundle: String = "com.example.one", _ more: [String: String] = [:])
    -> Told
{
    let start = d(30 * (number - 1))
    return Told(
        "DID_RENEW", at: start,
        bought("\(number)", from: start, to: start + 30 * day, signed: start, token: token, bundle: bundle, more),
        renewal(1, at: start + 30 * day, signed: start), status: 1)
}

@Suite struct `An account` {
    @Test func `gets a subscription when its token appears, not before`() throws {
        let shop = try Shop()
        try shop.tell(month(1, token: nil))
        #expect(try shop.accounts().isEmpty)
        try shop.tell(month(2, token: first))
        #expect(try shop.accounts().keys.sorted() == ["\(first)|1000"])
        #expect(try shop.events() == ["started 0d", "renewed 30d", "account_bound 30d"])
    }

    @Test func `loses it to the account of another token`() throws {
        let shop = try Shop()
        try shop.tell(month(1, token: first))
        try shop.tell(month(2, token: second))
        let accounts = try shop.accounts()
        #expect(accounts.keys.sorted() == ["\(second)|1000"])
        #expect(accounts["\(second)|1000"]?.words == "active until 60d1h")
        let tombstone = try #require(try shop.seen(.accounts).first { $0.value == nil })
        #expect(tombstone.keyText == "\(first)|1000")
        #expect(tombstone.partition == Shop.partition(of: first))
    }

    @Test func `loses it when the token is gone`() throws {
        let shop = try Shop()
        try shop.tell(month(1, token: first))
        try shop.tell(month(2, token: nil))
        #expect(try shop.accounts().isEmpty)
    }

    @Test
    func `has all of its subscriptions of all apps in the partition of its token, whatever the case of its letters`()
        throws
    {
        let upper = "ABCDEFAB-1111-4111-8111-111111111111"
        let shop = try Shop()
        for (id, bundle) in [("1000", "com.example.one"), ("1001", "com.example.two"), ("1002", "com.example.one")] {
            try shop.tell(month(1, token: id == "1001" ? upper.lowercased() : upper, bundle: bundle), of: id)
        }
        let records = try shop.seen(.accounts)
        #expect(records.map(\.keyText).sorted() == ["1000", "1001", "1002"].map { "\(upper.lowercased())|\($0)" })
        #expect(Set(records.map(\.partition)) == [Shop.partition(of: upper.lowercased())])
        for value in try shop.accounts().values {
            #expect(value["entitlements"]?.array == [.string("premium")])
        }
    }

    @Test func `gets every change that the subscription has, time's too`() throws {
        let shop = try Shop()
        try shop.tell(month(1, token: first))
        try shop.tick(d(40))
        #expect(try shop.accounts()["\(first)|1000"]?.words == "expired unknown since 30d1h")
        #expect(try shop.seen(.accounts).count == shop.seen(.entitlements).count)
    }

    @Test func `does not get what the family of its owner shares`() throws {
        let shop = try Shop()
        try shop.tell(month(1, token: first, ["inAppOwnershipType": "\"FAMILY_SHARED\""]))
        #expect(try shop.accounts().isEmpty)
        #expect(try shop.values().count == 1)
    }

    @Test(arguments: ["", "a|b", "|"])
    func `is none for a token that names nobody`(_ token: String) throws {
        let shop = try Shop()
        try shop.tell(month(1, token: token))
        #expect(try shop.seen(.accounts).isEmpty)
        #expect(try shop.values().first?["appAccountToken"] == .null)
    }

    @Test func `loses it where it was told, whatever later facts say of that time`() throws {
        let shop = try Shop()
        try shop.tell(month(1, token: first))
        // A purchase of the month before, reported late: it still belongs to the first account.
        let late = Told(
            "DID_RENEW", at: d(-30),
            bought("0", from: d(-30), to: d(0), signed: d(-30), token: second), nil, status: nil)
        try shop.tell(late, received: d(2))
        try shop.tell(month(2, token: second))
        #expect(try shop.accounts().keys.sorted() == ["\(second)|1000"])
    }
}
