// Which published items a subscription opens, and why.

import Entitlements

struct ContentAnswer: Sendable, Equatable {
    enum Cause: String, Sendable, Equatable {
        case publishedInRun = "published_in_run"
        /// The newest item when the run began.
        case newestAtStart = "newest_at_start"
    }

    let published: Int64
    let isAccessible: Bool
    /// The current run gives it too, which matters if only current subscribers have access.
    let isInCurrentRun: Bool
    /// The run that gives access.
    let run: Run?
    let cause: Cause?

    /// In the order of `published`.
    /// - Parameter answer: the answer for that instant.
    static func answers(_ published: [Int64], _ answer: Entitlement, at now: Int64) -> [ContentAnswer] {
        let lasting = answer.runs.lasting(at: now, hasAccess: answer.access)
        let open = Set(lasting.accessible(published, at: now))
        let current = Set(lasting.accessible(published, at: now, scope: .current))
        return published.map { item in
            guard open.contains(item) else {
                return ContentAnswer(published: item, isAccessible: false, isInCurrentRun: false, run: nil, cause: nil)
            }
            let around = lasting.firstIndex {
                $0.start <= item && $0.end.map { item < $0 } ?? true && $0.start <= now
            }
            let unlocking = lasting.firstIndex { run in
                run.start <= now && published.filter { $0 <= run.start }.max() == item
            }
            return ContentAnswer(
                published: item, isAccessible: true, isInCurrentRun: current.contains(item),
                // The run with its own end, not with the end that includes leeway.
                run: (around ?? unlocking).map { answer.runs[$0] },
                cause: around == nil ? .newestAtStart : .publishedInRun)
        }
    }
}
