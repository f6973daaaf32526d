import Notices
import Testing

@testable import Entitlements

/// Rules.md E.6, row by row: billed monthly, for a year.
@Suite struct `A commitment` {
    private let start = told("SUBSCRIBED", "INITIAL_BUY", at: d(0), month(1), committed(1, at: d(30)), status: 1)
    private let failed = told(
        "DID_FAIL_TO_RENEW", at: d(29), month(1), failing(d(30), "'commitmentInfo':{'commitmentAutoRenewStatus':1}"),
        status: 3)

    @Test func `has no grace, whatever the payload says`() throws {
        let known = try timeline(
            start,
            told("DID_FAIL_TO_RENEW", "GRACE_PERIOD", at: d(30), month(1), failing(d(30), grace: d(46)), status: 4))
        #expect(known.words(at: d(31)) == "billing_retry since 30d" && known.entitlement(at: d(31)).graceUntil == nil)
        #expect(known.entitlement(at: d(31)).runs == [Run(start: d(0), end: d(30))])
    }

    @Test func `loses access as soon as a payment failed, even before expiresDate`() throws {
        let known = try timeline(start, failed)
        #expect(known.words(at: d(29)) == "billing_retry since 29d")
        #expect(known.entitlement(at: d(29)).runs == [Run(start: d(0), end: d(30))], "the days are paid for")
    }

    @Test func `is restored by a recovery, with the end that Apple moved`() throws {
        let recovered = bought(
            "2", d(45), d(75),
            "'billingPlanType':'MONTHLY','commitmentInfo':{'billingPeriodNumber':2,'totalBillingPeriods':12,"
                + "'commitmentExpiresDate':\(d(375)),'commitmentPrice':120000}")
        let known = try timeline(
            start, failed, told("DID_RENEW", "BILLING_RECOVERY", at: d(45), recovered, committed(1, at: d(75))))
        let answer = known.entitlement(at: d(45))
        #expect(words(answer) == "active until 75d1h" && answer.commitment?.endsAt == d(375))
        #expect(answer.since == d(45))
    }

    @Test func `is retried for 90 days, and over for good after that`() throws {
        let known = try timeline(start, failed)
        #expect(known.words(at: d(120) - 1) == "billing_retry since 29d")
        #expect(known.words(at: d(120)) == "expired billing since 29d" && known.nextChange(after: d(30)) == d(120))
        #expect(known.entitlement(at: d(30)).retry == Entitlement.Retry(since: d(30), until: d(120)))
        let over = told(
            "EXPIRED", "BILLING_RETRY", at: d(120), month(1),
            renewal(0, at: d(30), "'isInBillingRetryPeriod':false,'expirationIntent':2"), status: 2)
        #expect(try timeline(start, failed, over).words(at: d(120)) == "expired billing since 29d")
    }

