// Revenue a month of subscriptions, from one value to the next: each part of the bridge of MRR in
// docs/explanation/churn-rules.md.

import Churn
import Testing

@Suite struct `Monthly revenue` {
    @Test func `mrrNew of a first payment, by the months that it is for`() throws {
        for (months, price, worth) in [
            // From the 1st of January to the same day of a later month; 100.00 by 3 is 33.333.
            (1, 10_000, 10_000), (3, 100_000, 33_333), (6, 60_000, 10_000), (12, 120_000, 10_000),
        ] as [(Int, Int64, Int64)] {
            var story = WrittenStory()
            let end = months == 12 ? instant(1, 1, year: 2027) : instant(1 + months, 1)
            story.begins(row("1", instant(1, 1), end, price: price))
            try story.expect(
                at: instant(1, 10),
                ["2026-01-01": [.started: 1, .charged: 1, .activeDelta: 1, .revenue: price, .mrrNew: worth]])
        }
    }

    @Test func `mrrNew of a week, by the length of an average month`() throws {
        var story = WrittenStory()
        story.begins(row("1", instant(1, 1), instant(1, 8), price: 2_990))
        // 2,990 x 2,629,800,000 ms / 604,800,000 ms = 13,001.19.
        try story.expect(
            at: instant(1, 2),
            ["2026-01-01": [.started: 1, .charged: 1, .activeDelta: 1, .revenue: 2_990, .mrrNew: 13_001]])
    }

