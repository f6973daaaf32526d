// Commitments paid by the month, each counted on its first day. Every number is worked out by hand from
// docs/explanation/churn-rules.md, the row "commitmentsStarted". Apple's own timelines of them are in `AppleTimelineTests.swift`.

import Churn
import Testing

@Suite struct `Commitments counted` {
    private let begun: Numbers = [
        .started: 1, .charged: 1, .activeDelta: 1, .revenue: 5_000, .mrrNew: 5_000, .commitmentsStarted: 1,
    ]
    private let renewed: Numbers = [.renewed: 1, .charged: 1, .revenue: 5_000]

    /// The whole commitment is three months.
    private func period(_ number: Int, from: Int) -> [String: Any] {
        month("\(from)", instant(from, 1), instant(from + 1, 1), period: number, of: 3)
    }

    private func story(periods: Int) -> WrittenStory {
        var story = WrittenStory()
        for number in 1...periods {
            if number == 1 { story.begins(period(1, from: 1)) } else { story.renews(period(number, from: number)) }
        }
        return story
    }

    @Test func `commitmentsStarted and commitmentsOpen, commitmentsCompleted when the last period is over`() throws {
        var story = story(periods: 3)
        let last = period(3, from: 3)
        try story.expect(
            at: instant(4, 1) - 1,
            [
                // Five dollars a month count as five dollars in every month, whatever its length.
                "2026-01-01 pro.yearly MONTHLY": begun + [.commitmentsOpen: 1],
                "2026-02-01 pro.yearly MONTHLY": renewed, "2026-03-01 pro.yearly MONTHLY": renewed,
            ])
        story.tell("EXPIRED", at: instant(4, 1), last, info: ["commitmentInfo": ["commitmentAutoRenewStatus": 0]])
        try story.expect(
            at: instant(4, 1),
            [
                "2026-01-01 pro.yearly MONTHLY": begun + [.commitmentsCompleted: 1],
                "2026-02-01 pro.yearly MONTHLY": renewed, "2026-03-01 pro.yearly MONTHLY": renewed,
                // The renewal of the commitment was turned off, and it was the last period: the lapse is voluntary.
                "2026-04-01 pro.yearly MONTHLY": [.lapsedVoluntary: 1, .activeDelta: -1, .mrrVoluntary: -5_000],
            ])
    }

    @Test func `commitmentsCompleted by the next one, which is commitmentsOpen`() throws {
        var story = story(periods: 3)
        story.renews(period(1, from: 4))
        try story.expect(
            at: instant(4, 10),
            [
                "2026-01-01 pro.yearly MONTHLY": begun + [.commitmentsCompleted: 1],
                "2026-02-01 pro.yearly MONTHLY": renewed, "2026-03-01 pro.yearly MONTHLY": renewed,
                "2026-04-01 pro.yearly MONTHLY": renewed + [.commitmentsStarted: 1, .commitmentsOpen: 1],
            ])
    }

    @Test func `commitmentsCompleted by a renewal to another plan before the last period`() throws {
        var story = story(periods: 2)
        story.renews(row("3", instant(3, 1), instant(4, 1)))
        try story.expect(
            at: instant(3, 10),
            [
                "2026-01-01 pro.yearly MONTHLY": begun + [.commitmentsCompleted: 1],
                "2026-02-01 pro.yearly MONTHLY": renewed,
                "2026-03-01 pro.yearly MONTHLY": [.activeDelta: -1, .mrrMoved: -5_000],
                // From five dollars a month to ten.
                "2026-03-01": [
                    .renewed: 1, .upgraded: 1, .charged: 1, .activeDelta: 1, .revenue: 10_000, .mrrMoved: 5_000,
                    .mrrExpansion: 5_000,
                ],
            ])
    }

