// The address of the client, even behind trusted proxies.

public import Configuration
public import HTTP
public import Platform

public struct ClientAddresses: Sendable {
    /// An IPv6 address in brackets with its port has 53 bytes; some blanks may surround it.
    private static let limitHopBytes = 128

    private let trustedProxies: [AddressRange]

    public init(trustedProxies: [AddressRange]) {
        self.trustedProxies = trustedProxies
    }

    /// The peer. If the peer is a trusted proxy: the last address of X-Forwarded-For that is not a trusted proxy.
    /// Addresses before that one cannot be trusted.
    ///
    /// nil: the address cannot be read, so nothing may be concluded from it.
    public func client(of request: HTTPRequest) -> IPAddress? { client(peer: request.peer, request.headers) }

    func client(peer: IPAddress?, _ headers: HTTPHeaders) -> IPAddress? {
        guard let peer, isTrusted(peer) else { return peer }
        // From the end, and no further than needed: the client may have written all but the last addresses.
        for value in headers.all("X-Forwarded-For").reversed() {
            var rest = value.utf8[...]
            while true {
                let comma = rest.lastIndex(of: UInt8(ascii: ","))
                let hop = comma.map { rest[rest.index(after: $0)...] } ?? rest
                guard hop.count <= Self.limitHopBytes, let address = Self.address(Substring(hop)) else { return nil }
                if !isTrusted(address) { return address }
                guard let comma else { break }
                rest = rest[..<comma]
            }
        }
        return peer
    }

    func isTrusted(_ address: IPAddress) -> Bool { trustedProxies.contains { $0.contains(address) } }

    /// `1.2.3.4`, `1.2.3.4:5678`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:5678`, with or without blanks around
    /// it. An IPv4 address mapped into IPv6 is read as IPv4.
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
    /// 17.0.0.0/8 belongs to Apple; Apple sends notifications from there.
    public var isApple: Bool { isIPv4 && bytes[0] == 17 }
}
