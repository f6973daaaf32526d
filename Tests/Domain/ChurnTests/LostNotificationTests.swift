// Failures whose DID_FAIL_TO_RENEW never came, proved by later notifications. Every number is worked out by hand from
// docs/explanation/churn-rules.md.

import Churn
import Testing

@Suite struct `Lost notifications` {
    /// In RETRY from the 1st of February on; the retry is not open any more.
    private let intoRetry: Numbers = [
        .failed: 1, .retryEntered: 1, .lapsedBilling: 1, .activeDelta: -1, .retryDelta: 1, .mrrBilling: -10_000,
        .atRiskDelta: 10_000,
    ]

    @Test func `failed, retryEntered and retryLost are proved by EXPIRED BILLING_RETRY`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.expires(january, "BILLING_RETRY", at: instant(3, 20))
        // Until then it looked like a lapse without a known reason.
        try story.expect(
            at: instant(3, 1),
            ["2026-01-01": bought, "2026-02-01": [.lapsedOther: 1, .activeDelta: -1, .mrrOther: -10_000]])
        try story.expect(
            at: instant(3, 20),
            [
                "2026-01-01": bought,
                // It failed no later than its due date, and was lost on the day that access ended.
                "2026-02-01": intoRetry + [.retryLost: 1],
                // Apple gives up on the 20th of March.
                "2026-03-20": [.retryDelta: -1, .atRiskDelta: -10_000],
            ])
    }

    @Test func `graceEntered and unpaidGrace are proved by GRACE_PERIOD_EXPIRED`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.tell(
            "GRACE_PERIOD_EXPIRED", at: instant(2, 17), january, info: ["gracePeriodExpiresDate": instant(2, 17)])
        try story.expect(
            at: instant(2, 20),
            [
                "2026-01-01": bought,
                // The proof is dated the 17th: the payment failed on the 1st at the latest.
                "2026-02-01": [
                    .failed: 1, .graceEntered: 1, .failedOpen: 1, .activeDelta: -1, .graceDelta: 1,
                    .atRiskDelta: 10_000,
                ],
                // Sixteen days.
                "2026-02-17": [
                    .retryEntered: 1, .retryOpen: 1, .lapsedBilling: 1, .graceDelta: -1, .retryDelta: 1,
                    .unpaidGrace: 16_000, .mrrBilling: -10_000,
                ],
            ])
    }

    /// A grace that ended when this payment was due belongs to an earlier payment.
    @Test(arguments: [nil, instant(2, 1)])
    func `failed and retryRecovered are proved by BILLING_RECOVERY alone`(grace: Int64?) throws {
        var story = WrittenStory()
        story.begins(january)
        story.recovers(february, at: instant(2, 5), grace: grace)
        try story.expect(
            at: instant(2, 10),
            [
                "2026-01-01": bought,
                // It failed when due, and was paid four days later. No grace is known.
                "2026-02-01": intoRetry + [
                    .recoveredWithin7: 1, .recoveredWithin16: 1, .recoveredWithin28: 1, .recoveredWithin60: 1,
                    .recoveredWithin90: 1,
                ],
                // The cycle of February is kept, and counts from the day it was paid.
                "2026-02-05": [
                    .retryRecovered: 1, .regained: 1, .charged: 1, .retryDelta: -1, .activeDelta: 1,
                    .revenue: 10_000, .recoveredRevenue: 10_000, .mrrRecovery: 10_000, .atRiskDelta: -10_000,
                ],
            ])
    }

    @Test func `graceEntered and graceRecovered are told by BILLING_RECOVERY that names the grace`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.recovers(february, at: instant(2, 5), grace: instant(2, 17))
        try story.expect(
            at: instant(2, 20),
            [
                "2026-01-01": bought,
                "2026-02-01": [
                    .failed: 1, .graceEntered: 1, .activeDelta: -1, .graceDelta: 1, .atRiskDelta: 10_000,
                    .recoveredWithin7: 1, .recoveredWithin16: 1, .recoveredWithin28: 1, .recoveredWithin60: 1,
                    .recoveredWithin90: 1,
                ],
                "2026-02-05": [
                    .graceRecovered: 1, .charged: 1, .graceDelta: -1, .activeDelta: 1, .revenue: 10_000,
                    .recoveredRevenue: 10_000, .atRiskDelta: -10_000,
                ],
            ])
    }

    /// The cycle of February was paid after it was over. A purchase made within it also begins then, which is after its own end.
    @Test func `renewed is what begins after the end of a row that was paid late`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.recovers(february, at: instant(3, 5))
        story.tell(
            "PRICE_INCREASE", "ACCEPTED", at: instant(3, 6),
            row("3", instant(2, 20), instant(3, 20), product: "pro.plus"))
        try story.expect(
            at: instant(3, 10),
            [
                "2026-01-01": bought,
                "2026-02-01": intoRetry + [.recoveredWithin60: 1, .recoveredWithin90: 1],
                "2026-03-05": [
                    .retryRecovered: 1, .regained: 1, .charged: 1, .retryDelta: -1, .revenue: 10_000,
                    .recoveredRevenue: 10_000, .mrrRecovery: 10_000, .atRiskDelta: -10_000, .mrrMoved: -10_000,
                ],
                "2026-03-05 pro.plus": [
                    .renewed: 1, .crossgraded: 1, .charged: 1, .activeDelta: 1, .revenue: 10_000, .mrrMoved: 10_000,
                ],
            ])
    }

    @Test func `failed is not proved by a flagged row after the window`() throws {
        // 60 days after the 1st of February: 27 left in February, 31 in March, the 2nd of April.
        let end = instant(4, 2)
        var story = WrittenStory()
        story.begins(january)
        var inside = story
        story.recovers(row("2", end, instant(5, 2)))
        // No failure, no EXPIRED, and the next row is a renewal: access never stopped.
        try story.expect(
            at: end, ["2026-01-01": bought, "2026-04-02": [.renewed: 1, .charged: 1, .revenue: 10_000]])
        inside.recovers(row("2", end - 1, instant(5, 1)))
        try inside.expect(
            at: end,
            [
                "2026-01-01": bought,
                // A millisecond less than 60 days.
                "2026-02-01": intoRetry + [.recoveredWithin60: 1, .recoveredWithin90: 1],
                "2026-04-01": [
                    .retryRecovered: 1, .regained: 1, .charged: 1, .retryDelta: -1, .activeDelta: 1,
                    .revenue: 10_000, .recoveredRevenue: 10_000, .mrrRecovery: 10_000, .atRiskDelta: -10_000,
                ],
            ])
    }

    @Test func `retryLost at the window's end when even EXPIRED was lost`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.fails(january, at: instant(2, 1))
        try story.expect(
            at: instant(4, 2) - 1, ["2026-01-01": bought, "2026-02-01": intoRetry + [.failedOpen: 1, .retryOpen: 1]])
        try story.expect(
            at: instant(4, 2),
            [
                "2026-01-01": bought, "2026-02-01": intoRetry + [.retryLost: 1],
                "2026-04-02": [.retryDelta: -1, .atRiskDelta: -10_000],
            ])
    }

    @Test func `lapsedVoluntary though neither the cancellation nor EXPIRED came, by the renewal info`() throws {
        var story = WrittenStory()
        story.begins(january)
        // Another notification about January, signed after the cancellation.
        story.tell("PRICE_INCREASE", "ACCEPTED", at: instant(1, 25), january, info: ["autoRenewStatus": 0])
        try story.expect(
            at: instant(2, 1),
            [
                "2026-01-01": bought,
                "2026-02-01": [.lapsedVoluntary: 1, .activeDelta: -1, .mrrVoluntary: -10_000],
            ])
    }
}
