// Money in one currency.

extension ChurnCounter {
    /// All changes of MRR between the start and the end of the requested days.
    public static let bridge: [ChurnCounter] = [
        .mrrNew, .mrrAdopted, .mrrExpansion, .mrrContraction, .mrrMoved, .mrrVoluntary, .mrrBilling, .mrrPrice,
        .mrrRefund, .mrrOther, .mrrRecovery, .mrrReactivation,
    ]
    /// Counters with negative values.
    static let mrrLosses: [ChurnCounter] = [.mrrVoluntary, .mrrBilling, .mrrPrice, .mrrRefund, .mrrOther]
}

extension Stock {
    static func mrr(_ tally: Tally) -> Int64 { tally.sum(ChurnCounter.bridge) }

    static func ofMoney(_ start: Tally, _ end: Tally) -> [Stock] {
        let (before, after) = (mrr(start), mrr(end))
        return [
            Stock(name: "mrr", title: "MRR", formula: "running sum of all mrr*", start: before, end: after),
            Stock(name: "arr", title: "ARR", formula: "12 x MRR", start: 12 &* before, end: 12 &* after),
            Stock(
                name: "atRiskMRR", title: "at-risk MRR", formula: "running sum of atRiskDelta",
                start: start[.atRiskDelta], end: end[.atRiskDelta]),
        ]
    }
}

extension Rate {
    /// - Parameter mrr: the MRR at the start.
    static func ofMoney(_ within: Tally, mrr: Int64, areOver: Bool) -> [Rate] {
        let time: [Doubt] = areOver ? [] : [.daysNotOver]
        let gained = within.sum([.mrrNew, .mrrExpansion, .mrrReactivation, .mrrRecovery])
        let lost = within.sum(ChurnCounter.mrrLosses + [.mrrContraction])
        let kept = mrr &+ lost &+ within[.mrrRecovery]
        var quick = Rate(
            name: "quickRatio", title: "quick ratio",
            formula: "(mrrNew + mrrExpansion + mrrReactivation + mrrRecovery) / "
                + "-(mrrContraction + mrrVoluntary + mrrBilling + mrrPrice + mrrRefund + mrrOther)",
            ratio: Ratio(gained, of: 0 &- lost), doubts: time)
        quick.isFactor = true
        let losses = "mrrVoluntary + mrrBilling + mrrPrice + mrrRefund + mrrOther + mrrRecovery"
        var gross = Rate(
            name: "grossRevenueRetention", title: "gross revenue retention",
            formula: "(MRR(a) + mrrContraction + \(losses)) / MRR(a)", ratio: Ratio(kept, of: mrr), doubts: time)
        gross.isApproximate = true
        var net = Rate(
            name: "netRevenueRetention", title: "net revenue retention",
            formula: "(MRR(a) + mrrContraction + \(losses) + mrrExpansion) / MRR(a)",
            ratio: Ratio(kept &+ within[.mrrExpansion], of: mrr), doubts: time)
        net.isApproximate = true
        let refunded = Rate(
            name: "refundRateByAmount", title: "revenue refunded", formula: "chargedRefundedAmount / revenue",
            ratio: Ratio(within[.chargedRefundedAmount], of: within[.revenue]), doubts: time)
        return [quick, gross, net, refunded].map { rate in
            var rate = rate
            rate.isMoney = true
            return rate
        }
    }
}
