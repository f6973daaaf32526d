import Testing

@testable import Entitlements

/// Rules.md E.16, the end of a row and the states, row by row. Rows that repeat E.3 and E.6 are tested there.
@Suite struct `The end of a row` {
    private let first = told("SUBSCRIBED", "INITIAL_BUY", at: d(0), period(1), renewal(1, at: d(30)), status: 1)
    private let failed = told("DID_FAIL_TO_RENEW", at: d(30), period(1), failing(d(30), grace: d(46)), status: 4)

    private func end(_ records: String...) throws -> Int64? {
        try #require(Timeline(try facts(records), rules())).rows[0].end
    }

    @Test func `is expiresDate`() throws { #expect(try end(first) == d(30)) }

    @Test func `is the end of a grace that was granted`() throws { #expect(try end(first, failed) == d(46)) }

    @Test func `is the next news of the row in grace, be it a cancellation`() throws {
        #expect(try end(first, failed, told("A", at: d(40), period(1), renewal(0, at: d(30)))) == d(40))
    }

    @Test func `is not moved by a grace that had ended before the next news`() throws {
        #expect(try end(first, failed, told("A", at: d(70), period(1), renewal(0, at: d(30)))) == d(46))
    }

    @Test func `is never after the start of the next row`() throws {
        let paid = told("DID_RENEW", "BILLING_RECOVERY", at: d(35), bought("2", d(35), d(60)))
        #expect(try end(first, failed, paid) == d(35))
        #expect(try end(first, told("A", at: d(10), bought("2", d(10), d(40)))) == d(10))
    }

    @Test func `is never, or the period that the app gives, of a one-time purchase`() throws {
        #expect(try end(told("ONE_TIME_CHARGE", at: d(0), once("1", d(0)))) == nil)
        let season = told("ONE_TIME_CHARGE", at: d(0), once("1", d(0), product: "season"))
        #expect(try end(season) == date(2026, 2, 1))
    }
}

@Suite struct `The state` {
    @Test func `of a family's revocation lasted until that, at most to the end`() throws {
        let shared = "'inAppOwnershipType':'FAMILY_SHARED'"
        #expect(
            try timeline(told("A", at: d(9), period(1, "\(shared),'revocationDate':\(d(9))"))).words(at: d(9))
                == "revoked family since 9d")
        #expect(
            try timeline(told("A", at: d(40), period(1, "\(shared),'revocationDate':\(d(40))"))).words(at: d(40))
                == "revoked family since 30d")
    }