    @Test func `commitmentsSwitched by an upgrade in its second period`() throws {
        var story = story(periods: 2)
        let upgrade = row("9", instant(2, 10), instant(2, 10, year: 2027), price: 120_000, product: "max.yearly")
        story.tell("DID_CHANGE_RENEWAL_PREF", "UPGRADE", at: instant(2, 10), upgrade)
        try story.expect(
            at: instant(2, 20),
            [
                "2026-01-01 pro.yearly MONTHLY": begun + [.commitmentsSwitched: 1],
                "2026-02-01 pro.yearly MONTHLY": renewed,
                "2026-02-10 pro.yearly MONTHLY": [.activeDelta: -1, .mrrMoved: -5_000],
                // 120 a year are ten a month.
                "2026-02-10 max.yearly": [
                    .switched: 1, .upgraded: 1, .charged: 1, .activeDelta: 1, .revenue: 120_000, .mrrMoved: 5_000,
                    .mrrExpansion: 5_000,
                ],
            ])
    }

    @Test func `commitmentsRefunded by a refund of the current period`() throws {
        var story = story(periods: 2)
        story.refunds(period(2, from: 2), at: instant(2, 10))
        try story.expect(
            at: instant(2, 20),
            [
                "2026-01-01 pro.yearly MONTHLY": begun + [.commitmentsRefunded: 1],
                "2026-02-01 pro.yearly MONTHLY": renewed + [.chargedRefunded: 1, .chargedRefundedAmount: 5_000],
                "2026-02-10 pro.yearly MONTHLY": [
                    .refunded: 1, .lapsedRefund: 1, .activeDelta: -1, .refundedAmount: 5_000, .mrrRefund: -5_000,
                ],
            ])
    }

    @Test func `commitmentsOpen after a refund of an earlier period`() throws {
        var story = story(periods: 2)
        story.refunds(period(1, from: 1), at: instant(2, 10))
        try story.expect(
            at: instant(2, 20),
            [
                "2026-01-01 pro.yearly MONTHLY": begun + [
                    .commitmentsOpen: 1, .chargedRefunded: 1, .chargedRefundedAmount: 5_000,
                ],
                "2026-02-01 pro.yearly MONTHLY": renewed,
                "2026-02-10 pro.yearly MONTHLY": [.refunded: 1, .refundedAmount: 5_000],
            ])
    }

    @Test func `commitmentsDefaulted by who begins anew without having paid`() throws {
        var story = story(periods: 1)
        story.fails(period(1, from: 1), at: instant(1, 31))
        story.comesBack(period(1, from: 3))
        try story.expect(
            at: instant(3, 10),
            [
                "2026-01-01 pro.yearly MONTHLY": begun + [.commitmentsDefaulted: 1],
                // Access ends with the failure, a day before the month does.
                "2026-01-31 pro.yearly MONTHLY": [
                    .failed: 1, .retryEntered: 1, .lapsedBilling: 1, .activeDelta: -1, .retryDelta: 1,
                    .mrrBilling: -5_000, .atRiskDelta: 5_000,
                ],
                "2026-03-01 pro.yearly MONTHLY": [
                    .retryOther: 1, .resubscribed: 1, .regained: 1, .charged: 1, .commitmentsStarted: 1,
                    .commitmentsOpen: 1, .retryDelta: -1, .activeDelta: 1, .revenue: 5_000, .mrrReactivation: 5_000,
                    .atRiskDelta: -5_000,
                ],
            ])
    }

    @Test func `commitmentsDefaulted when a month is not paid and nothing follows`() throws {
        var story = story(periods: 2)
        // No failure was reported, and the commitment that ended had a month to go.
        story.expires(period(2, from: 2), nil, at: instant(3, 1))
        try story.expect(
            at: instant(3, 10),
            [
                "2026-01-01 pro.yearly MONTHLY": begun + [.commitmentsDefaulted: 1],
                "2026-02-01 pro.yearly MONTHLY": renewed,
                "2026-03-01 pro.yearly MONTHLY": [.lapsedOther: 1, .activeDelta: -1, .mrrOther: -5_000],
            ])
    }

    @Test func `commitmentsStarted counts no later period, even as the first word`() throws {
        var story = WrittenStory()
        story.renews(month("7", instant(1, 1), instant(2, 1), period: 5))
        try story.expect(
            at: instant(1, 10),
            [
                "2026-01-01 pro.yearly MONTHLY": [
                    .adopted: 1, .charged: 1, .activeDelta: 1, .revenue: 5_000, .mrrAdopted: 5_000,
                ]
            ])
    }
}