    @Test func `that is cancelled keeps access, and goes on being billed`() throws {
        let cancelled = told(
            "DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: d(5), month(1), committed(0, at: d(30)))
        let answer = try timeline(start, cancelled).entitlement(at: d(5))
        #expect(words(answer) == "active until 30d1h" && answer.commitment?.renews == false)
        #expect(answer.commitment?.endsAt == d(360) && answer.autoRenew == true && answer.renewsAt == d(30))
        let next = told("DID_RENEW", at: d(30), month(2), committed(0, at: d(60)))
        #expect(try timeline(start, cancelled, next).words(at: d(30)) == "active until 60d1h")
    }

    @Test func `is billed although renewal reads as off, and retried as well`() throws {
        let info = renewal(0, at: d(30), "'isInBillingRetryPeriod':true")
        let known = try timeline(start, told("DID_FAIL_TO_RENEW", at: d(30), month(1), info, status: 3))
        #expect(known.words(at: d(31)) == "billing_retry since 30d")
    }

    @Test(arguments: [true, false])
    func `that is complete renews as another commitment, or as another plan`(_ again: Bool) throws {
        let last = told("DID_RENEW", at: d(330), month(12), committed(1, at: d(360)))
        let next =
            again
            ? bought(
                "13", d(360), d(390),
                "'billingPlanType':'MONTHLY','commitmentInfo':{'billingPeriodNumber':1,'totalBillingPeriods':12,"
                    + "'commitmentExpiresDate':\(d(720))}")
            : bought("13", d(360), d(725), "'billingPlanType':'BILLED_UPFRONT','productId':'plus'")
        let known = try timeline(start, last, told("DID_RENEW", at: d(360), next, renewal(1, at: d(again ? 390 : 725))))
        let answer = known.entitlement(at: d(360))
        #expect(answer.commitment?.period == (again ? 1 : nil) && answer.commitment?.endsAt == (again ? d(720) : nil))
        #expect(answer.billingPlan == (again ? "MONTHLY" : "BILLED_UPFRONT") && answer.access)
    }

    @Test func `that is complete and cancelled ends with its last period, without leeway`() throws {
        let last = told("DID_RENEW", at: d(330), month(12), committed(0, at: d(360)))
        let known = try timeline(start, last)
        #expect(known.words(at: d(360) - 1) == "active until 360d")
        #expect(known.words(at: d(360)) == "expired voluntary since 360d")
        let over = told("EXPIRED", at: d(360), month(12), status: 2)
        #expect(try timeline(start, last, over).words(at: d(360)) == "expired other since 360d", "the word comes first")
    }

    @Test func `ends at once by an upgrade`() throws {
        let known = try timeline(
            start, told("REFUND", at: d(10), month(1, "'isUpgraded':true,'revocationDate':\(d(10))")),
            told("DID_CHANGE_RENEWAL_PREF", "UPGRADE", at: d(10), bought("u", d(10), d(375)), renewal(1, at: d(375))))
        let answer = known.entitlement(at: d(10))
        #expect(words(answer) == "active until 375d1h" && answer.commitment == nil && answer.since == d(0))
    }

    @Test func `is downgraded at its end only`() throws {
        let info = renewal(
            1, at: d(30),
            "'autoRenewProductId':'pro','commitmentInfo':{'commitmentAutoRenewStatus':1,"
                + "'commitmentAutoRenewProductId':'lite','commitmentRenewalBillingPlanType':'BILLED_UPFRONT'}")
        let answer = try timeline(start, told("DID_CHANGE_RENEWAL_PREF", "DOWNGRADE", at: d(5), month(1), info))
            .entitlement(at: d(5))
        #expect(answer.productId == "pro" && answer.pendingProductId == "lite")
        #expect(answer.pendingBillingPlan == "BILLED_UPFRONT" && words(answer) == "active until 30d1h")
    }

    @Test func `is changed by a crossgrade when a new row says so, else the change is pending`() throws {
        let pending = renewal(1, at: d(30), "'renewalBillingPlanType':'BILLED_UPFRONT'")
        let asked = told("DID_CHANGE_RENEWAL_PREF", at: d(5), month(1), pending)
        #expect(try timeline(start, asked).entitlement(at: d(5)).pendingBillingPlan == "BILLED_UPFRONT")
        let done = told(
            "DID_CHANGE_RENEWAL_PREF", "UPGRADE", at: d(6), bought("2", d(6), d(371)), renewal(1, at: d(371)))
        #expect(try timeline(start, asked, done).entitlement(at: d(6)).billingPlan == "BILLED_UPFRONT")
    }

    @Test func `goes on after a refund of a prior period, ends by one of the current`() throws {
        let second = told("DID_RENEW", at: d(30), month(2), committed(1, at: d(60)))
        let prior = told("REFUND", at: d(40), month(1, "'revocationDate':\(d(40))"))
        let current = told("REFUND", at: d(40), month(2, "'revocationDate':\(d(40))"))
        #expect(try timeline(start, second, prior).entitlement(at: d(40)).state == .active)
        #expect(try timeline(start, second, current).words(at: d(40)) == "revoked refund since 40d")
    }

    @Test func `tells of consent to a price as others do`() throws {
        let known = try timeline(
            start,
            told("PRICE_INCREASE", "PENDING", at: d(5), month(1), committed(1, at: d(30), "'priceIncreaseStatus':0")))
        #expect(known.entitlement(at: d(5)).priceConsent == .waiting && known.entitlement(at: d(5)).state == .active)
    }

    @Test func `that is cancelled has its end at the end of access, not at the cancellation`() throws {
        let cancelled = told(
            "DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: d(335), month(12), committed(0, at: d(360)))
        #expect(try timeline(cancelled).words(at: d(340)) == "active until 360d")
    }

    @Test func `has no claim for what was not paid`() throws {
        let over = told(
            "EXPIRED", "BILLING_RETRY", at: d(120), month(1, "'price':10000"),
            renewal(0, at: d(30), "'expirationIntent':2,'renewalPrice':10000"), status: 2)
        let answer = try timeline(start, failed, over).entitlement(at: d(120))
        #expect(answer.renewalPrice == nil && answer.price == 10_000 && answer.commitment?.price == 120_000)
    }

    @Test func `tells its monthly price and what the whole of it costs`() throws {
        let known = try timeline(
            told("SUBSCRIBED", "INITIAL_BUY", at: d(0), month(1, "'price':10000,'currency':'EUR'")))
        #expect(known.entitlement(at: d(0)).price == 10000 && known.entitlement(at: d(0)).commitment?.price == 120_000)
    }

    @Test func `counts periods as Apple does, not by dates`() throws {
        let row = bought("7", d(0), d(30), "'billingPlanType':'MONTHLY','commitmentInfo':{'billingPeriodNumber':2}")
        let commitment = try timeline(told("DID_RENEW", at: d(0), row)).entitlement(at: d(0)).commitment
        #expect(commitment == Entitlement.Commitment(period: 2, of: nil, endsAt: nil, price: nil, renews: nil))
    }

    @Test func `is one by the plan of its newest row, not by the pending one`() throws {
        let info = renewal(1, at: d(30), "'renewalBillingPlanType':'MONTHLY','isInBillingRetryPeriod':true")
        let known = try timeline(told("DID_FAIL_TO_RENEW", at: d(29), period(1), info, status: 3))
        #expect(known.words(at: d(29)) == "active until 30d", "an upfront row keeps its paid days")
    }
}
