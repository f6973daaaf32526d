// Who is asked.

import Crypto

/// Apple's responder, and nobody else: a certificate names an address, and whoever could make us call any address he likes
/// would have a hand inside our network.
enum ResponderAddress {
    private static let prefix = "http://ocsp.apple.com/"
    /// Apple's have less than 50.
    private static let limitCharacters = 256

    /// The first address of the certificate that may be asked; nil when there is none.
    static func allowed(for question: OCSPQuestion) -> String? {
        question.addresses.first(where: mayBeAsked)
    }

    /// Compared as text, with the few characters that a plain path has: there is no second reading of such an address in
    /// which its host, port or user are others.
    static func mayBeAsked(_ address: String) -> Bool {
        guard address.utf8.count <= limitCharacters, address.hasPrefix(prefix) else { return false }
        return address.utf8.dropFirst(prefix.utf8.count).allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "/"):
                true
            default: false
            }
        }
    }
}
