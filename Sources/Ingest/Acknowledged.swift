// What need not be written once more.

import Synchronization

/// Hashes of what Kafka has acknowledged of late. One genuine notification, which every attacker can buy, would otherwise fill
/// a log that is kept for ever.
///
/// Two generations take turns, so that memory is bounded and nothing has to be sorted by age. Readers know repeated records
/// anyway: what is forgotten too early does no harm.
final class Acknowledged: Sendable {
    /// A hash is known for at least one generation and at most two.
    static let generationMilliseconds: Int64 = 3 * 3_600_000
    /// Some hundred bytes each. Apple sends that many to a very large app in a quarter of an hour.
    static let limitEach = 32_768

    private struct State {
        var start: Int64 = 0
        var current: Set<[UInt8]> = []
        var previous: Set<[UInt8]> = []
    }

    private let state = Mutex(State())

    func contains(_ hash: [UInt8], now: Int64) -> Bool {
        state.withLock { state in
            turn(&state, now)
            return state.current.contains(hash) || state.previous.contains(hash)
        }
    }

    func add(_ hash: [UInt8], now: Int64) {
        state.withLock { state in
            turn(&state, now)
            state.current.insert(hash)
        }
    }

    private func turn(_ state: inout State, _ now: Int64) {
        let age = now - state.start
        // A clock that was set back knows nothing of ages.
        if age < 0 || age >= 2 * Self.generationMilliseconds {
            state = State(start: now)
        } else if age >= Self.generationMilliseconds || state.current.count >= Self.limitEach {
            state = State(start: now, previous: state.current)
        }
    }
}
