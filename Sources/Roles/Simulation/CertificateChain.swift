// The three certificates of a simulated authority, in the form of Apple's.

internal import Crypto

/// The OIDs of the extensions by which Apple marks certificates that may sign for the store.
enum Marker {
    static let leaf = "1.2.840.113635.100.6.11.1"
    static let intermediate = "1.2.840.113635.100.6.2.1"
}

struct CertificateChain {
    /// Defects that a forger's certificates have.
    struct Defects {
        var leafMarker: String? = Marker.leaf
        var intermediateMarker: String? = Marker.intermediate
        var leafCurve = SigningKey.Curve.p256
        var leafValidity = SimulatedAuthority.validity
    }

    /// Sizes of Apple's certificates, so that payloads have realistic sizes.
    private static let leafBytes = 1077
    private static let intermediateBytes = 794
    private static let rootBytes = 583

    let root: Certificate
    let intermediate: Certificate
    let leaf: Certificate
    let rootKey: SigningKey
    let intermediateKey: SigningKey
    let leafKey: SigningKey

    /// - Parameter authority: the authority whose root and key are used; nil: a new root is made.
    init(
        seed: UInt64, defects: Defects = Defects(), root authority: (certificate: Certificate, key: SigningKey)? = nil
    ) throws(CertificateFault) {
        var random = Randomness(seed, 4)
        func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) } }
        // The first bit is 0, because serial numbers are positive.
        func serial(_ count: Int) -> [UInt8] { [0x40 | bytes(1)[0] & 0x3f] + bytes(count - 1) }

        rootKey = authority?.key ?? SigningKey(.p384, seed: bytes(48))
        intermediateKey = SigningKey(.p384, seed: bytes(48))
        leafKey = SigningKey(defects.leafCurve, seed: bytes(48))
        let authorityUsage: [CertificateRequest.Extension] = [
            .basicConstraints(isAuthority: true, pathLength: nil), .keyUsage([5, 6]),
        ]
        let rootRequest = CertificateRequest(
            commonName: "Simulated Root CA - G3", serial: serial(8), validity: SimulatedAuthority.validity,
            extensions: authorityUsage)
        let key = rootKey
        let made =
            if let authority { authority.certificate } else {
                try Self.make(rootRequest, ofBytes: Self.rootBytes, key: key, issuer: nil)
            }
        root = made

        var intermediateRequest = CertificateRequest(
            commonName: "Simulated Developer Relations Certification Authority", serial: serial(20),
            validity: SimulatedAuthority.validity,
            extensions: [.basicConstraints(isAuthority: true, pathLength: 0), .keyUsage([5, 6])])
        if let marker = defects.intermediateMarker { intermediateRequest.extensions.append(.marker(marker)) }
        intermediate = try Self.make(
            intermediateRequest, ofBytes: Self.intermediateBytes, key: intermediateKey, issuer: (made, key))

        var leafRequest = CertificateRequest(
            commonName: "Simulated Store Receipt Signing", serial: serial(16), validity: defects.leafValidity,
            extensions: [.basicConstraints(isAuthority: false, pathLength: nil), .keyUsage([0])])
        if let marker = defects.leafMarker { leafRequest.extensions.append(.marker(marker)) }
        leaf = try Self.make(
            leafRequest, ofBytes: Self.leafBytes, key: leafKey, issuer: (intermediate, intermediateKey))
    }

    /// A certificate of about this size; signatures differ by a few bytes. A policy statement fills the room, as in
    /// Apple's leaf.
    private static func make(
        _ request: CertificateRequest, ofBytes size: Int, key: SigningKey,
        issuer: (certificate: Certificate, key: SigningKey)?
    ) throws(CertificateFault) -> Certificate {
        var made = try Certificate.make(request, key: key, issuer: issuer, isDeterministic: true)
        // A smaller gap cannot hold the frame of the statement.
        guard size - made.der.count > 60 else { return made }
        var words = 0
        // The first pass, without text, shows the size of the frame; the second shows the size of two-byte lengths.
        for _ in 0..<3 {
            var filled = request
            filled.extensions.append(.policy(String(repeating: "Not Apple. ", count: words / 11 + 1), bytes: words))
            made = try Certificate.make(filled, key: key, issuer: issuer, isDeterministic: true)
            words = max(0, words + size - made.der.count)
        }
        return made
    }
}

extension CertificateRequest.Extension {
    /// An empty extension, as Apple writes its markers: the value is NULL.
    fileprivate static func marker(_ identifier: String) -> Self {
        .other(identifier: identifier, isCritical: false, value: [0x05, 0x00])
    }

    /// certificatePolicies with a user notice (RFC 5280, 4.2.1.4): an example policy OID and a text.
    fileprivate static func policy(_ words: String, bytes: Int) -> Self {
        let text = DER.value(0x0c, Array(words.utf8.prefix(bytes)))
        let userNotice: [UInt8] = [0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x02, 0x02]
        let example: [UInt8] = [0x2a, 0x03, 0x04]
        let qualifier = DER.value(0x30, DER.value(0x06, userNotice) + DER.value(0x30, text))
        let information = DER.value(0x30, DER.value(0x06, example) + DER.value(0x30, qualifier))
        return .other(identifier: "2.5.29.32", isCritical: false, value: DER.value(0x30, information))
    }
}

private enum DER {
    static func value(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        let length = content.count
        precondition(length < 0x10000, "certificates are small")
        let lengthBytes: [UInt8] =
            switch length {
            case ..<0x80: [UInt8(length)]
            case ..<0x100: [0x81, UInt8(length)]
            default: [0x82, UInt8(length >> 8), UInt8(length & 0xff)]
            }
        return [tag] + lengthBytes + content
    }
}
