// Whether the copies are fresh enough to answer from.

internal import Synchronization

/// Written by the follower, read by all other threads.
public final class Readiness: Sendable {
    struct State {
        /// Nothing is followed, so nothing can be missing.
        var isIdle = false
        /// When every copy was last known to be complete. nil: they were not since this process started, or
        /// since a copy had to be built anew.
        var completeAt: Duration?
        /// Offsets that are still to be read. nil: the log has not returned the ends yet.
        var remaining: Int64?
        /// Why no records arrive; nil while they do.
        var fault: String?
        /// Why reading has stopped before some record, by partition.
        var pauses: [String] = []

        var toBeRead: String {
            remaining.map { "\($0) records are still to be read" } ?? "Kafka has not returned the end offsets yet"
        }
    }

    private let silenceLimit: Duration
    private let state = Mutex(State())

    /// - Parameter silenceLimit: how long copies may be used although the log does not answer.
    public init(silenceLimit: Duration) { self.silenceLimit = silenceLimit }

    func update(_ change: (inout State) -> Void) { state.withLock { change(&$0) } }

    /// nil: the copies may be used.
    ///
    /// - Parameter elapsed: the current time of the follower's clock.
    public func trouble(at elapsed: Duration) -> String? {
        state.withLock { state in
            if state.isIdle { return nil }
            if !state.pauses.isEmpty { return state.pauses.joined(separator: "; ") }
            guard let completeAt = state.completeAt else {
                return state.fault ?? "not caught up yet: \(state.toBeRead)"
            }
            guard elapsed - completeAt > silenceLimit else { return nil }
            let seconds = (elapsed - completeAt).components.seconds
            return "the copies are \(seconds) s behind: "
                + (state.fault ?? state.toBeRead)
        }
    }
}
