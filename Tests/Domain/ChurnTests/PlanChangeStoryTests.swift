// Changes of product or plan. Every number is worked out by hand from docs/explanation/churn-rules.md, the row "upgraded".

import Churn
import Testing

@Suite struct `Plan changes` {
    /// From ten dollars in January to another product on the first of February; the other counters of that day are the same.
    private func expect(
        _ change: ChurnCounter, price: Int64 = 10_000, request: (String, String?)? = nil,
        wanted: String = "lite.monthly",
        _ movement: Numbers, _ others: [String: Any] = [:], cell: Cell = "2026-02-01 lite.monthly"
    ) throws {
        var story = WrittenStory()
        story.begins(january)
        if let (type, subtype) = request {
            story.tell(type, subtype, at: instant(1, 20), january, info: ["autoRenewProductId": wanted])
        }
        story.renews(row("2", instant(2, 1), instant(3, 1), price: price, product: "lite.monthly", others))
        let entered: Numbers = [.renewed: 1, .charged: 1, .activeDelta: 1, .revenue: price, change: 1]
        try story.expect(
            at: instant(2, 10),
            [
                "2026-01-01": bought, "2026-02-01": [.activeDelta: -1, .mrrMoved: -10_000],
                cell: entered + movement,
            ])
    }

    @Test func `upgraded, downgraded and crossgraded by what they are worth a month`() throws {
        try expect(.upgraded, price: 11_000, [.mrrMoved: 10_000, .mrrExpansion: 1_000])
        try expect(.downgraded, price: 4_000, [.mrrMoved: 10_000, .mrrContraction: -6_000])
        try expect(.crossgraded, price: 10_000, [.mrrMoved: 10_000])
    }

    @Test func `downgraded to half the price, cell by cell`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.renews(row("2", instant(2, 1), instant(3, 1), price: 5_000, product: "lite.monthly"))
        try story.expect(
            at: instant(2, 10),
            [
                "2026-01-01": bought, "2026-02-01": [.activeDelta: -1, .mrrMoved: -10_000],
                "2026-02-01 lite.monthly": [
                    .renewed: 1, .downgraded: 1, .charged: 1, .activeDelta: 1, .revenue: 5_000, .mrrMoved: 10_000,
                    .mrrContraction: -5_000,
                ],
            ])
    }

    @Test func `crossgraded when the currencies differ, however the amounts compare`() throws {
        try expect(
            .crossgraded, price: 20_000, [.mrrMoved: 20_000], ["currency": "EUR"],
            cell: "2026-02-01 lite.monthly BILLED_UPFRONT EUR")
    }

    @Test func `crossgraded to or from a row that is worth nothing`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.renews(row("2", instant(2, 1), instant(3, 1), price: 0, product: "lite.monthly"))
        try story.expect(
            at: instant(2, 10),
            [
                "2026-01-01": bought,
                // Nothing is moved, because there is revenue on one side only. It is lost under the key that the customer left.
                "2026-02-01": [.activeDelta: -1, .mrrContraction: -10_000],
                "2026-02-01 lite.monthly": [.renewed: 1, .crossgraded: 1, .trialDelta: 1],
            ])
    }

    @Test func `downgraded by the customer's word, though it is dearer`() throws {
        for type in ["DID_CHANGE_RENEWAL_PREF", "OFFER_REDEEMED"] {
            try expect(
                .downgraded, price: 12_000, request: (type, "DOWNGRADE"), [.mrrMoved: 10_000, .mrrExpansion: 2_000])
        }
    }

    @Test func `upgraded by worth when the word was about another product`() throws {
        try expect(
            .upgraded, price: 12_000, request: ("DID_CHANGE_RENEWAL_PREF", "DOWNGRADE"), wanted: "mini.monthly",
            [.mrrMoved: 10_000, .mrrExpansion: 2_000])
        // The change was dropped: the last notification is not a downgrade.
        try expect(
            .upgraded, price: 12_000, request: ("DID_CHANGE_RENEWAL_PREF", nil),
            [.mrrMoved: 10_000, .mrrExpansion: 2_000])
    }

    @Test func `upgraded by UPGRADE, at once, though it is cheaper a month`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.tell(
            "DID_CHANGE_RENEWAL_PREF", "UPGRADE", at: instant(1, 16),
            row("2", instant(1, 16), instant(1, 16, year: 2027), price: 60_000, product: "pro.yearly"))
        try story.expect(
            at: instant(1, 20),
            [
                "2026-01-01": bought, "2026-01-16": [.activeDelta: -1, .mrrMoved: -10_000],
                // 60 by 12 is 5 a month.
                "2026-01-16 pro.yearly": [
                    .switched: 1, .upgraded: 1, .charged: 1, .activeDelta: 1, .revenue: 60_000, .mrrMoved: 10_000,
                    .mrrContraction: -5_000,
                ],
            ])
    }

    @Test func `crossgraded from one billing plan of a product to the other`() throws {
        var story = WrittenStory()
        story.begins(row("1", instant(1, 1), instant(1, 1, year: 2027), price: 120_000, product: "pro.yearly"))
        story.renews(
            row(
                "2", instant(1, 1, year: 2027), instant(2, 1, year: 2027), price: 10_000, product: "pro.yearly",
                ["billingPlanType": "MONTHLY"]))
        try story.expect(
            at: instant(1, 10, year: 2027),
            [
                "2026-01-01 pro.yearly": [
                    .started: 1, .charged: 1, .activeDelta: 1, .revenue: 120_000, .mrrNew: 10_000,
                ],
                "2027-01-01 pro.yearly": [.activeDelta: -1, .mrrMoved: -10_000],
                // The price of a month is the revenue of a month: it stays the same.
                "2027-01-01 pro.yearly MONTHLY": [
                    .renewed: 1, .crossgraded: 1, .charged: 1, .activeDelta: 1, .revenue: 10_000, .mrrMoved: 10_000,
                ],
            ])
    }

    @Test func `resubscribed to another product is neither upgraded nor downgraded`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.expires(january, "VOLUNTARY", at: instant(2, 1))
        story.comesBack(row("2", instant(2, 11), instant(3, 11), price: 20_000, product: "max.monthly"))
        try story.expect(
            at: instant(2, 20),
            [
                "2026-01-01": bought,
                "2026-02-01": [.lapsedVoluntary: 1, .activeDelta: -1, .mrrVoluntary: -10_000],
                "2026-02-11 max.monthly": [
                    .resubscribed: 1, .regained: 1, .charged: 1, .activeDelta: 1, .revenue: 20_000,
                    .mrrReactivation: 20_000,
                ],
            ])
    }
}
