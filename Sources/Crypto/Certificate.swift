// X.509 certificates, as much of them as a chain of signatures needs.

/// One certificate: strict DER, no trailing bytes.
public final class Certificate: @unchecked Sendable {
    public let der: [UInt8]

    public init(der: [UInt8]) throws(CertificateFault) { fatalError("to be written") }

    /// Every certificate of a PEM file, or the one of a DER file. Text around PEM blocks is allowed, nothing else.
    public static func read(_ file: [UInt8]) throws(CertificateFault) -> [Certificate] { fatalError("to be written") }

    /// Lower case hexadecimal without leading zeros beyond a whole byte.
    public var serial: String { fatalError("to be written") }
    public var subject: String { fatalError("to be written") }
    public var isAuthority: Bool { fatalError("to be written") }
    /// Milliseconds since 1970; valid from the first to the last, both included.
    public var validity: ClosedRange<Int64> { fatalError("to be written") }
    /// Whether an extension is there, whatever its value; the identifier with dots.
    public func hasExtension(_ identifier: String) -> Bool { fatalError("to be written") }
    /// No keyUsage allows everything.
    public var mayVerifySignatures: Bool { fatalError("to be written") }
    /// nil unless the key is on P-256 as a named curve, its point uncompressed.
    public var p256Key: P256PublicKey? { fatalError("to be written") }
    /// SHA-256 of the DER.
    public var fingerprint: [UInt8] { fatalError("to be written") }
}

public struct CertificateFault: Error, Equatable, CustomStringConvertible {
    public let description: String
    public init(_ description: String) { self.description = description }
}

/// A set of pinned roots.
public struct TrustAnchors: Sendable {
    public let roots: [Certificate]

    public init(_ roots: [Certificate]) { self.roots = roots }

    /// The root by which leaf, intermediate and root form a path as OpenSSL 3 judges it with its default flags, dates apart,
    /// of exactly these three certificates; nil when there is none.
    public func root(of leaf: Certificate, through intermediate: Certificate) -> Certificate? {
        fatalError("to be written")
    }
}
