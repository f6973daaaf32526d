// X.509 certificates, as far as a chain of signatures needs them.

internal import CCrypto

/// One certificate: strict DER, no trailing bytes.
///
/// A value: everything is determined when the certificate is read, so threads can share it.
public final class Certificate: @unchecked Sendable {
    public let der: [UInt8]
    /// basicConstraints says that it is a CA, and keyUsage does not forbid signing certificates.
    public let isAuthority: Bool
    /// Milliseconds since 1970; the certificate is valid from the first to the last, both included. The whole second of
    /// notAfter is included (RFC 5280 4.1.2.5: "through notAfter, inclusive"). A certificate that ends before it begins
    /// is never valid, but can be read: its dates matter only to code that relies on it.
    public let notBefore: Int64
    public let notAfter: Int64
    /// true without a keyUsage extension; false if the extension cannot be read.
    public let mayVerifySignatures: Bool
    /// nil unless the key is on P-256 as a named curve, with an uncompressed point.
    public let p256Key: P256PublicKey?
    /// Owned; only read.
    let handle: OpaquePointer

    public init(der: [UInt8]) throws(CertificateFault) {
        guard StrictDER.isWellFormed(der.span) else {
            throw CertificateFault(
                "a certificate is not a single DER value (the file is incomplete, has bytes after it, or is BER)")
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

    /// Lower-case hexadecimal, in whole bytes without leading zero bytes. A negative number, which RFC 5280 forbids,
    /// has a minus.
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

    /// Signed with its own key, in its own name, as every root is. Costs one signature verification.
    public var isSelfSigned: Bool { perennial_certificate_is_self_signed(handle) }

    /// Whether the certificate has this extension, whatever its value; `identifier` is in dotted form.
    public func hasExtension(_ identifier: String) -> Bool { perennial_certificate_has_extension(handle, identifier) }

    var subjectDER: [UInt8] {
        bytes { perennial_certificate_subject_der(handle, $0.baseAddress, $0.count) }
    }

    /// Empty if the extension is missing.
    var subjectKeyIdentifier: [UInt8] {
        bytes { perennial_certificate_subject_key_identifier(handle, $0.baseAddress, $0.count) }
    }

    /// Calls a function that first returns the size and then writes the bytes.
    func bytes(_ write: (UnsafeMutableBufferPointer<UInt8>) -> Int) -> [UInt8] {
        let count = write(UnsafeMutableBufferPointer(start: nil, count: 0))
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            initialized = min(write(buffer), count)
        }
    }

    private static func fault(_ result: perennial_certificate_result) -> CertificateFault {
        switch result {
        case PERENNIAL_CERTIFICATE_TRAILING: CertificateFault("there are bytes after the certificate")
        case PERENNIAL_CERTIFICATE_NOT_DER: CertificateFault("a certificate is not in DER")
        case PERENNIAL_CERTIFICATE_BAD_TIME:
            CertificateFault("a certificate's dates are not in the form of RFC 5280 (YYMMDDHHMMSSZ, YYYYMMDDHHMMSSZ)")
        default: CertificateFault("not an X.509 certificate")
        }
    }
}

public struct CertificateFault: Error, Equatable, CustomStringConvertible {
    public let description: String
    public init(_ description: String) { self.description = description }
}
