// When time alone changes an answer.

internal import Contract
import SubscriptionHistory

extension Course {
    /// The first later instant at which time alone changes the answer; nil: it never changes.
    func nextChange(after instant: Int64) -> Int64? {
        let answer = answer(at: instant)
        var now = instant
        while let step = nextStep(after: now) {
            if self.answer(at: step) != answer { return step }
            now = step
        }
        return nil
    }

    /// The first later instant at which time alone may cause a record: the answer changes, or it is based on another
    /// purchase and may be equal.
    func nextStep(after instant: Int64) -> Int64? {
        let place = place(at: instant)
        let before = verdict(at: instant)
        var now = instant
        while let boundary = nextBoundary(after: now) {
            if isOther(at: boundary, than: before, of: place, at: instant) { return boundary }
            now = boundary
        }
        return nil
    }

    private func isOther(at instant: Int64, than then: Verdict, of place: Int, at before: Int64) -> Bool {
        guard self.place(at: instant) == place else { return true }
        // For one purchase, time changes only these.
        let now = verdict(at: instant)
        guard now == then else { return true }
        let row = rows[place]
        guard let info = info(of: row), row.isRetrying(info) else { return false }
        return graceUntil(of: row, info, now, at: instant) != graceUntil(of: row, info, then, at: before)
            || retry(of: row, now, at: instant) != retry(of: row, then, at: before)
    }

    /// Nothing can change between two boundaries: every rule compares the time with one of them.
    private func nextBoundary(after instant: Int64) -> Int64? {
        let place = place(at: instant)
        var next: Int64?
        for later in place..<rows.count where rows[later].start > instant {
            next = rows[later].start
            break
        }
        let boundaries = boundaries(of: rows[place])
        for place in boundaries.indices {
            guard let boundary = boundaries[place], boundary > instant else { continue }
            next = next.map { min($0, boundary) } ?? boundary
        }
        return next
    }

    /// The boundaries of one row while it is the current one, unsorted.
    func boundaries(of row: Row) -> InlineArray<4, Int64?> {
        switch row.term {
        case .oneTime(let until): return [until, nil, nil, nil]
        case .period(let expires, let isCommitment):
            return [
                expires, adding(expires, rules.leeway), info(of: row)?.gracePeriodExpiresDate,
                rules.retryWindow(isCommitment: isCommitment).map { adding(expires, $0) },
            ]
        }
    }
}
