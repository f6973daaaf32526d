// X.509 certificates, as much of them as a chain of signatures needs.

internal import CCrypto

/// One certificate: strict DER, no trailing bytes.
///
/// A value: all that can be asked was fixed when it was read, so threads share it freely.
public final class Certificate: @unchecked Sendable {
    public let der: [UInt8]
    /// basicConstraints names it an authority, and keyUsage does not forbid to sign certificates.
    public let isAuthority: Bool
    /// Milliseconds since 1970; valid from the first to the last, both included. The second of notAfter belongs to it to its
    /// end (RFC 5280 4.1.2.5: "through notAfter, inclusive"). One that ends before it begins is never valid, but a
    /// certificate: its dates matter only to whoever relies on it.
    public let notBefore: Int64
    public let notAfter: Int64
    /// No keyUsage allows everything. An extension that cannot be read allows nothing.
    public let mayVerifySignatures: Bool
    /// nil unless the key is on P-256 as a named curve, its point uncompressed.
    public let p256Key: P256PublicKey?
    /// Owned; read only.
    let handle: OpaquePointer

    public init(der: [UInt8]) throws(CertificateFault) {
        guard StrictDER.isWellFormed(der.span) else {
            throw CertificateFault(
                "a certificate is not one value of DER (an incomplete file, bytes behind it, or BER)")
        }
        var read: OpaquePointer?
        var facts = perennial_certificate_facts()
        let result = der.withUnsafeBufferPointer {
            perennial_certificate_create($0.baseAddress, $0.count, &read, &facts)
        }
        guard let read else { throw Self.fault(result) }
        handle = read
        self.der = der
        isAuthority = facts.is_authority
        notBefore = facts.not_before * 1000
        notAfter = facts.not_after * 1000 + 999
        mayVerifySignatures = facts.may_verify_signatures
        if facts.has_p256_point {
            let point = withUnsafeBytes(of: facts.p256_point) { [UInt8]($0) }
            p256Key = P256PublicKey(point: point.span)
        } else {
            p256Key = nil
        }
    }

    deinit { perennial_certificate_destroy(handle) }

    /// Lower case hexadecimal without leading zeros beyond a whole byte. A negative one, which RFC 5280 forbids, has a minus.
    public var serial: String {
        var isNegative = false
        let bytes = bytes { perennial_certificate_serial(handle, $0.baseAddress, $0.count, &isNegative) }
        return (isNegative ? "-" : "") + hexadecimal(bytes)
    }

    /// For people: `CN=…, O=…`.
    public var subject: String {
        String(decoding: bytes { perennial_certificate_subject(handle, $0.baseAddress, $0.count) }, as: UTF8.self)
    }

    /// - Parameter date: milliseconds since 1970.
    public func isValid(at date: Int64) -> Bool { notBefore <= date && date <= notAfter }

    /// Signed by its own key in its own name, as every end of a path is. Costs a verification.
    public var isSelfSigned: Bool { perennial_certificate_is_self_signed(handle) }

    /// Whether an extension is there, whatever its value; the identifier with dots.
    public func hasExtension(_ identifier: String) -> Bool { perennial_certificate_has_extension(handle, identifier) }

    /// SHA-256 of the DER.
    public var fingerprint: [UInt8] {
        // The bytes of a class's property cannot be lent, those of a variable can.
        let der = der
        return SHA256.digest(der.span)
    }

    var subjectDER: [UInt8] {
        bytes { perennial_certificate_subject_der(handle, $0.baseAddress, $0.count) }
    }

    /// Empty without that extension.
    var subjectKeyIdentifier: [UInt8] {
        bytes { perennial_certificate_subject_key_identifier(handle, $0.baseAddress, $0.count) }
    }

    /// What a function writes that is asked for its size first.
    func bytes(_ write: (UnsafeMutableBufferPointer<UInt8>) -> Int) -> [UInt8] {
        let count = write(UnsafeMutableBufferPointer(start: nil, count: 0))
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            initialized = min(write(buffer), count)
        }
    }

    private static func fault(_ result: perennial_certificate_result) -> CertificateFault {
        switch result {
        case PERENNIAL_CERTIFICATE_TRAILING: CertificateFault("there are bytes behind a certificate")
        case PERENNIAL_CERTIFICATE_NOT_DER: CertificateFault("a certificate is not in DER")
        case PERENNIAL_CERTIFICATE_BAD_TIME:
            CertificateFault("a certificate's dates are not as RFC 5280 writes them (YYMMDDHHMMSSZ, YYYYMMDDHHMMSSZ)")
        default: CertificateFault("no X.509 certificate")
        }
    }
}

public struct CertificateFault: Error, Equatable, CustomStringConvertible {
    public let description: String
    public init(_ description: String) { self.description = description }
}
