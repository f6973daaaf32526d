// Stories whose cells were worked out by hand from docs/explanation/churn-rules.md. They check that the second
// implementation, PlainChurn, follows its text.

import Testing

@testable import PlainChurn

@Suite struct PlainChurnTests {
    private let bought = PlainCell(
        counts: ["started": 1, "charged": 1, "activeDelta": 1], money: ["revenue": 10_000, "mrrNew": 10_000])

    /// 1 January to 1 February, 10 dollars.
    private let first = row("1", instant(1, 1), instant(2, 1))

    private func purchase() -> WrittenStory {
        var story = WrittenStory()
        story.tell("SUBSCRIBED", "INITIAL_BUY", at: instant(1, 1), first)
        return story
    }

    private func cell(_ day: String) -> String { cellKey(day) }

    @Test func aRenewalToldBeforeItStartsCountsWhenItStarts() {
        var story = purchase()
        story.tell("DID_RENEW", at: instant(1, 31, 18), row("2", instant(2, 1), instant(3, 1)))
        let renewed = PlainCell(counts: ["renewed": 1, "charged": 1], money: ["revenue": 10_000])
        let churn = story.churn
        #expect(churn.cells(at: instant(1, 1) - 1).isEmpty)
        #expect(churn.cells(at: instant(1, 31, 20)) == [cell("2026-01-01"): bought])
        #expect(churn.cells(at: instant(2, 10)) == [cell("2026-01-01"): bought, cell("2026-02-01"): renewed])
        let ended = PlainCell(counts: ["lapsedOther": 1, "activeDelta": -1], money: ["mrrOther": -10_000])
        #expect(
            churn.cells(at: instant(3, 1)) == [
                cell("2026-01-01"): bought, cell("2026-02-01"): renewed, cell("2026-03-01"): ended,
            ])
        #expect(churn.standing(at: instant(2, 10)).state == "PAID")
        #expect(churn.standing(at: instant(2, 10)).mrr == 10_000)
        #expect(churn.standing(at: instant(3, 1)).state == "LAPSED")
    }

    @Test func aTrialIsConvertedByTheRowPaidFor() {
        var story = WrittenStory()
        let trial = row(
            "1", instant(1, 1), instant(1, 8), price: 0, ["offerType": 1, "offerDiscountType": "FREE_TRIAL"])
        story.tell("SUBSCRIBED", "INITIAL_BUY", at: instant(1, 1), trial)
        let paid = row("2", instant(1, 8), instant(2, 8), price: 9_990)
        story.tell("DID_RENEW", at: instant(1, 8), paid)
        var begun = PlainCell(counts: ["started": 1, "trials": 1, "trialsOpen": 1, "trialDelta": 1])
        #expect(story.churn.cells(at: instant(1, 5)) == [cell("2026-01-01"): begun])
        begun.counts["trialsOpen"] = nil
        begun.counts["trialsConverted"] = 1
        let converted = PlainCell(
            counts: ["renewed": 1, "charged": 1, "trialDelta": -1, "activeDelta": 1],
            money: ["revenue": 9_990, "mrrNew": 9_990])
        #expect(
            story.churn.cells(at: instant(1, 20)) == [cell("2026-01-01"): begun, cell("2026-01-08"): converted])
    }

    private func failedPurchase() -> WrittenStory {
        var story = purchase()
        story.tell(
            "DID_FAIL_TO_RENEW", "GRACE_PERIOD", at: instant(1, 31, 12), first,
            info: ["gracePeriodExpiresDate": instant(2, 17), "autoRenewStatus": 1])
        return story
    }

    private let intoGrace = PlainCell(counts: ["activeDelta": -1, "graceDelta": 1], money: ["atRiskDelta": 10_000])

    @Test func aPaymentWithinGraceKeepsTheCycle() {
        var story = failedPurchase()
        story.tell(
            "DID_RENEW", "BILLING_RECOVERY", at: instant(2, 5, 12),
            row("2", instant(2, 1), instant(3, 1)))
        let open = PlainCell(counts: ["failed": 1, "graceEntered": 1, "failedOpen": 1])
        #expect(
            story.churn.cells(at: instant(2, 3)) == [
                cell("2026-01-01"): bought, cell("2026-01-31"): open, cell("2026-02-01"): intoGrace,
            ])
        #expect(story.churn.standing(at: instant(2, 3)).atRisk == 10_000)
        // Five days after the failure.
        var failed = PlainCell(counts: ["failed": 1, "graceEntered": 1])
        for days in [7, 16, 28, 60, 90] { failed.counts["recoveredWithin\(days)"] = 1 }
        let recovered = PlainCell(
            counts: ["graceRecovered": 1, "charged": 1, "graceDelta": -1, "activeDelta": 1],
            money: ["revenue": 10_000, "recoveredRevenue": 10_000, "atRiskDelta": -10_000])
        #expect(
            story.churn.cells(at: instant(2, 10)) == [
                cell("2026-01-01"): bought, cell("2026-01-31"): failed, cell("2026-02-01"): intoGrace,
                cell("2026-02-05"): recovered,
            ])
    }

    /// Otherwise it would look like a shorter and dearer month.
    @Test func aRowPaidForInGraceIsSpreadOverItsWholeCycle() {
        var story = failedPurchase()
        story.tell(
            "DID_RENEW", "BILLING_RECOVERY", at: instant(2, 5, 12),
            row("2", instant(2, 5, 12), instant(3, 1)))
        let money = story.churn.cells(at: instant(2, 10))[cell("2026-02-05")]?.money
        #expect(money == ["revenue": 10_000, "recoveredRevenue": 10_000, "atRiskDelta": -10_000])
    }

    @Test func aRefundDecidesAFailureOnlyWhileThereIsAccess() {
        for (day, counts) in [
            (10, ["refunded": 1, "retryOther": 1, "lapsedRefund": 1, "graceDelta": -1, "unpaidGrace": 9_000]),
            (20, ["refunded": 1]),
        ] as [(Int, [String: Int64])] {
            var story = failedPurchase()
            story.tell("REFUND", at: instant(2, 21), first.merging(["revocationDate": instant(2, day)]) { $1 })
            let churn = story.churn
            #expect(churn.cells(at: instant(3, 1))[cell("2026-02-\(day)")]?.counts == counts)
            #expect(churn.standing(at: instant(3, 1)).state == (day == 10 ? "LAPSED" : "RETRY"))
        }
    }

    @Test func aFailureIsLostWhenItsWindowEnds() {
        let churn = failedPurchase().churn
        var failed = PlainCell(counts: ["failed": 1, "graceEntered": 1, "failedOpen": 1])
        var intoRetry = PlainCell(
            counts: [
                "retryEntered": 1, "retryOpen": 1, "lapsedBilling": 1, "graceDelta": -1, "retryDelta": 1,
                "unpaidGrace": 16_000,
            ], money: ["mrrBilling": -10_000])
        #expect(
            churn.cells(at: instant(4, 2) - 1) == [
                cell("2026-01-01"): bought, cell("2026-01-31"): failed, cell("2026-02-01"): intoGrace,
                cell("2026-02-17"): intoRetry,
            ])
        // Access ended on the 17th of February; the window ended on the 60th day after the 1st.
        failed.counts["failedOpen"] = nil
        intoRetry.counts["retryOpen"] = nil
        intoRetry.counts["retryLost"] = 1
        let lost = PlainCell(counts: ["retryDelta": -1], money: ["atRiskDelta": -10_000])
        #expect(
            churn.cells(at: instant(4, 2)) == [
                cell("2026-01-01"): bought, cell("2026-01-31"): failed, cell("2026-02-01"): intoGrace,
                cell("2026-02-17"): intoRetry, cell("2026-04-02"): lost,
            ])
    }

    @Test func aPaymentInRetryBeginsANewRun() {
        var story = failedPurchase()
        story.tell(
            "DID_RENEW", "BILLING_RECOVERY", at: instant(3, 10),
            row("2", instant(3, 10), instant(4, 10)))
        let cells = story.churn.cells(at: instant(3, 20))
        // 37.5 days after the failure.
        #expect(
            cells[cell("2026-01-31")]?.counts
                == ["failed": 1, "graceEntered": 1, "recoveredWithin60": 1, "recoveredWithin90": 1])
        let recovered = PlainCell(
            counts: ["retryRecovered": 1, "charged": 1, "regained": 1, "retryDelta": -1, "activeDelta": 1],
            money: ["revenue": 10_000, "recoveredRevenue": 10_000, "mrrRecovery": 10_000, "atRiskDelta": -10_000])
        #expect(cells[cell("2026-03-10")] == recovered)
    }

    @Test func aRefundEndsAccessUntilItIsReversed() {
        var story = purchase()
        let revocation: [String: Any] = ["revocationDate": instant(1, 10, 12), "revocationPercentage": 50_000]
        story.tell("REFUND", at: instant(1, 11), first.merging(revocation) { $1 })
        story.tell("REFUND_REVERSED", at: instant(1, 15), first)
        var charged = bought
        charged.counts["chargedRefunded"] = 1
        charged.money["chargedRefundedAmount"] = 5_000
        let refunded = PlainCell(
            counts: ["refunded": 1, "lapsedRefund": 1, "activeDelta": -1],
            money: ["refundedAmount": 5_000, "mrrRefund": -10_000])
        #expect(
            story.churn.cells(at: instant(1, 12)) == [cell("2026-01-01"): charged, cell("2026-01-10"): refunded])
        let reversed = PlainCell(
            counts: ["refundReversed": 1, "regained": 1, "activeDelta": 1],
            money: ["refundReversedAmount": 5_000, "mrrRefund": 10_000])
        #expect(
            story.churn.cells(at: instant(1, 20)) == [
                cell("2026-01-01"): bought, cell("2026-01-10"): refunded, cell("2026-01-15"): reversed,
            ])
    }

    @Test func renewalTurnedOffEndsVoluntarily() {
        var story = purchase()
        story.tell(
            "DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: instant(1, 20), first, info: ["autoRenewStatus": 0])
        let off = PlainCell(counts: ["renewalTurnedOff": 1])
        let ended = PlainCell(counts: ["lapsedVoluntary": 1, "activeDelta": -1], money: ["mrrVoluntary": -10_000])
        #expect(
            story.churn.cells(at: instant(2, 2)) == [
                cell("2026-01-01"): bought, cell("2026-01-20"): off, cell("2026-02-01"): ended,
            ])
    }

    @Test func whoCancelsInGraceLeavesAtOnce() {
        var story = failedPurchase()
        story.tell(
            "DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: instant(2, 5), first, info: ["autoRenewStatus": 0])
        let failed = PlainCell(counts: ["failed": 1, "graceEntered": 1])
        let cancelled = PlainCell(
            counts: [
                "renewalTurnedOff": 1, "retryCancelled": 1, "lapsedVoluntary": 1, "graceDelta": -1,
                "unpaidGrace": 4_000,
            ], money: ["mrrVoluntary": -10_000, "atRiskDelta": -10_000])
        #expect(
            story.churn.cells(at: instant(5, 1)) == [
                cell("2026-01-01"): bought, cell("2026-01-31"): failed, cell("2026-02-01"): intoGrace,
                cell("2026-02-05"): cancelled,
            ])
    }

    @Test func aChainFoundHalfWayIsAdopted() {
        var story = WrittenStory()
        let old = row(
            "7", instant(1, 1), instant(2, 1), ["originalPurchaseDate": instant(1, 1, year: 2025)])
        story.tell("DID_RENEW", at: instant(1, 1), old)
        // An end that was reported only after the next row had begun.
        story.tell(
            "SUBSCRIBED", "RESUBSCRIBE", at: instant(2, 11), row("8", instant(2, 11), instant(3, 11))
        )
        let adopted = PlainCell(
            counts: ["adopted": 1, "charged": 1, "activeDelta": 1], money: ["revenue": 10_000, "mrrAdopted": 10_000])
        let ended = PlainCell(counts: ["lapsedOther": 1, "activeDelta": -1], money: ["mrrOther": -10_000])
        let again = PlainCell(
            counts: ["resubscribed": 1, "charged": 1, "regained": 1, "activeDelta": 1],
            money: ["revenue": 10_000, "mrrReactivation": 10_000])
        let cells = [cell("2026-01-01"): adopted, cell("2026-02-01"): ended, cell("2026-02-11"): again]
        #expect(story.churn.cells(at: instant(3, 1)) == cells)
        story.tell("EXPIRED", "PRICE_INCREASE", at: instant(2, 20), old)
        let dear = PlainCell(counts: ["lapsedPrice": 1, "activeDelta": -1], money: ["mrrPrice": -10_000])
        #expect(story.churn.cells(at: instant(3, 1)) == cells.merging([cell("2026-02-01"): dear]) { $1 })
    }

    @Test func ofOtherProductsOnlyRefundsCount() {
        var story = WrittenStory()
        var coins = row(
            "9", instant(1, 1), 0, price: 3_001, ["type": "Consumable", "productId": "coins"])
        coins["expiresDate"] = nil
        story.tell("ONE_TIME_CHARGE", at: instant(1, 1), coins)
        #expect(story.churn.cells(at: instant(2, 1)).isEmpty)
        story.tell(
            "REFUND", at: instant(1, 3),
            coins.merging(["revocationDate": instant(1, 2), "revocationPercentage": 50_000]) { $1 })
        let key = cellKey("2026-01-02", product: "coins", plan: "")
        // Half of 3,001, rounded to even.
        let refunded = PlainCell(counts: ["oneTimeRefunded": 1], money: ["oneTimeRefundedAmount": 1_500])
        #expect(story.churn.cells(at: instant(2, 1)) == [key: refunded])
        story.tell("REFUND_REVERSED", at: instant(1, 4), coins)
        let reversed = PlainCell(counts: ["oneTimeRefunded": -1], money: ["oneTimeRefundedAmount": -1_500])
        #expect(
            story.churn.cells(at: instant(2, 1)) == [
                key: refunded, cellKey("2026-01-04", product: "coins", plan: ""): reversed,
            ])
    }

    @Test func anUpgradeMovesRevenueToTheOtherKey() {
        var story = purchase()
        let refund: [String: Any] = [
            "isUpgraded": true, "revocationDate": instant(1, 16), "revocationPercentage": 50_000,
        ]
        story.tell("REFUND", at: instant(1, 16, 1), first.merging(refund) { $1 })
        let yearly = row(
            "2", instant(1, 16), instant(1, 16, year: 2027), price: 60_000, ["productId": "pro.yearly"])
        story.tell("DID_CHANGE_RENEWAL_PREF", "UPGRADE", at: instant(1, 16), yearly)
        let left = PlainCell(
            counts: ["activeDelta": -1], money: ["mrrMoved": -10_000, "upgradeRefundedAmount": 5_000])
        let entered = PlainCell(
            counts: ["switched": 1, "upgraded": 1, "charged": 1, "activeDelta": 1],
            money: ["revenue": 60_000, "mrrMoved": 10_000, "mrrContraction": -5_000])
        #expect(
            story.churn.cells(at: instant(2, 20)) == [
                cell("2026-01-01"): bought, cell("2026-01-16"): left,
                cellKey("2026-01-16", product: "pro.yearly"): entered,
            ])
    }

    @Test func daysAreThoseOfTheZone() {
        var story = WrittenStory()
        story.tell(
            "SUBSCRIBED", "INITIAL_BUY", at: instant(1, 1, 23),
            row("1", instant(1, 1, 23), instant(2, 1)))
        let churn = PlainChurn(records: story.records, chain: "1", zone: "Europe/Berlin", partition: 3)
        #expect(churn.cells(at: instant(1, 2)).keys.map { $0 } == [cell("2026-01-02")])
    }

    @Test(
        arguments: [
            (12_000, instant(1, 31), instant(2, 28), 12_000),
            (12_000, instant(1, 31), instant(1, 31, year: 2027), 1_000),
            (12_000, instant(1, 1), instant(4, 3), 4_000),
            // 7 days: 12,000 x 2,629,800,000 / 604,800,000.
            (12_000, instant(1, 1), instant(1, 8), 52_179), (12_000, instant(1, 8), instant(1, 1), 0),
        ] as [(Int64, Int64, Int64, Int64)])
    func aPriceIsSpreadOverMonths(_ price: Int64, _ from: Int64, _ to: Int64, _ expected: Int64) {
        #expect(monthlyPrice(price, from: from, to: to) == expected)
    }
}
