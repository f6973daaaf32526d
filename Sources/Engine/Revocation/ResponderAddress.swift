// Which responder may be asked.

import Crypto

/// Only Apple's responder: a certificate contains the address to call, and a sender who could make us call any address
/// could reach into our network.
enum ResponderAddress {
    private static let prefix = "http://ocsp.apple.com/"
    /// Apple's addresses have less than 50.
    private static let limitCharacters = 256

    /// The first address of the certificate that may be asked; nil if there is none.
    static func allowed(for question: OCSPQuestion) -> String? {
        question.addresses.first(where: mayBeAsked)
    }

    /// Compared as text, and only with the few characters of a plain path, so that no other program can read another
    /// host, port or user from the address.
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
