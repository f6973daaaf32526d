// The time of the demo's world.

import Platform
import Synchronization

/// Runs many times faster than life, and waits for those who live in it.
///
/// Apple's word takes milliseconds to arrive, which at this speed would be hours: renewals would come after the leeway, and
/// customers would lose access for being in a demo. So time never runs further than `limitAhead` beyond the oldest post that
/// has not been answered yet. A machine that is too slow for the speed sees a slower world, not a wrong one.
final class StoreClock: Sendable {
    /// Less than the leeway of `entitlements.leeway.ms` by default, an hour: a renewal is told before its period ends.
    static let limitAhead: Int64 = 45 * 60_000

    private struct State {
        /// Milliseconds since 1970.
        var time: Double
        /// When it was that late, on the clock that never jumps; nil: it does not run yet.
        var read: Duration?
        /// Due times of posts that have no answer yet, the next one to come included.
        var open: [Int64] = []
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

    /// How long that takes at full speed.
    func wait(until time: Int64) -> Duration { .milliseconds(max(0, Double(time - now) / speed)) }

    private func advance(_ state: inout State, to moment: Duration, _ limit: Int64) {
        guard let read = state.read else { return }
        let reached = state.time + max(0, (moment - read).fractionalSeconds) * 1000 * speed
        let held = state.open.min().map { Double($0 + Self.limitAhead) } ?? .infinity
        state.time = max(state.time, min(reached, held, Double(limit)))
        state.read = max(moment, read)
    }
}
