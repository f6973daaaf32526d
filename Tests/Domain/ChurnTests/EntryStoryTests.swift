// How rows of subscriptions begin, and what is paid for them. Every number is worked out by hand from
// docs/explanation/churn-rules.md.

import Churn
import Testing

@Suite struct `Rows entered` {
    @Test func `started, charged and revenue of a first purchase`() throws {
        var story = WrittenStory()
        story.begins(january)
        try story.expect(at: instant(1, 1) - 1, [:])
        // One row, the first of the chain: 10 dollars paid for one month.
        try story.expect(
            at: instant(1, 1),
            ["2026-01-01": [.started: 1, .charged: 1, .activeDelta: 1, .revenue: 10_000, .mrrNew: 10_000]])
    }

    @Test func `started by date, by id or by INITIAL_BUY, adopted and mrrAdopted otherwise`() throws {
        let earlier = instant(12, 1, year: 2025)
        let started: Numbers = [.started: 1, .charged: 1, .activeDelta: 1, .revenue: 10_000, .mrrNew: 10_000]
        let adopted: Numbers = [.adopted: 1, .charged: 1, .activeDelta: 1, .revenue: 10_000, .mrrAdopted: 10_000]
        func expect(_ numbers: Numbers, _ id: String, original: Int64, isInitialBuy: Bool = false) throws {
            var story = WrittenStory()
            let first = row(id, instant(1, 1), instant(2, 1), ["originalPurchaseDate": original])
            if isInitialBuy { story.begins(first) } else { story.renews(first) }
            try story.expect(at: instant(1, 10), ["2026-01-01": numbers])
        }
        try expect(started, "7", original: instant(1, 1))
        // The id of the chain is 1.
        try expect(started, "1", original: earlier)
        try expect(started, "7", original: earlier, isInitialBuy: true)
        // Older than the log.
        try expect(adopted, "7", original: earlier)
    }

    @Test func `adopted, not started, and mrrAdopted when it continues another subscription`() throws {
        var story = WrittenStory()
        // Each of these alone makes a first row `started`: its date, its id and INITIAL_BUY.
        story.begins(
            row(
                "1", instant(1, 1), instant(2, 1),
                ["originalPurchaseDate": instant(1, 1), "previousOriginalTransactionId": "5"]))
        try story.expect(
            at: instant(1, 10),
            ["2026-01-01": [.adopted: 1, .charged: 1, .activeDelta: 1, .revenue: 10_000, .mrrAdopted: 10_000]])
    }

    @Test func `renewed by each period that follows the last one`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.renews(february)
        story.renews(row("3", instant(3, 1), instant(4, 1)))
        // Access never stopped and the price is the same: no delta and no change of revenue.
        let renewed: Numbers = [.renewed: 1, .charged: 1, .revenue: 10_000]
        try story.expect(
            at: instant(3, 31), ["2026-01-01": bought, "2026-02-01": renewed, "2026-03-01": renewed])
    }

    @Test func `renewed, though DID_RENEW was lost and the period began a day late`() throws {
        var story = WrittenStory()
        story.begins(january)
        let second = row("2", instant(2, 2), instant(3, 2))
        // The first notification of the period does not show how the row began, but product and plan stay the same.
        story.turnsOff(second, at: instant(2, 20))
        // At this time the end of January counts as the end, because nothing else is known. No reason is known either.
        try story.expect(
            at: instant(2, 1),
            ["2026-01-01": bought, "2026-02-01": [.lapsedOther: 1, .activeDelta: -1, .mrrOther: -10_000]])
        // No EXPIRED came: the day without a row is Apple's delay, and the lapse is taken back.
        try story.expect(
            at: instant(2, 20),
            [
                "2026-01-01": bought, "2026-02-02": [.renewed: 1, .charged: 1, .revenue: 10_000],
                "2026-02-20": [.renewalTurnedOff: 1],
            ])
    }

    @Test func `resubscribed when EXPIRED came between two periods`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.expires(january, "VOLUNTARY", at: instant(2, 1))
        story.renews(row("2", instant(2, 2), instant(3, 2)))
        try story.expect(
            at: instant(2, 20),
            [
                "2026-01-01": bought,
                "2026-02-01": [.lapsedVoluntary: 1, .activeDelta: -1, .mrrVoluntary: -10_000],
                // Without access before it a row is a resubscription, whatever the notification's type.
                "2026-02-02": [
                    .resubscribed: 1, .regained: 1, .charged: 1, .activeDelta: 1, .revenue: 10_000,
                    .mrrReactivation: 10_000,
                ],
            ])
    }

    @Test func `switched when a purchase takes over while access goes on`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.comesBack(row("2", instant(1, 20), instant(2, 20)))
        // Same product, same price: neither a change of plan nor of revenue.
        try story.expect(
            at: instant(2, 10), ["2026-01-01": bought, "2026-01-20": [.switched: 1, .charged: 1, .revenue: 10_000]])
    }

    @Test func `switched or renewed by transactionReason when no word says how the row came`() throws {
        for (reason, counter) in [("PURCHASE", .switched), ("RENEWAL", .renewed)] as [(String, ChurnCounter)] {
            var story = WrittenStory()
            story.begins(january)
            story.tell(
                "PRICE_INCREASE", "ACCEPTED", at: instant(2, 3),
                row("2", instant(1, 20), instant(2, 20), ["transactionReason": reason]))
            try story.expect(
                at: instant(2, 10), ["2026-01-01": bought, "2026-01-20": [counter: 1, .charged: 1, .revenue: 10_000]])
        }
    }

    @Test func `resubscribed and regained after a gap`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.expires(january, nil, at: instant(2, 1))
        story.comesBack(row("2", instant(2, 11), instant(3, 11), price: 12_000))
        try story.expect(
            at: instant(3, 1),
            [
                "2026-01-01": bought,
                "2026-02-01": [.lapsedOther: 1, .activeDelta: -1, .mrrOther: -10_000],
                // It has been paid before, but not in this run.
                "2026-02-11": [
                    .resubscribed: 1, .regained: 1, .charged: 1, .activeDelta: 1, .revenue: 12_000,
                    .mrrReactivation: 12_000,
                ],
            ])
    }

    @Test func `unpriced counts a paid row that says no price, without revenue`() throws {
        var story = WrittenStory()
        story.begins(row("1", instant(1, 1), instant(2, 1), price: nil))
        story.renews(february)
        try story.expect(
            at: instant(2, 10),
            [
                // The state is PAID, because only a price of 0 or a trial is free. But there is no revenue to be new.
                "2026-01-01": [.started: 1, .charged: 1, .unpriced: 1, .activeDelta: 1],
                // It was already paying in this run: its revenue grows from 0.
                "2026-02-01": [.renewed: 1, .charged: 1, .revenue: 10_000, .mrrExpansion: 10_000],
            ])
    }

    @Test func `charged counts no free row, adopted counts one too`() throws {
        var story = WrittenStory()
        story.renews(row("7", instant(1, 1), instant(2, 1), price: 0))
        story.renews(february)
        try story.expect(
            at: instant(2, 10),
            [
                "2026-01-01": [.adopted: 1, .trials: 1, .trialsConverted: 1, .trialDelta: 1],
                // The first payment is new revenue, because the adopted row paid nothing.
                "2026-02-01": [
                    .renewed: 1, .charged: 1, .trialDelta: -1, .activeDelta: 1, .revenue: 10_000, .mrrNew: 10_000,
                ],
            ])
    }
}
