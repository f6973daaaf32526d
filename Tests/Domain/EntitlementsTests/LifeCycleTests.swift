import Notices
import Testing

@testable import Entitlements

/// Rules.md D.1, row by row, for an upfront plan; the differences of a commitment are in their own suite. The answer comes from the
/// payloads; the type is only Apple's name for the event.
@Suite struct `A life of notifications` {
    private let start = told("SUBSCRIBED", "INITIAL_BUY", at: d(0), period(1), renewal(1, at: d(30)), status: 1)

    @Test func `SUBSCRIBED INITIAL_BUY grants until expiresDate`() throws {
        let answer = try timeline(start).entitlement(at: d(0))
        #expect(words(answer) == "active until 30d1h")
        #expect(answer.entitlements == ["archive", "premium"] && answer.autoRenew == true && answer.since == d(0))
    }

    @Test func `SUBSCRIBED INITIAL_BUY may come with renewal off already`() throws {
        let known = try timeline(
            told("SUBSCRIBED", "INITIAL_BUY", at: d(0), period(1), renewal(0, at: d(30)), status: 1))
        #expect(known.words(at: d(0)) == "active until 30d")
    }

    @Test func `SUBSCRIBED RESUBSCRIBE begins anew, and the gap is a lapse`() throws {
        let known = try timeline(
            start, told("EXPIRED", "VOLUNTARY", at: d(30), period(1), renewal(0, at: d(30)), status: 2),
            told("SUBSCRIBED", "RESUBSCRIBE", at: d(50), bought("9", d(50), d(80)), renewal(1, at: d(80)), status: 1))
        let answer = known.entitlement(at: d(50))
        #expect(words(answer) == "active until 80d1h" && answer.since == d(50))
        #expect(answer.runs == [Run(start: d(0), end: d(30)), Run(start: d(50), end: d(80))])
    }

    @Test func `DID_RENEW extends to the new expiresDate`() throws {
        let known = try timeline(start, told("DID_RENEW", at: d(30), period(2), renewal(1, at: d(60)), status: 1))
        #expect(known.words(at: d(30)) == "active until 60d1h")
        #expect(known.entitlement(at: d(30)).since == d(0))
        #expect(known.entitlement(at: d(30)).runs == [Run(start: d(0), end: d(60))])
    }

    @Test func `DID_RENEW BILLING_RECOVERY restores access`() throws {
        let failed = told("DID_FAIL_TO_RENEW", at: d(30), period(1, signed: d(0)), failing(d(30)), status: 3)
        #expect(try timeline(start, failed).words(at: d(40)) == "billing_retry since 30d")
        let paid = told("DID_RENEW", "BILLING_RECOVERY", at: d(45), bought("2", d(45), d(75)), renewal(1, at: d(75)))
        #expect(try timeline(start, failed, paid).words(at: d(45)) == "active until 75d1h")
    }

