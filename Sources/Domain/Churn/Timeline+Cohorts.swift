// Trials and commitments: the outcome of each is counted under its first row, on its first day.

internal import SubscriptionHistory

extension Timeline {
    mutating func postTrials() {
        var open: Visit?
        var hadAccess = false
        for number in visits.indices {
            let visit = visits[number]
            switch visit.state {
            case .free:
                if !hadAccess, open == nil {
                    open = visit
                    post(.trials, at: visit.from, under: visit.row)
                }
            case .paid, .lapsed:
                if let trial = open {
                    let end: ChurnCounter = visit.state == .paid ? .trialsConverted : .trialsEnded
                    post(end, at: trial.from, under: trial.row)
                    open = nil
                }
            case .grace, .retry: break
            }
            hadAccess = visit.state.hasAccess
        }
        if let open { post(.trialsOpen, at: open.from, under: open.row) }
    }

    mutating func postCommitments() {
        var first = 0
        while first < rows.count {
            guard rows[first].isCommitment, rows[first].transaction.period == 1 else {
                first += 1
                continue
            }
            var last = first
            while last + 1 < rows.count, continues(rows[last + 1], after: rows[last]) { last += 1 }
            post(.commitmentsStarted, at: rows[first].start, under: first)
            post(outcome(ofCommitmentEndingWith: last), at: rows[first].start, under: first)
            first = last + 1
        }
    }

    private func continues(_ row: Row, after before: Row) -> Bool {
        guard row.isCommitment, let period = row.transaction.period, let last = before.transaction.period else {
            return false
        }
        return period > last
            && facts.parts[Int(row.transaction.parts)].product == facts.parts[Int(before.transaction.parts)].product
    }

    /// The first condition that is true, by the state before the next row or now.
    private func outcome(ofCommitmentEndingWith place: Int) -> ChurnCounter {
        guard let state = visits.values.last(where: { $0.row == place })?.state else { return .commitmentsOpen }
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
