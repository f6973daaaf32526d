// Who is calling, seen past the proxies of the house.

public import Configuration
public import HTTP
public import Platform

public struct ClientAddresses: Sendable {
    private let trustedProxies: [AddressRange]

    public init(trustedProxies: [AddressRange]) {
        self.trustedProxies = trustedProxies
    }

    /// The peer; if that is a trusted proxy, the last address of X-Forwarded-For that is not one. Everything before that
    /// one was written by somebody nobody has to believe.
    ///
    /// nil: it cannot be read, so nothing may be concluded from it.
    public func client(of request: HTTPRequest) -> IPAddress? { client(peer: request.peer, request.headers) }

    func client(peer: IPAddress?, _ headers: HTTPHeaders) -> IPAddress? {
        guard let peer, isTrusted(peer) else { return peer }
        let hops = headers.all("X-Forwarded-For")
            .flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }
        for hop in hops.reversed() {
            guard let address = Self.address(hop) else { return nil }
            if !isTrusted(address) { return address }
        }
        return peer
    }

    private func isTrusted(_ address: IPAddress) -> Bool { trustedProxies.contains { $0.contains(address) } }

    /// `1.2.3.4`, `1.2.3.4:5678`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:5678`, blanks around it; IPv4 mapped into
    /// IPv6 is IPv4.
    static func address(_ hop: Substring) -> IPAddress? {
        let text = hop.drop { $0 == " " || $0 == "\t" }
        let trimmed = text.prefix(
            upTo: text.lastIndex { $0 != " " && $0 != "\t" }.map(text.index(after:)) ?? text.startIndex)
        if let address = IPAddress(trimmed) { return address }
        if let listen = ListenAddress(String(trimmed)) { return listen.address }
        guard trimmed.hasPrefix("["), trimmed.hasSuffix("]") else { return nil }
        return IPAddress(trimmed.dropFirst().dropLast())
    }
}

extension IPAddress {
    /// 17.0.0.0/8 belongs to Apple; notifications come from there.
    public var isApple: Bool { isIPv4 && bytes[0] == 17 }
}
