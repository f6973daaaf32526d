// What need not be written once more.

import Synchronization

/// Hashes of what Kafka has acknowledged of late, and of what is on its way there. One genuine notification, which every attacker can
/// buy, would otherwise fill a log that is kept for ever.
///
/// Two generations take turns, so that memory is bounded and nothing has to be sorted by age. Readers know repeated records
/// anyway: what is forgotten too early does no harm.
final class Acknowledged: Sendable {
    typealias Waiter = @Sendable (PublishOutcome) -> Void

    enum Finding {
        /// The caller publishes it now, and tells what became of it.
        case new
        case acknowledged
        /// The waiter hears what becomes of it.
        case underWay
        /// It was not acknowledged in time, and may still be.
        case late
    }

    /// A hash is known for at least one generation and at most two.
    static let generationMilliseconds: Int64 = 3 * 3_600_000
    /// Some hundred bytes each. Apple sends that many to a very large app in a quarter of an hour.
    static let limitEach = 32_768
    /// Requests are not dealt with in the order in which they came.
    static let disorderMilliseconds: Int64 = 5 * 60_000

    private struct State {
        var start: Int64 = 0
        var current: Set<[UInt8]> = []
        var previous: Set<[UInt8]> = []
        /// nil: late.
        var underWay: [[UInt8]: [Waiter]?] = [:]
    }

    private let state = Mutex(State())

    func begin(_ hash: [UInt8], now: Int64, _ waiter: @escaping Waiter) -> Finding {
        state.withLock { state in
            turn(&state, now)
            if state.current.contains(hash) || state.previous.contains(hash) { return .acknowledged }
            if let others = state.underWay[hash] {
                guard let others else { return .late }
                state.underWay[hash] = others + [waiter]
                return .underWay
            }
            if state.underWay.count < Self.limitEach { state.underWay[hash] = [] }
            return .new
        }
    }

    /// - Returns: who waits for the same.
    func complete(_ hash: [UInt8], _ outcome: PublishOutcome, now: Int64) -> [Waiter] {
        state.withLock { state in
            turn(&state, now)
            if outcome == .written { state.current.insert(hash) }
            let waiters = state.underWay[hash] ?? nil
            if state.underWay[hash] != nil { state.underWay.updateValue(nil, forKey: hash) }
            return waiters ?? []
        }
    }

    /// It takes no room on the way to Kafka any more.
    func end(_ hash: [UInt8]) {
        _ = state.withLock { $0.underWay.removeValue(forKey: hash) }
    }

    private func turn(_ state: inout State, _ now: Int64) {
        let age = now - state.start
        // A clock that was set back knows nothing of ages.
        if age < -Self.disorderMilliseconds || age >= 2 * Self.generationMilliseconds {
            (state.start, state.current, state.previous) = (now, [], [])
        } else if age >= Self.generationMilliseconds || state.current.count >= Self.limitEach {
            (state.start, state.current, state.previous) = (max(now, state.start), [], state.current)
        }
    }
}
