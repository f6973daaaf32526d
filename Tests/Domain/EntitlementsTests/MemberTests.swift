import Notices
import Testing

@testable import Entitlements

/// Rules.md E.16, the members other than the state, row by row.
@Suite struct `A member of the answer` {
    private func answer(_ records: String..., at instant: Int64) throws -> Entitlement {
        try #require(Timeline(try facts(records), rules())).entitlement(at: instant)
    }

    @Test func `since is the start of the unbroken access`() throws {
        let rows = [
            told("A", at: d(0), period(1)), told("A", at: d(0), period(2)),
            told("A", at: d(0), bought("3", d(61), d(91))),
        ]
        #expect(try answer(rows[0], rows[1], at: d(30)).since == d(0))
        #expect(try answer(rows[0], rows[1], rows[2], at: d(61)).since == d(61))
        #expect(try answer(rows[0], rows[1], rows[2], at: d(31)).since == d(0))
        let refunded = told("B", at: d(40), period(2, "'revocationDate':\(d(40))"))
        #expect(try answer(rows[0], refunded, told("A", at: d(0), bought("3", d(40), d(70))), at: d(40)).since == d(0))
        #expect(
            try answer(rows[0], refunded, told("A", at: d(0), bought("3", d(40) + 1, d(70))), at: d(41)).since == d(40)
                + 1)
    }

    @Test func `runs are rows joined where they touch, also those to come`() throws {
        let rows = [
            told("A", at: d(0), period(1)), told("A", at: d(0), period(2)),
            told("A", at: d(0), bought("3", d(60) + 1, d(91))),
        ]
        let runs = try answer(rows[0], rows[1], rows[2], at: d(0)).runs
        #expect(runs == [Run(start: d(0), end: d(60)), Run(start: d(60) + 1, end: d(91))], "a lapse of a millisecond")
    }

    @Test func `runs leave out what was refunded, unless it was upgraded`() throws {
        let next = told("A", at: d(0), bought("2", d(10), d(40)))
        #expect(
            try answer(told("A", at: d(10), period(1, "'revocationDate':\(d(10))")), next, at: d(10)).runs == [
                Run(start: d(10), end: d(40))
            ])
        let upgraded = told("A", at: d(10), period(1, "'isUpgraded':true,'revocationDate':\(d(8))"))
        #expect(
            try answer(upgraded, next, at: d(10)).runs == [Run(start: d(0), end: d(8)), Run(start: d(10), end: d(40))])
    }

    @Test func `runs keep the failed last days of a commitment, which are paid`() throws {
        #expect(
            try answer(told("A", at: d(29), month(1), failing(d(30))), at: d(29)).runs == [Run(start: d(0), end: d(30))]
        )
    }

    @Test func `runs are the newest 100, and more are told`() throws {
        var known = Facts()
        for number in 1...101 { known.merge(try reading(told("A", at: 0, period(Int64(2 * number)))).facts) }
        let answer = try #require(Timeline(known, rules())).entitlement(at: d(0))
        #expect(answer.runs.count == 100 && answer.runs[0].start == d(90) && answer.runsTruncated)
    }

    /// Eight bytes are looked at at a time, so each byte stands at each place.
    @Test(arguments: [1, 7, 8, 9, 16, 19])
    func `appAccountToken is none with a vertical bar anywhere, and has no letter in upper case`(_ count: Int) throws {
        for place in 0..<count {
            for byte in "AZaz@[`{}|~é" {
                var token = Array(repeating: Character("b"), count: count)
                token[place] = byte
                let row = period(1, "'appAccountToken':'\(String(token))'")
                let read = try answer(told("A", at: d(0), row), at: d(0)).appAccountToken
                let lower = String(token).replacing("A", with: "a").replacing("Z", with: "z")
                #expect(read?.description == (byte == "|" ? nil : lower))
            }
        }
    }

    @Test func `appAccountToken is the transaction's, else the renewal's, in lower case`() throws {
        let info = renewal(1, at: d(30), "'appAccountToken':'B0'")
        #expect(
            try answer(told("A", at: d(0), period(1, "'appAccountToken':'A0-Z'"), info), at: d(0)).appAccountToken
                == "a0-z")
        #expect(try answer(told("A", at: d(0), period(1), info), at: d(0)).appAccountToken == "b0")
        let shared = period(1, "'inAppOwnershipType':'FAMILY_SHARED','appAccountToken':'A'")
        #expect(try answer(told("A", at: d(0), shared, info), at: d(0)).appAccountToken == nil)
    }

    @Test func `entitlements are what the product is for, with or without access`() throws {
        #expect(try answer(told("A", at: d(0), period(1)), at: d(99)).entitlements == ["archive", "premium"])
        #expect(try answer(told("A", at: d(0), period(1, "'productId':'plus'")), at: d(0)).entitlements == ["premium"])
        #expect(try answer(told("A", at: d(0), period(1, "'bundleId':'other'")), at: d(0)).entitlements == [])
    }

    @Test func `renewsAt and renewalPrice are told while autoRenew is true`() throws {
        let on = try answer(told("A", at: d(0), period(1), renewal(1, at: d(30), "'renewalPrice':7")), at: d(0))
        #expect(on.autoRenew == true && on.renewsAt == d(30) && on.renewalPrice == 7)
        let off = try answer(told("A", at: d(0), period(1), renewal(0, at: d(30), "'renewalPrice':7")), at: d(0))
        #expect(off.autoRenew == false && off.renewsAt == nil && off.renewalPrice == nil)
        let none = try answer(told("A", at: d(0), period(1)), at: d(0))
        #expect(none.autoRenew == nil && none.renewsAt == nil)
    }

    @Test func `pending members are what differs, null if that renewal is off`() throws {
        let other = "'autoRenewProductId':'lite','renewalBillingPlanType':'MONTHLY'"
        let on = try answer(told("A", at: d(0), period(1), renewal(1, at: d(30), other)), at: d(0))
        #expect(on.pendingProductId == "lite" && on.pendingBillingPlan == "MONTHLY")
        let off = try answer(told("A", at: d(0), period(1), renewal(0, at: d(30), other)), at: d(0))
        #expect(off.pendingProductId == nil && off.pendingBillingPlan == nil)
        let same = try answer(
            told(
                "A", at: d(0), period(1),
                renewal(1, at: d(30), "'autoRenewProductId':'pro','renewalBillingPlanType':'BILLED_UPFRONT'")), at: d(0)
        )
        #expect(same.pendingProductId == nil && same.pendingBillingPlan == nil, "an absent plan is upfront")
    }

    @Test func `pending members of a commitment are those after it, null if it is not renewed`() throws {
        func pending(_ status: Int) throws -> Text? {
            let info = renewal(
                1, at: d(30),
                "'autoRenewProductId':'next','commitmentInfo':{'commitmentAutoRenewStatus':\(status),'commitmentAutoRenewProductId':'lite'}"
            )
            return try answer(told("A", at: d(0), month(1), info), at: d(0)).pendingProductId
        }
        #expect(try pending(1) == "lite" && pending(0) == nil)
        let fallback = renewal(
            1, at: d(30), "'autoRenewProductId':'next','commitmentInfo':{'commitmentAutoRenewStatus':0}")
        #expect(try answer(told("A", at: d(0), month(1), fallback), at: d(0)).pendingProductId == "next")
    }

    @Test func `commitment is of a commitment that tells of itself`() throws {
        let whole = try answer(told("A", at: d(0), month(4), committed(0, at: d(120))), at: d(90)).commitment
        #expect(whole == Entitlement.Commitment(period: 4, of: 12, endsAt: d(360), price: 120_000, renews: false))
        #expect(try answer(told("A", at: d(0), period(1, "'billingPlanType':'MONTHLY'")), at: d(0)).commitment == nil)
        let upfront = period(1, "'commitmentInfo':{'billingPeriodNumber':1}")
        #expect(try answer(told("A", at: d(0), upfront), at: d(0)).commitment == nil)
        let once = once("1", d(0), "'billingPlanType':'MONTHLY','commitmentInfo':{'billingPeriodNumber':1}")
        #expect(try answer(told("A", at: d(0), once, renewal(1, at: d(30))), at: d(0)).commitment == nil)
        #expect(try answer(told("A", at: d(0), once, renewal(1, at: d(30))), at: d(0)).autoRenew == nil, "no R either")
    }

    @Test func `retry is told in active, grace and billing retry, until the window ends`() throws {
        let known = try #require(
            Timeline(try facts([told("A", at: d(29), period(1), failing(d(30), grace: d(46)))]), rules()))
        for day in [Int64(29), 30, 46, 89] {
            #expect(known.entitlement(at: d(day)).retry == .init(since: d(30), until: d(90)))
        }
        #expect(known.entitlement(at: d(90)).retry == nil)
    }

    @Test func `billingPlan is upfront when it is absent, null for one-time purchases`() throws {
        #expect(try answer(told("A", at: d(0), period(1)), at: d(0)).billingPlan == "BILLED_UPFRONT")
        #expect(try answer(told("A", at: d(0), once("1", d(0))), at: d(0)).billingPlan == nil)
    }

    @Test(arguments: [(1, "introductory"), (2, "promotional"), (3, "code"), (4, "win_back"), (7, "7")])
    func `offer, price and currency are the transaction's`(_ type: Int, _ name: String) throws {
        let known = try answer(
            told("A", at: d(0), period(1, "'offerType':\(type),'offerIdentifier':'x','price':5,'currency':'EUR'")),
            at: d(0))
        #expect(known.offer == Entitlement.Offer(type: Text(name), identifier: "x", discount: nil))
        #expect(known.price == 5 && known.currency == "EUR" && known.introOfferUsed == (type == 1))
    }

    @Test func `introOfferUsed is of any transaction ever, also one that is no row or refunded`()
        throws
    {
        let intro = "'offerType':1,'offerDiscountType':'FREE_TRIAL'"
        let later = told("DID_RENEW", at: d(30), period(2))
        #expect(try answer(told("A", at: d(0), period(1, intro)), later, at: d(30)).introOfferUsed)
        #expect(
            try answer(told("A", at: d(0), period(1, "\(intro),'revocationDate':\(d(1))")), later, at: d(30))
                .introOfferUsed)
        #expect(try answer(told("A", at: d(0), Part(members: intro)), later, at: d(30)).introOfferUsed)
        #expect(try !answer(later, at: d(30)).introOfferUsed)
    }

    @Test func `introOfferUsed outlives the transaction it is known from`() throws {
        var known = try reading(told("A", at: 0, period(1, "'offerType':1"))).facts
        for number in 2...1_001 { known.merge(try reading(told("A", at: 0, period(Int64(number)))).facts) }
        #expect(known.purchases.count == 1_000 && known.purchases[0].transaction.id == "2" && known.introOfferUsed)
        #expect(Facts(encoded: known.encoded)?.introOfferUsed == true)
    }

    @Test func `graceUntil is told while grace is to come or given, and not in retry after it`() throws {
        let known = try #require(
            Timeline(try facts([told("A", at: d(29), period(1), failing(d(30), grace: d(46)))]), rules()))
        let instants = [d(29), d(30), d(46) - 1, d(46)]
        #expect(instants.map { known.entitlement(at: $0).graceUntil } == [d(46), d(46), d(46), nil])
    }
}
