// Whether the copies may be answered from.

internal import Synchronization

/// Written by the follower, asked for every request and by health.
final class Readiness: Sendable {
    /// For how long answers are given although Kafka says nothing. Longer than brokers take to elect, and not longer than access
    /// lasts while the word of a renewal is late: an hour unless `entitlements.leeway.ms` says otherwise, and in sandbox this
    /// minute. An answer this old takes nobody's access whose renewal was told before the silence.
    static let silenceLimit: Duration = .seconds(60)

    struct State {
        /// When every copy was known to be complete, last. nil: not since this process has started, or not since a copy is built
        /// anew.
        var completeAt: Duration?
        /// Offsets that are still to be read. nil: Kafka has not said how many there are.
        var remaining: Int64?
        /// Why records do not come; nil while they do.
        var fault: String?
        /// Why nothing behind some record may be read, by partition.
        var pauses: [String] = []

        var toBeRead: String {
            remaining.map { "\($0) records are to be read" } ?? "Kafka has not said yet what there is to read"
        }
    }

    private let state = Mutex(State())

    func update(_ change: (inout State) -> Void) { state.withLock { change(&$0) } }

    /// nil: all is well.
    func trouble(at elapsed: Duration) -> String? {
        state.withLock { state in
            if !state.pauses.isEmpty { return state.pauses.joined(separator: "; ") }
            guard let completeAt = state.completeAt else {
                return state.fault ?? "not caught up yet: \(state.toBeRead)"
            }
            guard elapsed - completeAt > Self.silenceLimit else { return nil }
            let seconds = (elapsed - completeAt).components.seconds
            return "the copies are \(seconds) s behind: "
                + (state.fault ?? state.toBeRead)
        }
    }
}
