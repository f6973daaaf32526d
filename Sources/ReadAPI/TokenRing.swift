// Who may ask.

internal import HTTP
internal import Synchronization

/// Tokens that are valid side by side, so that one can be given out before another one goes. They may change at any time.
final class TokenRing: Sendable {
    private let tokens: Mutex<[String]>

    /// - Parameter tokens: none: everybody may ask.
    init(_ tokens: [String]) { self.tokens = Mutex(tokens) }

    func replace(by tokens: [String]) { self.tokens.withLock { $0 = tokens } }

    func admit(_ headers: HTTPHeaders) -> Bool {
        let tokens = tokens.withLock { $0 }
        return tokens.isEmpty || headers.bear(anyOf: tokens)
    }
}
