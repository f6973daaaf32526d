import Testing

@testable import Entitlements

/// The events between two moments, from what is known at each: `kind at`, in days of `d`.
private func events(
    _ before: [String], at first: Int64, then after: [String], at second: Int64, told: Int64? = nil
) throws -> [String] {
    let known = try facts(before)
    var more = known
    for record in after { more.merge(try reading(record).facts) }
    let now = try #require(Timeline(more, rules()))
    // What was told refers to its timeline.
    let earlier = Timeline(known, rules())
    defer { withExtendedLifetime((earlier, now)) {} }
    let was = earlier?.standing(at: first).told(after: nil, [], answer: 0)
    return now.standing(at: second).events(since: was, told: told ?? second)
        .map { "\($0.kind.rawValue) \(days($0.at))" }
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

    @Test func `of an old row that is heard of before the new one: superseded, whatever state it was in`() throws {
        let replaced = told("REFUND", at: d(40), period(1, "'isUpgraded':true,'revocationDate':\(d(10))"))
        #expect(try events([subscribed], at: d(0), then: [replaced], at: d(40)) == ["superseded 10d"])
        #expect(
            try events([subscribed, turnedOff], at: d(31), then: [replaced], at: d(40)) == ["superseded 10d"],
            "it had expired, and the end it had was another")
        #expect(try events([subscribed, failed], at: d(31), then: [replaced], at: d(40)) == ["superseded 10d"])
        #expect(try events([], at: d(0), then: [replaced], at: d(40)) == ["started 0d", "superseded 10d"])
        #expect(try events([replaced], at: d(40), then: [], at: d(50)) == [], "told once")
        let undated = told("REFUND", at: d(12), period(1, "'isUpgraded':true"))
        #expect(try events([subscribed], at: d(0), then: [undated], at: d(13)) == ["superseded 12d"])
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
            try events(known, at: d(330), then: [ended], at: d(360)) == [
                "commitment_completed 360d", "expired 360d", "renewal_turned_off 360d",
            ], "no event says that the customer had turned it off")
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

/// Follows a subscription as the worker does: each record when it comes, and changes by time alone when they are due.
private struct Telling {
    private var facts = Facts()
    private var told: Told?
    /// What was told refers to it.
    private var tellingTimeline: Timeline?
    private(set) var events: [String] = []

    /// - Parameter steps: when a record comes, and the record; nil: only the clock moves.
    static func events(_ steps: (Int64, String?)...) throws -> [String] {
        var telling = Telling()
        for (instant, record) in steps {
            while let timeline = Timeline(telling.facts, rules()), let due = timeline.nextStep(after: telling.clock),
                due <= instant
            {
                telling.clock = due
                telling.tell(timeline, at: due)
            }
            telling.clock = instant
            guard let record else { continue }
            let reading = try reading(record)
            guard telling.facts.merge(reading.facts), let timeline = Timeline(telling.facts, rules()) else { continue }
            telling.tell(timeline, at: reading.signedDate ?? instant)
        }
        return telling.events
    }

    private var clock = Int64.min

    private mutating func tell(_ timeline: Timeline, at signed: Int64) {
        let standing = timeline.standing(at: clock)
        let new = standing.events(since: told, told: signed)
        told = standing.told(after: told, new, answer: 0)
        tellingTimeline = timeline
        events += new.map { "\($0.kind.rawValue) \(days($0.at))" }
    }
}

/// Month `number` of a commitment, reported when it begins.
private func renewedMonth(_ number: Int64, continues: Int = 1) -> String {
    told("DID_RENEW", at: d(30 * (number - 1)), month(number), committed(continues, at: d(30 * number)))
}

@Suite struct `Events of a whole story` {
    @Test func `tell every renewal once, at its start, whether its word came before, after or late`() throws {
        let early = told("DID_RENEW", at: d(29), period(2), renewal(1, at: d(60)), status: 1)
        let later = told("DID_RENEW", at: d(60), period(3), renewal(1, at: d(90)), status: 1)
        let all = ["started 0d", "renewed 30d", "renewed 60d"]
        #expect(try Telling.events((d(0), subscribed), (d(29), early), (d(60), later), (d(61), nil)) == all)
        #expect(try Telling.events((d(0), subscribed), (d(29), early), (d(60) + 5, later)) == all)
        let afterLeeway = try Telling.events((d(0), subscribed), (d(29), early), (d(60) + 2 * hour, later))
        #expect(afterLeeway == ["started 0d", "renewed 30d", "expired 60d1h", "renewed 60d"])
    }

