// The timelines of Apple's documents on billing: a month whose payment fails, with and without grace, recovered or not; and a
// commitment, which has no grace and 90 days. Every number is worked out by hand from them and docs/explanation/churn-rules.md.

import Churn
import Testing

/// "Prevent unintentional loss of subscribers due to billing issues": 60 days of attempts, 16 days of grace for a month, 6 for a
/// week; the first attempt within 24 hours before the period ends.
@Suite struct `A month that fails` {
    private let failedAt = instant(1, 31, 12)
    /// Sixteen days after the 1st of February.
    private let graceEnd = instant(2, 17)

    private func story(grace: Bool) -> WrittenStory {
        var story = WrittenStory()
        story.begins(january)
        story.fails(january, at: failedAt, grace: grace ? graceEnd : nil)
        return story
    }

    @Test func `graceRecovered in grace, on the cycle it was on, with service and revenue unbroken`() throws {
        // Apple dates a recovery by the old cycle. If the date were that of the payment, the numbers would be the same.
        for purchase in [instant(2, 1), instant(2, 5, 12)] {
            var story = story(grace: true)
            story.recovers(row("2", purchase, instant(3, 1)), at: instant(2, 5, 12))
            story.renews(row("3", instant(3, 1), instant(4, 1)))
            try story.expect(
                at: instant(3, 10),
                [
                    "2026-01-01": bought,
                    // Five days to the hour.
                    "2026-01-31": [
                        .failed: 1, .graceEntered: 1, .recoveredWithin7: 1, .recoveredWithin16: 1,
                        .recoveredWithin28: 1, .recoveredWithin60: 1, .recoveredWithin90: 1,
                    ],
                    "2026-02-01": [.activeDelta: -1, .graceDelta: 1, .atRiskDelta: 10_000],
                    // Nobody lapsed, so nothing is regained, and no grace remained unpaid.
                    "2026-02-05": [
                        .graceRecovered: 1, .charged: 1, .graceDelta: -1, .activeDelta: 1, .revenue: 10_000,
                        .recoveredRevenue: 10_000, .atRiskDelta: -10_000,
                    ],
                    "2026-03-01": [.renewed: 1, .charged: 1, .revenue: 10_000],
                ])
        }
    }

    @Test func `retryRecovered after grace, on a new cycle, with unpaidGrace`() throws {
        var story = story(grace: true)
        story.tell("GRACE_PERIOD_EXPIRED", at: graceEnd, january, info: ["gracePeriodExpiresDate": graceEnd])
        story.recovers(row("2", instant(3, 10), instant(4, 10)))
        story.renews(row("3", instant(4, 10), instant(5, 10)))
        try story.expect(
            at: instant(4, 20),
            [
                "2026-01-01": bought,
                // 37 and a half days: 28 of February, and 10 of March less half a day.
                "2026-01-31": [.failed: 1, .graceEntered: 1, .recoveredWithin60: 1, .recoveredWithin90: 1],
                "2026-02-01": [.activeDelta: -1, .graceDelta: 1, .atRiskDelta: 10_000],
                // "Payment for the provided full service during the grace period would not be collected."
                "2026-02-17": [
                    .retryEntered: 1, .lapsedBilling: 1, .graceDelta: -1, .retryDelta: 1, .unpaidGrace: 16_000,
                    .mrrBilling: -10_000,
                ],
                "2026-03-10": [
                    .retryRecovered: 1, .regained: 1, .charged: 1, .retryDelta: -1, .activeDelta: 1,
                    .revenue: 10_000, .recoveredRevenue: 10_000, .mrrRecovery: 10_000, .atRiskDelta: -10_000,
                ],
                "2026-04-10": [.renewed: 1, .charged: 1, .revenue: 10_000],
            ])
    }

