// The time of the simulated store.

import Platform
import Synchronization

/// Runs many times faster than real time, and waits for the programs that use it.
///
/// A notification takes milliseconds to arrive, which at this speed would be hours: renewals would arrive after the leeway, and
/// customers would lose access. So time never runs further than `limitAhead` past the oldest post that has no answer yet. On a
/// slow machine the demo is slower, but not wrong.
///
/// An answer to a refund request takes a tenth of a second to reach Apple, and its twelve hours would pass in two. So some time
/// after a request, an hour takes as long as `slowHour`, until the request is settled or its deadline has passed.
final class StoreClock: Sendable {
    /// Less than the default of `entitlements.leeway.ms`, one hour, so that a renewal arrives before the leeway ends.
    static let limitAhead: Int64 = 45 * 60_000

    static let slowHour: Duration = .seconds(1)

    /// A refund request that is not settled.
    private struct Open {
        let slowFrom: Int64
        let deadline: Int64
    }

    private static let slowSpeed = 3600 / slowHour.fractionalSeconds

    private struct State {
        /// Milliseconds since 1970.
        var time: Double
        /// The monotonic time at which `time` was reached; nil: the clock does not run yet.
        var read: Duration?
        /// Due times of posts that have no answer yet, including the next post.
        var open: [Int64] = []
        /// By their id.
        var requests: [String: Open] = [:]

        var slowFrom: Double { requests.values.map(\.slowFrom).min().map { Double($0) } ?? .infinity }
    }

    private let speed: Double
    private let elapsed: @Sendable () -> Duration
    private let latest: @Sendable () -> Int64
    private let state: Mutex<State>

    /// Stands still until the first `expect`.
    /// - Parameters:
    ///   - speed: how many times faster than real time.
    ///   - latest: a limit for the time, because a broker refuses records from the future.
    init(
        start: Int64, speed: Double, latest: @escaping @Sendable () -> Int64 = { .max },
        elapsed: @escaping @Sendable () -> Duration
    ) {
        self.speed = speed
        self.latest = latest
        self.elapsed = elapsed
        state = Mutex(State(time: Double(start)))
    }

    /// Milliseconds since 1970. Never runs backwards.
    var now: Int64 {
        let (moment, limit) = (elapsed(), latest())
        return state.withLock { state in
            advance(&state, to: moment, limit)
            return Int64(state.time)
        }
    }

    /// Announces a post at that time.
    func expect(_ time: Int64) {
        let (moment, limit) = (elapsed(), latest())
        state.withLock { state in
            advance(&state, to: moment, limit)
            if state.read == nil { state.read = moment }
            state.open.append(time)
        }
    }

    /// Reports the first answer to a post of that time.
    func settle(post time: Int64) {
        let (moment, limit) = (elapsed(), latest())
        state.withLock { state in
            // Called before the limit is removed, so that the clock does not catch up the time that it stood still.
            advance(&state, to: moment, limit)
            if let index = state.open.firstIndex(of: time) { state.open.remove(at: index) }
        }
    }

    /// Slows the clock down, because a refund request needs time before its deadline.
    /// - Parameter slowFrom: the clock runs fast until then; nil: it is slow from now on.
    func wait(forRequest request: String, slowFrom: Int64? = nil, deadline: Int64) {
        let (moment, limit) = (elapsed(), latest())
        state.withLock { state in
            advance(&state, to: moment, limit)
            state.requests[request] = Open(slowFrom: slowFrom ?? Int64(state.time), deadline: deadline)
        }
    }

    /// The request needs no more time.
    func settle(request: String) {
        let (moment, limit) = (elapsed(), latest())
        state.withLock { state in
            advance(&state, to: moment, limit)
            state.requests[request] = nil
        }
    }

    /// Whether the clock is slow, now or soon.
    var waitsForRequests: Bool { state.withLock { !$0.requests.isEmpty } }

    /// How long it takes to reach `time` at full speed.
    func wait(until time: Int64) -> Duration { .milliseconds(max(0, Double(time - now) / speed)) }

    private func advance(_ state: inout State, to moment: Duration, _ limit: Int64) {
        guard let read = state.read else { return }
        var reached = state.time + max(0, (moment - read).fractionalSeconds) * 1000 * speed
        let slowFrom = max(state.time, state.slowFrom)
        if reached > slowFrom { reached = slowFrom + (reached - slowFrom) / speed * Self.slowSpeed }
        let held = state.open.min().map { Double($0 + Self.limitAhead) } ?? .infinity
        state.time = max(state.time, min(reached, held, Double(limit)))
        state.read = max(moment, read)
        let time = state.time
        state.requests = state.requests.filter { Double($0.value.deadline) > time }
    }
}
