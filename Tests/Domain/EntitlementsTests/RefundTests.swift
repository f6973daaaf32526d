import Notices
import Testing

@testable import Entitlements

/// Rules.md D.2 and E.5, row by row.
@Suite struct `A refund` {
    private let first = told("SUBSCRIBED", "INITIAL_BUY", at: d(0), period(1), renewal(1, at: d(30)), status: 1)
    private let second = told("DID_RENEW", at: d(30), period(2), renewal(1, at: d(60)), status: 1)
    private func refund(_ number: Int64, at time: Int64, _ more: String = "", _ info: Part? = nil) -> String {
        told("REFUND", at: time, period(number, "'revocationDate':\(time)" + (more.isEmpty ? "" : ",\(more)")), info)
    }

    // MARK: Rules.md D.2

    @Test func `of the current transaction stops access`() throws {
        let known = try timeline(first, second, refund(2, at: d(40)))
        #expect(known.words(at: d(40)) == "revoked refund since 40d" && known.nextChange(after: d(40)) == nil)
    }

    @Test func `of an upgraded transaction is an upgrade, no refund`() throws {
        let known = try timeline(first, refund(1, at: d(10), "'isUpgraded':true"))
        #expect(known.words(at: d(10)) == "superseded since 10d")
        #expect(known.entitlement(at: d(10)).runs == [Run(start: d(0), end: d(10))], "what was used stays")
    }

    @Test func `that was declined changes nothing`() throws {
        let known = try timeline(first, told("REFUND_DECLINED", at: d(9), period(1), renewal(1, at: d(30)), status: 1))
        #expect(known.entitlement(at: d(9)) == (try timeline(first).entitlement(at: d(9))))
    }

    @Test func `that was reversed gives access back, the renewal date unchanged`() throws {
        let known = try timeline(first, refund(1, at: d(9)), told("REFUND_REVERSED", at: d(20), period(1)))
        let answer = known.entitlement(at: d(20))
        #expect(words(answer) == "active until 30d1h" && answer.renewsAt == d(30))
        #expect(answer.runs == [Run(start: d(0), end: d(30))])
    }

    @Test func `that was reversed, told before the refund, stays reversed`() throws {
        let known = try timeline(told("REFUND_REVERSED", at: d(20), period(1)), refund(1, at: d(9)), first)
        #expect(known.words(at: d(20)) == "active until 30d1h")
    }

    @Test func `of the purchaser ends a family member's access, as REVOKE`() throws {
        let known = try timeline(
            told("REVOKE", at: d(9), period(1, "'inAppOwnershipType':'FAMILY_SHARED','revocationDate':\(d(9))")))
        #expect(known.words(at: d(9)) == "revoked family since 9d" && known.entitlement(at: d(9)).runs == [])
    }

    @Test func `that was only asked for changes nothing`() throws {
        let known = try timeline(
            first, told("CONSUMPTION_REQUEST", at: d(9), period(1), renewal(1, at: d(30)), status: 1))
        #expect(known.entitlement(at: d(9)) == (try timeline(first).entitlement(at: d(9))))
    }

    // MARK: Rules.md E.5

    @Test func `is of the period whose transactionId it names`() throws {
        #expect(try timeline(first, second, refund(1, at: d(40))).entitlement(at: d(40)).state == .active)
        #expect(try timeline(first, second, refund(2, at: d(40))).entitlement(at: d(40)).state == .revoked)
    }

    @Test func `of a prior period leaves the subscription, and takes that period's content`() throws {
        let known = try timeline(first, second, refund(1, at: d(40), "", renewal(1, at: d(60))))
        let answer = known.entitlement(at: d(40))
        #expect(words(answer) == "active until 60d1h" && answer.runs == [Run(start: d(30), end: d(60))])
    }

    @Test func `of a prior period of a commitment leaves commitment and billing`() throws {
        let known = try timeline(
            told("SUBSCRIBED", "INITIAL_BUY", at: d(0), month(1), committed(1, at: d(30))),
            told("DID_RENEW", at: d(30), month(2), committed(1, at: d(60))),
            told("REFUND", at: d(40), month(1, "'revocationDate':\(d(40))"), committed(1, at: d(60))))
        let answer = known.entitlement(at: d(40))
        #expect(words(answer) == "active until 60d1h" && answer.commitment?.period == 2 && answer.autoRenew == true)
    }

    @Test func `of the current period ends access at its date, though expiresDate lies ahead`() throws {
        let known = try timeline(first, told("REFUND", at: d(12), period(1, "'revocationDate':\(d(10))")))
        #expect(known.words(at: d(12)) == "revoked refund since 10d")
    }

    @Test func `of the current period of a commitment ends it at once`() throws {
        let known = try timeline(
            told("SUBSCRIBED", "INITIAL_BUY", at: d(0), month(1), committed(1, at: d(30))),
            told("REFUND", at: d(10), month(1, "'revocationDate':\(d(10))"), committed(1, at: d(30))))
        #expect(known.words(at: d(10)) == "revoked refund since 10d")
    }

    @Test func `of the current period is over when a renewal follows`() throws {
        let known = try timeline(first, refund(1, at: d(10)), second)
        #expect(known.words(at: d(30)) == "active until 60d1h" && known.entitlement(at: d(30)).since == d(30))
    }

    @Test func `of a part ends access as one of the whole does`() throws {
        let part = "'revocationType':'REFUND_PRORATED','revocationPercentage':50000"
        let known = try timeline(first, refund(1, at: d(10), part))
        #expect(known.words(at: d(10)) == "revoked refund since 10d" && known.entitlement(at: d(10)).runs == [])
    }

    @Test func `does not change the price that was paid`() throws {
        let known = try timeline(
            told(
                "REFUND", at: d(10),
                period(1, "'price':9990,'currency':'USD','revocationDate':\(d(10)),'revocationPercentage':50000")))
        #expect(known.entitlement(at: d(10)).price == 9990 && known.entitlement(at: d(10)).currency == "USD")
    }

    @Test func `of a past period does not join what a lapse parted`() throws {
        let known = try timeline(
            told("REFUND", at: d(55), period(1, "'revocationDate':\(d(55))")),
            told("SUBSCRIBED", "RESUBSCRIBE", at: d(50), bought("9", d(50), d(80))))
        #expect(known.entitlement(at: d(55)).since == d(50))
    }
}