    @Test func `failedOpen and retryOpen until it is retryLost with grace, dated by the end of access`() throws {
        var story = story(grace: true)
        // 60 days after the 1st of February.
        story.expires(january, "BILLING_RETRY", at: instant(4, 2))
        try story.expect(
            at: instant(4, 2) - 1,
            [
                "2026-01-01": bought, "2026-01-31": [.failed: 1, .graceEntered: 1, .failedOpen: 1],
                "2026-02-01": [.activeDelta: -1, .graceDelta: 1, .atRiskDelta: 10_000],
                "2026-02-17": [
                    .retryEntered: 1, .retryOpen: 1, .lapsedBilling: 1, .graceDelta: -1, .retryDelta: 1,
                    .unpaidGrace: 16_000, .mrrBilling: -10_000,
                ],
            ])
        try story.expect(
            at: instant(4, 2),
            [
                "2026-01-01": bought, "2026-01-31": [.failed: 1, .graceEntered: 1],
                "2026-02-01": [.activeDelta: -1, .graceDelta: 1, .atRiskDelta: 10_000],
                "2026-02-17": [
                    .retryEntered: 1, .retryLost: 1, .lapsedBilling: 1, .graceDelta: -1, .retryDelta: 1,
                    .unpaidGrace: 16_000, .mrrBilling: -10_000,
                ],
                "2026-04-02": [.retryDelta: -1, .atRiskDelta: -10_000],
            ])
    }

    @Test func `retryRecovered without grace, on a new cycle`() throws {
        var story = story(grace: false)
        story.recovers(row("2", instant(2, 10), instant(3, 10)))
        story.renews(row("3", instant(3, 10), instant(4, 10)))
        try story.expect(
            at: instant(3, 20),
            [
                "2026-01-01": bought,
                // Nine days and a half.
                "2026-01-31": [
                    .failed: 1, .recoveredWithin16: 1, .recoveredWithin28: 1, .recoveredWithin60: 1,
                    .recoveredWithin90: 1,
                ],
                // Access ends with the paid period.
                "2026-02-01": [
                    .retryEntered: 1, .lapsedBilling: 1, .activeDelta: -1, .retryDelta: 1, .mrrBilling: -10_000,
                    .atRiskDelta: 10_000,
                ],
                "2026-02-10": [
                    .retryRecovered: 1, .regained: 1, .charged: 1, .retryDelta: -1, .activeDelta: 1,
                    .revenue: 10_000, .recoveredRevenue: 10_000, .mrrRecovery: 10_000, .atRiskDelta: -10_000,
                ],
                "2026-03-10": [.renewed: 1, .charged: 1, .revenue: 10_000],
            ])
    }

    @Test func `retryLost without grace, after 60 days`() throws {
        var story = story(grace: false)
        story.expires(january, "BILLING_RETRY", at: instant(4, 2))
        try story.expect(
            at: instant(4, 10),
            [
                "2026-01-01": bought, "2026-01-31": [.failed: 1],
                "2026-02-01": [
                    .retryEntered: 1, .retryLost: 1, .lapsedBilling: 1, .activeDelta: -1, .retryDelta: 1,
                    .mrrBilling: -10_000, .atRiskDelta: 10_000,
                ],
                "2026-04-02": [.retryDelta: -1, .atRiskDelta: -10_000],
            ])
    }

    @Test func `graceRecovered of a week, whose grace is six days`() throws {
        let week = row("1", instant(1, 1), instant(1, 8), price: 2_990)
        var story = WrittenStory()
        story.begins(week)
        story.fails(week, at: instant(1, 7, 12), grace: instant(1, 14))
        story.recovers(row("2", instant(1, 8), instant(1, 15), price: 2_990), at: instant(1, 12))
        try story.expect(
            at: instant(1, 14, 12),
            [
                // 2,990 x 2,629,800,000 ms / 604,800,000 ms = 13,001.19 a month.
                "2026-01-01": [.started: 1, .charged: 1, .activeDelta: 1, .revenue: 2_990, .mrrNew: 13_001],
                // Four days and a half.
                "2026-01-07": [
                    .failed: 1, .graceEntered: 1, .recoveredWithin7: 1, .recoveredWithin16: 1, .recoveredWithin28: 1,
                    .recoveredWithin60: 1, .recoveredWithin90: 1,
                ],
                "2026-01-08": [.activeDelta: -1, .graceDelta: 1, .atRiskDelta: 13_001],
                "2026-01-12": [
                    .graceRecovered: 1, .charged: 1, .graceDelta: -1, .activeDelta: 1, .revenue: 2_990,
                    .recoveredRevenue: 2_990, .atRiskDelta: -13_001,
                ],
            ])
    }
}

