// A JWS in its compact form, split into its parts.

import Crypto

/// Three parts separated by dots.
struct SignedText {
    let header: Range<Int>
    let payload: Range<Int>
    let signature: Range<Int>

    /// The range that is signed: header, dot, payload.
    var signed: Range<Int> { 0..<payload.upperBound }

    /// - Parameter headerCount: position of the first dot, if known.
    init(_ text: Span<UInt8>, headerCount: Int? = nil) throws(Rejection) {
        let dot = UInt8(ascii: ".")
        // A third dot would be inside of the payload, whose alphabet does not contain it.
        var last = text.count - 1
        while last >= 0, text[last] != dot { last -= 1 }
        var first = headerCount ?? 0
        while first < last, text[first] != dot { first += 1 }
        guard last > 0, first < last else {
            throw Rejection(.malformed, "a signed text has three parts, separated by dots")
        }
        header = 0..<first
        payload = (first + 1)..<last
        signature = (last + 1)..<text.count
        guard !header.isEmpty, !payload.isEmpty, !signature.isEmpty else {
            throw Rejection(.malformed, "a part of the signed text is empty")
        }
    }

    static func decode(_ part: Span<UInt8>, _ name: StaticString) throws(Rejection) -> [UInt8] {
        guard let bytes = Base64.decodeURL(part) else {
            throw Rejection(.malformed, "\(name): not canonical base64url without padding")
        }
        return bytes
    }
}
