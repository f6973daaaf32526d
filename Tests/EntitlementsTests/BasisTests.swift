import Testing

@testable import Entitlements

@Suite struct `The basis of an answer` {
    private func rule(_ timeline: Timeline, _ instant: Int64) -> String { timeline.basis(at: instant).rule.rawValue }

    @Test func `is the rule that gave the state`() throws {
        let paid = try timeline(told("SUBSCRIBED", at: d(0), period(1), renewal(1, at: d(30))))
        #expect(rule(paid, d(1)) == "paid")
        #expect(rule(paid, d(30)) == "renewal_expected")
        #expect(rule(paid, d(30) + hour) == "ended")
        let failing = try timeline(
            told("DID_FAIL_TO_RENEW", at: d(29), period(1), failing(d(30), grace: d(36))))
        #expect(rule(failing, d(29)) == "fails_early")
        #expect(rule(failing, d(30)) == "grace")
        #expect(rule(failing, d(36)) == "retry")
        #expect(rule(failing, d(90)) == "retry_over")
        #expect(rule(try timeline(told("REFUND", at: d(3), period(1, "'revocationDate':\(d(3))"))), d(4)) == "refunded")
        #expect(
            rule(
                try timeline(
                    told("REVOKE", at: d(3), period(1, "'revocationDate':\(d(3)),'inAppOwnershipType':'FAMILY_SHARED'"))
                ),
                d(4)) == "taken")
        #expect(rule(try timeline(told("UPGRADE", at: d(3), period(1, "'isUpgraded':true"))), d(4)) == "upgraded")
        #expect(rule(try timeline(told("ONE_TIME_CHARGE", at: d(0), once("1", d(0)))), d(4)) == "owned")
        let pass = try timeline(told("ONE_TIME_CHARGE", at: d(0), once("1", d(0), product: "season")))
        #expect(rule(pass, d(4)) == "pass_runs")
        #expect(rule(pass, d(40)) == "pass_over")
    }

    @Test func `is the payload that decided`() throws {
        let answer = try timeline(
            told("SUBSCRIBED", at: d(0), period(1), renewal(1, at: d(30))),
            told("DID_FAIL_TO_RENEW", at: d(30), period(1, signed: d(29)), failing(d(30), grace: d(36))))
        #expect(answer.basis(at: d(1)).decidedBy.signedDate == d(30), "the newest info says that it will fail")
        #expect(answer.basis(at: d(31)).decidedBy.signedDate == d(30))
        let ended = try timeline(
            told("SUBSCRIBED", at: d(0), period(1)), told("EXPIRED", "VOLUNTARY", at: d(30), period(1)))
        #expect(ended.basis(at: d(31)).expiry?.subtype == "VOLUNTARY")
    }

    @Test func `knows what was had of each purchase`() throws {
        let purchases = try timeline(
            told("SUBSCRIBED", at: d(0), period(1)),
            told("REFUND", at: d(40), period(2, "'revocationDate':\(d(40))")),
            told("UPGRADE", at: d(70), period(3, "'isUpgraded':true")),
            told("UPGRADE", at: d(71), bought("4", d(70), d(100)))
        ).purchases
        #expect(purchases.map(\.fate) == [.kept, .refunded, .upgraded, .kept])
        #expect(purchases.map(\.end) == [d(30), d(60), d(70), d(100)])
        #expect(purchases.map(\.hadUntil) == [d(30), d(40), d(70), d(100)])
        #expect(purchases.map(\.fateDate) == [nil, d(40), d(70), nil])
    }
}