    @Test func `of an upgraded row lasted until its refund, else the first word of the upgrade`() throws {
        let late = told("A", at: d(20), period(1, "'isUpgraded':true"))
        let early = told("B", at: d(10), period(1, "'isUpgraded':true"))
        #expect(try timeline(late, early).words(at: d(21)) == "superseded since 10d")
        let refund = told("REFUND", at: d(22), period(1, "'isUpgraded':true,'revocationDate':\(d(11))"))
        #expect(try timeline(late, early, refund).words(at: d(22)) == "superseded since 11d")
        #expect(
            try timeline(told("A", at: d(99), period(1, "'isUpgraded':true"))).words(at: d(99))
                == "superseded since 30d")
    }

    @Test func `of a refund lasted until that, at most to the end`() throws {
        #expect(
            try timeline(told("A", at: d(40), period(1, "'revocationDate':\(d(40))"))).words(at: d(40))
                == "revoked refund since 30d")
        let before = told("A", at: d(40), period(2, "'revocationDate':\(d(20))"))
        #expect(try timeline(before).words(at: d(40)) == "revoked refund since 30d", "not before the row's start")
    }

    @Test func `of one-time purchases is owned, or active and expired by a period`() throws {
        #expect(try timeline(told("A", at: d(0), once("1", d(0)))).words(at: d(1)) == "owned until ever")
        let season = try timeline(told("A", at: d(0), once("1", d(0), product: "season")))
        #expect(season.words(at: d(31) - 1) == "active until 31d" && season.words(at: d(31)) == "expired since 31d")
    }

    @Test func `before expiresDate is active while an upfront plan is retried`() throws {
        let grace = try timeline(told("A", at: d(29), period(1), failing(d(30), grace: d(46))))
        #expect(grace.words(at: d(30) - 1) == "active until 46d" && grace.entitlement(at: d(29)).retry?.since == d(30))
        let none = try timeline(told("A", at: d(29), period(1), failing(d(30))))
        #expect(none.words(at: d(30) - 1) == "active until 30d")
    }

    @Test func `in grace ends with it`() throws {
        let known = try timeline(told("A", at: d(30), period(1), failing(d(30), grace: d(46))))
        #expect(known.words(at: d(46) - 1) == "grace until 46d" && known.words(at: d(46)) == "billing_retry since 46d")
        #expect(known.entitlement(at: d(46) - 1).graceUntil == d(46) && known.entitlement(at: d(46)).graceUntil == nil)
    }

    @Test func `in billing retry of a commitment may begin before expiresDate`() throws {
        let known = try timeline(told("A", at: d(29), month(1), failing(d(30))))
        #expect(
            known.words(at: d(29)) == "billing_retry since 29d"
                && known.words(at: d(120)) == "expired billing since 29d")
    }

    @Test func `in billing retry ends with the window though nothing came`() throws {
        let known = try timeline(told("A", at: d(30), period(1), failing(d(30), grace: d(46))))
        #expect(
            known.words(at: d(90) - 1) == "billing_retry since 46d"
                && known.words(at: d(90)) == "expired billing since 46d")
        #expect(known.entitlement(at: d(90)).retry == nil)
    }

    @Test func `is active for the leeway while renewal is expected`() throws {
        let known = try timeline(told("A", at: d(0), period(1), renewal(1, at: d(30))), rules: rules(leeway: 7))
        #expect(
            known.words(at: d(30) + 6) == "active until 30d+7ms"
                && known.words(at: d(30) + 7) == "expired unknown since 30d+7ms")
    }

    @Test func `is expired since its end, or since the leeway after it`() throws {
        let known = try timeline(
            told("A", at: d(30), period(1), failing(d(30), grace: d(46))),
            told("B", at: d(31), period(1), renewal(0, at: d(30))))
        #expect(known.words(at: d(31)) == "expired voluntary since 31d", "grace that was cancelled")
        let expected = try timeline(
            told("A", at: d(30), period(1), failing(d(30), grace: d(46))),
            told("B", at: d(31), period(1), renewal(1, at: d(46))))
        #expect(expected.words(at: d(31)) == "expired unknown since 31d", "later than the leeway")
    }

    @Test func `of a commitment that is over since its first failure`() throws {
        let known = try timeline(
            told("A", at: d(29), month(1), failing(d(30))), told("B", at: d(30), month(1), failing(d(30))),
            told("C", at: d(50), month(1), renewal(0, at: d(30), "'expirationIntent':2")))
        #expect(known.words(at: d(50)) == "expired billing since 29d")
    }

    @Test func `with access goes on with the rows known to follow, to the last`() throws {
        let known = try timeline(
            told("A", at: d(0), period(1)), told("B", at: d(0), period(2)), told("C", at: d(0), period(3)),
            told("D", at: d(0), period(5)))
        #expect(known.words(at: d(0)) == "active until 90d")
        #expect(known.nextChange(after: d(0)) == d(90))
    }

    @Test func `with access ends where a later row gives none`() throws {
        let known = try timeline(
            told("A", at: d(0), period(1)), told("B", at: d(20), period(2, "'revocationDate':\(d(20))")))
        #expect(known.words(at: d(20)) == "active until 30d")
        let overlapping = try timeline(
            told("A", at: d(0), period(1)), told("B", at: d(0), bought("2", d(20), d(50), "'revocationDate':\(d(5))")))
        #expect(
            overlapping.words(at: d(5)) == "active until 20d"
                && overlapping.words(at: d(20)) == "revoked refund since 20d")
    }

    @Test func `is expired for the greatest word of EXPIRED, by date and then bytes`() throws {
        let known = try timeline(
            told("EXPIRED", "VOLUNTARY", at: d(31), period(1)), told("EXPIRED", "BILLING_RETRY", at: d(32), period(1)),
            told("EXPIRED", "PRICE_INCREASE", at: d(32), period(1, signed: d(2))))
        #expect(known.words(at: d(40)) == "expired price since 30d")
        #expect(
            try timeline(told("EXPIRED", "A_NEW_ONE", at: d(31), period(1))).words(at: d(31))
                == "expired other since 30d")
    }

    @Test func `is expired by intent before the word of EXPIRED`() throws {
        let known = try timeline(
            told("EXPIRED", "VOLUNTARY", at: d(31), period(1), renewal(0, at: d(30), "'expirationIntent':3")))
        #expect(known.words(at: d(31)) == "expired price since 30d")
    }

    @Test func `is expired for what the renewal info shows, when neither intent nor word says it`() throws {
        let retrying = told("A", at: d(30), period(1), failing(d(30)))
        #expect(try timeline(retrying).words(at: d(90)) == "expired billing since 30d")
        #expect(
            try timeline(told("A", at: d(1), period(1), renewal(0, at: d(30)))).words(at: d(30))
                == "expired voluntary since 30d")
        let last = told("A", at: d(330), month(12), committed(0, at: d(360)))
        #expect(try timeline(last).words(at: d(360)) == "expired voluntary since 360d")
        let silent = Part(members: "'renewalDate':\(d(30))")
        #expect(try timeline(told("A", at: d(1), period(1), silent)).words(at: d(30)) == "expired unknown since 30d")
        #expect(try timeline(told("A", at: d(1), period(1))).words(at: d(30)) == "expired unknown since 30d")
    }

    @Test func `goes on with a later row that begins when access ends, not a millisecond later`() throws {
        let first = told("A", at: d(0), period(1), renewal(0, at: d(30)))
        let joined = try timeline(first, told("A", at: d(0), bought("2", d(30), d(60))))
        #expect(joined.words(at: d(0)) == "active until 60d")
        let apart = try timeline(first, told("A", at: d(0), bought("2", d(30) + 1, d(60))))
        #expect(apart.words(at: d(0)) == "active until 30d" && apart.nextChange(after: d(0)) == d(30))
    }
}
