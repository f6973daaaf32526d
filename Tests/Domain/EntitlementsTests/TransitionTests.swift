import Testing

@testable import Entitlements

/// Rules.md E.4, row by row: the answer before, the notification, and the answer after it.
@Suite struct `A transition of an upfront plan` {
    private let start = told("SUBSCRIBED", "INITIAL_BUY", at: d(0), period(1), renewal(1, at: d(30)), status: 1)
    private let inGrace = told(
        "DID_FAIL_TO_RENEW", "GRACE_PERIOD", at: d(29), period(1), failing(d(30), grace: d(46)), status: 4)
    private let inRetry = told("DID_FAIL_TO_RENEW", at: d(29), period(1), failing(d(30)), status: 3)

    @Test func `from nothing to active by SUBSCRIBED`() throws {
        #expect(Timeline(Facts(), rules()) == nil)
        #expect(try timeline(start).words(at: d(0)) == "active until 30d1h")
    }

    @Test func `from active to active with a new row by DID_RENEW`() throws {
        // Renewed a day early, as Apple does: the new period begins when the old one ends, by a timer.
        let known = try timeline(
            start, told("DID_RENEW", at: d(29), period(2, "'price':2"), renewal(1, at: d(60)), status: 1))
        #expect(known.entitlement(at: d(29)).price == nil && known.entitlement(at: d(30)).price == 2)
        #expect(known.words(at: d(29)) == "active until 60d1h" && known.nextChange(after: d(29)) == d(30))
    }

