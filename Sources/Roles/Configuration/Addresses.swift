// Addresses to listen on, and ranges of addresses to accept.

public import Platform
public import Settings

/// Addresses with the same first bits.
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
