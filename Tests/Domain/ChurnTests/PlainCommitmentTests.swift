// Commitments, worked out by hand from docs/explanation/churn-rules.md.

import PlainChurn
import Testing

@Suite struct PlainCommitmentTests {
    private func monthly(_ id: String, _ from: Int64, _ to: Int64, period: Int) -> [String: Any] {
        let commitment = ["billingPeriodNumber": period, "totalBillingPeriods": 2]
        return row(
            id, from, to, price: 5_000, ["billingPlanType": "MONTHLY", "commitmentInfo": commitment])
    }

    private let committed = PlainCell(
        counts: ["started": 1, "charged": 1, "activeDelta": 1, "commitmentsStarted": 1, "commitmentsOpen": 1],
        money: ["revenue": 5_000, "mrrNew": 5_000])

    private func monthlyCell(_ day: String) -> String { cellKey(day, plan: "MONTHLY") }

    @Test func aCommitmentIsCompletedByTheNextOne() {
        var story = WrittenStory()
        story.tell(
            "SUBSCRIBED", "INITIAL_BUY", at: instant(1, 1), monthly("1", instant(1, 1), instant(2, 1), period: 1))
        story.tell("DID_RENEW", at: instant(2, 1), monthly("2", instant(2, 1), instant(3, 1), period: 2))
        story.tell("DID_RENEW", at: instant(3, 1), monthly("3", instant(3, 1), instant(4, 1), period: 1))
        let renewed = PlainCell(counts: ["renewed": 1, "charged": 1], money: ["revenue": 5_000])
        #expect(
            story.churn.cells(at: instant(2, 10)) == [
                monthlyCell("2026-01-01"): committed, monthlyCell("2026-02-01"): renewed,
            ])
        var completed = committed
        completed.counts["commitmentsOpen"] = nil
        completed.counts["commitmentsCompleted"] = 1
        var again = renewed
        again.counts["commitmentsStarted"] = 1
        again.counts["commitmentsOpen"] = 1
        #expect(
            story.churn.cells(at: instant(3, 10)) == [
                monthlyCell("2026-01-01"): completed, monthlyCell("2026-02-01"): renewed,
                monthlyCell("2026-03-01"): again,
            ])
    }

    @Test func aCommitmentThatIsNotPaidForIsDefaultedAfterNinetyDays() {
        var story = WrittenStory()
        let row = monthly("1", instant(1, 1), instant(2, 1), period: 1)
        story.tell("SUBSCRIBED", "INITIAL_BUY", at: instant(1, 1), row)
        story.tell("DID_FAIL_TO_RENEW", at: instant(1, 31), row)
        var failed = PlainCell(
            counts: [
                "failed": 1, "failedOpen": 1, "retryEntered": 1, "retryOpen": 1, "lapsedBilling": 1, "activeDelta": -1,
                "retryDelta": 1,
            ], money: ["mrrBilling": -5_000, "atRiskDelta": 5_000])
        #expect(
            story.churn.cells(at: instant(5, 2) - 1) == [
                monthlyCell("2026-01-01"): committed, monthlyCell("2026-01-31"): failed,
            ])
        failed.counts["failedOpen"] = nil
        failed.counts["retryOpen"] = nil
        failed.counts["retryLost"] = 1
        var defaulted = committed
        defaulted.counts["commitmentsOpen"] = nil
        defaulted.counts["commitmentsDefaulted"] = 1
        let lost = PlainCell(counts: ["retryDelta": -1], money: ["atRiskDelta": -5_000])
        #expect(
            story.churn.cells(at: instant(5, 2)) == [
                monthlyCell("2026-01-01"): defaulted, monthlyCell("2026-01-31"): failed,
                monthlyCell("2026-05-02"): lost,
            ])
    }
}
