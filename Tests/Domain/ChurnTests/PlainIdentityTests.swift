// The plain metrics over random combinations of facts, likely or not.

import PlainChurn
import Testing

@Suite struct PlainIdentityTests {
    @Test(arguments: 0..<30 as Range<UInt64>)
    func anyFactsKeepTheIdentities(seed: UInt64) {
        var dice = Dice(state: seed &* 0x9E37_79B9_7F4A_7C15 &+ 1)
        let stories = (0..<3).map { _ in Self.nonsense(&dice) }
        for clock in stride(from: instant(1, 5), to: instant(9, 1), by: 37 * 86_400_000) {
            var sum = PlainIdentities()
            let chains = stories.map(\.churn)
            for chain in chains { sum.add(chain.cells(at: clock)) }
            let now = sum.violations(standings: chains.map { $0.standing(at: clock) })
            #expect(now.isEmpty)
            for day in sum.days {
                let standings = chains.map { $0.standing(atEndOf: day, clock: clock) }
                let then = sum.violations(standings: standings, atEndOf: day)
                #expect(then.isEmpty, "at the end of \(day)")
            }
        }
    }

    @Test(arguments: 0..<100 as Range<UInt64>)
    func neitherOrderNorRepetitionCounts(seed: UInt64) {
        var dice = Dice(state: seed &* 0x9E37_79B9_7F4A_7C15 &+ 7)
        let records = Self.nonsense(&dice).records
        let shuffled = (records + records.prefix(5)).shuffled(using: &dice)
        let clock = instant(9, 1)
        let straight = PlainChurn(records: records, chain: "1", zone: "America/New_York", partition: 3)
        let other = PlainChurn(records: shuffled, chain: "1", zone: "America/New_York", partition: 3)
        #expect(straight.cells(at: clock) == other.cells(at: clock))
    }

    @Test func whatDoesNotAddUpIsTold() {
        var story = WrittenStory()
        story.tell(
            "SUBSCRIBED", "INITIAL_BUY", at: instant(1, 1), row("1", instant(1, 1), instant(2, 1)))
        let standing = story.churn.standing(at: instant(1, 2))
        var sum = PlainIdentities()
        sum.add(story.churn.cells(at: instant(1, 2)))
        #expect(sum.violations(standings: [standing]).isEmpty)
        for name in ["activeDelta", "retryDelta", "failed", "trials", "commitmentsOpen", "renewed"] {
            var wrong = sum
            wrong.add([cellKey("2026-01-01"): PlainCell(counts: [name: 1])])
            #expect(wrong.violations(standings: [standing]).count == 1, "\(name)")
        }
        for name in ["mrrMoved", "atRiskDelta"] {
            var wrong = sum
            wrong.add([cellKey("2026-01-01"): PlainCell(money: [name: -1])])
            #expect(wrong.violations(standings: [standing]).count == 1, "\(name)")
        }
        #expect(!sum.violations(standings: []).isEmpty)
    }

    /// Up to 20 notifications of up to 5 rows, whose dates seldom fit each other.
    private static func nonsense(_ dice: inout Dice) -> WrittenStory {
        var story = WrittenStory()
        let kinds: [(String, String?)] = [
            ("SUBSCRIBED", "INITIAL_BUY"), ("SUBSCRIBED", "RESUBSCRIBE"), ("DID_RENEW", nil), ("DID_RENEW", nil),
            ("DID_RENEW", "BILLING_RECOVERY"), ("DID_FAIL_TO_RENEW", nil), ("DID_FAIL_TO_RENEW", "GRACE_PERIOD"),
            ("GRACE_PERIOD_EXPIRED", nil), ("EXPIRED", "BILLING_RETRY"), ("EXPIRED", "VOLUNTARY"), ("EXPIRED", nil),
            ("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED"), ("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_ENABLED"),
            ("DID_CHANGE_RENEWAL_PREF", "UPGRADE"), ("DID_CHANGE_RENEWAL_PREF", "DOWNGRADE"), ("REFUND", nil),
            ("REFUND_REVERSED", nil), ("REFUND_DECLINED", nil), ("CONSUMPTION_REQUEST", nil),
        ]
        for _ in 0..<dice.roll(20) + 1 {
            let place = dice.roll(5)
            let purchase = instant(1, 1) + Int64(place * 30 + dice.roll(2) * 5) * 86_400_000
            var others: [String: Any] = [
                "productId": ["a", "b"][dice.roll(8) / 7], "currency": ["USD", "EUR"][dice.roll(8) / 7],
                "billingPlanType": ["BILLED_UPFRONT", "MONTHLY"][dice.roll(3) / 2],
                "commitmentInfo": ["billingPeriodNumber": place % 3 + 1, "totalBillingPeriods": 3],
            ]
            let (type, subtype) = kinds[dice.roll(kinds.count)]
            if type == "REFUND" { others["revocationDate"] = purchase + Int64(dice.roll(40)) * 86_400_000 }
            if dice.roll(10) == 0 { others["isUpgraded"] = true }
            var info: [String: Any] = ["autoRenewStatus": dice.roll(2), "expirationIntent": dice.roll(6)]
            if dice.roll(2) == 0 { info["gracePeriodExpiresDate"] = purchase + 46 * 86_400_000 }
            story.tell(
                type, subtype, at: purchase + Int64(dice.roll(400)) * 21_600_000,
                row(
                    "\(place + 1)", purchase, purchase + 30 * 86_400_000, price: Int64(dice.roll(4)) * 5_000, others),
                info: dice.roll(3) == 0 ? nil : info)
        }
        return story
    }
}

/// One seed, one sequence (SplitMix64).
private struct Dice: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var bits = state
        bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
        return bits ^ (bits >> 31)
    }

    /// 0 ..< sides.
    mutating func roll(_ sides: Int) -> Int { Int.random(in: 0..<sides, using: &self) }
}
