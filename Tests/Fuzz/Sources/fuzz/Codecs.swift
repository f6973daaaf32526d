// Parsers that know nothing of Apple.

import Crypto
import JSON

func input(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> [UInt8] {
    Array(UnsafeBufferPointer(start: bytes, count: count))
}

/// One text per value: a decoded value encodes to the same text again.
let base64: Target = { bytes, count in
    let text = input(bytes, count)
    if let value = Base64.decodeURL(text.span) {
        precondition(Base64.encodeURL(value.span) == text, "two texts for one value (base64url)")
    }
    if let value = Base64.decodeStandard(text.span) {
        precondition(Base64.encodeStandard(value.span) == text, "two texts for one value (base64)")
    }
    precondition(Base64.decodeURL(Base64.encodeURL(text.span).span) == text, "a value is lost in base64url")
    precondition(Base64.decodeStandard(Base64.encodeStandard(text.span).span) == text, "a value is lost in base64")
    return 0
}

/// A value that was read can be written and read again as the same value.
let json: Target = { bytes, count in
    guard let value = try? JSONValue.read(input(bytes, count)) else { return 0 }
    var writer = JSONWriter()
    writer.value(value)
    precondition((try? JSONValue.read(writer.bytes)) == value, "what was written reads back as something else")
    return 0
}

/// An accepted certificate is one text in DER, and all its properties can be read. A chain reaches the pinned root only if the
/// root's authority has signed it.
let certificate: Target = { bytes, count in
    let der = input(bytes, count)
    if let list = try? Certificate.read(der) {
        precondition(!list.isEmpty, "a file without a certificate was accepted")
    }
    guard let certificate = try? Certificate(der: der) else { return 0 }
    precondition(certificate.der == der)
    precondition(!certificate.serial.isEmpty)
    _ = (
        certificate.subject, certificate.isAuthority, certificate.isValid(at: World.now),
        certificate.mayVerifySignatures
    )
    _ = certificate.hasExtension("1.2.840.113635.100.6.11.1")
    _ = certificate.p256Key?.verify(
        [UInt8](repeating: 1, count: 64).span, digest: [UInt8](repeating: 2, count: 32).span)
    let world = World.shared
    if !world.anchors.roots(of: certificate, through: world.intermediate).isEmpty {
        precondition(der == world.leaf.der, "a forged certificate leads to the root")
    }
    return 0
}
