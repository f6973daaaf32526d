// Signed text: header, payload and signature, each in base64url.

internal import Crypto
internal import JSON

enum JWS {
    static func header(algorithm: String = "ES256", certificates: [[UInt8]], isCritical: Bool = false) -> [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.member("alg", algorithm)
            json.name("x5c")
            json.array { json in
                for der in certificates {
                    json.string(String(decoding: Base64.encodeStandard(der.span), as: UTF8.self))
                }
            }
            if isCritical {
                json.name("crit")
                json.array { $0.string("exp") }
            }
        }
        return json.bytes
    }

    static func sign(_ payload: [UInt8], encodedHeader: [UInt8], key: SigningKey) -> [UInt8] {
        var text = encodedHeader
        text.append(UInt8(ascii: "."))
        text += Base64.encodeURL(payload.span)
        let digest = SHA256.digest(text.span)
        text.append(UInt8(ascii: "."))
        let signature = key.sign(digest: digest.span, isDeterministic: true)
        return text + Base64.encodeURL(signature.span)
    }

    static func sign(_ payload: [UInt8], header: [UInt8], key: SigningKey) -> [UInt8] {
        sign(payload, encodedHeader: Base64.encodeURL(header.span), key: key)
    }
}
