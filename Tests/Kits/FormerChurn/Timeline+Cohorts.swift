// Trials and commitments: the outcome of each is counted under its first row, on its first day.

extension Timeline {
    func postTrials(to ledger: inout Ledger) {
        var open: Visit?
        var hadAccess = false
        for visit in visits {
            switch visit.state {
            case .free:
                if !hadAccess, open == nil {
                    open = visit
                    ledger.post(.trials, at: visit.from, under: visit.row)
                }
            case .paid, .lapsed:
                if let trial = open {
                    let end: ChurnCounter = visit.state == .paid ? .trialsConverted : .trialsEnded
                    ledger.post(end, at: trial.from, under: trial.row)
                    open = nil
                }
            case .grace, .retry: break
            }
            hadAccess = visit.state.hasAccess
        }
        if let open { ledger.post(.trialsOpen, at: open.from, under: open.row) }
    }

    func postCommitments(to ledger: inout Ledger) {
        var first = 0
        while first < rows.count {
            guard rows[first].isCommitment, rows[first].transaction.period == 1 else {
                first += 1
                continue
            }
            var last = first
            while last + 1 < rows.count, continues(rows[last + 1], after: rows[last]) { last += 1 }
            ledger.post(.commitmentsStarted, at: rows[first].start, under: first)
            ledger.post(outcome(ofCommitmentEndingWith: last), at: rows[first].start, under: first)
            first = last + 1
        }
    }

    private func continues(_ row: Row, after before: Row) -> Bool {
        guard row.isCommitment, let period = row.transaction.period, let last = before.transaction.period else {
            return false
        }
        return period > last
            && facts.parts[row.transaction.parts].product == facts.parts[before.transaction.parts].product
    }

    /// The first condition that is true, by the state before the next row or now.
    private func outcome(ofCommitmentEndingWith place: Int) -> ChurnCounter {
        guard let state = visits.last(where: { $0.row == place })?.state else { return .commitmentsOpen }
        let next = next(after: place)
        if state == .lapsed(.refund) { return .commitmentsRefunded }
        if isLastPeriod(rows[place]), next?.start ?? clock >= rows[place].expires { return .commitmentsCompleted }
        if let next {
            guard state.hasAccess else { return .commitmentsDefaulted }
            return next.isRenewal ? .commitmentsCompleted : .commitmentsSwitched
        }
        if case .lapsed = state { return .commitmentsDefaulted }
        return .commitmentsOpen
    }
}
