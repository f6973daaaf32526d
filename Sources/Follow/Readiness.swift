// Whether copies may be answered from.

internal import Synchronization

/// Written by the follower, asked by every other thread.
public final class Readiness: Sendable {
    struct State {
        /// Nothing is followed: nothing can be missing.
        var isIdle = false
        /// When every copy was known to be complete, last. nil: not since this process has started, or not since a copy is built
        /// anew.
        var completeAt: Duration?
        /// Offsets that are still to be read. nil: the log has not said how many there are.
        var remaining: Int64?
        /// Why records do not come; nil while they do.
        var fault: String?
        /// Why nothing behind some record may be read, by partition.
        var pauses: [String] = []

        var toBeRead: String {
            remaining.map { "\($0) records are to be read" } ?? "Kafka has not said yet what there is to read"
        }
    }

    private let silenceLimit: Duration
    private let state = Mutex(State())

    /// - Parameter silenceLimit: for how long answers are given although the log says nothing.
    public init(silenceLimit: Duration) { self.silenceLimit = silenceLimit }

    func update(_ change: (inout State) -> Void) { state.withLock { change(&$0) } }

    /// nil: all is well.
    ///
    /// - Parameter elapsed: now, by the clock of the follower.
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