    @Test func `mrrNew by the end as it was bought, not as it was extended`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.tell("RENEWAL_EXTENDED", at: instant(1, 20), row("1", instant(1, 1), instant(5, 1)))
        // Four months of access, one month paid.
        try story.expect(at: instant(4, 30), ["2026-01-01": bought])
    }

    @Test func `mrrAdopted by the first row when it is older than the log`() throws {
        var story = WrittenStory()
        story.renews(row("7", instant(1, 1), instant(2, 1)))
        try story.expect(
            at: instant(1, 10),
            ["2026-01-01": [.adopted: 1, .charged: 1, .activeDelta: 1, .revenue: 10_000, .mrrAdopted: 10_000]])
    }

    @Test func `mrrExpansion and mrrContraction when only the price changes`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.renews(row("2", instant(2, 1), instant(3, 1), price: 12_000))
        story.renews(row("3", instant(3, 1), instant(4, 1), price: 9_000))
        try story.expect(
            at: instant(3, 10),
            [
                "2026-01-01": bought,
                // From 10 to 12, and from 12 to 9.
                "2026-02-01": [.renewed: 1, .charged: 1, .revenue: 12_000, .mrrExpansion: 2_000],
                "2026-03-01": [.renewed: 1, .charged: 1, .revenue: 9_000, .mrrContraction: -3_000],
            ])
    }

    @Test func `mrrMoved to another key, mrrExpansion for the rest`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.renews(row("2", instant(2, 1), instant(2, 1, year: 2027), price: 180_000, product: "pro.yearly"))
        try story.expect(
            at: instant(2, 10),
            [
                "2026-01-01": bought, "2026-02-01": [.activeDelta: -1, .mrrMoved: -10_000],
                // 180 for 12 months is 15 a month: 10 of it is moved, and 5 is added.
                "2026-02-01 pro.yearly": [
                    .renewed: 1, .upgraded: 1, .charged: 1, .activeDelta: 1, .revenue: 180_000, .mrrMoved: 10_000,
                    .mrrExpansion: 5_000,
                ],
            ])
    }

    @Test func `mrrMoved to another currency, and nothing for the difference`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.renews(
            row("2", instant(2, 1), instant(3, 1), price: 9_000, ["currency": "EUR", "storefront": "DEU"]))
        try story.expect(
            at: instant(2, 10),
            [
                "2026-01-01": bought, "2026-02-01": [.activeDelta: -1, .mrrMoved: -10_000],
                // Product and plan stay the same: no change of plan.
                Cell("2026-02-01 pro.monthly BILLED_UPFRONT EUR", storefront: "DEU"): [
                    .renewed: 1, .charged: 1, .activeDelta: 1, .revenue: 9_000, .mrrMoved: 9_000,
                ],
            ])
    }

    @Test func `mrrContraction to nothing while access goes on, mrrExpansion back`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.renews(row("2", instant(2, 1), instant(3, 1), price: 0))
        story.renews(row("3", instant(3, 1), instant(4, 1), price: 12_000))
        try story.expect(
            at: instant(3, 10),
            [
                "2026-01-01": bought,
                "2026-02-01": [.renewed: 1, .activeDelta: -1, .trialDelta: 1, .mrrContraction: -10_000],
                "2026-03-01": [
                    .renewed: 1, .charged: 1, .trialDelta: -1, .activeDelta: 1, .revenue: 12_000,
                    .mrrExpansion: 12_000,
                ],
            ])
    }

    @Test func `mrrVoluntary, mrrPrice, mrrOther and mrrBilling by the reason of the lapse, mrrReactivation after it`()
        throws
    {
        for (subtype, lapse, loss) in [
            ("VOLUNTARY", .lapsedVoluntary, .mrrVoluntary), ("PRICE_INCREASE", .lapsedPrice, .mrrPrice),
            ("PRODUCT_NOT_FOR_SALE", .lapsedUnavailable, .mrrOther), (nil, .lapsedOther, .mrrOther),
        ] as [(String?, ChurnCounter, ChurnCounter)] {
            var story = WrittenStory()
            story.begins(january)
            story.expires(january, subtype, at: instant(2, 1))
            story.comesBack(row("2", instant(3, 1), instant(4, 1), price: 8_000))
            try story.expect(
                at: instant(3, 10),
                [
                    "2026-01-01": bought, "2026-02-01": [lapse: 1, .activeDelta: -1, loss: -10_000],
                    // All of the new revenue counts, whatever was paid before.
                    "2026-03-01": [
                        .resubscribed: 1, .regained: 1, .charged: 1, .activeDelta: 1, .revenue: 8_000,
                        .mrrReactivation: 8_000,
                    ],
                ])
        }
    }

    @Test func `mrrBilling into RETRY, mrrRecovery out of it, under the keys of the rows`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.fails(january, at: instant(1, 31))
        story.recovers(row("2", instant(2, 10), instant(3, 10), price: 12_000, product: "max.monthly"))
        try story.expect(
            at: instant(2, 20),
            [
                "2026-01-01": bought,
                // Ten days after the failure.
                "2026-01-31": [
                    .failed: 1, .recoveredWithin16: 1, .recoveredWithin28: 1, .recoveredWithin60: 1,
                    .recoveredWithin90: 1,
                ],
                "2026-02-01": [
                    .retryEntered: 1, .lapsedBilling: 1, .activeDelta: -1, .retryDelta: 1, .mrrBilling: -10_000,
                    .atRiskDelta: 10_000,
                ],
                // All counters of the failure go under the row that failed.
                "2026-02-10": [.retryRecovered: 1, .retryDelta: -1, .atRiskDelta: -10_000],
                // It has a higher price than the row before, another product, and is not a resubscription: upgraded.
                "2026-02-10 max.monthly": [
                    .upgraded: 1, .regained: 1, .charged: 1, .activeDelta: 1, .revenue: 12_000,
                    .recoveredRevenue: 12_000, .mrrRecovery: 12_000,
                ],
            ])
    }

    @Test func `mrrReactivation when what is recovered was a free row`() throws {
        var story = WrittenStory()
        story.begins(january)
        let free = row("2", instant(2, 1), instant(3, 1), price: 0)
        story.renews(free)
        story.fails(free, at: instant(3, 1))
        story.recovers(row("3", instant(3, 10), instant(4, 10)))
        try story.expect(
            at: instant(3, 20),
            [
                "2026-01-01": bought,
                "2026-02-01": [.renewed: 1, .activeDelta: -1, .trialDelta: 1, .mrrContraction: -10_000],
                // Nine days before it is paid; no revenue is at risk, and no paying customer lapses.
                "2026-03-01": [
                    .failed: 1, .recoveredWithin16: 1, .recoveredWithin28: 1, .recoveredWithin60: 1,
                    .recoveredWithin90: 1, .retryEntered: 1, .trialDelta: -1, .retryDelta: 1,
                ],
                // It has been paid before, but not in this run, and no paid row was at risk.
                "2026-03-10": [
                    .retryRecovered: 1, .charged: 1, .retryDelta: -1, .activeDelta: 1, .revenue: 10_000,
                    .recoveredRevenue: 10_000, .mrrReactivation: 10_000,
                ],
            ])
    }

    @Test func `mrrRefund out and in`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.refunds(january, at: instant(1, 10), share: 1_000)
        story.tell("REFUND_REVERSED", at: instant(1, 11), january)
        try story.expect(
            at: instant(1, 20),
            [
                "2026-01-01": bought,
                // One percent of the money, all of the access.
                "2026-01-10": [
                    .refunded: 1, .lapsedRefund: 1, .activeDelta: -1, .refundedAmount: 100, .mrrRefund: -10_000,
                ],
                "2026-01-11": [
                    .refundReversed: 1, .regained: 1, .activeDelta: 1, .refundReversedAmount: 100,
                    .mrrRefund: 10_000,
                ],
            ])
    }
}
