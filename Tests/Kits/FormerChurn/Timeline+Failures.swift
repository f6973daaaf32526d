// Counts of failed payments, each under the row whose payment failed.

internal import Contract

extension Timeline {
    private static let withinDays: [(days: Int64, counter: ChurnCounter)] = [
        (1, .recoveredWithin1), (3, .recoveredWithin3), (7, .recoveredWithin7), (16, .recoveredWithin16),
        (28, .recoveredWithin28), (60, .recoveredWithin60), (90, .recoveredWithin90),
    ]

    func postFailures(to ledger: inout Ledger) {
        for (place, failure) in failures.enumerated() {
            guard let failure else { continue }
            ledger.post(.failed, at: failure.failedAt, under: place)
            if failure.grace != nil { ledger.post(.graceEntered, at: failure.failedAt, under: place) }
            guard let decision = failure.decision else {
                ledger.post(.failedOpen, at: failure.failedAt, under: place)
                continue
            }
            switch decision.outcome {
            case .recovered:
                for (days, counter) in Self.withinDays
                where decision.at <= adding(failure.failedAt, days * millisecondsPerDay) {
                    ledger.post(counter, at: failure.failedAt, under: place)
                }
            case .lost:
                ledger.post(
                    .retryLost, at: max(failure.failedAt, lastAccess(place, before: decision.at)), under: place)
            case .cancelled: ledger.post(.retryCancelled, at: decision.at, under: place)
            case .other: ledger.post(.retryOther, at: decision.at, under: place)
            }
        }
    }

    /// When access by this row ended, or when the row began if it never gave access.
    private func lastAccess(_ place: Int, before decided: Int64) -> Int64 {
        let last = visits.last { $0.row == place && $0.state.hasAccess && $0.from <= decided }
        return last.map { $0.to ?? clock } ?? rows[place].start
    }
}
