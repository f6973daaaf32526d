// Addresses of machines, and addresses to listen on.

import Glibc

/// An IPv4 or IPv6 address. An IPv4 address that is mapped into IPv6 becomes the IPv4 address.
public struct IPAddress: Sendable, Hashable, CustomStringConvertible {
    /// 4 or 16 bytes, in network byte order.
    public let bytes: [UInt8]

    /// `bytes` in network byte order. nil if there are neither 4 nor 16.
    public init?(bytes: [UInt8]) {
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]
        self.bytes = bytes.starts(with: mapped) ? Array(bytes.dropFirst(mapped.count)) : bytes
    }

    /// The usual notations of both families, without brackets, zone or prefix length.
    public init?(_ text: some StringProtocol) {
        let text = String(text)
        // C would read only up to the zero byte.
        guard !text.utf8.contains(0) else { return nil }
        let isIPv6 = text.utf8.contains(UInt8(ascii: ":"))
        var bytes = [UInt8](repeating: 0, count: isIPv6 ? 16 : 4)
        guard inet_pton(isIPv6 ? AF_INET6 : AF_INET, text, &bytes) == 1 else { return nil }
        self.init(bytes: bytes)
    }

    public var isIPv4: Bool { bytes.count == 4 }
    public var isLoopback: Bool { isIPv4 ? bytes[0] == 127 : bytes == [UInt8](repeating: 0, count: 15) + [1] }

    public var description: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        // Cannot fail: the family is known and the text long enough for any address.
        inet_ntop(isIPv4 ? AF_INET : AF_INET6, bytes, &text, socklen_t(text.count))
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

/// `127.0.0.1:8080` or `[::1]:8080`. Only addresses: a name may mean several, and another one tomorrow.
public struct ListenAddress: Sendable, Hashable, CustomStringConvertible {
    public let address: IPAddress
    /// 0: the system chooses a free port.
    public let port: UInt16

    public init(_ address: IPAddress, port: UInt16) {
        self.address = address
        self.port = port
    }

    public init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"),
            let port = decimal(text[text.index(after: colon)...], upTo: Int(UInt16.max))
        else { return nil }
        var host = text[..<colon]
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        if isBracketed { host = host.dropFirst().dropLast() }
        // Without brackets the last part of an IPv6 address would be read as a port.
        guard isBracketed == host.contains(":"), let address = IPAddress(host) else { return nil }
        self.init(address, port: UInt16(port))
    }

    public var description: String { address.isIPv4 ? "\(address):\(port)" : "[\(address)]:\(port)" }
}

/// A whole number of digits only: `Int` would also accept a sign.
///
/// Inlinable: it parses the length of every request, and without specialisation for its kind of text it costs 4
/// microseconds.
@inlinable
public func decimal(_ text: some StringProtocol, upTo limit: Int = .max) -> Int? {
    guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int(text).flatMap { $0 <= limit ? $0 : nil }
}
