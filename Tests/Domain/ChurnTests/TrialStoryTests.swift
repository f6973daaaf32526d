// Trials, each counted on its first day. Every number is worked out by hand from docs/explanation/churn-rules.md.

import Churn
import Testing

@Suite struct `Trials counted` {
    /// A free week from the first of January on.
    private var week: [String: Any] {
        row("1", instant(1, 1), instant(1, 8), price: 0, ["offerType": 1, "offerDiscountType": "FREE_TRIAL"])
    }

    /// The month that is paid after it.
    private var paid: [String: Any] { row("2", instant(1, 8), instant(2, 8)) }

    @Test func `trials and trialsOpen while it lasts, trialsConverted when it is paid for`() throws {
        var story = WrittenStory()
        story.begins(week)
        story.renews(paid)
        try story.expect(
            at: instant(1, 8) - 1, ["2026-01-01": [.started: 1, .trials: 1, .trialsOpen: 1, .trialDelta: 1]])
        try story.expect(
            at: instant(1, 8),
            [
                // Decided on the 8th, counted on the first day.
                "2026-01-01": [.started: 1, .trials: 1, .trialsConverted: 1, .trialDelta: 1],
                // Ten dollars from the 8th of January to the 8th of February: one month.
                "2026-01-08": [
                    .renewed: 1, .charged: 1, .trialDelta: -1, .activeDelta: 1, .revenue: 10_000, .mrrNew: 10_000,
                ],
            ])
    }

    @Test func `trialsEnded when it was turned off, with no lapse of somebody who never paid`() throws {
        var story = WrittenStory()
        story.begins(week)
        story.turnsOff(week, at: instant(1, 3))
        story.expires(week, "VOLUNTARY", at: instant(1, 8))
        try story.expect(
            at: instant(1, 10),
            [
                "2026-01-01": [.started: 1, .trials: 1, .trialsEnded: 1, .trialDelta: 1],
                "2026-01-03": [.renewalTurnedOff: 1],
                "2026-01-08": [.trialDelta: -1],
            ])
    }

    @Test func `trialsEnded when it is taken back`() throws {
        var story = WrittenStory()
        story.begins(week)
        story.refunds(week, at: instant(1, 4))
        try story.expect(
            at: instant(1, 10),
            [
                "2026-01-01": [.started: 1, .trials: 1, .trialsEnded: 1, .trialDelta: 1],
                // Nothing was paid, so nothing is paid back, and no charged row is refunded.
                "2026-01-04": [.refunded: 1, .trialDelta: -1],
            ])
    }

    @Test func `trialsConverted though the first payment came in grace`() throws {
        var story = WrittenStory()
        story.begins(week)
        story.fails(week, at: instant(1, 7, 18), grace: instant(1, 24))
        story.recovers(paid, at: instant(1, 12))
        try story.expect(
            at: instant(1, 10),
            [
                // Grace keeps it open.
                "2026-01-01": [.started: 1, .trials: 1, .trialsOpen: 1, .trialDelta: 1],
                "2026-01-07": [.failed: 1, .graceEntered: 1, .failedOpen: 1],
                // No revenue is at risk, because there is none yet.
                "2026-01-08": [.trialDelta: -1, .graceDelta: 1],
            ])
        try story.expect(
            at: instant(1, 20),
            [
                "2026-01-01": [.started: 1, .trials: 1, .trialsConverted: 1, .trialDelta: 1],
                // From the 7th at 18:00 to the 12th at 0:00: more than three days, less than seven.
                "2026-01-07": [
                    .failed: 1, .graceEntered: 1, .recoveredWithin7: 1, .recoveredWithin16: 1, .recoveredWithin28: 1,
                    .recoveredWithin60: 1, .recoveredWithin90: 1,
                ],
                "2026-01-08": [.trialDelta: -1, .graceDelta: 1],
                "2026-01-12": [
                    .graceRecovered: 1, .charged: 1, .graceDelta: -1, .activeDelta: 1, .revenue: 10_000,
                    .recoveredRevenue: 10_000, .mrrNew: 10_000,
                ],
            ])
    }

    @Test func `trialsOpen in RETRY, trialsEnded when the payment is lost`() throws {
        var story = WrittenStory()
        story.begins(week)
        story.fails(week, at: instant(1, 7))
        // 60 days after the 8th of January: 23 left in January, 28 in February, 9 in March.
        try story.expect(
            at: instant(3, 9) - 1,
            [
                "2026-01-01": [.started: 1, .trials: 1, .trialsOpen: 1, .trialDelta: 1],
                "2026-01-07": [.failed: 1, .failedOpen: 1],
                "2026-01-08": [.retryEntered: 1, .retryOpen: 1, .trialDelta: -1, .retryDelta: 1],
            ])
        try story.expect(
            at: instant(3, 9),
            [
                "2026-01-01": [.started: 1, .trials: 1, .trialsEnded: 1, .trialDelta: 1],
                "2026-01-07": [.failed: 1],
                // It is lost on the day that access ended.
                "2026-01-08": [.retryEntered: 1, .retryLost: 1, .trialDelta: -1, .retryDelta: 1],
                "2026-03-09": [.retryDelta: -1],
            ])
    }

    @Test func `trials are not free periods of those who have access`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.renews(row("2", instant(2, 1), instant(3, 1), price: 0))
        story.renews(row("3", instant(3, 1), instant(4, 1)))
        try story.expect(
            at: instant(3, 10),
            [
                "2026-01-01": bought,
                // Access continues and nothing is paid.
                "2026-02-01": [.renewed: 1, .activeDelta: -1, .trialDelta: 1, .mrrContraction: -10_000],
                // Paid earlier in this run.
                "2026-03-01": [
                    .renewed: 1, .charged: 1, .trialDelta: -1, .activeDelta: 1, .revenue: 10_000,
                    .mrrExpansion: 10_000,
                ],
            ])
    }

    @Test func `trials count again for who comes back to one`() throws {
        var story = WrittenStory()
        story.begins(week)
        story.comesBack(row("2", instant(1, 18), instant(1, 25), price: 0, ["offerDiscountType": "FREE_TRIAL"]))
        try story.expect(
            at: instant(1, 20),
            [
                "2026-01-01": [.started: 1, .trials: 1, .trialsEnded: 1, .trialDelta: 1],
                "2026-01-08": [.trialDelta: -1],
                // Nothing is regained, because no payment had lapsed.
                "2026-01-18": [.resubscribed: 1, .trials: 1, .trialsOpen: 1, .trialDelta: 1],
            ])
    }
}
