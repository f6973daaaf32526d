import Foundation

@testable import Crypto

/// An OCSP response, written piece by piece so that each piece can be wrong.
struct Answer {
    enum Status { case good, revoked, unknown }

    /// The certificate that it is about, and that certificate's issuer.
    var certificate: Certificate
    var issuer: Chain.Holder
    var status = Status.good
    /// The signer; the issuer by default.
    var signer: Chain.Holder
    /// Certificates in the response.
    var attached: [Certificate] = []
    var thisUpdate = Chain.now - Chain.hour
    var nextUpdate: Int64? = Chain.now + 12 * Chain.hour
    /// Replaces the certificate's own id.
    var serial: [UInt8]?
    var namesBySHA1 = false
    var isSignedBySHA1 = false
    var responseStatus: UInt8 = 0
    var hasCriticalExtension = false
    /// Further answers about the same certificate.
    var more: [(status: Status, nextUpdate: Int64)] = []

    init(_ certificate: Certificate, by issuer: Chain.Holder) {
        self.certificate = certificate
        self.issuer = issuer
        signer = issuer
    }

    var der: [UInt8] {
        guard responseStatus == 0 else { return DER.sequence(DER.value(0x0a, [responseStatus])) }
        let basic = DER.octets(basicResponse)
        return DER.sequence(
            DER.value(0x0a, [0]), DER.explicit(0, DER.sequence(DER.identifier("1.3.6.1.5.5.7.48.1.1")!, basic)))
    }

    private var basicResponse: [UInt8] {
        var singles = single(status, nextUpdate)
        for other in more { singles += single(other.status, other.nextUpdate) }
        var parts = DER.explicit(1, signer.certificate.subjectDER) + time(thisUpdate) + DER.sequence(singles)
        if hasCriticalExtension {
            let anything = DER.sequence(DER.identifier("1.3.6.1.4.1.99999.1")!, DER.boolean(true), DER.octets([5, 0]))
            parts += DER.explicit(1, DER.sequence(anything))
        }
        let data = DER.sequence(parts)
        // ECDSA treats a digest as a number: leading zeros change nothing.
        let digest = isSignedBySHA1 ? [UInt8](repeating: 0, count: 12) + sha1(data) : SHA256.digest(data.span)
        let algorithm = DER.identifier(isSignedBySHA1 ? "1.2.840.10045.4.1" : "1.2.840.10045.4.3.2")!
        let numbers = signer.key.sign(digest: digest.span)
        let half = numbers.count / 2
        let signature = DER.sequence(DER.integer(Array(numbers[..<half])), DER.integer(Array(numbers[half...])))
        var whole = data + DER.sequence(algorithm) + DER.bits(signature)
        if !attached.isEmpty { whole += DER.explicit(0, DER.sequence(attached.flatMap(\.der))) }
        return DER.sequence(whole)
    }

    private func single(_ status: Status, _ nextUpdate: Int64?) -> [UInt8] {
        let algorithm = DER.identifier(namesBySHA1 ? "1.3.14.3.2.26" : "2.16.840.1.101.3.4.2.1")!
        let id = DER.sequence(
            DER.sequence(algorithm), DER.octets(hash(issuer.certificate.subjectDER)),
            DER.octets(hash(issuer.key.publicPoint)), DER.integer(serial ?? bytes(ofHexadecimal: certificate.serial)))
        let word: [UInt8] =
            switch status {
            case .good: [0x80, 0]
            case .revoked: DER.value(0xa1, time(thisUpdate))
            case .unknown: [0x82, 0]
            }
        return DER.sequence(id, word, time(thisUpdate), nextUpdate.map { DER.explicit(0, time($0)) } ?? [])
    }

    private func hash(_ bytes: [UInt8]) -> [UInt8] { namesBySHA1 ? sha1(bytes) : SHA256.digest(bytes.span) }

    private func time(_ milliseconds: Int64) -> [UInt8] {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "UTC")
        format.dateFormat = "yyyyMMddHHmmss'Z'"
        return DER.value(
            0x18, Array(format.string(from: Date(timeIntervalSince1970: Double(milliseconds) / 1000)).utf8))
    }
}

private func bytes(ofHexadecimal text: String) -> [UInt8] {
    stride(from: 0, to: text.count, by: 2).map { UInt8(text.dropFirst($0).prefix(2), radix: 16)! }
}

/// FIPS 180-4; some responders identify certificates with it.
private func sha1(_ message: [UInt8]) -> [UInt8] {
    func rotate(_ word: UInt32, _ by: UInt32) -> UInt32 { word << by | word >> (32 - by) }
    func bytes(_ word: UInt32) -> [UInt8] { [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> $0) } }
    var state: [UInt32] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0]
    var padded = message + [0x80]
    while padded.count % 64 != 56 { padded.append(0) }
    padded += bytes(0) + bytes(UInt32(message.count * 8))
    for block in stride(from: 0, to: padded.count, by: 64) {
        var w: [UInt32] = stride(from: block, to: block + 64, by: 4).map { start in
            padded[start..<start + 4].reduce(0) { $0 << 8 | UInt32($1) }
        }
        for i in 16..<80 { w.append(rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1)) }
        var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
        for i in 0..<80 {
            let mixed: UInt32 =
                switch i {
                case ..<20: (b & c | ~b & d) &+ 0x5a82_7999
                case ..<40: (b ^ c ^ d) &+ 0x6ed9_eba1
                case ..<60: (b & c | b & d | c & d) &+ 0x8f1b_bcdc
                default: (b ^ c ^ d) &+ 0xca62_c1d6
                }
            let next = rotate(a, 5) &+ mixed &+ e &+ w[i]
            (a, b, c, d, e) = (next, a, rotate(b, 30), c, d)
        }
        for (i, word) in [a, b, c, d, e].enumerated() { state[i] = state[i] &+ word }
    }
    return state.flatMap(bytes)
}
