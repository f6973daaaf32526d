// Failed payments and their outcomes. Every number is worked out by hand from docs/explanation/churn-rules.md. The timelines of
// Apple's own documents are in `AppleTimelineTests.swift`.

import Churn
import Contract
import Testing

@Suite struct `Failures decided` {
    @Test func `failed and failedOpen until it is decided, on the day of the first attempt`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.fails(january, at: instant(1, 31, 6))
        // Apple retries and reports it; it is the same failure.
        story.fails(january, at: instant(1, 31, 18))
        // Before the payment is due there is still access: nothing else has changed.
        try story.expect(
            at: instant(1, 31, 23), ["2026-01-01": bought, "2026-01-31": [.failed: 1, .failedOpen: 1]])
    }

    @Test func `earlyRecovered and recoveredRevenue before the payment was due`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.fails(january, at: instant(1, 31, 6))
        story.recovers(february, at: instant(1, 31, 18))
        try story.expect(
            at: instant(2, 10),
            [
                "2026-01-01": bought,
                // Twelve hours after the failure: within every bound. February keeps its cycle and begins when it was paid; it
                // has the same revenue from the 1st on.
                "2026-01-31": [
                    .failed: 1, .recoveredWithin1: 1, .recoveredWithin3: 1, .recoveredWithin7: 1,
                    .recoveredWithin16: 1, .recoveredWithin28: 1, .recoveredWithin60: 1, .recoveredWithin90: 1,
                    .earlyRecovered: 1, .charged: 1, .revenue: 10_000, .recoveredRevenue: 10_000,
                ],
            ])
    }

    /// Bounds in days of 24 hours.
    private static let bounds: [(days: Int64, counter: ChurnCounter)] = [
        (1, .recoveredWithin1), (3, .recoveredWithin3), (7, .recoveredWithin7), (16, .recoveredWithin16),
        (28, .recoveredWithin28), (60, .recoveredWithin60), (90, .recoveredWithin90),
    ]

    /// Only a commitment, which has 90 days and no grace, can be recovered after more than 60 days.
    @Test(arguments: [1, 3, 7, 16, 28, 60, 90] as [Int64], [0, 1] as [Int64])
    func `recoveredWithin1 to recoveredWithin90 count to the millisecond`(_ days: Int64, _ beyond: Int64) throws {
        let failedAt = instant(1, 31)
        let paidAt = failedAt + days * day + beyond
        func committed(_ id: String, _ from: Int64, _ to: Int64) -> [String: Any] {
            row(id, from, to, ["billingPlanType": "MONTHLY"])
        }
        var story = WrittenStory()
        let first = committed("1", instant(1, 1), instant(2, 1))
        story.begins(first)
        story.fails(first, at: failedAt)
        story.recovers(committed("2", paidAt, paidAt + 31 * day))
        // Access ends with the failure, and starts again with the payment.
        var failed: Numbers = [
            .failed: 1, .retryEntered: 1, .lapsedBilling: 1, .activeDelta: -1, .retryDelta: 1, .mrrBilling: -10_000,
            .atRiskDelta: 10_000,
        ]
        // A recovery exactly at the bound is within it; a millisecond later it is not.
        for bound in Self.bounds where days < bound.days || days == bound.days && beyond == 0 {
            failed[bound.counter] = 1
        }
        let recovered: Numbers = [
            .retryRecovered: 1, .regained: 1, .charged: 1, .retryDelta: -1, .activeDelta: 1, .revenue: 10_000,
            .recoveredRevenue: 10_000, .mrrRecovery: 10_000, .atRiskDelta: -10_000,
        ]
        let paidOn = CivilDay(number: paidAt.floorDivided(by: day))
        try story.expect(
            at: paidAt,
            [
                Cell("2026-01-01 pro.monthly MONTHLY"): bought, Cell("2026-01-31 pro.monthly MONTHLY"): failed,
                Cell("\(paidOn) pro.monthly MONTHLY"): recovered,
            ])
    }

    @Test func `retryCancelled by who turns renewal off in RETRY`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.fails(january, at: instant(1, 31))
        story.turnsOff(january, at: instant(2, 10))
        try story.expect(
            at: instant(5, 1),
            [
                "2026-01-01": bought, "2026-01-31": [.failed: 1],
                // The failure is not open any more: it was decided nine days later.
                "2026-02-01": [
                    .retryEntered: 1, .lapsedBilling: 1, .activeDelta: -1, .retryDelta: 1, .mrrBilling: -10_000,
                    .atRiskDelta: 10_000,
                ],
                // The revenue was already lost to billing, and is not lost again.
                "2026-02-10": [
                    .renewalTurnedOff: 1, .retryCancelled: 1, .retryDelta: -1, .atRiskDelta: -10_000,
                ],
            ])
    }

    @Test func `retryCancelled, unpaidGrace and mrrVoluntary by who turns renewal off in grace`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.fails(january, at: instant(1, 31), grace: instant(2, 17))
        story.turnsOff(january, at: instant(2, 5))
        try story.expect(
            at: instant(5, 1),
            [
                "2026-01-01": bought, "2026-01-31": [.failed: 1, .graceEntered: 1],
                "2026-02-01": [.activeDelta: -1, .graceDelta: 1, .atRiskDelta: 10_000],
                // Four days of service that nobody paid for.
                "2026-02-05": [
                    .renewalTurnedOff: 1, .retryCancelled: 1, .lapsedVoluntary: 1, .graceDelta: -1,
                    .unpaidGrace: 4_000, .mrrVoluntary: -10_000, .atRiskDelta: -10_000,
                ],
            ])
    }

    @Test func `retryCancelled between the first attempt and the due date, unless taken back by then`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.fails(january, at: instant(1, 31, 6))
        story.turnsOff(january, at: instant(1, 31, 12))
        let cancelled: Numbers = [.failed: 1, .retryCancelled: 1, .renewalTurnedOff: 1]
        // The paid period is kept until its end.
        try story.expect(at: instant(1, 31, 13), ["2026-01-01": bought, "2026-01-31": cancelled])
        try story.expect(
            at: instant(2, 1),
            [
                "2026-01-01": bought, "2026-01-31": cancelled,
                "2026-02-01": [.lapsedVoluntary: 1, .activeDelta: -1, .mrrVoluntary: -10_000],
            ])
        story.turnsOn(january, at: instant(2, 1))
        // Renewal was turned on again at the due date, just in time: so the payment was the reason.
        try story.expect(
            at: instant(2, 1),
            [
                "2026-01-01": bought, "2026-01-31": [.failed: 1, .failedOpen: 1, .renewalTurnedOff: 1],
                "2026-02-01": [
                    .renewalTurnedOn: 1, .retryEntered: 1, .retryOpen: 1, .lapsedBilling: 1, .activeDelta: -1,
                    .retryDelta: 1, .mrrBilling: -10_000, .atRiskDelta: 10_000,
                ],
            ])
    }

    @Test func `retryOther by a new purchase in RETRY`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.fails(january, at: instant(1, 31))
        story.comesBack(row("2", instant(2, 10), instant(3, 10)))
        try story.expect(
            at: instant(2, 20),
            [
                "2026-01-01": bought, "2026-01-31": [.failed: 1],
                "2026-02-01": [
                    .retryEntered: 1, .lapsedBilling: 1, .activeDelta: -1, .retryDelta: 1, .mrrBilling: -10_000,
                    .atRiskDelta: 10_000,
                ],
                // Bought, not recovered: the revenue counts as that of a returning customer.
                "2026-02-10": [
                    .retryOther: 1, .resubscribed: 1, .regained: 1, .charged: 1, .retryDelta: -1, .activeDelta: 1,
                    .revenue: 10_000, .mrrReactivation: 10_000, .atRiskDelta: -10_000,
                ],
            ])
    }

    @Test func `retryOther and unpaidGrace by a refund in grace, not by one after it`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.fails(january, at: instant(1, 31), grace: instant(2, 17))
        var late = story
        story.refunds(january, at: instant(2, 10))
        try story.expect(
            at: instant(3, 1),
            [
                "2026-01-01": bought + [.chargedRefunded: 1, .chargedRefundedAmount: 10_000],
                "2026-01-31": [.failed: 1, .graceEntered: 1],
                "2026-02-01": [.activeDelta: -1, .graceDelta: 1, .atRiskDelta: 10_000],
                // Nine days of grace, from the 1st to the 10th.
                "2026-02-10": [
                    .refunded: 1, .refundedAmount: 10_000, .retryOther: 1, .lapsedRefund: 1, .graceDelta: -1,
                    .unpaidGrace: 9_000, .mrrRefund: -10_000, .atRiskDelta: -10_000,
                ],
            ])
        late.refunds(january, at: instant(2, 20))
        try late.expect(
            at: instant(3, 1),
            [
                "2026-01-01": bought + [.chargedRefunded: 1, .chargedRefundedAmount: 10_000],
                "2026-01-31": [.failed: 1, .graceEntered: 1, .failedOpen: 1],
                "2026-02-01": [.activeDelta: -1, .graceDelta: 1, .atRiskDelta: 10_000],
                // Sixteen days of grace, then Apple retries; a refund for January ends nothing any more.
                "2026-02-17": [
                    .retryEntered: 1, .retryOpen: 1, .lapsedBilling: 1, .graceDelta: -1, .retryDelta: 1,
                    .unpaidGrace: 16_000, .mrrBilling: -10_000,
                ],
                "2026-02-20": [.refunded: 1, .refundedAmount: 10_000],
            ])
    }

    @Test func `retryCancelled by the first EXPIRED since the failure, not by one signed before it`() throws {
        var story = WrittenStory()
        story.begins(january)
        // A row that ends before it begins: its store had a wrong clock.
        let odd = row("2", instant(3, 1), instant(2, 20))
        story.expires(odd, "BILLING_RETRY", at: instant(2, 25))
        story.expires(odd, "VOLUNTARY", at: instant(3, 5))
        try story.expect(
            at: instant(3, 10),
            [
                // Nothing ended January, and the next row is a renewal: there was access until it failed.
                "2026-01-01": bought,
                // It fails when it begins; notifications signed before that decide nothing. Its revenue a month is 0.
                "2026-03-01": [
                    .renewed: 1, .charged: 1, .revenue: 10_000, .failed: 1, .retryEntered: 1, .lapsedBilling: 1,
                    .activeDelta: -1, .retryDelta: 1, .mrrBilling: -10_000,
                ],
                "2026-03-05": [.retryCancelled: 1, .retryDelta: -1],
            ])
    }
}
