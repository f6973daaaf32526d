import Contract
import Notices
import Testing

@testable import Entitlements

/// Forms that records of `notifications` may have.
@Suite struct `A record that is read` {
    @Test(arguments: ["null", "5", "\"x\"", "[]", #"{"sealed":"QUJD"}"#])
    func `may have parts that are absent, of another kind or sealed: nothing is said`(_ part: String) throws {
        let read = try reading(#"{"v":1,"signedDate":5,"transaction":\#(part),"renewalInfo":\#(part)}"#)
        #expect(read.facts.isEmpty && !read.hasUnusableTransaction)
    }

    @Test func `may have members of another kind: they are not said`() throws {
        let row = bought("1", d(0), d(30), "'price':'9','isUpgraded':1,'revocationDate':'x','offerType':null")
        let transaction = try reading(told("A", at: d(0), row)).facts.purchases[0].transaction
        #expect(transaction.price == nil && !transaction.isUpgraded && transaction.revocationDate == nil)
        #expect(transaction.offer == nil)
    }

    @Test func `of a transaction that was fetched has no type, and tells of no end`() throws {
        let record = told("A", at: d(0), period(1)).replacing(
            "\"notificationType\":\"A\"", with: "\"notificationType\":null")
        #expect(try reading(record).facts.purchases[0].expiry == nil)
    }

    @Test func `has a payload's hash, of its bytes as they were signed`() throws {
        let one = told("A", at: d(0), period(1))
        let spaced = one.replacing("{\"transactionId\"", with: "{ \"transactionId\"")
        let hashes = try [one, spaced].map { try reading($0).facts.purchases[0].version.hash }
        #expect(hashes[0] != hashes[1])
        // printf '{"transactionId":"1","purchaseDate":2,"signedDate":3}' | sha256sum
        let known = #"{"v":1,"transaction":{"transactionId":"1","purchaseDate":2,"signedDate":3}}"#
        #expect(try reading(known).facts.purchases[0].version == Version(signedDate: 3, hash: 0x44412190e4dc19da))
    }

    @Test func `without any date is not usable`() throws {
        let read = try reading(
            #"{"v":1,"transaction":{"transactionId":"1","purchaseDate":2},"renewalInfo":{"autoRenewStatus":1}}"#)
        #expect(read.hasUnusableTransaction && read.facts.isEmpty)
    }
}

@Suite struct `A period of the calendar` {
    @Test(arguments: [
        ("P1M", (2026, 1, 31), (2026, 2, 28)), ("P1M", (2024, 1, 31), (2024, 2, 29)),
        ("P1Y", (2024, 2, 29), (2025, 2, 28)),
        ("P1Y6M", (2026, 8, 31), (2028, 2, 29)), ("P12M", (2026, 12, 31), (2027, 12, 31)),
        ("P2W", (2026, 2, 20), (2026, 3, 6)),
        ("P1M1D", (2026, 1, 31), (2026, 3, 1)), ("P4Y", (2096, 2, 29), (2100, 2, 28)),
        ("P90D", (1970, 1, 1), (1970, 4, 1)),
    ])
    func `is added on the days of UTC, to the last day of a shorter month`(
        _ period: String, _ from: (Int, Int, Int), _ to: (Int, Int, Int)
    ) throws {
        let start = date(from.0, from.1, from.2) + 12_345_678
        #expect(adding(try #require(Period(period)), to: start) == date(to.0, to.1, to.2) + 12_345_678)
    }

    @Test func `is a day on every day of four centuries`() throws {
        let day = try #require(Period("P1D"))
        let month = try #require(Period("P1M"))
        let start = date(1970, 1, 1) - 200 * 366 * 24 * hour
        let first = (0..<Int64(146_097)).first { number in
            let now = start + number * 24 * hour
            let days = (adding(month, to: now) - now) / (24 * hour)
            return adding(day, to: now) != now + 24 * hour || !(28...31).contains(days)
        }
        #expect(first == nil, "the day of this number")
    }
}

@Suite struct `Answers` {
    /// Day 5 of a month that began on day 0, with these members in the payloads.
    private func answer(_ transaction: [String], _ info: [String]) throws -> Entitlement {
        let row = bought("1", d(0), d(30), transaction.joined(separator: ","))
        return try timeline(told("X", at: d(4), row, renewal(1, at: d(30), info.joined(separator: ",")))).entitlement(
            at: d(5))
    }

    /// Without the member, and with it.
    private static let ofTransaction: [([String], String)] = [
        ([], "'subscriptionGroupIdentifier':'g'"), ([], "'appAccountToken':'t'"), ([], "'revocationDate':\(d(4))"),
        (["'revocationDate':\(d(4))"], "'revocationType':'FAMILY_REVOKE'"), ([], "'isUpgraded':true"),
        ([], "'offerType':2"), (["'offerType':2"], "'offerIdentifier':'o'"),
        (["'offerType':2"], "'offerDiscountType':'FREE_TRIAL'"), ([], "'price':1"), ([], "'currency':'EUR'"),
        ([], "'billingPlanType':'MONTHLY'"), ([], "'bundleId':'other'"), ([], "'productId':'other'"),
        ([], "'type':'Consumable'"), ([], "'inAppOwnershipType':'FAMILY_SHARED'"), ([], "'expiresDate':\(d(31))"),
        (["'billingPlanType':'MONTHLY'"], "'commitmentInfo':{'billingPeriodNumber':3}"),
        (["'billingPlanType':'MONTHLY'"], "'commitmentInfo':{'totalBillingPeriods':11}"),
        (["'billingPlanType':'MONTHLY'"], "'commitmentInfo':{'commitmentExpiresDate':\(d(360))}"),
        (["'billingPlanType':'MONTHLY'"], "'commitmentInfo':{'commitmentPrice':9}"),
    ]
    private static let failing = "'isInBillingRetryPeriod':true"
    private static let month = ["'billingPlanType':'MONTHLY'", "'commitmentInfo':{'billingPeriodNumber':3}"]
    private static let ofInfo: [([String], [String], [String])] = [
        ([], [], ["'autoRenewProductId':'p'"]), ([], [], ["'expirationIntent':3"]), ([], [], [failing]),
        ([], [failing], [failing, "'gracePeriodExpiresDate':\(d(40))"]), ([], [], ["'priceIncreaseStatus':0"]),
        ([], [], ["'renewalPrice':4"]), ([], [], ["'appAccountToken':'u'"]),
        ([], [], ["'renewalBillingPlanType':'MONTHLY'"]),
        (month, [], ["'commitmentInfo':{'commitmentAutoRenewStatus':0}"]),
        (
            month, ["'commitmentInfo':{'commitmentAutoRenewStatus':1}"],
            ["'commitmentInfo':{'commitmentAutoRenewStatus':1,'commitmentAutoRenewProductId':'q'}"]
        ),
        (
            month, ["'commitmentInfo':{'commitmentAutoRenewStatus':1}"],
            ["'commitmentInfo':{'commitmentAutoRenewStatus':1,'commitmentRenewalBillingPlanType':'BILLED_UPFRONT'}"]
        ),
    ]

    @Test func `are answered by every member of a payload that they speak of`() throws {
        for (others, member) in Self.ofTransaction {
            #expect(try answer(others, []) != answer(others + [member], []), "\(member) of a transaction is not read")
        }
        for (transaction, without, with) in Self.ofInfo {
            #expect(
                try answer(transaction, without) != answer(transaction, with), "\(with) of a renewal info is not read")
        }
    }
}
