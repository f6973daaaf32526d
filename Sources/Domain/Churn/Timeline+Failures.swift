// Counts of failed payments, each under the row whose payment failed.

internal import Contract
internal import SubscriptionHistory

extension Timeline {
    private static let withinDays: [(days: Int64, counter: ChurnCounter)] = [
        (1, .recoveredWithin1), (3, .recoveredWithin3), (7, .recoveredWithin7), (16, .recoveredWithin16),
        (28, .recoveredWithin28), (60, .recoveredWithin60), (90, .recoveredWithin90),
    ]

    mutating func postFailures() {
        for place in failures.indices {
            guard let failure = failures[place] else { continue }
            post(.failed, at: failure.failedAt, under: place)
            if failure.grace != nil { post(.graceEntered, at: failure.failedAt, under: place) }
            guard let decision = failure.decision else {
                post(.failedOpen, at: failure.failedAt, under: place)
                continue
            }
            switch decision.outcome {
            case .recovered:
                for (days, counter) in Self.withinDays
                where decision.at <= adding(failure.failedAt, days * millisecondsPerDay) {
                    post(counter, at: failure.failedAt, under: place)
                }
            case .lost:
                post(
                    .retryLost, at: max(failure.failedAt, lastAccess(place, before: decision.at)), under: place)
            case .cancelled: post(.retryCancelled, at: decision.at, under: place)
            case .other: post(.retryOther, at: decision.at, under: place)
            }
        }
    }

    /// When access by this row ended, or when the row began if it never gave access.
    private func lastAccess(_ place: Int, before decided: Int64) -> Int64 {
        let last = visits.values.last { $0.row == place && $0.state.hasAccess && $0.from <= decided }
        return last.map { $0.to ?? clock } ?? rows[place].start
    }
}
