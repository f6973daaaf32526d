// What need not be written once more.

import Crypto
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

    /// By the end of the text, which is part of its signature: so a text that nobody knows need not be hashed to find that out.
    private typealias Hashes = [Int: [UInt8]]

    private struct State {
        var start: Int64 = 0
        var current: Hashes = [:]
        var previous: Hashes = [:]
    }

    /// More than enough to tell texts apart that were signed.
    private static let endBytes = 32

    private let state = Mutex(State())

    func contains(_ text: [UInt8], now: Int64) -> Bool {
        let end = Self.end(of: text)
        let hash = state.withLock { state in
            turn(&state, now)
            return state.current[end] ?? state.previous[end]
        }
        guard let hash else { return false }
        return hash == SHA256.digest(text.span)
    }

    /// - Parameter hash: of the whole text.
    func add(_ text: [UInt8], hash: [UInt8], now: Int64) {
        let end = Self.end(of: text)
        state.withLock { state in
            turn(&state, now)
            state.current[end] = hash
        }
    }

    private static func end(of text: [UInt8]) -> Int {
        var hasher = Hasher()
        text.suffix(endBytes).withUnsafeBytes { hasher.combine(bytes: $0) }
        return hasher.finalize()
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
