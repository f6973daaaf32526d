import Testing

@testable import Crypto

/// A chain in Apple's form, with its keys.
struct Chain {
    static let address = "http://ocsp.apple.com/ocsp03-"
    /// In November 2026.
    static let now: Int64 = 1_794_650_000_000
    static let hour: Int64 = 3600_000
    static let validity = now - 100_000 * hour...now + 1_000_000 * hour

    let root: Holder
    let intermediate: Holder
    let leaf: Holder

    var trusted: TrustedChain {
        TrustedChain(leaf: leaf.certificate, intermediate: intermediate.certificate, root: root.certificate)
    }

    /// A certificate and its private key.
    struct Holder {
        let certificate: Certificate
        let key: SigningKey
    }

    /// - Parameter leafAddress: the responder's address in the leaf; nil: the leaf names no responder.
    /// - Parameter claimedRoot: the root in whose name the intermediate is issued, but with another key.
    init(
        seed: String = "genuine", leafAddress: String? = address + "leaf",
        intermediateAddress: String? = address + "root", claimedRoot: Holder? = nil
    ) throws {
        let own = try Self.make("Root", seed, .p384, Self.authority)
        root = Holder(certificate: claimedRoot?.certificate ?? own.certificate, key: own.key)
        intermediate = try Self.make(
            "Intermediate", seed, .p384,
            Self.authority + Self.asked(at: intermediateAddress) + [Self.marker("1.2.840.113635.100.6.2.1")], by: root)
        leaf = try Self.make(
            "Leaf", seed, .p256,
            [.basicConstraints(isAuthority: false, pathLength: nil), .keyUsage([0])] + Self.asked(at: leafAddress)
                + [Self.marker("1.2.840.113635.100.6.11.1")], by: intermediate)
    }

    static func make(
        _ name: String, _ seed: String, _ curve: SigningKey.Curve, _ extensions: [CertificateRequest.Extension],
        by issuer: Holder? = nil, validity: ClosedRange<Int64> = validity
    ) throws -> Holder {
        let label = Array("\(name) \(seed)".utf8)
        let key = SigningKey(curve, seed: label)
        let request = CertificateRequest(
            commonName: "\(name) \(seed)", serial: Array(SHA256.digest(label.span).prefix(8)), validity: validity,
            extensions: extensions)
        let certificate = try Certificate.make(request, key: key, issuer: issuer.map { ($0.certificate, $0.key) })
        return Holder(certificate: certificate, key: key)
    }

    private static let authority: [CertificateRequest.Extension] = [
        .basicConstraints(isAuthority: true, pathLength: nil), .keyUsage([5, 6]),
    ]

    private static func marker(_ identifier: String) -> CertificateRequest.Extension {
        .other(identifier: identifier, isCritical: false, value: [5, 0])
    }

    private static func asked(at address: String?) -> [CertificateRequest.Extension] {
        guard let address else { return [] }
        let entry = DER.sequence(DER.identifier("1.3.6.1.5.5.7.48.1")!, DER.value(0x86, Array(address.utf8)))
        return [.other(identifier: "1.3.6.1.5.5.7.1.1", isCritical: false, value: DER.sequence(entry))]
    }
}

extension Chain.Holder {
    enum Purpose: String {
        case signingAnswers = "1.3.6.1.5.5.7.3.9"
        case signingCode = "1.3.6.1.5.5.7.3.3"
        case any = "2.5.29.37.0"
    }

    /// A certificate that may answer for the issuer, as long as nothing is changed.
    static func responder(
        of issuer: Chain.Holder, purpose: Purpose? = .signingAnswers, keyUsage: [Int] = [0],
        and more: [CertificateRequest.Extension] = [], validity: ClosedRange<Int64> = Chain.validity
    ) throws -> Chain.Holder {
        var extensions: [CertificateRequest.Extension] = [.keyUsage(keyUsage)] + more
        if let purpose {
            let value = DER.sequence(DER.identifier(purpose.rawValue)!)
            extensions.append(.other(identifier: "2.5.29.37", isCritical: false, value: value))
        }
        return try Chain.make("Responder", "any", .p256, extensions, by: issuer, validity: validity)
    }
}
