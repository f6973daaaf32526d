// Notifications that come late: only the days that they are about are restated. Every number is worked out by hand from
// docs/explanation/churn-rules.md.

import Churn
import Contract
import Notices
import Testing
import Zone

@Suite struct `Late words` {
    private let renewed: Numbers = [.renewed: 1, .charged: 1, .revenue: 10_000]
    private let lapsed: Numbers = [.lapsedOther: 1, .activeDelta: -1, .mrrOther: -10_000]

    /// Checks what is counted before and after, and that only these days differ.
    private func expect(
        _ story: WrittenStory, restates days: Set<String>, at clock: Int64, from before: [Cell: Numbers],
        to after: [Cell: Numbers]
    ) throws {
        try story.expect(at: clock - 1, before)
        try story.expect(at: clock, after)
        let changed = Set(before.keys).union(after.keys).filter { before[$0] != after[$0] }
        #expect(Set(changed.map { String($0.key.split(separator: "|")[1]) }) == days)
        // The published records are about these days only.
        var chain = Chain("1")
        for word in story.words where word.at < clock { try chain.hear(word.record, at: word.at) }
        try chain.advance(to: clock - 1)
        var news: Set<String> = []
        for word in story.words where word.at == clock {
            let told = chain.cells
            try chain.hear(word.record, at: clock)
            let keys = Set(told.keys).union(chain.cells.keys).filter { told[$0] != chain.cells[$0] }
            news.formUnion(keys.map { String($0.split(separator: "|")[1]) })
        }
        #expect(news == days)
    }

    @Test func `renewed, charged and revenue of a DID_RENEW that came 100 days late`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.renews(row("3", instant(3, 1), instant(4, 1)))
        story.renews(row("4", instant(4, 1), instant(6, 1), price: 20_000))
        let late = instant(2, 1) + 100 * day
        story.tell("DID_RENEW", at: instant(2, 1), february, arriving: late)
        // Without February, the row of March was a renewal: so access never stopped, and there is one payment less.
        let before: [Cell: Numbers] = [
            "2026-01-01": bought, "2026-03-01": renewed,
            "2026-04-01": [
                // 20 dollars for two months.
                .renewed: 1, .charged: 1, .revenue: 20_000,
            ],
        ]
        try expect(
            story, restates: ["2026-02-01"], at: late, from: before, to: before.merging(["2026-02-01": renewed]) { $1 })
    }

    @Test func `failed, retryEntered and retryLost of a DID_FAIL_TO_RENEW that came 100 days late`() throws {
        var story = WrittenStory()
        story.begins(january)
        let late = instant(1, 31) + 100 * day
        story.tell("DID_FAIL_TO_RENEW", at: instant(1, 31), january, arriving: late)
        try expect(
            story, restates: ["2026-01-31", "2026-02-01", "2026-04-02"], at: late,
            from: ["2026-01-01": bought, "2026-02-01": lapsed],
            to: [
                "2026-01-01": bought, "2026-01-31": [.failed: 1],
                // What looked like a lapse for another reason was a failed payment.
                "2026-02-01": [
                    .retryEntered: 1, .retryLost: 1, .lapsedBilling: 1, .activeDelta: -1, .retryDelta: 1,
                    .mrrBilling: -10_000, .atRiskDelta: 10_000,
                ],
                "2026-04-02": [.retryDelta: -1, .atRiskDelta: -10_000],
            ])
    }

    @Test func `refunded, chargedRefunded and resubscribed of a REFUND that came 100 days late`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.renews(february)
        let late = instant(1, 10) + 100 * day
        story.tell("REFUND", at: instant(1, 10), january.with(["revocationDate": instant(1, 10)]), arriving: late)
        let ended: [Cell: Numbers] = ["2026-03-01": lapsed]
        try expect(
            story, restates: ["2026-01-01", "2026-01-10", "2026-02-01"], at: late,
            from: ended.merging(["2026-01-01": bought, "2026-02-01": renewed]) { $1 },
            to: ended.merging([
                "2026-01-01": bought + [.chargedRefunded: 1, .chargedRefundedAmount: 10_000],
                "2026-01-10": [
                    .refunded: 1, .lapsedRefund: 1, .activeDelta: -1, .refundedAmount: 10_000, .mrrRefund: -10_000,
                ],
                // February was entered without access.
                "2026-02-01": [
                    .resubscribed: 1, .regained: 1, .charged: 1, .activeDelta: 1, .revenue: 10_000,
                    .mrrReactivation: 10_000,
                ],
            ]) { $1 })
    }

    @Test func `started instead of adopted when the first purchase came 100 days late`() throws {
        var story = WrittenStory()
        let original: [String: Any] = ["originalPurchaseDate": instant(1, 1)]
        story.renews(row("2", instant(2, 1), instant(6, 1), price: 40_000, original))
        let late = instant(1, 1) + 100 * day
        story.tell("SUBSCRIBED", "INITIAL_BUY", at: instant(1, 1), january.with(original), arriving: late)
        try expect(
            story, restates: ["2026-01-01", "2026-02-01"], at: late,
            // 40 dollars for four months.
            from: [
                "2026-02-01": [.adopted: 1, .charged: 1, .activeDelta: 1, .revenue: 40_000, .mrrAdopted: 10_000]
            ],
            to: ["2026-01-01": bought, "2026-02-01": [.renewed: 1, .charged: 1, .revenue: 40_000]])
    }

    @Test func `refundReversed and regained of a reversal that came 100 days late`() throws {
        var story = WrittenStory()
        let half = row("1", instant(1, 1), instant(7, 1), price: 60_000)
        story.begins(half)
        story.refunds(half, at: instant(1, 10))
        let late = instant(1, 15) + 100 * day
        story.tell("REFUND_REVERSED", at: instant(1, 15), half, arriving: late)
        let begun: Numbers = [.started: 1, .charged: 1, .activeDelta: 1, .revenue: 60_000, .mrrNew: 10_000]
        let refunded: Numbers = [
            .refunded: 1, .lapsedRefund: 1, .activeDelta: -1, .refundedAmount: 60_000, .mrrRefund: -10_000,
        ]
        try expect(
            story, restates: ["2026-01-01", "2026-01-15"], at: late,
            from: [
                "2026-01-01": begun + [.chargedRefunded: 1, .chargedRefundedAmount: 60_000], "2026-01-10": refunded,
            ],
            to: [
                "2026-01-01": begun, "2026-01-10": refunded,
                "2026-01-15": [
                    .refundReversed: 1, .refundReversedAmount: 60_000, .regained: 1, .activeDelta: 1,
                    .mrrRefund: 10_000,
                ],
            ])
    }

    @Test func `lapsedOther and activeDelta return to nothing, and their cell is gone`() throws {
        var story = WrittenStory()
        story.begins(january)
        // It began on the 2nd, and its notification came on the 5th.
        let late = instant(2, 5)
        story.tell("DID_RENEW", at: instant(2, 2), row("2", instant(2, 2), instant(3, 2)), arriving: late)
        try expect(
            story, restates: ["2026-02-01", "2026-02-02"], at: late,
            from: ["2026-01-01": bought, "2026-02-01": lapsed], to: ["2026-01-01": bought, "2026-02-02": renewed])
    }
}
