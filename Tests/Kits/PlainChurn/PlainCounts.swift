// The counters of rows and states: `counts` of a cell.

extension PlainLife {
    /// "Each row counts once in these eight", and the plan changes among them.
    func postRows(_ ledger: inout PlainLedger) {
        for (place, row) in rows.enumerated() {
            let hasAccess = isEnteredWithAccess(place)
            if place == 0 {
                ledger.count(isAdopted(place) ? "adopted" : "started", row.start, row)
                continue
            }
            var isResubscribed = false
            if isRecovered(place) {
                // "From access with no grace; from access by the grace end; without access", under the failed row.
                let hasGrace = failures[place - 1]?.graceEnd != nil
                let name = !hasAccess ? "retryRecovered" : hasGrace ? "graceRecovered" : "earlyRecovered"
                ledger.count(name, row.start, rows[place - 1])
            } else if hasAccess {
                ledger.count(row.isRenewal ? "renewed" : "switched", row.start, row)
            } else {
                isResubscribed = true
                ledger.count("resubscribed", row.start, row)
            }
            if !isResubscribed && row.isOtherOffer(than: rows[place - 1]) {
                ledger.count(nameOfChange(place), row.start, row)
            }
        }
    }

    /// "By `UPGRADE`; last plan request on the row before was `DOWNGRADE` to it; else by MRR (currencies differ, equal or 0:
    /// crossgraded)."
    private func nameOfChange(_ place: Int) -> String {
        let (before, row) = (rows[place - 1], rows[place])
        if row.isByUpgrade { return "upgraded" }
        let requests = ["DID_CHANGE_RENEWAL_PREF", "OFFER_REDEEMED"]
        if let request = before.carriers.last(where: { requests.contains($0.type ?? "") }),
            request.subtype == "DOWNGRADE", let info = request.info
        {
            let product = (before.isMonthly ? info.commitmentProduct : nil) ?? info.autoRenewProduct
            let plan = (before.isMonthly ? info.commitmentPlan : nil) ?? info.renewalPlan
            if product != nil && product == row.newest.product && (plan ?? row.plan) == row.plan { return "downgraded" }
        }
        let (old, new) = (revenues[place - 1], revenues[place])
        if before.newest.currency != row.newest.currency || old == new || old == 0 || new == 0 { return "crossgraded" }
        return new > old ? "upgraded" : "downgraded"
    }

    /// "FREE entered without access and without an open trial; closed by PAID; by LAPSED; not yet [start of the trial]."
    func postTrials(_ ledger: inout PlainLedger) {
        var trial: (at: Int64, row: PlainRow)?
        for place in visits.indices.dropFirst() {
            let visit = visits[place]
            switch visit.state {
            case .free:
                guard trial == nil, !visits[place - 1].state.hasAccess, let row = row(ofVisit: place) else { continue }
                trial = (visit.from, row)
                ledger.count("trials", visit.from, row)
            case .paid, .lapsed:
                guard let open = trial else { continue }
                ledger.count(visit.state == .paid ? "trialsConverted" : "trialsEnded", open.at, open.row)
                trial = nil
            case .none, .grace, .retry: continue
            }
        }
        if let open = trial { ledger.count("trialsOpen", open.at, open.row) }
    }

    /// "`failed`, `graceEntered`, `failedOpen`: failures; with grace; not decided [failed at]", and how they ended.
    func postFailures(_ ledger: inout PlainLedger) {
        for (place, row) in rows.enumerated() {
            guard let failure = failures[place] else { continue }
            ledger.count("failed", failure.failedAt, row)
            if failure.graceEnd != nil { ledger.count("graceEntered", failure.failedAt, row) }
            switch failure.decision {
            case nil: ledger.count("failedOpen", failure.failedAt, row)
            case (let at, .recovered)?:
                // "Recoveries at most n x 24 h after failed at [failed at]."
                for days in [1, 3, 7, 16, 28, 60, 90] where at.minus(failure.failedAt) <= Int64(days) * 86_400_000 {
                    ledger.count("recoveredWithin\(days)", failure.failedAt, row)
                }
            case (let at, .lost)?:
                ledger.count("retryLost", max(failure.failedAt, accessEnd(of: place, by: at)), row)
            case (let at, .cancelled)?: ledger.count("retryCancelled", at, row)
            case (let at, .other)?: ledger.count("retryOther", at, row)
            }
        }
    }

    /// "`to` of the last visit with access of that row that began at or before the decision (else start of the row)."
    private func accessEnd(of row: Int, by decision: Int64) -> Int64 {
        let last = visits.last { $0.row == row && $0.state.hasAccess && $0.from <= decision }
        return last?.to ?? rows[row].start
    }

    /// "RETRY entered; of these not decided [then]."
    func postRetries(_ ledger: inout PlainLedger) {
        for place in visits.indices where visits[place].state == .retry {
            guard let index = visits[place].row else { continue }
            ledger.count("retryEntered", visits[place].from, rows[index])
            if failures[index]?.decision == nil { ledger.count("retryOpen", visits[place].from, rows[index]) }
        }
    }

