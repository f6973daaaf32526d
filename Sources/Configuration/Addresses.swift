// Addresses to listen on, and ranges of addresses to let in.

import Glibc
public import Settings

/// An IPv4 or IPv6 address. An IPv4 address that came mapped into IPv6 is the IPv4 address.
public struct IPAddress: Sendable, Hashable, CustomStringConvertible {
    /// 4 or 16 bytes, in the order of the network.
    public let bytes: [UInt8]

    public init?(_ text: some StringProtocol) {
        let text = String(text)
        let isIPv6 = text.utf8.contains(UInt8(ascii: ":"))
        var bytes = [UInt8](repeating: 0, count: isIPv6 ? 16 : 4)
        guard inet_pton(isIPv6 ? AF_INET6 : AF_INET, text, &bytes) == 1 else { return nil }
        let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]
        self.bytes = bytes.starts(with: mapped) ? Array(bytes.dropFirst(mapped.count)) : bytes
    }

    public var isLoopback: Bool { bytes.count == 4 ? bytes[0] == 127 : bytes == [UInt8](repeating: 0, count: 15) + [1] }

    public var description: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_ntop(bytes.count == 4 ? AF_INET : AF_INET6, bytes, &text, socklen_t(text.count)) != nil else {
            return "?"
        }
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

public struct ListenAddress: Sendable, Hashable, CustomStringConvertible {
    public let address: IPAddress
    /// 0: any that is free.
    public let port: UInt16

    public init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"), let port = decimal(text[text.index(after: colon)...], upTo: 65_535)
        else { return nil }
        var host = text[..<colon]
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        if isBracketed { host = host.dropFirst().dropLast() }
        // Without brackets the last part of an IPv6 address would pass for a port.
        guard isBracketed == host.contains(":"), let address = IPAddress(host) else { return nil }
        self.address = address
        self.port = UInt16(port)
    }

    public var description: String { address.bytes.count == 4 ? "\(address):\(port)" : "[\(address)]:\(port)" }
}

/// Addresses that agree in their first bits.
public struct AddressRange: Sendable, Hashable {
    public let first: IPAddress
    public let prefixLength: Int

    public enum Flaw: Error { case unreadable, bitsBeyondPrefix }

    /// `17.0.0.0/8`, `2620:149::/32`, or one address.
    public init(_ text: String) throws(Flaw) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = IPAddress(parts[0]) else { throw .unreadable }
        let bits = first.bytes.count * 8
        guard let length = parts.count == 1 ? bits : decimal(parts[1], upTo: bits) else { throw .unreadable }
        for bit in length..<bits where first.bytes[bit / 8] & (0x80 >> (bit % 8)) != 0 { throw .bitsBeyondPrefix }
        self.first = first
        self.prefixLength = length
    }

    public func contains(_ address: IPAddress) -> Bool {
        guard address.bytes.count == first.bytes.count else { return false }
        return (0..<prefixLength).allSatisfy { bit in
            (address.bytes[bit / 8] ^ first.bytes[bit / 8]) & (0x80 >> (bit % 8)) == 0
        }
    }
}

public enum AllowedAddresses: Sendable, Hashable {
    case any
    case ranges([AddressRange])

    public func contains(_ address: IPAddress) -> Bool {
        switch self {
        case .any: true
        case .ranges(let ranges): ranges.contains { $0.contains(address) }
        }
    }
}

/// Digits only: `Int` would take a sign as well.
private func decimal(_ text: some StringProtocol, upTo limit: Int) -> Int? {
    guard (1...5).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int(text).flatMap { $0 <= limit ? $0 : nil }
}

extension SettingKind where Value == ListenAddress {
    public static var listenAddress: SettingKind {
        SettingKind("address:port") { text throws(SettingProblem) in
            guard let address = ListenAddress(text) else {
                throw SettingProblem("an IP address and a port, such as 0.0.0.0:8443 or [::1]:8443")
            }
            return address
        }
    }
}

extension SettingKind where Value == AddressRange {
    public static var addressRange: SettingKind {
        SettingKind("address or CIDR range") { text throws(SettingProblem) in
            do throws(AddressRange.Flaw) {
                return try AddressRange(text)
            } catch {
                switch error {
                case .unreadable:
                    throw SettingProblem("a list of IP addresses and ranges such as 17.0.0.0/8,2620:149::/32")
                case .bitsBeyondPrefix:
                    throw SettingProblem(
                        "a list of ranges whose bits beyond the prefix are zero (17.0.0.0/8, not 17.1.2.3/8)")
                }
            }
        }
    }
}

extension SettingKind where Value == AllowedAddresses {
    public static var allowedAddresses: SettingKind {
        let list = SettingKind<[AddressRange]>.list(of: .addressRange)
        return SettingKind("any, or \(list.values)") { text throws(SettingProblem) in
            text == "any" ? .any : .ranges(try list.parse(text))
        }
    }
}
