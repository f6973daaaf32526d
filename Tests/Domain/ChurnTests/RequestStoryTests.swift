// Requests of customers. Every number is worked out by hand from docs/explanation/churn-rules.md.

import Churn
import Testing

@Suite struct `Requests` {
    @Test func `renewalTurnedOff and renewalTurnedOn, each time, by subtype or by autoRenewStatus`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.turnsOff(january, at: instant(1, 10))
        story.turnsOn(january, at: instant(1, 11))
        // After a price increase the subtype is missing.
        story.tell("DID_CHANGE_RENEWAL_STATUS", at: instant(1, 12), january, info: ["autoRenewStatus": 0])
        story.tell("DID_CHANGE_RENEWAL_STATUS", at: instant(1, 12, 6), january, info: ["autoRenewStatus": 1])
        // Neither subtype nor status says anything.
        story.tell("DID_CHANGE_RENEWAL_STATUS", at: instant(1, 13), january)
        // The subtype counts before the status.
        story.tell(
            "DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: instant(1, 14), january,
            info: ["autoRenewStatus": 1])
        try story.expect(
            at: instant(1, 20),
            [
                "2026-01-01": bought, "2026-01-10": [.renewalTurnedOff: 1], "2026-01-11": [.renewalTurnedOn: 1],
                "2026-01-12": [.renewalTurnedOff: 1, .renewalTurnedOn: 1], "2026-01-14": [.renewalTurnedOff: 1],
            ])
    }

    @Test func `renewalTurnedOff and renewalTurnedOn of a commitment by commitmentAutoRenewStatus alone`() throws {
        var story = WrittenStory()
        let first = month("1", instant(1, 1), instant(2, 1), period: 1)
        story.begins(first)
        // The months of a commitment are billed whatever these say.
        story.turnsOff(first, at: instant(1, 9))
        for (day, status) in [(10, 0), (11, 1)] {
            story.tell(
                "DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: instant(1, day), first,
                info: ["autoRenewStatus": 1, "commitmentInfo": ["commitmentAutoRenewStatus": status]])
        }
        try story.expect(
            at: instant(1, 20),
            [
                "2026-01-01 pro.yearly MONTHLY": [
                    .started: 1, .charged: 1, .activeDelta: 1, .revenue: 5_000, .mrrNew: 5_000,
                    .commitmentsStarted: 1, .commitmentsOpen: 1,
                ],
                "2026-01-10 pro.yearly MONTHLY": [.renewalTurnedOff: 1],
                "2026-01-11 pro.yearly MONTHLY": [.renewalTurnedOn: 1],
            ])
    }

    @Test func `refundRequested once for each transaction, refundDeclined each time`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.renews(february)
        for day in [3, 4] { story.tell("CONSUMPTION_REQUEST", at: instant(2, day), january) }
        story.tell("CONSUMPTION_REQUEST", at: instant(2, 5), february)
        for day in [6, 7] { story.tell("REFUND_DECLINED", at: instant(2, day), january) }
        try story.expect(
            at: instant(2, 20),
            [
                "2026-01-01": bought, "2026-02-01": [.renewed: 1, .charged: 1, .revenue: 10_000],
                "2026-02-03": [.refundRequested: 1], "2026-02-05": [.refundRequested: 1],
                "2026-02-06": [.refundDeclined: 1], "2026-02-07": [.refundDeclined: 1],
            ])
    }

    @Test func `refundRequested and refundDeclined count nothing of one-time purchases`() throws {
        var story = WrittenStory()
        var coins = row("9", instant(1, 1), 0, price: 3_000, product: "coins", ["type": "Consumable"])
        coins["expiresDate"] = nil
        story.tell("ONE_TIME_CHARGE", at: instant(1, 1), coins)
        story.tell("CONSUMPTION_REQUEST", at: instant(1, 2), coins)
        story.tell("REFUND_DECLINED", at: instant(1, 3), coins)
        try story.expect(at: instant(1, 10), [:])
    }
}
