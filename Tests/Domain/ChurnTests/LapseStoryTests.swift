// Customers who stopped paying, and why. Every number is worked out by hand from docs/explanation/churn-rules.md.

import Churn
import Testing

@Suite struct `Lapses` {
    /// January ends, with a notification on the first of February.
    private func expect(_ subtype: String?, info: [String: Any]? = nil, _ ended: Numbers) throws {
        var story = WrittenStory()
        story.begins(january)
        story.tell("EXPIRED", subtype, at: instant(2, 1), january, info: info)
        try story.expect(at: instant(3, 1), ["2026-01-01": bought, "2026-02-01": ended])
    }

    @Test func `lapsedVoluntary and mrrVoluntary by EXPIRED VOLUNTARY`() throws {
        try expect("VOLUNTARY", [.lapsedVoluntary: 1, .activeDelta: -1, .mrrVoluntary: -10_000])
    }

    @Test func `lapsedPrice and mrrPrice by EXPIRED PRICE_INCREASE`() throws {
        // The subtype is known first, whatever the renewal info says of renewal.
        try expect(
            "PRICE_INCREASE", info: ["autoRenewStatus": 0], [.lapsedPrice: 1, .activeDelta: -1, .mrrPrice: -10_000])
    }

    @Test func `lapsedUnavailable and mrrOther by EXPIRED PRODUCT_NOT_FOR_SALE`() throws {
        try expect("PRODUCT_NOT_FOR_SALE", [.lapsedUnavailable: 1, .activeDelta: -1, .mrrOther: -10_000])
    }

    @Test func `lapsedOther and mrrOther when nobody says why`() throws {
        try expect(nil, [.lapsedOther: 1, .activeDelta: -1, .mrrOther: -10_000])
    }

    @Test func `lapsedBilling and mrrBilling into RETRY, once`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.fails(january, at: instant(1, 31))
        story.expires(january, "BILLING_RETRY", at: instant(4, 2))
        try story.expect(
            at: instant(4, 2),
            [
                "2026-01-01": bought, "2026-01-31": [.failed: 1],
                "2026-02-01": [
                    .retryEntered: 1, .retryLost: 1, .lapsedBilling: 1, .activeDelta: -1, .retryDelta: 1,
                    .mrrBilling: -10_000, .atRiskDelta: 10_000,
                ],
                // From RETRY to the end no paying chain lapses.
                "2026-04-02": [.retryDelta: -1, .atRiskDelta: -10_000],
            ])
    }

    @Test func `lapsedVoluntary, lapsedBilling, lapsedPrice, lapsedUnavailable, lapsedOther by expirationIntent`()
        throws
    {
        // An intent wins over autoRenewStatus.
        func info(_ intent: Int) -> [String: Any] { ["expirationIntent": intent, "autoRenewStatus": 0] }
        try expect(nil, info: info(1), [.lapsedVoluntary: 1, .activeDelta: -1, .mrrVoluntary: -10_000])
        // If only an intent names billing, it is a reason and not a failure.
        try expect(nil, info: info(2), [.lapsedBilling: 1, .activeDelta: -1, .mrrBilling: -10_000])
        try expect(nil, info: info(3), [.lapsedPrice: 1, .activeDelta: -1, .mrrPrice: -10_000])
        try expect(nil, info: info(4), [.lapsedUnavailable: 1, .activeDelta: -1, .mrrOther: -10_000])
        try expect(nil, info: info(5), [.lapsedOther: 1, .activeDelta: -1, .mrrOther: -10_000])
    }

    @Test func `lapsedPrice by a price increase nobody answered, if renewal was not turned off`() throws {
        try expect(
            nil, info: ["autoRenewStatus": 1, "priceIncreaseStatus": 0],
            [.lapsedPrice: 1, .activeDelta: -1, .mrrPrice: -10_000])
        try expect(
            nil, info: ["autoRenewStatus": 0, "priceIncreaseStatus": 0],
            [.lapsedVoluntary: 1, .activeDelta: -1, .mrrVoluntary: -10_000])
    }

    @Test func `lapsedOther though a refund of the row brought the info of a later one`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.expires(january, nil, at: instant(2, 1))
        let revoked = january.with(["revocationDate": instant(6, 1)])
        story.tell("REFUND", at: instant(6, 1), revoked, info: ["autoRenewStatus": 0, "expirationIntent": 1])
        // A refund for January, signed in June: its renewal info is that of June.
        try story.expect(
            at: instant(6, 1),
            [
                "2026-01-01": bought + [.chargedRefunded: 1, .chargedRefundedAmount: 10_000],
                "2026-02-01": [.lapsedOther: 1, .activeDelta: -1, .mrrOther: -10_000],
                "2026-06-01": [.refunded: 1, .refundedAmount: 10_000],
            ])
    }

    @Test func `lapsedVoluntary by the last EXPIRED of two`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.expires(january, "PRICE_INCREASE", at: instant(2, 1))
        story.expires(january, "VOLUNTARY", at: instant(2, 3))
        try story.expect(
            at: instant(2, 2),
            ["2026-01-01": bought, "2026-02-01": [.lapsedPrice: 1, .activeDelta: -1, .mrrPrice: -10_000]])
        try story.expect(
            at: instant(2, 3),
            ["2026-01-01": bought, "2026-02-01": [.lapsedVoluntary: 1, .activeDelta: -1, .mrrVoluntary: -10_000]])
    }

    @Test func `lapsedRefund and regained by a reversal, both stay counted`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.refunds(january, at: instant(1, 10))
        story.tell("REFUND_REVERSED", at: instant(1, 15), january)
        try story.expect(
            at: instant(1, 20),
            [
                "2026-01-01": bought,
                "2026-01-10": [
                    .refunded: 1, .refundedAmount: 10_000, .lapsedRefund: 1, .activeDelta: -1, .mrrRefund: -10_000,
                ],
                "2026-01-15": [
                    .refundReversed: 1, .refundReversedAmount: 10_000, .regained: 1, .activeDelta: 1,
                    .mrrRefund: 10_000,
                ],
            ])
    }

    @Test func `regained once, when a trial comes between the lapse and the payment`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.expires(january, "VOLUNTARY", at: instant(2, 1))
        story.comesBack(row("2", instant(3, 1), instant(3, 8), price: 0, ["offerDiscountType": "FREE_TRIAL"]))
        story.renews(row("3", instant(3, 8), instant(4, 8)))
        try story.expect(
            at: instant(3, 20),
            [
                "2026-01-01": bought,
                "2026-02-01": [.lapsedVoluntary: 1, .activeDelta: -1, .mrrVoluntary: -10_000],
                "2026-03-01": [.resubscribed: 1, .trials: 1, .trialsConverted: 1, .trialDelta: 1],
                // The first payment after the lapse; not the first ever, and not preceded by one in this run.
                "2026-03-08": [
                    .renewed: 1, .charged: 1, .regained: 1, .trialDelta: -1, .activeDelta: 1, .revenue: 10_000,
                    .mrrReactivation: 10_000,
                ],
            ])
    }
}
