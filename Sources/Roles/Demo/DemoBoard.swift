// What the posts of the demo's store came to.

import Platform
import Synchronization

/// Counts, and the time that a notification takes to its output. Any thread.
final class DemoBoard: Sendable {
    struct Posts: Equatable {
        var sent = 0
        var accepted = 0
        /// Forgeries, each for the reason it deserves.
        var refused = 0
        /// Forgeries that were taken, or refused for another reason.
        var wrong = 0
        /// Answers after which Apple comes again.
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

    /// Of those whose output has not been seen: some have none, as repeated ones.
    private static let limitWaiting = 4096
    private static let limitLatencies = 500

    private let state = Mutex(State())

    var posts: Posts { state.withLock { $0.posts } }

    func sending(_ notificationUUID: String, at instant: ContinuousClock.Instant = .now, waitsForOutput: Bool) {
        state.withLock { state in
            state.posts.sent += 1
            // Of a repeated one the first counts.
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

    /// Its output can be read.
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

    /// Milliseconds that half and 99 of 100 of the last ones took at most. nil: there are none yet.
    var latency: (half: Double, nearlyAll: Double)? {
        let sorted = state.withLock { $0.latencies }.sorted()
        guard let last = sorted.indices.last else { return nil }
        return (sorted[last / 2], sorted[last * 99 / 100])
    }
}
