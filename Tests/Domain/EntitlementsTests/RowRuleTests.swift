import Contract
import Notices
import Testing

@testable import Entitlements
@testable import SubscriptionHistory

/// Rules.md E.16, rows 1 to 4.
@Suite struct `Rows` {
    @Test func `are what the payload signed last says`() throws {
        let known = try timeline(
            told("RENEWAL_EXTENDED", at: d(9), bought("1", d(0), d(44), signed: d(9))),
            told("REFUND_DECLINED", at: d(20), bought("1", d(0), d(30), signed: d(8))))
        #expect(known.words(at: d(20)) == "active until 44d", "the date of the notification does not count")
    }

    @Test func `are dated by the notification when the payload is not`() throws {
        let undated = told("A", at: d(9), period(1, "'price':9")).replacing(",\"signedDate\":\(d(9))}", with: "}")
        let known = try timeline(undated, told("B", at: d(8), period(1, "'price':8")))
        #expect(known.entitlement(at: d(9)).price == 9)
    }

    @Test func `of one date are chosen by their bytes, whichever came first`() throws {
        let one = try reading(told("A", at: d(9), period(1, "'price':1"))).facts
        let other = try reading(told("B", at: d(9), period(1, "'price':2"))).facts
        let greater = one.purchases[0].version.hash > other.purchases[0].version.hash ? one : other
        for (first, second) in [(one, other), (other, one)] {
            var both = first
            both.merge(second)
            #expect(both.purchases[0].transaction == greater.purchases[0].transaction)
        }
    }

    @Test func `are chosen though they are revoked or upgraded away from`() throws {
        let long = told("SUBSCRIBED", at: d(0), bought("1", d(0), d(60)), renewal(1, at: d(60)))
        let refunded = told("REFUND", at: d(35), bought("2", d(30), d(60), "'revocationDate':\(d(35))"))
        #expect(try timeline(long, refunded).words(at: d(40)) == "revoked refund since 35d")
        let upgraded = told("X", at: d(35), bought("2", d(30), d(60), "'isUpgraded':true"))
        #expect(try timeline(long, upgraded).words(at: d(40)) == "superseded since 35d")
    }

    @Test func `are in the order of their dates, whatever their ids`() throws {
        let known = try timeline(
            told("SUBSCRIBED", at: d(0), bought("900", d(0), d(30))),
            told("DID_RENEW", at: d(30), bought("1000", d(30), d(60))),
            told("DID_RENEW", at: d(60), bought("99", d(60), d(90))))
        #expect(known.words(at: d(45)) == "active until 90d" && known.words(at: d(75)) == "active until 90d")
        #expect(known.words(at: d(90)) == "expired unknown since 90d")
    }

    @Test(arguments: [
        "'transactionId':'1'", "'purchaseDate':5",
        "'transactionId':'1','purchaseDate':5,'type':'Auto-Renewable Subscription'",
    ])
    func `without id, date of purchase or, if they renew, an end are none`(_ members: String) throws {
        let read = try reading(told("SUBSCRIBED", at: d(0), Part(members: members), renewal(1, at: d(30))))
        #expect(read.hasUnusableTransaction && read.facts.purchases.isEmpty && read.facts.renewalInfos.count == 1)
        #expect(Timeline(read.facts, rules()) == nil)
    }

    @Test func `count up to the 1,000 newest, and what is beyond is told`() throws {
        var known = Facts()
        for number in (1...1_001).reversed() { known.merge(try reading(told("A", at: 0, period(Int64(number)))).facts) }
        #expect(known.purchases.count == 1_000 && known.purchases[0].transaction.id == "2" && known.isTruncated)
        let isNew = known.merge(try reading(told("A", at: 0, period(1))).facts)
        #expect(!isNew, "it is known to be beyond")
        let answer = try #require(Timeline(known, rules())).entitlement(at: d(60))
        #expect(answer.runsTruncated && answer.runs == [Run(start: d(30), end: d(30_030))])
    }

