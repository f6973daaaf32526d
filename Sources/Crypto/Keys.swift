// Keys on NIST curves: verifying with P-256, signing with P-256 and P-384.

public final class P256PublicKey: @unchecked Sendable {
    /// `signature` is r and s, 32 bytes each; anything else, 0 and numbers of the group's order and beyond do not verify.
    public func verify(_ signature: Span<UInt8>, digest: Span<UInt8>) -> Bool { fatalError("to be written") }
    init() {}
}

/// A private key.
public final class SigningKey: @unchecked Sendable {
    public enum Curve: Sendable { case p256, p384 }
    public let curve: Curve

    /// From the system's randomness, or, for test data that has to be the same again, from a seed.
    public init(_ curve: Curve, seed: [UInt8]? = nil) { fatalError("to be written") }
    /// PKCS #8 or SEC 1, PEM.
    public init(pem: [UInt8]) throws(CertificateFault) { fatalError("to be written") }

    public var pem: [UInt8] { fatalError("to be written") }
    /// The form of JWS: r and s, 32 bytes each (48 on P-384). With the same key and digest always the same bytes when
    /// `isDeterministic` (RFC 6979 or equal in effect).
    public func sign(digest: Span<UInt8>, isDeterministic: Bool = false) -> [UInt8] { fatalError("to be written") }
}

/// What a certificate is to say.
public struct CertificateRequest: Sendable {
    public enum Extension: Sendable {
        case basicConstraints(isAuthority: Bool, pathLength: Int?)
        /// Bits as RFC 5280 counts them: 0 digitalSignature, 5 keyCertSign, 6 cRLSign.
        case keyUsage([Int])
        case subjectAlternativeNames(dns: [String], addresses: [String])
        /// Any other: value is DER.
        case other(identifier: String, isCritical: Bool, value: [UInt8])
    }
    public var commonName: String
    public var organization: String = "Perennial"
    public var serial: [UInt8]
    public var validity: ClosedRange<Int64>
    public var extensions: [Extension]

    public init(commonName: String, serial: [UInt8], validity: ClosedRange<Int64>, extensions: [Extension]) {
        self.commonName = commonName
        self.serial = serial
        self.validity = validity
        self.extensions = extensions
    }
}

extension Certificate {
    /// `issuer` nil: signed by itself. The hash is SHA-384 for a P-384 issuer, else SHA-256.
    public static func make(
        _ request: CertificateRequest, key: SigningKey, issuer: (certificate: Certificate, key: SigningKey)? = nil
    ) throws(CertificateFault) -> Certificate { fatalError("to be written") }
}
