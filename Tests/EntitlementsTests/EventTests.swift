import Testing

@testable import Entitlements

/// What is told between two moments, each with what is known by then: `kind at`, in days of `d`.
private func events(
    _ before: [String], at first: Int64, then after: [String], at second: Int64, told: Int64? = nil
) throws -> [String] {
    let known = try facts(before)
    var more = known
    for record in after { more.merge(try reading(record).facts) }
    let now = try #require(Timeline(more, rules()))
    return now.standing(at: second).events(
        since: Timeline(known, rules())?.standing(at: first), told: told ?? second
    ).map { "\($0.kind.rawValue) \(days($0.at))" }
}

private func days(_ instant: Int64) -> String {
    let (days, rest) = (instant - d(0)).quotientAndRemainder(dividingBy: 24 * hour)
    return rest == 0 ? "\(days)d" : rest % hour == 0 ? "\(days)d\(rest / hour)h" : "\(days)d+\(rest)ms"
}

private let subscribed = told("SUBSCRIBED", "INITIAL_BUY", at: d(0), period(1), renewal(1, at: d(30)), status: 1)
private let renewed = told("DID_RENEW", at: d(30), period(2), renewal(1, at: d(60)), status: 1)
private let turnedOff = told(
    "DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: d(10), period(1), renewal(0, at: d(30)), status: 1)
private let failed = told("DID_FAIL_TO_RENEW", at: d(29), period(1), failing(d(30)), status: 3)
private let failedWithGrace = told(
    "DID_FAIL_TO_RENEW", "GRACE_PERIOD", at: d(29), period(1), failing(d(30), grace: d(46)), status: 4)
private let refundedNow = told("REFUND", at: d(12), period(1, "'revocationDate':\(d(11))"), status: 1)

@Suite struct `Events` {
    @Test func `of a beginning: started at its start, with the offer it has`() throws {
        #expect(try events([], at: 0, then: [subscribed], at: d(0) + 5) == ["started 0d"])
        let trial = told(
            "SUBSCRIBED", "INITIAL_BUY", at: d(0), period(1, "'offerType':1,'offerDiscountType':'FREE_TRIAL'"),
            renewal(1, at: d(30)))
        #expect(try events([], at: 0, then: [trial], at: d(0)) == ["started 0d", "offer_redeemed 0d"])
        #expect(
            try events([trial], at: d(0), then: [renewed], at: d(30)) == ["renewed 30d"], "the offer is over by then")
    }

    @Test func `of a one-time purchase: purchased, refunded, taken back`() throws {
        let purchase = told("ONE_TIME_CHARGE", at: d(0), once("1", d(0)))
        let refund = told("REFUND", at: d(2), once("1", d(0), "'revocationDate':\(d(1))"))
        let reversal = told("REFUND_REVERSED", at: d(3), once("1", d(0)))
        #expect(try events([], at: 0, then: [purchase], at: d(0)) == ["purchased 0d"])
        #expect(try events([purchase], at: d(0), then: [refund], at: d(2)) == ["refunded 1d", "access_ended 1d"])
        #expect(try events([purchase, refund], at: d(2), then: [reversal], at: d(3)) == ["refund_reversed 3d"])
    }

    @Test func `of a renewal: renewed at the start of its period, late or early`() throws {
        #expect(try events([subscribed], at: d(0), then: [renewed], at: d(30)) == ["renewed 30d"])
        #expect(
            try events([subscribed], at: d(30) + hour, then: [renewed], at: d(31)) == ["renewed 30d"],
            "its word came after the leeway")
        let early = told("DID_RENEW", at: d(29), period(2), renewal(1, at: d(60)), status: 1)
        #expect(try events([subscribed, early], at: d(29), then: [], at: d(30)) == ["renewed 30d"])
    }

    @Test func `of a failure: grace, billing retry and the end, each once`() throws {
        #expect(try events([subscribed], at: d(0), then: [failedWithGrace], at: d(29)) == [])
        let known = [subscribed, failedWithGrace]
        #expect(try events(known, at: d(29), then: [], at: d(30)) == ["entered_grace 30d"])
        #expect(
            try events(known, at: d(30), then: [], at: d(46)) == ["entered_billing_retry 46d", "access_ended 46d"])
        #expect(try events(known, at: d(46), then: [], at: d(90)) == ["expired 90d"])
        #expect(
            try events([subscribed, failed], at: d(29), then: [], at: d(30)) == [
                "entered_billing_retry 30d", "access_ended 30d",
            ])
        let givenUp = told(
            "EXPIRED", "BILLING_RETRY", at: d(80), period(1),
            renewal(0, at: nil, "'expirationIntent':2,'isInBillingRetryPeriod':false"), status: 2)
        #expect(
            try events(known, at: d(46), then: [givenUp], at: d(80)) == ["expired 80d"],
            "access had ended; the retrying ends now, and Apple turns the renewal off by itself")
    }

    @Test func `of a recovery: recovered, in grace, in retry and before the end`() throws {
        let recovered = told(
            "DID_RENEW", "BILLING_RECOVERY", at: d(40), bought("2", d(40), d(70)), renewal(1, at: d(70)))
        #expect(
            try events([subscribed, failed], at: d(30), then: [recovered], at: d(40)) == ["recovered 40d"],
            "a new cycle: access was lost for ten days")
        let inTime = told("DID_RENEW", "BILLING_RECOVERY", at: d(33), period(2), renewal(1, at: d(60)))
        #expect(try events([subscribed, failedWithGrace], at: d(31), then: [inTime], at: d(33)) == ["recovered 30d"])
        #expect(try events([subscribed, failed], at: d(29), then: [renewed], at: d(30)) == ["recovered 30d"])
    }

    @Test func `of the customer's mind: off, on, expired, back again`() throws {
        #expect(try events([subscribed], at: d(0), then: [turnedOff], at: d(10)) == ["renewal_turned_off 10d"])
        let on = told(
            "DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_ENABLED", at: d(11), period(1), renewal(1, at: d(30)), status: 1)
        #expect(try events([subscribed, turnedOff], at: d(10), then: [on], at: d(11)) == ["renewal_turned_on 11d"])
        #expect(try events([subscribed, turnedOff], at: d(10), then: [], at: d(30)) == ["expired 30d"])
        let back = told("SUBSCRIBED", "RESUBSCRIBE", at: d(50), bought("9", d(50), d(80)), renewal(1, at: d(80)))
        #expect(try events([subscribed, turnedOff], at: d(30), then: [back], at: d(50)) == ["resubscribed 50d"])
    }

    @Test func `of a refund: refunded and access ended when it was given, and reversed`() throws {
        #expect(
            try events([subscribed], at: d(0), then: [refundedNow], at: d(12)) == ["refunded 11d", "access_ended 11d"])
        let reversed = told("REFUND_REVERSED", at: d(13), period(1), status: 1)
        #expect(
            try events([subscribed, refundedNow], at: d(12), then: [reversed], at: d(13)) == ["refund_reversed 13d"])
        let back = told("SUBSCRIBED", "RESUBSCRIBE", at: d(20), bought("9", d(20), d(50)), renewal(1, at: d(50)))
        #expect(try events([subscribed, refundedNow], at: d(12), then: [back], at: d(20)) == ["resubscribed 20d"])
    }

    @Test func `of a family: revoked and access ended`() throws {
        let shared = told("SUBSCRIBED", at: d(0), period(1, "'inAppOwnershipType':'FAMILY_SHARED'"))
        let revoked = told(
            "REVOKE", at: d(5), period(1, "'inAppOwnershipType':'FAMILY_SHARED','revocationDate':\(d(5))"))
        #expect(try events([shared], at: d(0), then: [revoked], at: d(5)) == ["family_revoked 5d", "access_ended 5d"])
    }

    @Test func `of an upgrade: plan_changed and no renewal, told with and without the old row`() throws {
        let upgrade = told(
            "DID_CHANGE_RENEWAL_PREF", "UPGRADE", at: d(10), bought("9", d(10), d(40), "'productId':'plus'"),
            renewal(1, at: d(40)), status: 1)
        #expect(try events([subscribed], at: d(0), then: [upgrade], at: d(10)) == ["plan_changed 10d"])
        let oldRow = told("REFUND", at: d(10), period(1, "'isUpgraded':true,'revocationDate':\(d(10))"))
        #expect(try events([subscribed], at: d(0), then: [upgrade, oldRow], at: d(10)) == ["plan_changed 10d"])
        #expect(
            try events([subscribed, oldRow], at: d(10), then: [upgrade], at: d(10)) == ["plan_changed 10d"],
            "the old row came first, and was superseded by nothing")
    }

    @Test func `of a downgrade: pending first, changed with the renewal`() throws {
        let pending = told(
            "DID_CHANGE_RENEWAL_PREF", "DOWNGRADE", at: d(10), period(1),
            renewal(1, at: d(30), "'autoRenewProductId':'basic'"), status: 1)
        #expect(try events([subscribed], at: d(0), then: [pending], at: d(10)) == ["plan_change_pending 10d"])
        let effective = told(
            "DID_RENEW", at: d(30), period(2, "'productId':'basic'"),
            renewal(1, at: d(60), "'autoRenewProductId':'basic'"))
        #expect(
            try events([subscribed, pending], at: d(10), then: [effective], at: d(30)) == [
                "renewed 30d", "plan_changed 30d",
            ])
    }

    @Test func `of an extension: extended`() throws {
        let longer = told(
            "RENEWAL_EXTENDED", at: d(10), bought("1", d(0), d(37)), renewal(1, at: d(37)), status: 1)
        #expect(try events([subscribed], at: d(0), then: [longer], at: d(10)) == ["extended 10d"])
    }

    @Test func `of a price and an account: changed consent, bound`() throws {
        let waiting = told(
            "PRICE_INCREASE", "PENDING", at: d(10), period(1), renewal(1, at: d(30), "'priceIncreaseStatus':0"))
        let settled = told(
            "PRICE_INCREASE", "ACCEPTED", at: d(11), period(1), renewal(1, at: d(30), "'priceIncreaseStatus':1"))
        #expect(try events([subscribed], at: d(0), then: [waiting], at: d(10)) == ["price_consent_changed 10d"])
        #expect(
            try events([subscribed, waiting], at: d(10), then: [settled], at: d(11)) == ["price_consent_changed 11d"])
        #expect(
            try events([subscribed, settled], at: d(11), then: [renewed], at: d(30)) == ["renewed 30d"],
            "that the new price has come is no consent")
        let bound = told("DID_RENEW", at: d(30), period(2, "'appAccountToken':'A1'"), renewal(1, at: d(60)))
        #expect(try events([subscribed], at: d(0), then: [bound], at: d(30)) == ["renewed 30d", "account_bound 30d"])
    }

    @Test func `of a commitment: started, completed when its last month is over, and not by an upgrade`() throws {
        let first = told("SUBSCRIBED", at: d(0), month(1), committed(1, at: d(30)))
        #expect(try events([], at: 0, then: [first], at: d(0)) == ["started 0d", "commitment_started 0d"])
        let last = told("DID_RENEW", at: d(330), month(12), committed(1, at: d(360)))
        let known = [first, last]
        let eleventh = told("DID_RENEW", at: d(300), month(11), committed(1, at: d(330)))
        #expect(try events([eleventh], at: d(300), then: [last], at: d(330)) == ["renewed 330d"])
        let next = told(
            "DID_RENEW", at: d(360),
            bought(
                "13", d(360), d(390),
                "'billingPlanType':'MONTHLY','commitmentInfo':{'billingPeriodNumber':1,'totalBillingPeriods':12}"),
            committed(1, at: d(390)))
        #expect(
            try events(known, at: d(330), then: [next], at: d(360)) == [
                "renewed 360d", "commitment_completed 360d", "commitment_started 360d",
            ])
        let ended = told("EXPIRED", "VOLUNTARY", at: d(360), month(12), committed(0, at: d(360), renews: 0), status: 2)
        #expect(
            try events(known, at: d(330), then: [ended], at: d(360)) == ["commitment_completed 360d", "expired 360d"])
        let upgrade = told(
            "DID_CHANGE_RENEWAL_PREF", "UPGRADE", at: d(340), bought("20", d(340), d(705), "'productId':'plus'"),
            renewal(1, at: d(705)))
        #expect(try events(known, at: d(330), then: [upgrade], at: d(340)) == ["plan_changed 340d"])
    }

    @Test func `of nothing new: none`() throws {
        #expect(try events([subscribed], at: d(0), then: [subscribed], at: d(5)) == [])
        #expect(EntitlementEvent(.started, at: 0).isHistoric(at: 86_400_000) == false)
        #expect(EntitlementEvent(.started, at: 0).isHistoric(at: 86_400_001))
    }

    @Test func `of what became known at once: the net change`() throws {
        let expired = told(
            "EXPIRED", "VOLUNTARY", at: d(30), period(1), renewal(0, at: nil, "'expirationIntent':1"), status: 2)
        #expect(
            try events([], at: 0, then: [subscribed, turnedOff, expired], at: d(31)) == ["started 0d", "expired 30d"])
    }
}