    @Test func `of one transaction with two dates of purchase are one`() throws {
        let known = try timeline(
            told("A", at: d(0), bought("1", d(0), d(30), "'isUpgraded':true")),
            told("B", at: d(2), bought("1", d(1), d(31))))
        #expect(known.rows.count == 1 && known.words(at: d(2)) == "active until 31d")
        #expect(known.rows[0].firstSigned == d(0))
    }

    @Test func `are in one order: start, upgraded first, end, id by bytes`() throws {
        let known = try timeline(
            told("A", at: d(9), bought("9", d(5), d(30))), told("A", at: d(9), bought("10", d(5), d(30))),
            told("A", at: d(9), bought("7", d(5), d(31))),
            told("A", at: d(9), bought("8", d(5), d(90), "'isUpgraded':true")),
            told("A", at: d(9), bought("6", d(4), d(99))))
        #expect(known.rows.map(\.id) == ["6", "8", "10", "9", "7"])
        #expect(known.rows[known.place(at: d(9))].id == "7")
    }

    @Test func `take over when they begin, the first also before that`() throws {
        let known = try timeline(told("A", at: d(0), period(1)), told("A", at: d(0), period(2)))
        #expect(known.place(at: d(0) - 1) == 0 && known.place(at: d(30) - 1) == 0 && known.place(at: d(30)) == 1)
        #expect(known.words(at: d(0) - 1) == "active until 60d")
        #expect(known.nextChange(after: d(1)) == d(60), "price and product are the same, and access goes on")
    }

    @Test(arguments: [
        ("Non-Consumable", Int64?.some(d(30)), true), ("Consumable", nil, true),
        ("Non-Renewing Subscription", nil, true),
        ("A New Type", nil, true), ("A New Type", d(30), false),
    ])
    func `are one-time by their type, unknown ones without an end too`(
        _ type: String, _ expires: Int64?, _ isOneTime: Bool
    ) throws {
        let known = try timeline(told("A", at: d(0), bought("1", d(0), expires, "'type':'\(type)'")))
        #expect(
            known.rows[0].isOneTime == isOneTime && known.entitlement(at: d(0)).state == (isOneTime ? .owned : .active))
    }

    @Test func `of an unknown plan follow the rules of upfront ones, and tell it`() throws {
        let known = try timeline(
            told("DID_FAIL_TO_RENEW", at: d(29), period(1, "'billingPlanType':'WEEKLY'"), failing(d(30), grace: d(36))))
        #expect(known.words(at: d(31)) == "grace until 36d" && known.entitlement(at: d(31)).billingPlan == "WEEKLY")
    }

    @Test(arguments: ["'inAppOwnershipType':'ASSIGNED'", "'revocationType':'ASSIGNMENT_REVOKE'"])
    func `of assigned seats end as a family's do`(_ more: String) throws {
        let known = try timeline(told("REVOKE", at: d(9), period(1, "'revocationDate':\(d(9)),\(more)")))
        #expect(known.words(at: d(9)) == "revoked family since 9d")
    }
}

/// Rules.md E.16, rows 5 to 11.
@Suite struct `Renewal infos` {
    private let start = told("SUBSCRIBED", "INITIAL_BUY", at: d(0), period(1), renewal(1, at: d(30)), status: 1)

    @Test func `are ordered by their own date, then hash, then status`() throws {
        let known = try timeline(
            told("A", at: d(9), period(1), renewal(0, at: d(30), signed: d(5))),
            told("B", at: d(6), period(1), renewal(1, at: d(30), signed: d(6))))
        #expect(known.entitlement(at: d(9)).autoRenew == true)
        let info = renewal(1, at: d(30), signed: d(5), "'gracePeriodExpiresDate':\(d(40))")
        let same = try facts([
            told("A", at: d(9), nil, info, status: 1), told("B", at: d(8), nil, info, status: 4),
            told("C", at: d(8), nil, info),
        ])
        #expect(same.renewalInfos.map(\.status) == [0, 1, 4], "the status travels with its info")
    }