    @Test func `call nobody back who never was away`() throws {
        let minutesLate = told(
            "DID_RENEW", at: d(30) + hour / 3, bought("2", d(30) + hour / 3, d(60)), renewal(1, at: d(60)), status: 1)
        #expect(
            try Telling.events((d(0), subscribed), (d(30) + hour / 2, minutesLate)) == [
                "started 0d", "renewed 30d+1200000ms",
            ])
        #expect(
            try Telling.events((d(0), subscribed), (d(30) + 2 * hour, minutesLate)).last == "renewed 30d+1200000ms",
            "its word came after the leeway")
        let monthsLater = told(
            "SUBSCRIBED", "RESUBSCRIBE", at: d(99), bought("2", d(99), d(129)), renewal(1, at: d(129)))
        #expect(try Telling.events((d(0), subscribed), (d(99), monthsLater)).last == "resubscribed 99d")
        let soonAgain = told(
            "SUBSCRIBED", "RESUBSCRIBE", at: d(30) + 9, bought("2", d(30) + 9, d(60)), renewal(1, at: d(60)))
        #expect(
            try Telling.events((d(0), subscribed), (d(10), turnedOff), (d(30) + 9, soonAgain)).last
                == "resubscribed 30d+9ms", "a lapsed customer comes back, however soon")
    }

    @Test func `tell that a commitment will not be continued, not what its month says`() throws {
        let off = told(
            "DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: d(100), month(4), committed(0, at: d(120)))
        let on = told(
            "DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_ENABLED", at: d(101), month(4), committed(1, at: d(120)))
        let monthOff = told("X", at: d(102), month(4), committed(1, at: d(120), renews: 0))
        #expect(
            try Telling.events((d(90), renewedMonth(4)), (d(100), off), (d(101), on), (d(102), monthOff)).suffix(2) == [
                "renewal_turned_off 100d", "renewal_turned_on 101d",
            ])
    }

    @Test func `complete a commitment once, whatever follows`() throws {
        func completions(_ steps: (Int64, String?)...) throws -> [String] {
            var all = [(d(300), renewedMonth(11)), (d(330), renewedMonth(12))] as [(Int64, String?)]
            all += steps
            var telling: [String] = []
            switch all.count {
            case 3: telling = try Telling.events(all[0], all[1], all[2])
            default: telling = try Telling.events(all[0], all[1], all[2], all[3])
            }
            return telling.filter { $0.hasPrefix("commitment_completed") }
        }
        let once = ["commitment_completed 360d"]
        let back = told("SUBSCRIBED", "RESUBSCRIBE", at: d(500), bought("20", d(500), d(530)), renewal(1, at: d(530)))
        let late = told("DID_RENEW", at: d(360), bought("13", d(360), d(390)), renewal(1, at: d(390)))
        let failure = told(
            "DID_FAIL_TO_RENEW", at: d(360), month(12), committed(1, at: d(360), "'isInBillingRetryPeriod':true"))
        let recovered = told(
            "DID_RENEW", "BILLING_RECOVERY", at: d(370), bought("13", d(370), d(400)), renewal(1, at: d(400)))
        #expect(try completions((d(500), nil)) == once)
        #expect(try completions((d(400), nil), (d(500), back)) == once)
        #expect(try completions((d(360) + 2 * hour, late)) == once)
        #expect(try completions((d(360), failure), (d(370), recovered)) == once)
        #expect(try completions((d(360), failure), (d(500), nil)) == once)
    }

    @Test func `start no commitment in its midst`() throws {
        let events = try Telling.events((d(60), renewedMonth(3)), (d(120), renewedMonth(5)))
        #expect(!events.contains { $0 == "commitment_started 120d" }, "\(events)")
    }

    @Test func `tell a recovery when it is known, though the period it paid for is to come`() throws {
        let recovered = told("DID_RENEW", "BILLING_RECOVERY", at: d(29) + hour, period(2), renewal(1, at: d(60)))
        #expect(
            try Telling.events((d(0), subscribed), (d(29), failed), (d(29) + hour, recovered), (d(31), nil)) == [
                "started 0d", "recovered 29d1h",
            ])
        let next = told("DID_RENEW", at: d(60), period(3), renewal(1, at: d(90)))
        #expect(
            try Telling.events((d(0), subscribed), (d(29), failed), (d(29) + hour, recovered), (d(60), next)).last
                == "renewed 60d", "a recovery gives one event, which does not replace later ones")
        let monthFailed = told(
            "DID_FAIL_TO_RENEW", at: d(119), month(4), committed(1, at: d(120), "'isInBillingRetryPeriod':true"))
        let monthPaid = told("DID_RENEW", "BILLING_RECOVERY", at: d(119) + hour, month(5), committed(1, at: d(150)))
        #expect(
            try Telling.events(
                (d(90), renewedMonth(4)), (d(119), monthFailed), (d(119) + hour, monthPaid), (d(121), nil)
            )
            .suffix(3) == ["entered_billing_retry 119d", "access_ended 119d", "recovered 119d1h"])
    }

    @Test func `call an upgrade out of a failed payment an upgrade`() throws {
        let upgrade = told(
            "DID_CHANGE_RENEWAL_PREF", "UPGRADE", at: d(35), bought("9", d(35), d(65), "'productId':'plus'"),
            renewal(1, at: d(65)))
        let oldRow = told("REFUND", at: d(35), period(1, "'isUpgraded':true,'revocationDate':\(d(35))"))
        let events = try Telling.events((d(0), subscribed), (d(29), failedWithGrace), (d(35), oldRow), (d(35), upgrade))
        #expect(events == ["started 0d", "entered_grace 30d", "superseded 35d", "plan_changed 35d"])
    }

    @Test func `tell who cancels in grace, and that it ended for that`() throws {
        let cancelled = told(
            "DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: d(35), period(1),
            renewal(
                0, at: d(30), "'isInBillingRetryPeriod':true,'gracePeriodExpiresDate':\(d(46)),'expirationIntent':1"))
        let events = try Telling.events((d(0), subscribed), (d(29), failedWithGrace), (d(35), cancelled))
        #expect(events == ["started 0d", "entered_grace 30d", "expired 35d", "renewal_turned_off 35d"])
    }

    @Test func `date the end at the end, also when it is told again after a refund was taken back`() throws {
        let reversed = told("REFUND_REVERSED", at: d(60), period(1))
        let events = try Telling.events((d(0), subscribed), (d(12), refundedNow), (d(60), reversed))
        #expect(events.suffix(2) == ["refund_reversed 60d", "expired 30d1h"])
    }

    @Test func `take an upgrade that was refunded for no reversal`() throws {
        let upgraded = told("REFUND", at: d(13), period(1, "'isUpgraded':true,'revocationDate':\(d(11))"))
        let events = try Telling.events((d(0), subscribed), (d(12), refundedNow), (d(13), upgraded))
        #expect(!events.contains { $0.hasPrefix("refund_reversed") }, "\(events)")
    }

    @Test func `bind an account when the purchase was made, however late it is fetched`() throws {
        let fetched = told("X", at: d(700), period(1, signed: d(700), "'appAccountToken':'A1'"))
        #expect(try Telling.events((d(700), fetched)) == ["started 0d", "expired 30d", "account_bound 0d"])
    }

    @Test func `tell what the customer has changed since Apple last spoke of it, though a word between was silent`()
        throws
    {
        let silent = told("DID_RENEW", at: d(30), period(2))
        let off = told(
            "DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: d(40), period(2), renewal(0, at: d(60)))
        let events = try Telling.events((d(0), subscribed), (d(30), silent), (d(40), off))
        #expect(events == ["started 0d", "renewed 30d", "renewal_turned_off 40d"])
    }
}
