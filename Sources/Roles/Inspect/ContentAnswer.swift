// Which published items a subscription opens, and by what.

import Entitlements

struct ContentAnswer: Sendable, Equatable {
    enum Cause: String, Sendable, Equatable {
        case publishedInRun = "published_in_run"
        /// The newest one there was when the run began.
        case newestAtStart = "newest_at_start"
    }

    let published: Int64
    let isAccessible: Bool
    /// The run that now is in gives it too: what counts where only current subscribers see anything.
    let isInCurrentRun: Bool
    /// By which it is accessible.
    let run: Run?
    let cause: Cause?

    /// In the order given.
    /// - Parameter answer: of that instant.
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
                // With the end that it has, not the one that access has lent it.
                run: (around ?? unlocking).map { answer.runs[$0] },
                cause: around == nil ? .newestAtStart : .publishedInRun)
        }
    }
}
