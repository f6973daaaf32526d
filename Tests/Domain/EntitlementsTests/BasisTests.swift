import Notices
import Testing

@testable import Entitlements
@testable import SubscriptionHistory

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

    @Test func `knows the purchase that follows, and whether the renewal info is of a later one`() throws {
        let off = try timeline(
            told("SUBSCRIBED", at: d(0), period(1), renewal(1, at: d(30))),
            told("DID_RENEW", at: d(30), period(2)),
            told("DID_CHANGE_RENEWAL_STATUS", at: d(40), period(2), renewal(0, at: d(60))))
        #expect(off.basis(at: d(1)).next?.start == d(30) && off.basis(at: d(1)).isInfoOfLater)
        #expect(off.basis(at: d(50)).next == nil && !off.basis(at: d(50)).isInfoOfLater)
        let before = try timeline(
            told("DID_FAIL_TO_RENEW", at: d(30), period(1), failing(d(30), grace: d(36))),
            told("DID_RENEW", at: d(33), bought("2", d(33), d(60))))
        #expect(before.basis(at: d(31)).next?.start == d(33) && !before.basis(at: d(31)).isInfoOfLater)
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

    private func since(_ timeline: Timeline, _ instant: Int64) -> Int64? { timeline.basis(at: instant).stateSince }

    @Test func `knows since when a state that the time brings has lasted`() throws {
        let failing = try timeline(
            told("SUBSCRIBED", at: d(0), period(1), renewal(1, at: d(30))),
            told("DID_RENEW", at: d(30), period(2), renewal(1, at: d(60))),
            told("DID_FAIL_TO_RENEW", at: d(59), period(2, signed: d(30)), failing(d(60), grace: d(66))))
        #expect(since(failing, d(1)) == d(0))
        #expect(since(failing, d(59)) == d(0), "renewed without a gap")
        #expect(since(failing, d(61)) == d(60), "grace")
        #expect(since(failing, d(70)) == d(66), "retry")
        #expect(since(failing, d(200)) == d(120), "given up")
        #expect(since(failing, d(0) - 1) == nil, "it has not begun")
        let renewing = try timeline(told("SUBSCRIBED", at: d(0), period(1), renewal(1, at: d(30))))
        #expect(since(renewing, d(30)) == d(0))
        #expect(since(renewing, d(40)) == d(30) + hour)
        let pass = try timeline(told("ONE_TIME_CHARGE", at: d(0), once("1", d(0), product: "season")))
        #expect(since(pass, d(4)) == d(0))
        #expect(since(pass, d(40)) == d(31))
        #expect(since(try timeline(told("ONE_TIME_CHARGE", at: d(0), once("1", d(0)))), d(4)) == d(0))
    }

    @Test func `knows since when a state that Apple told of has lasted`() throws {
        let refunded = try timeline(told("REFUND", at: d(3), period(1, "'revocationDate':\(d(3))")))
        #expect(since(refunded, d(4)) == d(3))
        #expect(since(refunded, d(2)) == nil, "that it would be refunded was not known then")
        let upgraded = try timeline(told("UPGRADE", at: d(5), period(1, "'isUpgraded':true")))
        #expect(since(upgraded, d(40)) == d(5))
        let cancelled = try timeline(
            told("DID_FAIL_TO_RENEW", at: d(30), period(1), failing(d(30), grace: d(36))),
            told("DID_CHANGE_RENEWAL_STATUS", at: d(32), period(1), renewal(0, at: d(30))))
        #expect(since(cancelled, d(40)) == d(32))
        let givenUp = try timeline(
            told("DID_FAIL_TO_RENEW", at: d(30), period(1), failing(d(30))),
            told("EXPIRED", "BILLING_RETRY", at: d(80), period(1), renewal(0, at: d(30), "'expirationIntent':2")))
        #expect(since(givenUp, d(100)) == d(80))
        let commitment = try timeline(
            told("DID_FAIL_TO_RENEW", at: d(29), month(1), failing(d(30))))
        #expect(since(commitment, d(40)) == d(29))
    }

    @Test func `knows that access went on from one purchase to the next`() throws {
        let upgraded = try timeline(
            told("SUBSCRIBED", at: d(0), period(1)),
            told("UPGRADE", at: d(40), period(2, "'isUpgraded':true,'revocationDate':\(d(40))")),
            told("UPGRADE", at: d(40), bought("3", d(40), d(100))))
        #expect(since(upgraded, d(50)) == d(0))
        let recovered = try timeline(
            told("DID_FAIL_TO_RENEW", at: d(30), period(1), failing(d(30), grace: d(36))),
            told("DID_RENEW", at: d(33), bought("2", d(33), d(60)), renewal(1, at: d(60))))
        #expect(since(recovered, d(40)) == d(33), "before it was grace")
        let resubscribed = try timeline(
            told("SUBSCRIBED", at: d(0), period(1)), told("SUBSCRIBED", at: d(60), period(3), renewal(1, at: d(90))))
        #expect(since(resubscribed, d(70)) == d(60))
        let refunded = try timeline(
            told("REFUND", at: d(10), period(1, "'revocationDate':\(d(10))")), told("DID_RENEW", at: d(30), period(2)))
        #expect(since(refunded, d(40)) == d(30))
        let refundedLater = try timeline(
            told("REFUND", at: d(40), period(1, "'revocationDate':\(d(40))")), told("DID_RENEW", at: d(30), period(2)))
        #expect(since(refundedLater, d(50)) == d(0))
    }

    @Test func `tells the last period of a commitment, and whether the next one is expected`() throws {
        func basis(_ number: Int64, _ info: Part) throws -> Timeline.Basis {
            try timeline(told("DID_RENEW", at: d(30 * number - 30), month(number), info)).basis(at: d(30 * number - 1))
        }
        let last = try basis(12, committed(0, at: d(360)))
        #expect(last.isLastPeriod && !last.expectsRenewal)
        let followed = try basis(12, committed(1, at: d(360)))
        #expect(!followed.isLastPeriod && followed.expectsRenewal)
        let before = try basis(11, committed(0, at: d(330)))
        #expect(!before.isLastPeriod && before.expectsRenewal)
    }

    @Test func `is found of the longest life at once`() throws {
        let life = (1...Int64(History.limitPurchases)).map {
            told("DID_RENEW", at: d(30 * ($0 - 1)), period($0), renewal(1, at: d(30 * $0)))
        }
        let timeline = try #require(Timeline(try facts(life), rules()))
        let now = d(30 * Int64(History.limitPurchases)) - 1
        let clock = ContinuousClock()
        let taken = clock.measure { #expect(timeline.basis(at: now).stateSince == d(0)) }
        // This takes a few milliseconds. An algorithm that looks at all rows for each row takes minutes.
        #expect(taken < .seconds(30))
    }
}