    /// "Paying to RETRY (billing) or LAPSED(reason) [then]; never taken back", and "paying again after a lapse".
    func postLapses(_ ledger: inout PlainLedger) {
        var hasLapsed = false
        for place in visits.indices.dropFirst() {
            let at = visits[place].from
            if !isPaying(place - 1), isPaying(place), let entered = row(ofVisit: place) {
                if hasLapsed { ledger.count("regained", at, entered) }
                hasLapsed = false
            }
            guard isPaying(place - 1), let left = row(ofVisit: place - 1) else { continue }
            let reason: PlainReason
            switch visits[place].state {
            case .retry: reason = .billing
            case .lapsed(let why): reason = why
            case .none, .paid, .free, .grace: continue
            }
            hasLapsed = true
            ledger.count(reason.counter, at, left)
        }
    }

    /// "+1, -1 as a chain enters and leaves PAID, FREE, GRACE, RETRY or changes key there."
    func postDeltas(_ ledger: inout PlainLedger) {
        let names = ["PAID": "activeDelta", "FREE": "trialDelta", "GRACE": "graceDelta", "RETRY": "retryDelta"]
        for place in visits.indices.dropFirst() {
            let at = visits[place].from
            // Where neither state nor key changes, plus and minus cancel out.
            if let left = row(ofVisit: place - 1), let name = names[visits[place - 1].state.name] {
                ledger.count(name, at, left, -1)
            }
            if let entered = row(ofVisit: place), let name = names[visits[place].state.name] {
                ledger.count(name, at, entered)
            }
        }
    }

    /// "Thousandths of days in a GRACE that did not end by recovery [its end]."
    func postUnpaidGrace(_ ledger: inout PlainLedger) {
        for place in visits.indices where visits[place].state == .grace {
            let visit = visits[place]
            guard let index = visit.row, let to = visit.to else { continue }
            if let next = visits[place + 1].row, next != index, isRecovered(next) { continue }
            let length = dividedHalfToEven(Int128(to.minus(visit.from)), 86_400)
            ledger.count("unpaidGrace", to, rows[index], length)
        }
    }

    /// Counters of notifications themselves, under the row that they carry.
    func postNotifications(_ ledger: inout PlainLedger) {
        for row in rows {
            for fact in row.carriers where fact.type == "DID_CHANGE_RENEWAL_STATUS" {
                guard let isOn = turnsRenewalOn(fact, of: row) else { continue }
                ledger.count(isOn ? "renewalTurnedOn" : "renewalTurnedOff", fact.signed, row)
            }
            // "Transactions with a `CONSUMPTION_REQUEST` [first]; `REFUND_DECLINED` [signed]."
            if let request = row.carriers.first(where: { $0.type == "CONSUMPTION_REQUEST" }) {
                ledger.count("refundRequested", request.signed, row)
            }
            for fact in row.carriers where fact.type == "REFUND_DECLINED" {
                ledger.count("refundDeclined", fact.signed, row)
            }
        }
    }

    /// "By subtype, else `autoRenewStatus`; MONTHLY: by `commitmentAutoRenewStatus`."
    private func turnsRenewalOn(_ fact: PlainFact, of row: PlainRow) -> Bool? {
        if !row.isMonthly && fact.subtype == "AUTO_RENEW_DISABLED" { return false }
        if !row.isMonthly && fact.subtype == "AUTO_RENEW_ENABLED" { return true }
        switch row.isMonthly ? fact.info?.commitmentStatus : fact.info?.autoRenewStatus {
        case 0: return false
        case 1: return true
        default: return nil
        }
    }

    /// "Period 1 begun; all [its start]."
    func postCommitments(_ ledger: inout PlainLedger) {
        for (place, row) in rows.enumerated() where row.isMonthly && row.newest.period == 1 {
            ledger.count("commitmentsStarted", row.start, row)
            ledger.count(outcome(ofCommitment: place), row.start, row)
        }
    }

    /// "Ends with its last row (MONTHLY, same product, growing period), by the state before the next one or now."
    private func outcome(ofCommitment first: Int) -> String {
        var last = first
        while let next = next(last), next.isMonthly, next.newest.product == rows[first].newest.product,
            let period = next.newest.period, period > rows[last].newest.period ?? 0
        {
            last += 1
        }
        let state = visits[exit(of: last)].state
        if state == .lapsed(.refund) { return "commitmentsRefunded" }
        let ended = next(last)?.start ?? clock
        if rows[last].isLastPeriod && ended >= rows[last].due { return "commitmentsCompleted" }
        if let next = next(last) {
            if !isEnteredWithAccess(last + 1) { return "commitmentsDefaulted" }
            return next.isRenewal ? "commitmentsCompleted" : "commitmentsSwitched"
        }
        if case .lapsed = state { return "commitmentsDefaulted" }
        return "commitmentsOpen"
    }
}