/// "Managing the life cycle of monthly subscriptions with a 12-month commitment": no grace, 90 days of attempts, and no access as
/// soon as a payment fails. A customer who cancels pays to the end.
@Suite struct `A commitment of twelve months` {
    private let begun: Numbers = [
        .started: 1, .charged: 1, .activeDelta: 1, .revenue: 5_000, .mrrNew: 5_000, .commitmentsStarted: 1,
    ]
    private let renewed: Numbers = [.renewed: 1, .charged: 1, .revenue: 5_000]
    /// The counters of the day of the failure.
    private let stopped: Numbers = [
        .failed: 1, .retryEntered: 1, .lapsedBilling: 1, .activeDelta: -1, .retryDelta: 1, .mrrBilling: -5_000,
        .atRiskDelta: 5_000,
    ]

    private func period(_ number: Int) -> [String: Any] {
        let end = number == 12 ? instant(1, 1, year: 2027) : instant(number + 1, 1)
        return month("\(number)", instant(number, 1), end, period: number, of: 12)
    }

    private func cell(_ day: String) -> Cell { Cell("\(day) pro.yearly MONTHLY") }

    /// The second month ends on the 1st of March; the payment for the third fails half a day before.
    private func failing(grace: Int64? = nil) -> WrittenStory {
        var story = WrittenStory()
        story.begins(period(1))
        story.renews(period(2))
        story.fails(period(2), at: instant(2, 28, 12), grace: grace)
        return story
    }

    @Test func `retryRecovered and commitmentsOpen when it is paid, on shifted dates`() throws {
        var story = failing()
        story.recovers(month("3", instant(4, 7, 12), instant(5, 7, 12), period: 3, of: 12))
        try story.expect(
            at: instant(4, 20),
            [
                cell("2026-01-01"): begun + [.commitmentsOpen: 1], cell("2026-02-01"): renewed,
                // 38 days: 31 until the 31st of March, and 7 more.
                cell("2026-02-28"): stopped + [.recoveredWithin60: 1, .recoveredWithin90: 1],
                cell("2026-04-07"): [
                    .retryRecovered: 1, .regained: 1, .charged: 1, .retryDelta: -1, .activeDelta: 1, .revenue: 5_000,
                    .recoveredRevenue: 5_000, .mrrRecovery: 5_000, .atRiskDelta: -5_000,
                ],
            ])
    }

    @Test func `retryLost and commitmentsDefaulted after 90 days, and no grace, whatever is told of one`() throws {
        for grace in [nil, instant(3, 17)] {
            let story = failing(grace: grace)
            // 90 days after the 1st of March: 30 left in March, 30 of April, 30 of May.
            try story.expect(
                at: instant(5, 30) - 1,
                [
                    cell("2026-01-01"): begun + [.commitmentsOpen: 1], cell("2026-02-01"): renewed,
                    cell("2026-02-28"): stopped + [.failedOpen: 1, .retryOpen: 1],
                ])
            var told = story
            told.expires(period(2), "BILLING_RETRY", at: instant(5, 30))
            // Final with EXPIRED as well as without it.
            for story in [story, told] {
                try story.expect(
                    at: instant(5, 30),
                    [
                        cell("2026-01-01"): begun + [.commitmentsDefaulted: 1], cell("2026-02-01"): renewed,
                        // Access ended at the failure itself.
                        cell("2026-02-28"): stopped + [.retryLost: 1],
                        cell("2026-05-30"): [.retryDelta: -1, .atRiskDelta: -5_000],
                    ])
            }
        }
    }

    @Test func `commitmentsCompleted by who cancels in the fourth month and pays eight more`() throws {
        var story = WrittenStory()
        story.begins(period(1))
        for number in 2...12 { story.renews(period(number)) }
        let info: [String: Any] = ["autoRenewStatus": 1, "commitmentInfo": ["commitmentAutoRenewStatus": 0]]
        story.tell("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: instant(4, 10), period(4), info: info)
        story.tell("EXPIRED", at: instant(1, 1, year: 2027), period(12), info: info)
        var cells: [Cell: Numbers] = [
            cell("2026-01-01"): begun + [.commitmentsCompleted: 1],
            // Turning renewal off changes no access.
            cell("2026-04-10"): [.renewalTurnedOff: 1],
            cell("2027-01-01"): [.lapsedVoluntary: 1, .activeDelta: -1, .mrrVoluntary: -5_000],
        ]
        // Eleven renewals, three before the cancellation and eight after it.
        for number in 2...12 { cells[cell(number < 10 ? "2026-0\(number)-01" : "2026-\(number)-01")] = renewed }
        try story.expect(at: instant(1, 10, year: 2027), cells)
    }
}
