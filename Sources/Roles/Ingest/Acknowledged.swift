// Texts that need not be written again.

import Crypto
import Synchronization

/// Texts that Kafka has acknowledged recently, and those in flight. Without it, one genuine notification, which every
/// attacker can buy, could be sent again and again and fill a log that is kept for ever.
///
/// Two generations replace each other, so that memory is bounded and nothing has to be sorted by age. Readers detect
/// repeated records anyway, so forgetting a text too early does no harm.
final class Acknowledged: Sendable {
    typealias Waiter = @Sendable (PublishOutcome) -> Void

    enum Finding {
        /// The caller publishes the text now, and reports the outcome.
        case new
        case acknowledged
        /// The text is in flight; the waiter receives its outcome.
        case underWay
        /// The text was not acknowledged in time, but may still be.
        case late
    }

    /// A text is remembered for one generation at least and two at most.
    private let generationMilliseconds: Int64
    /// Texts in one generation, some hundred bytes each. Apple sends that many to a very large app in a quarter of an
    /// hour.
    static let limitEach = 32_768
    /// Requests are not processed in the order in which they arrived.
    static let disorderMilliseconds: Int64 = 5 * 60_000
    /// Bytes at the end of a text; more than enough to distinguish signed texts.
    private static let endBytes = 32

    /// Keyed by the end of the text, which is part of its signature, so that an unknown text need not be hashed.
    private typealias Hashes = [Int: [UInt8]]

    private struct State {
        var start: Int64 = 0
        var current: Hashes = [:]
        var previous: Hashes = [:]
        /// Those who wait, by hash. nil: the answer is late, and nobody may wait any more.
        var underWay: [[UInt8]: [Waiter]?] = [:]
    }

    private let state = Mutex(State())

    /// - Parameter generationMilliseconds: 0: no text is remembered.
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

    /// - Returns: the waiters for the same text.
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

    /// The text uses no memory on its way to Kafka any more.
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
        // If the clock was set back, ages mean nothing.
        if age < -Self.disorderMilliseconds || age >= 2 * generationMilliseconds {
            (state.start, state.current, state.previous) = (now, [:], [:])
        } else if age >= generationMilliseconds || state.current.count >= Self.limitEach {
            (state.start, state.current, state.previous) = (max(now, state.start), [:], state.current)
        }
    }
}
