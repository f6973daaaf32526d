import Testing

@testable import Entitlements

/// Rules.md E.8: content published at certain dates, and who may read it. Tables 6-1 and 6-2 are Apple's (Rules.md L.1).
@Suite struct `Content` {
    private func month(_ id: String, _ from: (Int, Int), _ to: (Int, Int), _ more: String = "") -> String {
        let start = date(2026, from.0, from.1)
        return told("DID_RENEW", at: start, bought(id, start, date(2026, to.0, to.1), more))
    }

    private func issues(_ runs: [Run], at now: Int64, _ scope: ContentScope = .archive) -> [Int] {
        let published = (2...7).map { (month: $0, date: date(2026, $0, 1)) }
        let open = Set(runs.accessible(published.map(\.date), at: now, scope: scope))
        return published.filter { open.contains($0.date) }.map(\.month)
    }

    @Test func `of a monthly magazine, cancelled and taken up again, as in Table 6-1`() throws {
        // "Subscribe February 20, renew March 20, cancel at April 20, resubscribe June 17."
        let records = [
            month("1", (2, 20), (3, 20)), month("2", (3, 20), (4, 20)),
            told(
                "EXPIRED", "VOLUNTARY", at: date(2026, 4, 20), bought("2", date(2026, 3, 20), date(2026, 4, 20)),
                renewal(0, at: date(2026, 4, 20), "'expirationIntent':1")),
            month("3", (6, 17), (7, 17)),
        ]
        let now = date(2026, 7, 2)
        let known = try #require(Timeline(try facts(records), rules())).entitlement(at: now)
        #expect(
            known.runs == [
                Run(start: date(2026, 2, 20), end: date(2026, 4, 20)),
                Run(start: date(2026, 6, 17), end: date(2026, 7, 17)),
            ])
        // May 1: lapsed. June 1: "unlocked" at the restart on June 17.
        #expect(issues(known.runs, at: now) == [2, 3, 4, 6, 7])
        #expect(issues(known.runs, at: date(2026, 5, 2)) == [2, 3, 4], "the second run has not begun")
    }

    @Test func `of a card that expired, as in Table 6-2: the cycle moves, the lapse stays`() throws {
        // "February 20 subscribe, March 20 renews, April 20 renewal fails: lapsed; May 5 card updated: active; next June 5."
        let failure = told(
            "DID_FAIL_TO_RENEW", at: date(2026, 4, 20), bought("2", date(2026, 3, 20), date(2026, 4, 20)),
            failing(date(2026, 4, 20)), status: 3)
        let recovery = told(
            "DID_RENEW", "BILLING_RECOVERY", at: date(2026, 5, 5), bought("3", date(2026, 5, 5), date(2026, 6, 5)),
            renewal(1, at: date(2026, 6, 5)), status: 1)
        let records = [month("1", (2, 20), (3, 20)), month("2", (3, 20), (4, 20)), failure]
        let lapsed = try #require(Timeline(try facts(records), rules()))
        #expect(lapsed.entitlement(at: date(2026, 4, 20)).state == .billingRetry)
        #expect(!lapsed.entitlement(at: date(2026, 5, 4)).access)
        let known = try #require(Timeline(try facts(records + [recovery]), rules())).entitlement(at: date(2026, 5, 5))
        #expect(known.access && known.accessUntil == date(2026, 6, 5) + hour && known.renewsAt == date(2026, 6, 5))
        #expect(
            known.runs == [
                Run(start: date(2026, 2, 20), end: date(2026, 4, 20)),
                Run(start: date(2026, 5, 5), end: date(2026, 6, 5)),
            ])
        #expect(issues(known.runs, at: date(2026, 6, 2)) == [2, 3, 4, 5, 6], "May 1 is the newest at the restart")
    }

    @Test func `of a mid-month buyer are two issues in the first month`() throws {
        let runs = [Run(start: date(2026, 2, 20), end: date(2026, 3, 20))]
        #expect(issues(runs, at: date(2026, 3, 2)) == [2, 3])
    }

    @Test func `belongs to the run that it is published in, its first instant included, its end not`() {
        let runs = [Run(start: d(10), end: d(20))]
        #expect(runs.accessible([d(9), d(10), d(20) - 1, d(20)], at: d(15)) == [d(10), d(20) - 1])
        #expect(runs.accessible([d(8), d(9)], at: d(15)) == [d(9)], "the newest there was")
        #expect(runs.accessible([], at: d(15)) == [])
    }

    @Test func `of a stream is that of the current run only`() {
        let runs = [Run(start: d(0), end: d(10)), Run(start: d(20), end: d(30))]
        #expect(runs.accessible([d(5), d(15), d(25)], at: d(26), scope: .current) == [d(15), d(25)])
        #expect(runs.accessible([d(5), d(15), d(25)], at: d(30), scope: .current) == [])
        #expect(runs.accessible([d(5), d(15), d(25)], at: d(30)) == [d(5), d(15), d(25)])
    }

    @Test func `goes on while access does, also past the end of the run (promise of the leeway)`() throws {
        let runs = [Run(start: d(0), end: d(10)), Run(start: d(20), end: d(30)), Run(start: d(60), end: d(70))]
        func accessible(_ hasAccess: Bool, at now: Int64, _ scope: ContentScope) -> [Int64] {
            runs.lasting(at: now, hasAccess: hasAccess)
                .accessible([d(5), d(25), d(30), d(31), d(61)], at: now, scope: scope)
        }
        // The first was the newest issue at the start of the second run.
        #expect(accessible(true, at: d(30), .current) == [d(5), d(25), d(30)])
        #expect(accessible(true, at: d(30), .archive) == [d(5), d(25), d(30)])
        #expect(accessible(false, at: d(30), .current) == [])
        #expect(accessible(false, at: d(30), .archive) == [d(5), d(25)])
        #expect(runs.lasting(at: d(29), hasAccess: true) == runs, "it is in the run anyway")
        #expect(runs.lasting(at: d(-1), hasAccess: true) == runs, "nothing has begun")
        #expect([Run]().lasting(at: d(1), hasAccess: true) == [])
        #expect(runs.lasting(at: .max, hasAccess: true).last?.end == nil)
    }

    @Test func `of a refunded period is gone, and the run begins later`() throws {
        let records = [
            month("1", (2, 20), (3, 20), "'revocationDate':\(date(2026, 4, 2))"), month("2", (3, 20), (4, 20)),
        ]
        let known = try #require(Timeline(try facts(records), rules())).entitlement(at: date(2026, 4, 3))
        #expect(issues(known.runs, at: date(2026, 4, 3)) == [3, 4])
    }

    @Test func `is counted from the dates of the rows, never from a duration`() throws {
        // A free week, then a month that Apple extended by ten days: neither has the length of a month.
        let records = [
            told("SUBSCRIBED", "INITIAL_BUY", at: d(0), bought("1", d(0), d(7), "'offerType':1"), renewal(1, at: d(7))),
            told("DID_RENEW", at: d(7), bought("2", d(7), d(37)), renewal(1, at: d(37))),
            told("RENEWAL_EXTENDED", at: d(20), bought("2", d(7), d(47)), renewal(0, at: d(47))),
        ]
        let runs = try #require(Timeline(try facts(records), rules())).entitlement(at: d(20)).runs
        #expect(runs == [Run(start: d(0), end: d(47))])
        #expect(runs.accessible([d(46), d(47)], at: d(50)) == [d(46)])
    }

    @Test func `of a past grace is that of the days it was given`() throws {
        let records = [
            told("DID_FAIL_TO_RENEW", at: d(30), period(1), failing(d(30), grace: d(46)), status: 4),
            told("DID_CHANGE_RENEWAL_STATUS", at: d(40), period(1), renewal(0, at: d(30))),
        ]
        let runs = try #require(Timeline(try facts(records), rules())).entitlement(at: d(50)).runs
        #expect(runs.accessible([d(29), d(39), d(40), d(45)], at: d(50)) == [d(29), d(39)])
    }

    @Test func `of something owned is everything from then on`() {
        #expect([Run(start: d(10), end: nil)].accessible([d(9), d(99_999)], at: d(100_000)) == [d(9), d(99_999)])
    }
}
