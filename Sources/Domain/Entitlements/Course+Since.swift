// When the state of an answer began.

import SubscriptionHistory

extension Course {
    /// Only as far as dates show it: nil if the state has not begun, or Apple has not dated it.
    func stateSince(at instant: Int64) -> Int64? {
        let place = place(at: instant)
        let row = rows[place]
        let verdict = verdict(of: row, at: instant)
        guard row.start <= instant else { return nil }
        let since: Int64?
        switch verdict.state {
        // These apply to the whole purchase: only the change itself has a date.
        case .revoked, .superseded:
            since = (row.revocationDate ?? row.firstUpgraded).map { max($0, row.start) }
        // Before the continuous access began there was another state, or nothing.
        case .active, .grace, .owned: since = max(beginning(of: verdict.state, at: instant), row.since)
        case .billingRetry, .expired:
            // A customer who cancels or whose retry ends loses access earlier than by time alone.
            let lost = [verdict.accessUntil, verdict.state == .expired ? retryEnded(row) : nil].compactMap { $0 }
            since = lost.reduce(beginning(of: verdict.state, at: instant), max)
        }
        return since.flatMap { $0 <= instant ? $0 : nil }
    }

    /// Goes back through the boundaries as long as they begin the same state.
    private func beginning(of state: Entitlement.State, at instant: Int64) -> Int64 {
        let current = place(at: instant)
        var beginning = instant
        for place in (0...current).reversed() {
            let row = rows[place]
            let next = place == current ? nil : rows[place + 1].start
            // A row that was replaced at once never counted.
            if next == row.start { continue }
            if let next, row.isUpgraded || row.revocationDate != nil {
                // Until its fate took effect it was like any other row.
                guard state == .active, row.endOrRevocation.map({ next <= $0 }) ?? true else { return beginning }
                beginning = row.start
                continue
            }
            let last = next.map { $0 - 1 } ?? instant
            let boundaries = boundaries(of: row)
            let within = boundaries.indices.compactMap { boundaries[$0] }.filter { row.start < $0 && $0 <= last }
            for boundary in (within + [row.start]).sorted(by: >) {
                guard verdict(of: row, at: boundary).state == state else { return beginning }
                beginning = boundary
            }
        }
        return beginning
    }
}