    @Test func `without an own date have that of the notification`() throws {
        let undated = told("A", at: d(9), nil, renewal(0, at: d(30))).replacing(",\"signedDate\":\(d(9))}", with: "}")
        #expect(try reading(undated).facts.renewalInfos[0].version.signedDate == d(9))
    }

    @Test func `that are missing make a status mean nothing`() throws {
        #expect(
            try timeline(start, told("A", at: d(31), period(1), status: 4)).words(at: d(31))
                == "expired unknown since 30d1h")
    }

    @Test(arguments: [(-5_001, false), (-5_000, true)])
    func `speak of a row from five seconds before it was known`(_ offset: Int64, _ isFresh: Bool) throws {
        let known = try timeline(
            told("DID_RENEW", at: d(30), period(2, signed: d(30))),
            told("A", at: d(30), nil, renewal(0, at: d(60), signed: d(30) + offset)))
        #expect((known.entitlement(at: d(30)).autoRenew != nil) == isFresh)
    }

    @Test func `speak of a row that a backfill brought late, by its date of purchase`() throws {
        let known = try timeline(told("A", at: d(31), nil, renewal(0, at: d(60))), told("B", at: d(50), period(2)))
        #expect(known.entitlement(at: d(50)).autoRenew == false)
    }

    @Test func `with a refund of an older row do not go stale`() throws {
        let refund = told("REFUND", at: d(40), period(1, "'revocationDate':\(d(40))"), renewal(0, at: d(60)))
        let known = try timeline(start, told("DID_RENEW", at: d(30), period(2), renewal(1, at: d(60))), refund)
        #expect(known.entitlement(at: d(40)).autoRenew == false)
    }

    @Test(arguments: [(d(30), false), (d(30) + 1, true), (nil, true)])
    func `whose renewal is the row itself speak of the one before`(_ date: Int64?, _ isFresh: Bool) throws {
        let known = try timeline(told("A", at: d(30), period(2), renewal(0, at: date)))
        #expect((known.entitlement(at: d(30)).autoRenew != nil) == isFresh)
    }

    @Test func `of failure do not outlive a newer paid row`() throws {
        let known = try timeline(
            start, told("DID_FAIL_TO_RENEW", at: d(30), period(1), failing(d(30)), status: 3),
            told("DID_RENEW", "BILLING_RECOVERY", at: d(40), bought("2", d(40), d(70))))
        #expect(known.words(at: d(40)) == "active until 70d" && known.entitlement(at: d(40)).autoRenew == nil)
    }

    @Test func `that say more than on are kept for their row, the others forgotten`() throws {
        let known = try facts([
            start, told("DID_FAIL_TO_RENEW", at: d(30), period(1), failing(d(30), grace: d(46))),
            told("A", at: d(31), period(1), renewal(1, at: d(46))),
            told("DID_RENEW", "BILLING_RECOVERY", at: d(40), period(2), renewal(1, at: d(60))),
        ])
        #expect(known.renewalInfos.map(\.version.signedDate) == [d(30), d(40)])
        let all = try #require(Timeline(known, rules()))
        #expect(all.rows[0].infos.count == 1 && all.rows[1].infos.count == 1)
        #expect(all.entitlement(at: d(40)).runs == [Run(start: d(0), end: d(60))], "the grace that was given stays")
    }

    @Test func `count up to the 256 newest that are kept`() throws {
        let records = (0..<300).map { told("A", at: d(0) + $0, nil, renewal(0, at: d(30))) }
        #expect(try facts(records).renewalInfos.first?.version.signedDate == d(0) + 44)
        #expect(try facts(records) == facts(records.reversed()))
        let on = told("A", at: d(1), nil, renewal(1, at: d(30)))
        let more = try facts(records + [on])
        #expect(more.renewalInfos.count == 256 && more.renewalInfos.first?.version.signedDate == d(0) + 45)
        #expect(try facts([on] + records) == more)
    }

    @Test func `show a retry by flag or status, and cancelled ones none but of a commitment`() throws {
        for (status, more, isRetry) in [
            (1, "'isInBillingRetryPeriod':true", true), (1, "'isInBillingRetryPeriod':false", false),
            (0, "'isInBillingRetryPeriod':true", false),
            (1, "'isInBillingRetryPeriod':true,'expirationIntent':1", false),
            (1, "'isInBillingRetryPeriod':true,'expirationIntent':2", true),
        ] {
            let info = renewal(status, at: d(30), more)
            #expect(
                (try timeline(told("A", at: d(30), period(1), info)).entitlement(at: d(30)).state == .billingRetry)
                    == isRetry)
            let isRetryOfCommitment = more.contains("true")
            let commitment = try timeline(told("A", at: d(30), month(1), info)).entitlement(at: d(30)).state
            #expect((commitment == .billingRetry) == isRetryOfCommitment, "\(more)")
        }
    }

    @Test(arguments: [(d(30), false), (d(30) + 1, true)])
    func `grant grace that ends after the row`(_ grace: Int64, _ isGranted: Bool) throws {
        let known = try timeline(told("A", at: d(29), period(1), failing(d(30), grace: grace)))
        #expect((known.entitlement(at: d(30)).state == .grace) == isGranted)
        #expect(known.entitlement(at: d(29)).graceUntil == (isGranted ? grace : nil))
    }

    @Test func `of sandbox know no window: a retry there does not end by itself`() throws {
        let known = try timeline(
            told("A", at: d(30), period(1), failing(d(30)), status: 3), rules: rules(.sandbox, leeway: 60_000))
        #expect(known.words(at: d(9999)) == "billing_retry since 30d" && known.nextChange(after: d(30)) == nil)
        #expect(known.entitlement(at: d(31)).retry == nil)
    }

    @Test(arguments: [
        ("'autoRenewStatus':1", true), ("'autoRenewStatus':0", false), ("'autoRenewStatus':2", false),
        ("'autoRenewStatus':1,'expirationIntent':5", false), ("'autoRenewStatus':1,'gracePeriodExpiresDate':5", true),
    ])
    func `let renewal be expected when it is on and nothing speaks against it`(
        _ members: String, _ isExpected: Bool
    ) throws {
        let known = try timeline(told("A", at: d(1), period(1), Part(members: "\(members),'renewalDate':\(d(30))")))
        #expect(known.entitlement(at: d(1)).accessUntil == d(30) + (isExpected ? hour : 0))
    }

    @Test func `let no renewal be expected after an EXPIRED of the row, in whatever order`() throws {
        let known = try timeline(told("EXPIRED", "BILLING_RETRY", at: d(29), period(1)), start)
        #expect(known.words(at: d(29)) == "active until 30d")
        let older = try timeline(
            start, told("EXPIRED", "BILLING_RETRY", at: d(29), period(1)),
            told("SUBSCRIBED", "RESUBSCRIBE", at: d(30), period(2), renewal(1, at: d(60))))
        #expect(older.words(at: d(30)) == "active until 60d1h", "it spoke of another row")
    }

    @Test(arguments: [(12, 12, 0, false), (12, 12, 1, true), (11, 12, 0, true), (13, 12, 0, false), (6, 6, 0, false)])
    func `let no renewal be expected after the last period of a cancelled commitment`(
        _ period: Int, _ of: Int, _ renews: Int, _ isExpected: Bool
    ) throws {
        for total in of == 12 ? [",'totalBillingPeriods':12", ""] : [",'totalBillingPeriods':\(of)"] {
            let row = bought(
                "1", d(0), d(30),
                "'billingPlanType':'MONTHLY','commitmentInfo':{'billingPeriodNumber':\(period)\(total)}")
            let known = try timeline(told("A", at: d(1), row, committed(renews, at: d(30))))
            #expect(known.entitlement(at: d(1)).accessUntil == d(30) + (isExpected ? hour : 0))
        }
    }
}
