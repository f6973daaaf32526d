// What need not be written once more.

import Crypto
import Synchronization

/// Texts that Kafka has acknowledged of late, and those on their way there. One genuine notification, which every attacker can
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

    /// A text is known for at least one generation and at most two.
    private let generationMilliseconds: Int64
    /// Some hundred bytes each. Apple sends that many to a very large app in a quarter of an hour.
    static let limitEach = 32_768
    /// Requests are not dealt with in the order in which they came.
    static let disorderMilliseconds: Int64 = 5 * 60_000
    /// More than enough to tell texts apart that were signed.
    private static let endBytes = 32

    /// By the end of the text, which is part of its signature: so a text that nobody knows need not be hashed to find that out.
    private typealias Hashes = [Int: [UInt8]]

    private struct State {
        var start: Int64 = 0
        var current: Hashes = [:]
        var previous: Hashes = [:]
        /// By hash; nil: late.
        var underWay: [[UInt8]: [Waiter]?] = [:]
    }

    private let state = Mutex(State())

    /// - Parameter generationMilliseconds: 0: nothing is known.
    init(generationMilliseconds: Int64) {
        self.generationMilliseconds = generationMilliseconds
    }

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
    func begin(_ text: [UInt8], hash: [UInt8], now: Int64, _ waiter: @escaping Waiter) -> Finding {
        guard generationMilliseconds > 0 else { return .new }
        let end = Self.end(of: text)
        return state.withLock { state in
            turn(&state, now)
            if (state.current[end] ?? state.previous[end]) == hash { return .acknowledged }
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
    func complete(_ text: [UInt8], hash: [UInt8], _ outcome: PublishOutcome, now: Int64) -> [Waiter] {
        let end = Self.end(of: text)
        return state.withLock { state in
            turn(&state, now)
            if outcome == .written, generationMilliseconds > 0 { state.current[end] = hash }
            guard let waiters = state.underWay[hash] else { return [] }
            state.underWay.updateValue(nil, forKey: hash)
            return waiters ?? []
        }
    }

    /// It takes no room on the way to Kafka any more.
    func end(_ hash: [UInt8]) {
        _ = state.withLock { $0.underWay.removeValue(forKey: hash) }
    }

    private static func end(of text: [UInt8]) -> Int {
        var hasher = Hasher()
        text.suffix(endBytes).withUnsafeBytes { hasher.combine(bytes: $0) }
        return hasher.finalize()
    }

    private func turn(_ state: inout State, _ now: Int64) {
        let age = now - state.start
        // A clock that was set back knows nothing of ages.
        if age < -Self.disorderMilliseconds || age >= 2 * generationMilliseconds {
            (state.start, state.current, state.previous) = (now, [:], [:])
        } else if age >= generationMilliseconds || state.current.count >= Self.limitEach {
            (state.start, state.current, state.previous) = (max(now, state.start), [:], state.current)
        }
    }
}
