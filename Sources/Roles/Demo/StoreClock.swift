// The time of the demo's world.

import Platform
import Synchronization

/// Runs many times faster than life, and waits for those who live in it.
///
/// Apple's word takes milliseconds to arrive, which at this speed would be hours: renewals would come after the leeway, and
/// customers would lose access for being in a demo. So time never runs further than `limitAhead` beyond the oldest post that
/// has not been answered yet. A machine that is too slow for the speed sees a slower world, not a wrong one.
///
/// An answer to a refund request takes a tenth of a second to reach Apple, and its twelve hours pass in two. So some time after a
/// request an hour takes as long as `slowHour`, until the request is settled or its deadline is over.
final class StoreClock: Sendable {
    /// Less than the leeway of `entitlements.leeway.ms` by default, an hour: a renewal is told before its period ends.
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
        /// When it was that late, on the clock that never jumps; nil: it does not run yet.
        var read: Duration?
        /// Due times of posts that have no answer yet, the next one to come included.
        var open: [Int64] = []
        /// By what they are known by.
        var requests: [String: Open] = [:]

        var slowFrom: Double { requests.values.map(\.slowFrom).min().map { Double($0) } ?? .infinity }
    }

    private let speed: Double
    private let elapsed: @Sendable () -> Duration
    private let latest: @Sendable () -> Int64
    private let state: Mutex<State>

    /// Stands still until the first `expect`.
    /// - Parameters:
    ///   - speed: how many times faster than life.
    ///   - latest: what it never runs beyond: a broker refuses records from the future.
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

    /// There will be a post at that time.
    func expect(_ time: Int64) {
        let (moment, limit) = (elapsed(), latest())
        state.withLock { state in
            advance(&state, to: moment, limit)
            if state.read == nil { state.read = moment }
            state.open.append(time)
        }
    }

    /// A post that was expected at that time has its first answer.
    func settle(_ time: Int64) {
        let (moment, limit) = (elapsed(), latest())
        state.withLock { state in
            // Before what held it back is gone: the time that it stood still is not made up for.
            advance(&state, to: moment, limit)
            if let index = state.open.firstIndex(of: time) { state.open.remove(at: index) }
        }
    }

    /// Something is to be done for a refund request before its deadline.
    /// - Parameter slowFrom: until then time runs as fast as ever; nil: from now on it does not.
    func wait(forRequest request: String, slowFrom: Int64? = nil, deadline: Int64) {
        let (moment, limit) = (elapsed(), latest())
        state.withLock { state in
            advance(&state, to: moment, limit)
            state.requests[request] = Open(slowFrom: slowFrom ?? Int64(state.time), deadline: deadline)
        }
    }

    /// Nothing is to be done for it any more, if there was.
    func settle(request: String) {
        let (moment, limit) = (elapsed(), latest())
        state.withLock { state in
            advance(&state, to: moment, limit)
            state.requests[request] = nil
        }
    }

    /// Whether hours pass slowly, now or soon.
    var waitsForRequests: Bool { state.withLock { !$0.requests.isEmpty } }

    /// How long that takes at full speed.
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
