// Refunds and their reversals. Every number is worked out by hand from docs/explanation/churn-rules.md.

import Churn
import Testing

@Suite struct `Refunds` {
    private let renewed: Numbers = [.renewed: 1, .charged: 1, .revenue: 10_000]

    @Test func `refunded, refundedAmount, chargedRefunded and chargedRefundedAmount, each on its own day`() throws {
        var story = WrittenStory()
        story.begins(january)
        // Dated the 10th, signed the 12th: the customer has had no access since the 10th.
        story.refunds(january, at: instant(1, 10), told: instant(1, 12))
        try story.expect(at: instant(1, 12) - 1, ["2026-01-01": bought])
        try story.expect(
            at: instant(1, 12),
            [
                // The whole payment of the 1st was refunded in the end.
                "2026-01-01": bought + [.chargedRefunded: 1, .chargedRefundedAmount: 10_000],
                "2026-01-10": [
                    .refunded: 1, .lapsedRefund: 1, .activeDelta: -1, .refundedAmount: 10_000, .mrrRefund: -10_000,
                ],
            ])
    }

    @Test func `refundReversed and refundReversedAmount give back the access of the same period`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.refunds(january, at: instant(1, 10), share: 50_000)
        story.tell("REFUND_REVERSED", at: instant(1, 15), january)
        try story.expect(
            at: instant(1, 20),
            [
                // Reversed: in the end it is not refunded.
                "2026-01-01": bought,
                // 50 percent of 10,000. Its revenue a month is lost completely, because access is.
                "2026-01-10": [
                    .refunded: 1, .lapsedRefund: 1, .activeDelta: -1, .refundedAmount: 5_000, .mrrRefund: -10_000,
                ],
                "2026-01-15": [
                    .refundReversed: 1, .regained: 1, .activeDelta: 1, .refundReversedAmount: 5_000,
                    .mrrRefund: 10_000,
                ],
            ])
    }

    @Test func `refunded twice, refundReversed once: the amount of the second stays`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.refunds(january, at: instant(1, 10), share: 50_000)
        story.tell("REFUND_REVERSED", at: instant(1, 15), january)
        story.refunds(january, at: instant(1, 20), share: 30_000)
        // Reported again with other values: one run, with those of its newest notification.
        story.refunds(january, at: instant(1, 21), share: 20_000)
        try story.expect(
            at: instant(1, 25),
            [
                "2026-01-01": bought + [.chargedRefunded: 1, .chargedRefundedAmount: 2_000],
                "2026-01-10": [
                    .refunded: 1, .lapsedRefund: 1, .activeDelta: -1, .refundedAmount: 5_000, .mrrRefund: -10_000,
                ],
                "2026-01-15": [
                    .refundReversed: 1, .regained: 1, .activeDelta: 1, .refundReversedAmount: 5_000,
                    .mrrRefund: 10_000,
                ],
                // 20 percent of 10,000, on the day of that notification.
                "2026-01-21": [
                    .refunded: 1, .lapsedRefund: 1, .activeDelta: -1, .refundedAmount: 2_000, .mrrRefund: -10_000,
                ],
            ])
    }

    @Test(
        arguments: [
            // Half of 10,001 is 5,000.5, rounded to even; of 10,003 it is 5,001.5.
            (10_001, 50_000, 5_000), (10_003, 50_000, 5_002),
            // A third of 9,990 is 3,329.9667. More than all counts as all, less than nothing as nothing.
            (9_990, 33_333, 3_330), (9_990, 120_000, 9_990), (9_990, -5, 0),
        ] as [(Int64, Int, Int64)])
    func `refundedAmount is rounded half to even, once`(_ price: Int64, _ share: Int, _ amount: Int64) throws {
        var story = WrittenStory()
        let first = row("1", instant(1, 1), instant(2, 1), price: price)
        story.begins(first)
        story.refunds(first, at: instant(1, 10), share: share)
        let begun: Numbers = [
            .started: 1, .charged: 1, .activeDelta: 1, .revenue: price, .mrrNew: price, .chargedRefunded: 1,
        ]
        let ended: Numbers = [.refunded: 1, .lapsedRefund: 1, .activeDelta: -1, .mrrRefund: -price]
        try story.expect(
            at: instant(1, 20),
            [
                "2026-01-01": begun + [.chargedRefundedAmount: amount],
                "2026-01-10": ended + [.refundedAmount: amount],
            ])
    }

    @Test func `refunded of an earlier period ends nothing`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.renews(february)
        story.refunds(january, at: instant(2, 10))
        try story.expect(
            at: instant(2, 20),
            [
                "2026-01-01": bought + [.chargedRefunded: 1, .chargedRefundedAmount: 10_000], "2026-02-01": renewed,
                "2026-02-10": [.refunded: 1, .refundedAmount: 10_000],
            ])
    }

    @Test func `lapsedRefund ends with the renewal that comes all the same`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.refunds(january, at: instant(1, 10))
        story.renews(february)
        try story.expect(
            at: instant(2, 10),
            [
                "2026-01-01": bought + [.chargedRefunded: 1, .chargedRefundedAmount: 10_000],
                "2026-01-10": [
                    .refunded: 1, .lapsedRefund: 1, .activeDelta: -1, .refundedAmount: 10_000, .mrrRefund: -10_000,
                ],
                // There was no access before: a customer who has come back.
                "2026-02-01": [
                    .resubscribed: 1, .regained: 1, .charged: 1, .activeDelta: 1, .revenue: 10_000,
                    .mrrReactivation: 10_000,
                ],
            ])
    }

    @Test func `refundReversed after the end brings no access back`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.refunds(january, at: instant(1, 10))
        story.tell("REFUND_REVERSED", at: instant(3, 15), january)
        try story.expect(
            at: instant(3, 20),
            [
                "2026-01-01": bought,
                "2026-01-10": [
                    .refunded: 1, .lapsedRefund: 1, .activeDelta: -1, .refundedAmount: 10_000, .mrrRefund: -10_000,
                ],
                "2026-03-15": [.refundReversed: 1, .refundReversedAmount: 10_000],
            ])
    }

    @Test func `refunded after the end is no lapse`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.refunds(january, at: instant(2, 1))
        try story.expect(
            at: instant(2, 10),
            [
                "2026-01-01": bought + [.chargedRefunded: 1, .chargedRefundedAmount: 10_000],
                // At the end itself the row is over: it lapses because no row follows.
                "2026-02-01": [
                    .refunded: 1, .refundedAmount: 10_000, .lapsedOther: 1, .activeDelta: -1, .mrrOther: -10_000,
                ],
            ])
    }

    @Test func `upgradeRefundedAmount less reversals, with no other trace`() throws {
        var story = WrittenStory()
        story.begins(january)
        let pro = row("2", instant(1, 16), instant(2, 16), price: 20_000, product: "max.monthly")
        story.tell("DID_CHANGE_RENEWAL_PREF", "UPGRADE", at: instant(1, 16), pro)
        story.refunds(january.with(["isUpgraded": true]), at: instant(1, 16), share: 50_000, told: instant(1, 17))
        let begun: [Cell: Numbers] = [
            "2026-01-01": bought,
            "2026-01-16 max.monthly": [
                .switched: 1, .upgraded: 1, .charged: 1, .activeDelta: 1, .revenue: 20_000, .mrrMoved: 10_000,
                .mrrExpansion: 10_000,
            ],
        ]
        let left: Numbers = [.activeDelta: -1, .mrrMoved: -10_000]
        // Half of January: the rest of it when it was replaced.
        let refunded = left + [.upgradeRefundedAmount: 5_000]
        try story.expect(at: instant(2, 1), begun.merging(["2026-01-16": refunded]) { $1 })
        story.tell("REFUND_REVERSED", at: instant(2, 5), january.with(["isUpgraded": true]))
        try story.expect(
            at: instant(2, 10),
            begun.merging(["2026-01-16": refunded, "2026-02-05": [.upgradeRefundedAmount: -5_000]]) { $1 })
    }

    @Test func `upgradeRefundedAmount though isUpgraded was not told, by the row that came by UPGRADE`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.refunds(january, at: instant(1, 15), share: 50_000)
        // Until the upgrade is known it counts as an ordinary refund.
        try story.expect(
            at: instant(1, 15),
            [
                "2026-01-01": bought + [.chargedRefunded: 1, .chargedRefundedAmount: 5_000],
                "2026-01-15": [
                    .refunded: 1, .lapsedRefund: 1, .activeDelta: -1, .refundedAmount: 5_000, .mrrRefund: -10_000,
                ],
            ])
        story.tell("OFFER_REDEEMED", "UPGRADE", at: instant(1, 16), row("2", instant(1, 16), instant(2, 16)))
        try story.expect(
            at: instant(1, 16),
            [
                "2026-01-01": bought, "2026-01-15": [.upgradeRefundedAmount: 5_000],
                // Same product, plan and price.
                "2026-01-16": [.switched: 1, .charged: 1, .revenue: 10_000],
            ])
    }

    @Test func `oneTimeRefunded and oneTimeRefundedAmount of products that do not renew, less reversals`() throws {
        var story = WrittenStory()
        var coins = row("9", instant(1, 1), 0, price: 3_001, product: "coins", ["type": "Consumable"])
        coins["expiresDate"] = nil
        story.tell("ONE_TIME_CHARGE", at: instant(1, 1), coins)
        story.refunds(coins, at: instant(1, 2), share: 50_000, told: instant(1, 3))
        story.tell("REFUND_REVERSED", at: instant(1, 9), coins)
        // Purchases of one-time products are not counted.
        try story.expect(at: instant(1, 2), [:])
        // Half of 3,001 is 1,500.5, rounded to even. One-time products have no plan.
        let refunded: Numbers = [.oneTimeRefunded: 1, .oneTimeRefundedAmount: 1_500]
        try story.expect(at: instant(1, 8), ["2026-01-02 coins -": refunded])
        try story.expect(
            at: instant(1, 9),
            [
                "2026-01-02 coins -": refunded,
                "2026-01-09 coins -": [.oneTimeRefunded: -1, .oneTimeRefundedAmount: -1_500],
            ])
    }

    @Test func `started, charged and refunded count nothing of a family member`() throws {
        var story = WrittenStory()
        let shared = january.with(["inAppOwnershipType": "FAMILY_SHARED"])
        story.begins(shared)
        story.refunds(shared, at: instant(1, 10))
        try story.expect(at: instant(3, 1), [:])
    }
}
