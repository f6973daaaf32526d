// Whether the copies may be answered from.

internal import Synchronization

/// Written by the follower, asked for every request and by health.
final class Readiness: Sendable {
    /// For how long answers are given although Kafka says nothing. Longer than brokers take to restart or to elect, and well
    /// below the hour for which access lasts while the word of a renewal is late: nobody loses access by an answer that is this
    /// old.
    static let silenceLimit: Duration = .seconds(300)

    struct State {
        /// When every copy was known to be complete, last. nil: not since this process has started, or not since a copy is built
        /// anew.
        var completeAt: Duration?
        /// Offsets that are still to be read.
        var remaining: Int64 = 0
        /// Why records do not come; nil while they do.
        var fault: String?
        /// Why nothing behind some record may be read, by partition.
        var pauses: [String] = []
    }

    private let state = Mutex(State())

    func update(_ change: (inout State) -> Void) { state.withLock { change(&$0) } }

    /// nil: all is well.
    func trouble(at elapsed: Duration) -> String? {
        state.withLock { state in
            if !state.pauses.isEmpty { return state.pauses.joined(separator: "; ") }
            guard let completeAt = state.completeAt else {
                return state.fault ?? "not caught up yet: \(state.remaining) records to be read"
            }
            guard elapsed - completeAt > Self.silenceLimit else { return nil }
            let seconds = (elapsed - completeAt).components.seconds
            return "the copies are \(seconds) s behind: "
                + (state.fault ?? "\(state.remaining) records are to be read")
        }
    }
}
