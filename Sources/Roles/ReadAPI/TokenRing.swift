// Which clients may ask.

internal import HTTP
internal import Platform
internal import Synchronization

/// Tokens that are valid at the same time, so that a new one can be issued before an old one is removed. They may
/// change at any time.
final class TokenRing: Sendable {
    private let tokens: Mutex<[String]>

    /// - Parameter tokens: none: everybody may ask.
    init(_ tokens: [String]) { self.tokens = Mutex(tokens) }

    /// Whether tokens are needed is decided at the start, together with the address to listen on.
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

    /// Without tokens the API listens on a loopback address only. But a browser on this machine can be made to request
    /// any page under a name whose owner makes it point here. So only requests for this machine's own names are
    /// answered then.
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
            ? "api.token is not set any more: restart to serve without a token; until then the old tokens are valid"
            : "api.token was not set at the start: restart to require it"
    }
}
