import Testing

@testable import Entitlements

/// Rules.md E.3, row by row. An instant belongs to what begins at it: each row is tested at its last millisecond and at its end.
@Suite struct `Access to an upfront plan` {
    @Test func `is revoked from a family member, though the period goes on`() throws {
        for more in ["'revocationType':'FAMILY_REVOKE'", "'inAppOwnershipType':'FAMILY_SHARED'"] {
            let known = try timeline(
                told("SUBSCRIBED", "INITIAL_BUY", at: d(0), period(1), renewal(1, at: d(30)), status: 1),
                told("REVOKE", at: d(10), period(1, "'revocationDate':\(d(10)),\(more)"), renewal(1, at: d(30))))
            #expect(known.words(at: d(10)) == "revoked family since 10d")
        }
    }

    @Test(arguments: [nil, "REFUND_FULL", "REFUND_PRORATED", "A_NEW_TYPE"])
    func `is revoked by a refund of whatever type`(_ type: String?) throws {
        let more = type.map { ",'revocationType':'\($0)'" } ?? ""
        let known = try timeline(told("REFUND", at: d(10), period(1, "'revocationDate':\(d(9))\(more)")))
        #expect(known.words(at: d(10)) == "revoked refund since 9d")
    }

    @Test func `is superseded on a row that was upgraded away from, and the replacement decides`()
        throws
    {
        let old = told("DID_CHANGE_RENEWAL_PREF", "UPGRADE", at: d(10), period(1, "'isUpgraded':true"))
        #expect(try timeline(old).words(at: d(11)) == "superseded since 10d")
        let new = told("DID_CHANGE_RENEWAL_PREF", "UPGRADE", at: d(10), bought("u", d(10), d(375)))
        #expect(try timeline(old, new).words(at: d(11)) == "active until 375d")
    }

    @Test func `lasts until the last millisecond before expiresDate`() throws {
        let known = try timeline(
            told("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: d(5), period(1), renewal(0, at: d(30))))
        #expect(known.words(at: d(30) - 1) == "active until 30d")
        #expect(known.words(at: d(30)) == "expired voluntary since 30d")
        #expect(known.nextChange(after: d(5)) == d(30))
        #expect(known.nextChange(after: d(30)) == nil)
    }

    @Test func `is kept until expiresDate when the renewal fails before it`() throws {
        let known = try timeline(
            told("DID_FAIL_TO_RENEW", at: d(29), period(1, signed: d(0)), failing(d(30)), status: 3))
        #expect(known.words(at: d(29)) == "active until 30d")
        #expect(known.words(at: d(30)) == "billing_retry since 30d")
    }

    @Test func `is kept in grace until its end`() throws {
        let known = try timeline(
            told(
                "DID_FAIL_TO_RENEW", "GRACE_PERIOD", at: d(30), period(1, signed: d(0)), failing(d(30), grace: d(46)),
                status: 4))
        #expect(known.words(at: d(30)) == "grace until 46d")
        #expect(known.words(at: d(46) - 1) == "grace until 46d")
        #expect(known.words(at: d(46)) == "billing_retry since 46d")
        #expect(known.nextChange(after: d(30)) == d(46))
    }

    @Test(arguments: [3, 4])
    func `takes Apple's status for the retry flag, which was seen false in grace`(_ status: Int) throws {
        let info = renewal(1, at: d(30), "'gracePeriodExpiresDate':\(d(46)),'isInBillingRetryPeriod':false")
        let known = try timeline(told("DID_FAIL_TO_RENEW", at: d(30), period(1), info, status: status))
        #expect(known.words(at: d(31)) == "grace until 46d")
    }

    @Test(arguments: ["'autoRenewStatus':0", "'autoRenewStatus':1,'expirationIntent':1"])
    func `ends at once for who cancels in grace`(_ cancelled: String) throws {
        let info = Part(
            members:
                "\(cancelled),'renewalDate':\(d(30)),'isInBillingRetryPeriod':true,'gracePeriodExpiresDate':\(d(46))")
        let known = try timeline(
            told("DID_FAIL_TO_RENEW", "GRACE_PERIOD", at: d(30), period(1), failing(d(30), grace: d(46)), status: 4),
            told("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: d(40), period(1), info))
        #expect(known.words(at: d(40)) == "expired voluntary since 40d")
    }

    @Test func `is not given by a grace date that stayed after retries had failed`() throws {
        let info = renewal(
            0, at: d(30), "'isInBillingRetryPeriod':false,'gracePeriodExpiresDate':\(d(46)),'expirationIntent':2")
        let known = try timeline(told("EXPIRED", "BILLING_RETRY", at: d(90), period(1), info, status: 2))
        #expect(known.words(at: d(40)) == "expired billing since 30d")
    }

    @Test func `is away in billing retry for 60 days`() throws {
        let known = try timeline(
            told("DID_FAIL_TO_RENEW", at: d(30), period(1, signed: d(0)), failing(d(30)), status: 3))
        #expect(known.words(at: d(90) - 1) == "billing_retry since 30d")
        #expect(known.words(at: d(90)) == "expired billing since 30d")
        #expect(known.nextChange(after: d(30)) == d(90))
        #expect(known.entitlement(at: d(30)).retry == Entitlement.Retry(since: d(30), until: d(90)))
    }

    @Test func `has expired for a reason unknown when no renewal info tells`() throws {
        let known = try timeline(told("SUBSCRIBED", "INITIAL_BUY", at: d(0), period(1)))
        #expect(known.words(at: d(30) - 1) == "active until 30d")
        #expect(known.words(at: d(30)) == "expired unknown since 30d")
    }

    @Test func `lasts an hour longer while renewal is expected, for Apple's word may come late`() throws {
        let known = try timeline(
            told("SUBSCRIBED", "INITIAL_BUY", at: d(0), period(1), renewal(1, at: d(30)), status: 1))
        #expect(known.words(at: d(30) + hour - 1) == "active until 30d1h")
        #expect(known.words(at: d(30) + hour) == "expired unknown since 30d1h")
        #expect(known.nextChange(after: d(0)) == d(30) + hour)
    }

    @Test(arguments: [(1, "voluntary"), (2, "billing"), (3, "price"), (4, "unavailable"), (5, "other"), (9, "other")])
    func `has ended for the reason that expirationIntent names`(_ intent: Int, _ reason: String) throws {
        let known = try timeline(
            told("EXPIRED", "VOLUNTARY", at: d(30), period(1), renewal(0, at: d(30), "'expirationIntent':\(intent)")))
        #expect(known.words(at: d(30)) == "expired \(reason) since 30d")
    }
}