    @Test func `AUTO_RENEW_DISABLED leaves the paid period, without leeway`() throws {
        let known = try timeline(
            start, told("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: d(5), period(1), renewal(0, at: d(30))))
        #expect(known.words(at: d(5)) == "active until 30d" && known.entitlement(at: d(5)).autoRenew == false)
        #expect(known.entitlement(at: d(5)).renewsAt == nil)
    }

    @Test(arguments: [nil, d(46)])
    func `AUTO_RENEW_DISABLED ends grace and retry at once`(_ grace: Int64?) throws {
        let known = try timeline(
            start, told("DID_FAIL_TO_RENEW", at: d(30), period(1), failing(d(30), grace: grace)),
            told("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: d(35), period(1), renewal(0, at: d(30))))
        #expect(known.words(at: d(35)) == "expired voluntary since \(grace == nil ? 30 : 35)d")
        #expect(known.entitlement(at: d(35)).retry == nil)
    }

    @Test func `AUTO_RENEW_ENABLED takes the cancellation back`() throws {
        let known = try timeline(
            start, told("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: d(5), period(1), renewal(0, at: d(30))),
            told("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_ENABLED", at: d(6), period(1), renewal(1, at: d(30))))
        #expect(known.words(at: d(6)) == "active until 30d1h" && known.entitlement(at: d(6)).autoRenew == true)
    }

    @Test func `DID_CHANGE_RENEWAL_STATUS without subtype is read from its fields`() throws {
        let known = try timeline(
            start, told("DID_CHANGE_RENEWAL_STATUS", at: d(5), period(1), renewal(0, at: d(30), "'expirationIntent':3"))
        )
        #expect(known.words(at: d(5)) == "active until 30d")
        #expect(known.words(at: d(30)) == "expired price since 30d")
    }

    @Test func `DID_CHANGE_RENEWAL_PREF UPGRADE moves to the new product at once`() throws {
        let known = try timeline(
            start,
            told(
                "DID_CHANGE_RENEWAL_PREF", "UPGRADE", at: d(10), bought("u", d(10), d(375), "'productId':'plus'"),
                renewal(1, at: d(375))),
            told("REFUND", at: d(10) + 1, period(1, "'isUpgraded':true,'revocationDate':\(d(10))")))
        let answer = known.entitlement(at: d(10))
        #expect(words(answer) == "active until 375d1h" && answer.productId == "plus" && answer.since == d(0))
        #expect(answer.runs == [Run(start: d(0), end: d(375))])
    }

    @Test func `DID_CHANGE_RENEWAL_PREF DOWNGRADE is pending until the next renewal`() throws {
        let asked = told(
            "DID_CHANGE_RENEWAL_PREF", "DOWNGRADE", at: d(10), period(1),
            renewal(1, at: d(30), "'autoRenewProductId':'lite'"))
        let pending = try timeline(start, asked).entitlement(at: d(10))
        #expect(
            pending.productId == "pro" && pending.pendingProductId == "lite" && words(pending) == "active until 30d1h")
        let renewed = told(
            "DID_RENEW", at: d(30), period(2, "'productId':'lite'"),
            renewal(1, at: d(60), "'autoRenewProductId':'lite'"))
        let done = try timeline(start, asked, renewed).entitlement(at: d(30))
        #expect(done.productId == "lite" && done.pendingProductId == nil && done.entitlements == [])
    }

    @Test func `DID_CHANGE_RENEWAL_PREF without subtype drops the pending change`() throws {
        let known = try timeline(
            start,
            told(
                "DID_CHANGE_RENEWAL_PREF", "DOWNGRADE", at: d(10), period(1),
                renewal(1, at: d(30), "'autoRenewProductId':'lite'")),
            told("DID_CHANGE_RENEWAL_PREF", at: d(11), period(1), renewal(1, at: d(30), "'autoRenewProductId':'pro'")))
        #expect(known.entitlement(at: d(11)).pendingProductId == nil)
    }

    @Test func `OFFER_REDEEMED changes nothing about access`() throws {
        let known = try timeline(
            start,
            told("OFFER_REDEEMED", at: d(10), period(1), renewal(1, at: d(30), "'offerType':2,'renewalPrice':500")))
        #expect(known.words(at: d(10)) == "active until 30d1h" && known.entitlement(at: d(10)).renewalPrice == 500)
    }

    @Test func `OFFER_REDEEMED UPGRADE gives the new product at once`() throws {
        let offer = "'productId':'plus','offerType':3,'offerIdentifier':'spring','offerDiscountType':'FREE_TRIAL'"
        let known = try timeline(start, told("OFFER_REDEEMED", "UPGRADE", at: d(10), bought("u", d(10), d(40), offer)))
        let answer = known.entitlement(at: d(10))
        #expect(answer.productId == "plus")
        #expect(answer.offer == Entitlement.Offer(type: "code", identifier: "spring", discount: "FREE_TRIAL"))
    }

    @Test func `OFFER_REDEEMED DOWNGRADE is pending`() throws {
        let known = try timeline(
            start,
            told(
                "OFFER_REDEEMED", "DOWNGRADE", at: d(10), period(1),
                renewal(1, at: d(30), "'autoRenewProductId':'lite'")))
        #expect(
            known.entitlement(at: d(10)).pendingProductId == "lite" && known.words(at: d(10)) == "active until 30d1h")
    }

    @Test func `DID_FAIL_TO_RENEW GRACE_PERIOD keeps access until the grace ends`() throws {
        let known = try timeline(
            start,
            told("DID_FAIL_TO_RENEW", "GRACE_PERIOD", at: d(30), period(1), failing(d(30), grace: d(36)), status: 4))
        let answer = known.entitlement(at: d(30))
        #expect(words(answer) == "grace until 36d" && answer.graceUntil == d(36))
    }

    @Test func `DID_FAIL_TO_RENEW without grace stops at expiresDate`() throws {
        let known = try timeline(start, told("DID_FAIL_TO_RENEW", at: d(29), period(1), failing(d(30)), status: 3))
        #expect(known.words(at: d(29)) == "active until 30d" && known.words(at: d(30)) == "billing_retry since 30d")
    }

    @Test func `GRACE_PERIOD_EXPIRED stops access while Apple goes on trying`() throws {
        let known = try timeline(
            start,
            told("DID_FAIL_TO_RENEW", "GRACE_PERIOD", at: d(30), period(1), failing(d(30), grace: d(46)), status: 4),
            told("GRACE_PERIOD_EXPIRED", at: d(46) + 1, period(1), failing(d(30), grace: d(46)), status: 3))
        #expect(known.words(at: d(46) + 1) == "billing_retry since 46d")
        #expect(known.entitlement(at: d(46) + 1).retry?.until == d(90))
    }

    @Test(arguments: [
        ("VOLUNTARY", 1, "voluntary"), ("BILLING_RETRY", 2, "billing"), ("PRICE_INCREASE", 3, "price"),
        ("PRODUCT_NOT_FOR_SALE", 4, "unavailable"), (nil, 5, "other"),
    ])
    func `EXPIRED stops access, for the reason of its subtype and intent`(
        _ subtype: String?, _ intent: Int, _ reason: String
    ) throws {
        let bare = told("EXPIRED", subtype, at: d(30), period(1), status: 2)
        #expect(try timeline(bare).words(at: d(30)) == "expired \(reason) since 30d", "the subtype alone")
        let info = renewal(0, at: d(30), "'expirationIntent':\(intent)")
        let whole = told("EXPIRED", subtype, at: d(30), period(1), info, status: 2)
        let known = try timeline(start, whole)
        #expect(known.words(at: d(30)) == "expired \(reason) since 30d")
    }

    @Test(arguments: [(0, Entitlement.PriceConsent.waiting), (1, .settled)])
    func `PRICE_INCREASE changes nothing but the consent`(
        _ status: Int, _ consent: Entitlement.PriceConsent
    ) throws {
        let info = renewal(1, at: d(30), "'priceIncreaseStatus':\(status)")
        let known = try timeline(
            start, told("PRICE_INCREASE", status == 0 ? "PENDING" : "ACCEPTED", at: d(9), period(1), info))
        #expect(known.entitlement(at: d(9)).priceConsent == consent && known.words(at: d(9)) == "active until 30d1h")
    }

    @Test func `RENEWAL_EXTENDED moves the end of the same transaction`() throws {
        let known = try timeline(
            start, told("RENEWAL_EXTENDED", at: d(9), bought("1", d(0), d(44)), renewal(1, at: d(44)), status: 1))
        #expect(known.words(at: d(9)) == "active until 44d1h")
        #expect(known.entitlement(at: d(9)).runs == [Run(start: d(0), end: d(44))])
    }
}
