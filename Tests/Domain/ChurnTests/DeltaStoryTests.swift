// Stocks as running sums of the deltas. Every number is worked out by hand from docs/explanation/churn-rules.md.

import Churn
import Testing

@Suite struct `Deltas` {
    @Test func `activeDelta, trialDelta, graceDelta, retryDelta and atRiskDelta through a whole life`() throws {
        var story = WrittenStory()
        let trial = row("1", instant(1, 1), instant(1, 8), price: 0, ["offerDiscountType": "FREE_TRIAL"])
        let paid = row("2", instant(1, 8), instant(2, 8))
        let recovered = row("3", instant(3, 5), instant(4, 5))
        story.begins(trial)
        story.renews(paid)
        story.fails(paid, at: instant(2, 7), grace: instant(2, 24))
        story.recovers(recovered)
        story.expires(recovered, "VOLUNTARY", at: instant(4, 5))
        let cells: [Cell: Numbers] = [
            // Free for a week.
            "2026-01-01": [.started: 1, .trials: 1, .trialsConverted: 1, .trialDelta: 1],
            // Paid for a month.
            "2026-01-08": [
                .renewed: 1, .charged: 1, .trialDelta: -1, .activeDelta: 1, .revenue: 10_000, .mrrNew: 10_000,
            ],
            // The payment fails a day before it is due, and succeeds 26 days after that.
            "2026-02-07": [
                .failed: 1, .graceEntered: 1, .recoveredWithin28: 1, .recoveredWithin60: 1, .recoveredWithin90: 1,
            ],
            // Sixteen days of grace: still paying, at risk.
            "2026-02-08": [.activeDelta: -1, .graceDelta: 1, .atRiskDelta: 10_000],
            // Without access the revenue is still at risk.
            "2026-02-24": [
                .retryEntered: 1, .lapsedBilling: 1, .graceDelta: -1, .retryDelta: 1, .unpaidGrace: 16_000,
                .mrrBilling: -10_000,
            ],
            "2026-03-05": [
                .retryRecovered: 1, .regained: 1, .charged: 1, .retryDelta: -1, .activeDelta: 1, .revenue: 10_000,
                .recoveredRevenue: 10_000, .mrrRecovery: 10_000, .atRiskDelta: -10_000,
            ],
            "2026-04-05": [.lapsedVoluntary: 1, .activeDelta: -1, .mrrVoluntary: -10_000],
        ]
        try story.expect(at: instant(4, 30), cells)
        // One subscription: 1 in the state where it is, 0 in the others.
        let stocks: [ChurnCounter] = [.trialDelta, .activeDelta, .graceDelta, .retryDelta, .atRiskDelta]
        for (day, expected) in [
            ("2026-01-07", [1, 0, 0, 0, 0]), ("2026-01-08", [0, 1, 0, 0, 0]), ("2026-02-07", [0, 1, 0, 0, 0]),
            ("2026-02-08", [0, 0, 1, 0, 10_000]), ("2026-02-24", [0, 0, 0, 1, 10_000]),
            ("2026-03-05", [0, 1, 0, 0, 0]), ("2026-04-05", [0, 0, 0, 0, 0]),
        ] as [(String, [Int64])] {
            let before = cells.filter { $0.key.key.split(separator: "|")[1] <= day }.values
            let sums = before.reduce([:], +)
            #expect(stocks.map { sums[$0] ?? 0 } == expected, "at the end of \(day)")
        }
    }

    @Test func `activeDelta and mrrMoved from one storefront to another`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.renews(february.with(["storefront": "DEU"]))
        try story.expect(
            at: instant(2, 10),
            [
                "2026-01-01": bought, "2026-02-01": [.activeDelta: -1, .mrrMoved: -10_000],
                Cell("2026-02-01", storefront: "DEU"): [
                    .renewed: 1, .charged: 1, .activeDelta: 1, .revenue: 10_000, .mrrMoved: 10_000,
                ],
            ])
    }

    @Test func `graceDelta and atRiskDelta leave under the key that failed`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.fails(january, at: instant(1, 31), grace: instant(2, 17))
        story.recovers(february.with(["storefront": "DEU"]), at: instant(2, 3))
        try story.expect(
            at: instant(2, 10),
            [
                "2026-01-01": bought,
                // Paid three days later, to the millisecond.
                "2026-01-31": [
                    .failed: 1, .graceEntered: 1, .recoveredWithin3: 1, .recoveredWithin7: 1, .recoveredWithin16: 1,
                    .recoveredWithin28: 1, .recoveredWithin60: 1, .recoveredWithin90: 1,
                ],
                "2026-02-01": [.activeDelta: -1, .graceDelta: 1, .atRiskDelta: 10_000],
                // A chain in grace counts as paying, too: its revenue moves.
                "2026-02-03": [.graceRecovered: 1, .graceDelta: -1, .atRiskDelta: -10_000, .mrrMoved: -10_000],
                Cell("2026-02-03", storefront: "DEU"): [
                    .charged: 1, .activeDelta: 1, .revenue: 10_000, .recoveredRevenue: 10_000, .mrrMoved: 10_000,
                ],
            ])
    }

    @Test(
        arguments: [
            // A thousandth of a day has 86,400 ms: half of one rounds to 0, one and a half to 2, two and a half to 2.
            (43_200, 0), (86_400, 1), (129_600, 2), (216_000, 2), (216_001, 3),
        ] as [(Int64, Int64)])
    func `unpaidGrace is rounded half to even`(_ length: Int64, _ thousandths: Int64) throws {
        var story = WrittenStory()
        story.begins(january)
        story.fails(january, at: instant(1, 31), grace: instant(2, 17))
        story.turnsOff(january, at: instant(2, 1) + length)
        // Entered and left on one day: only the length of the grace remains.
        let left: Numbers = [
            .renewalTurnedOff: 1, .retryCancelled: 1, .lapsedVoluntary: 1, .activeDelta: -1, .mrrVoluntary: -10_000,
        ]
        try story.expect(
            at: instant(3, 1),
            [
                "2026-01-01": bought, "2026-01-31": [.failed: 1, .graceEntered: 1],
                "2026-02-01": left + [.unpaidGrace: thousandths],
            ])
    }
}
