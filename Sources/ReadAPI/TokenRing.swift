// Who may ask.

internal import HTTP
internal import Platform
internal import Synchronization

/// Tokens that are valid side by side, so that one can be given out before another one goes. They may change at any time.
final class TokenRing: Sendable {
    private let tokens: Mutex<[String]>

    /// - Parameter tokens: none: everybody may ask.
    init(_ tokens: [String]) { self.tokens = Mutex(tokens) }

    /// Whoever needs no token is decided at the start, with the address that is listened on.
    func replace(by tokens: [String]) throws(TokensGone) {
        let isPossible = self.tokens.withLock { known in
            guard known.isEmpty == tokens.isEmpty else { return false }
            known = tokens
            return true
        }
        if !isPossible { throw TokensGone(wereThere: tokens.isEmpty) }
    }

    func admit(_ headers: HTTPHeaders) -> Bool {
        let tokens = tokens.withLock { $0 }
        return tokens.isEmpty || headers.bear(anyOf: tokens)
    }

    /// Without tokens the api listens to this machine alone; but a browser on it asks for any page, under a name that its owner
    /// may let lead here. So only who asks for this machine by its own name is answered then.
    func admits(host: String?) -> Bool {
        if tokens.withLock({ !$0.isEmpty }) { return true }
        guard let host else { return false }
        let name = host.hasSuffix("]") ? host[...] : host[..<(host.lastIndex(of: ":") ?? host.endIndex)]
        if name.lowercased() == "localhost" { return true }
        let isBracketed = name.hasPrefix("[") && name.hasSuffix("]")
        return IPAddress(isBracketed ? name.dropFirst().dropLast() : name) != nil
    }
}

/// The text says what to do.
public struct TokensGone: Error, CustomStringConvertible {
    let wereThere: Bool

    public var description: String {
        wereThere
            ? "api.token is not set any more: restart to serve without a token; until then the old ones are valid"
            : "api.token was not set at the start: restart to ask for it"
    }
}
