// The results of the posts of the demo's store.

import Platform
import Simulator
import Synchronization

/// Counts posts, and measures the time from a notification to its output. Any thread.
final class DemoBoard: Sendable {
    struct Posts: Equatable {
        var sent = 0
        var accepted = 0
        /// Forgeries that were refused for the right reason.
        var refused = 0
        /// Forgeries that were accepted, or refused for another reason.
        var wrong = 0
        /// Answers after which Apple retries.
        var comeAgain = 0
    }

    private struct State {
        var posts = Posts()
        var sentAt: [String: ContinuousClock.Instant] = [:]
        /// Oldest first.
        var order: [String] = []
        /// Milliseconds; the newest replaces the oldest.
        var latencies: [Double] = []
        var nextLatency = 0
    }

    /// Notifications without output so far. Some never have output, such as repetitions.
    private static let limitWaiting = 4096
    private static let limitLatencies = 500

    private let state = Mutex(State())

    var posts: Posts { state.withLock { $0.posts } }

    func sending(_ notificationUUID: String, at instant: ContinuousClock.Instant = .now, waitsForOutput: Bool) {
        state.withLock { state in
            state.posts.sent += 1
            // Of repeated posts the first one counts.
            guard waitsForOutput, state.sentAt[notificationUUID] == nil else { return }
            state.sentAt[notificationUUID] = instant
            state.order.append(notificationUUID)
            guard state.order.count > 2 * Self.limitWaiting else { return }
            for old in state.order.prefix(Self.limitWaiting) { state.sentAt[old] = nil }
            state.order.removeFirst(Self.limitWaiting)
        }
    }

    func answered(_ verdict: Verdict) {
        state.withLock { state in
            switch verdict {
            case .accepted: state.posts.accepted += 1
            case .refused: state.posts.refused += 1
            case .wrong, .setAside: state.posts.wrong += 1
            case .unsettled: state.posts.comeAgain += 1
            }
        }
    }

    /// Called when the output of a notification was read.
    func committed(_ notificationUUID: String, at instant: ContinuousClock.Instant = .now) {
        state.withLock { state in
            guard let sent = state.sentAt.removeValue(forKey: notificationUUID) else { return }
            let milliseconds = sent.duration(to: instant).fractionalSeconds * 1000
            if state.latencies.count < Self.limitLatencies {
                state.latencies.append(milliseconds)
            } else {
                state.latencies[state.nextLatency] = milliseconds
                state.nextLatency = (state.nextLatency + 1) % Self.limitLatencies
            }
        }
    }

    /// The median and the 99th percentile of the last latencies, in milliseconds. nil: no latency is known yet.
    var latency: (half: Double, nearlyAll: Double)? {
        let sorted = state.withLock { $0.latencies }.sorted()
        guard let last = sorted.indices.last else { return nil }
        return (sorted[last / 2], sorted[last * 99 / 100])
    }
}
