// Who may ask.

internal import HTTP
internal import Platform
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
