// Monthly recurring revenue (MRR) of rows and chains: `money` of a cell.

extension PlainLife {
    /// "MRR of a paid row = price / months; MONTHLY: price. From `purchaseDate` (recovered with access: or due, if earlier) to
    /// the smallest `expiresDate` of its versions."
    func monthlyRevenue(ofRow place: Int) -> Int64 {
        let row = rows[place]
        if row.isFree { return 0 }
        if row.isMonthly { return row.price }
        var from = row.newest.purchase
        if isRecovered(place) && isEnteredWithAccess(place) { from = min(from, rows[place - 1].due) }
        return monthlyPrice(row.price, from: from, to: row.versions.compactMap(\.expires).min() ?? row.due)
    }

    /// "MRR of a chain = that of its row while paying, else 0."
    func monthlyRevenue(atVisit place: Int) -> Int64 {
        guard let row = visits[place].row, isPaying(place) else { return 0 }
        return revenues[row]
    }

    /// "MRR in GRACE and RETRY", of paid rows.
    func revenueAtRisk(atVisit place: Int) -> Int64 {
        let state = visits[place].state
        guard let row = visits[place].row, state == .grace || state == .retry else { return 0 }
        return revenues[row]
    }

    /// "Whenever MRR goes from m to n or its key changes."
    func postRevenueChanges(_ ledger: inout PlainLedger) {
        for place in visits.indices.dropFirst() {
            guard let entered = row(ofVisit: place) else { continue }
            let at = visits[place].from
            let (m, n) = (monthlyRevenue(atVisit: place - 1), monthlyRevenue(atVisit: place))
            let left = row(ofVisit: place - 1) ?? entered
            switch (m > 0, n > 0) {
            case (true, true):
                let isSameCurrency = left.newest.currency == entered.newest.currency
                if ledger.key(left) != ledger.key(entered) {
                    ledger.pay("mrrMoved", -m, at, left)
                    ledger.pay("mrrMoved", isSameCurrency ? m : n, at, entered)
                }
                if isSameCurrency {
                    ledger.pay(n > m ? "mrrExpansion" : "mrrContraction", n - m, at, entered)
                }
            case (true, false): ledger.pay(nameOfLoss(place), -m, at, left)
            case (false, true): ledger.pay(nameOfGain(place), n, at, entered)
            case (false, false): break
            }
        }
    }

    /// "`mrrContraction` if access goes on, else by reason."
    private func nameOfLoss(_ place: Int) -> String {
        switch visits[place].state {
        case .none, .paid, .free, .grace: "mrrContraction"
        case .retry, .lapsed(.billing): "mrrBilling"
        case .lapsed(.voluntary): "mrrVoluntary"
        case .lapsed(.price): "mrrPrice"
        case .lapsed(.refund): "mrrRefund"
        case .lapsed(.unavailable), .lapsed(.other): "mrrOther"
        }
    }

    /// "First payment `mrrNew`, by an adopted row `mrrAdopted`; reversal `mrrRefund`; paying earlier in this run
    /// `mrrExpansion`; recovery of a paid row `mrrRecovery`; else `mrrReactivation`."
    private func nameOfGain(_ place: Int) -> String {
        let (left, entered) = (visits[place - 1], visits[place])
        guard (0..<place).contains(where: isPaying) else {
            return entered.row.map(isAdopted) ?? false ? "mrrAdopted" : "mrrNew"
        }
        if left.row == entered.row && left.state == .lapsed(.refund) { return "mrrRefund" }
        let runStart = (0..<place).last { !visits[$0].state.hasAccess } ?? 0
        if (runStart..<place).contains(where: isPaying) { return "mrrExpansion" }
        if left.row != entered.row, let row = entered.row, isRecovered(row), !rows[row - 1].isFree {
            return "mrrRecovery"
        }
        return "mrrReactivation"
    }

    /// "`atRiskDelta`: MRR of paid rows into and out of GRACE and RETRY."
    func postRiskChanges(_ ledger: inout PlainLedger) {
        for place in visits.indices.dropFirst() {
            let (before, after) = (revenueAtRisk(atVisit: place - 1), revenueAtRisk(atVisit: place))
            // "GRACE to RETRY of one row posts nothing": the two cancel out.
            if let left = row(ofVisit: place - 1) { ledger.pay("atRiskDelta", -before, visits[place].from, left) }
            if let entered = row(ofVisit: place) { ledger.pay("atRiskDelta", after, visits[place].from, entered) }
        }
    }

    /// "`revenue` of charged and `recoveredRevenue` of recovered paid rows [start]; `chargedRefundedAmount` [start]."
    func postCharges(_ ledger: inout PlainLedger) {
        for (place, row) in rows.enumerated() where !row.isFree {
            ledger.count("charged", row.start, row)
            if row.newest.price == nil { ledger.count("unpriced", row.start, row) }
            ledger.pay("revenue", row.price, row.start, row)
            if isRecovered(place) { ledger.pay("recoveredRevenue", row.price, row.start, row) }
            if row.hasUpgradeRefunds(next: next(place)) { continue }
            let refunds = row.refunds(at: clock)
            if refunds.contains(where: { $0.reversal == nil }) { ledger.count("chargedRefunded", row.start, row) }
            if let last = refunds.last, last.reversal == nil {
                ledger.pay("chargedRefundedAmount", last.amount, row.start, row)
            }
        }
    }

    /// "`refunded`, `refundReversed`: refunds [revocation date]; reversals [then]", and their amounts.
    func postRefunds(_ ledger: inout PlainLedger) {
        for (place, row) in rows.enumerated() {
            let isUpgrade = row.hasUpgradeRefunds(next: next(place))
            for refund in row.refunds(at: clock) {
                if isUpgrade {
                    // "Less reversals."
                    ledger.pay("upgradeRefundedAmount", refund.amount, refund.date, row)
                    if let reversal = refund.reversal {
                        ledger.pay("upgradeRefundedAmount", -refund.amount, reversal, row)
                    }
                    continue
                }
                ledger.count("refunded", refund.date, row)
                ledger.pay("refundedAmount", refund.amount, refund.date, row)
                if let reversal = refund.reversal {
                    ledger.count("refundReversed", reversal, row)
                    ledger.pay("refundReversedAmount", refund.amount, reversal, row)
                }
            }
        }
        // "Refunds less reversals of products that do not renew [then]."
        for row in oneTime {
            for refund in row.refunds(at: clock) {
                ledger.count("oneTimeRefunded", refund.date, row)
                ledger.pay("oneTimeRefundedAmount", refund.amount, refund.date, row)
                guard let reversal = refund.reversal else { continue }
                ledger.count("oneTimeRefunded", reversal, row, -1)
                ledger.pay("oneTimeRefundedAmount", -refund.amount, reversal, row)
            }
        }
    }
}