    @Test func `from active to expired when expiresDate comes with renewal off`() throws {
        let off = told("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: d(5), period(1), renewal(0, at: d(30)))
        let known = try timeline(start, off)
        #expect(known.words(at: d(30) - 1) == "active until 30d")
        #expect(known.words(at: d(30)) == "expired voluntary since 30d")
        let over = told("EXPIRED", "VOLUNTARY", at: d(30), period(1), renewal(0, at: d(30), "'expirationIntent':1"))
        #expect(try timeline(start, off, over).words(at: d(30)) == "expired voluntary since 30d")
    }

    @Test func `from active through expiresDate to grace`() throws {
        let known = try timeline(start, inGrace)
        #expect(known.words(at: d(30) - 1) == "active until 46d" && known.entitlement(at: d(29)).graceUntil == d(46))
        #expect(known.words(at: d(30)) == "grace until 46d")
        #expect(known.nextChange(after: d(29)) == d(30))
    }

    @Test func `from active through expiresDate to billing retry`() throws {
        let known = try timeline(start, inRetry)
        #expect(known.words(at: d(30) - 1) == "active until 30d" && known.words(at: d(30)) == "billing_retry since 30d")
    }

    @Test func `from grace to active by a recovery that keeps the cycle`() throws {
        let paid = told("DID_RENEW", "BILLING_RECOVERY", at: d(40), period(2), renewal(1, at: d(60)), status: 1)
        let answer = try timeline(start, inGrace, paid).entitlement(at: d(40))
        #expect(words(answer) == "active until 60d1h" && answer.since == d(0) && answer.graceUntil == nil)
        #expect(answer.runs == [Run(start: d(0), end: d(60))])
    }

    @Test func `from grace to billing retry when the grace ends, with or without word of it`() throws {
        let word = told("GRACE_PERIOD_EXPIRED", at: d(46), period(1), failing(d(30), grace: d(46)), status: 3)
        for known in [try timeline(start, inGrace), try timeline(start, inGrace, word)] {
            #expect(known.words(at: d(46)) == "billing_retry since 46d")
        }
    }

    @Test func `from grace or retry to expired when the customer cancels`() throws {
        let off = told("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: d(35), period(1), renewal(0, at: d(30)))
        #expect(try timeline(start, inGrace, off).words(at: d(35)) == "expired voluntary since 35d")
        #expect(try timeline(start, inRetry, off).words(at: d(35)) == "expired voluntary since 30d")
    }

    @Test func `from billing retry to active by a recovery, with a new cycle`() throws {
        let paid = told("DID_RENEW", "BILLING_RECOVERY", at: d(45), bought("2", d(45), d(75)), renewal(1, at: d(75)))
        let answer = try timeline(start, inRetry, paid).entitlement(at: d(45))
        #expect(words(answer) == "active until 75d1h" && answer.since == d(45))
        #expect(answer.runs == [Run(start: d(0), end: d(30)), Run(start: d(45), end: d(75))])
    }

    @Test func `from billing retry to expired on day 60`() throws {
        let over = told("EXPIRED", "BILLING_RETRY", at: d(90), period(1), renewal(0, at: d(30), "'expirationIntent':2"))
        #expect(try timeline(start, inRetry, over).words(at: d(90)) == "expired billing since 30d")
        #expect(try timeline(start, inRetry).words(at: d(90)) == "expired billing since 30d", "also without word of it")
    }

    @Test(arguments: ["DID_CHANGE_RENEWAL_PREF", "OFFER_REDEEMED"], [false, true])
    func `from active or grace to a superseded row and a new one`(_ type: String, _ grace: Bool) throws {
        let now = grace ? d(35) : d(10)
        let old = told("DID_RENEW", at: now, bought("1", d(0), d(30), "'isUpgraded':true"))
        let new = told(type, "UPGRADE", at: now, bought("2", now, now + 30 * 24 * hour), renewal(1, at: d(100)))
        let known = try grace ? timeline(start, inGrace, old, new) : timeline(start, old, new)
        #expect(known.entitlement(at: now).state == .active && known.entitlement(at: now).since == d(0))
        #expect(known.words(at: now - 1).hasPrefix("superseded"), "the old row, once it is known to be upgraded")
    }

    @Test func `from any state to revoked by a refund of the newest transaction`() throws {
        let refund = told("REFUND", at: d(40), period(1, "'revocationDate':\(d(40))"))
        #expect(try timeline(start, refund).words(at: d(40)) == "revoked refund since 30d")
        #expect(try timeline(start, inRetry, refund).words(at: d(40)) == "revoked refund since 30d")
        #expect(try timeline(start, inGrace, refund).words(at: d(40)) == "revoked refund since 40d")
    }

    @Test func `from any state to the same by a refund of an older transaction`() throws {
        let next = told("DID_RENEW", at: d(30), period(2), renewal(1, at: d(60)), status: 1)
        let refund = told("REFUND", at: d(40), period(1, "'revocationDate':\(d(40))"), renewal(1, at: d(60)))
        #expect(try timeline(start, next, refund).words(at: d(40)) == "active until 60d1h")
    }

    @Test func `from refunded to what it was by a reversal`() throws {
        let refund = told("REFUND", at: d(31), period(1, "'revocationDate':\(d(31))"))
        let reversal = told("REFUND_REVERSED", at: d(33), period(1))
        #expect(try timeline(start, inGrace, refund, reversal).words(at: d(33)) == "grace until 46d")
    }

    @Test func `from revoked family to active by a new share`() throws {
        let shared = "'inAppOwnershipType':'FAMILY_SHARED'"
        let known = try timeline(
            told("REVOKE", at: d(10), period(1, "\(shared),'revocationDate':\(d(10))")),
            told("SUBSCRIBED", "INITIAL_BUY", at: d(12), bought("2", d(12), d(42), shared), status: 1))
        #expect(known.words(at: d(12)) == "active until 42d" && known.entitlement(at: d(12)).since == d(12))
    }

    @Test func `from expired or revoked to active by RESUBSCRIBE`() throws {
        let again = told("SUBSCRIBED", "RESUBSCRIBE", at: d(50), bought("2", d(50), d(80)), renewal(1, at: d(80)))
        let over = told("EXPIRED", "VOLUNTARY", at: d(30), period(1), renewal(0, at: d(30), "'expirationIntent':1"))
        let refund = told("REFUND", at: d(10), period(1, "'revocationDate':\(d(10))"))
        #expect(try timeline(start, over, again).words(at: d(50)) == "active until 80d1h")
        #expect(try timeline(start, refund, again).words(at: d(50)) == "active until 80d1h")
    }

    @Test func `from active to active until later by RENEWAL_EXTENDED`() throws {
        let extended = told("RENEWAL_EXTENDED", at: d(9), bought("1", d(0), d(44)), renewal(1, at: d(44)), status: 1)
        #expect(try timeline(start, extended).words(at: d(9)) == "active until 44d1h")
    }
}
