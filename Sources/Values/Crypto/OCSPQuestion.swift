// The request whether a certificate is revoked, and the check of the response (RFC 6960).

internal import CCrypto

/// A question about one certificate, to the responder of its issuer.
public struct OCSPQuestion: Sendable {
    /// How far the responder's clock may be ahead of ours.
    private static let limitAhead: Int64 = 5 * 60 * 1000

    public let certificate: Certificate
    public let issuer: Certificate

    /// `issuer` must have issued `certificate`, as proven by a chain. Nothing is asked about certificates that anybody
    /// can make.
    public init(about certificate: Certificate, issuedBy issuer: Certificate) {
        self.certificate = certificate
        self.issuer = issuer
    }

    /// The responder addresses that the certificate names.
    public var addresses: [String] {
        let text = certificate.bytes { perennial_ocsp_addresses(certificate.handle, $0.baseAddress, $0.count) }
        return text.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
    }

    /// DER; the certificate is identified by SHA-256. Without a nonce, because responders return answers that they
    /// signed earlier.
    public var request: [UInt8] {
        let request = certificate.bytes {
            perennial_ocsp_request(certificate.handle, issuer.handle, $0.baseAddress, $0.count)
        }
        precondition(!request.isEmpty, "no memory for a request of a hundred bytes")
        return request
    }

    /// Accepts only an answer that is signed by the issuer, or by a certificate that the issuer has issued for this
    /// purpose, that is about this certificate, and that is current. Whether the responder's own certificate is revoked
    /// is not checked, because its life is short.
    ///
    /// - Parameter now: milliseconds since 1970.
    public func answer(_ response: [UInt8], now: Int64) throws(OCSPFault) -> OCSPAnswer {
        guard StrictDER.isWellFormed(response.span) else { throw .unreadable }
        var read = perennial_ocsp_answer()
        let result = response.withUnsafeBufferPointer {
            perennial_ocsp_read($0.baseAddress, $0.count, certificate.handle, issuer.handle, &read)
        }
        if let fault = OCSPFault(result) { throw fault }
        let validUntil = min(milliseconds(read.next_update), milliseconds(read.signer_not_after, after: 1))
        guard milliseconds(read.this_update) <= now + Self.limitAhead, milliseconds(read.signer_not_before) <= now,
            now < validUntil
        else { throw .notOfNow }
        return OCSPAnswer(status: RevocationStatus(read.status), validUntil: validUntil)
    }

    /// The smallest and the largest value mean "no limit" and are not converted.
    private func milliseconds(_ seconds: Int64, after more: Int64 = 0) -> Int64 {
        let (sum, overflows) = seconds.addingReportingOverflow(more)
        let (product, overflowsToo) = sum.multipliedReportingOverflow(by: 1000)
        return overflows || overflowsToo ? (seconds < 0 ? .min : .max) : product
    }
}

public struct OCSPAnswer: Sendable, Equatable {
    /// `unknown`: the responder does not know the certificate.
    public let status: RevocationStatus
    /// The first millisecond at which the answer is no longer valid.
    public let validUntil: Int64
}

/// Why bytes are not a valid answer. A closed set: labels of metrics.
public enum OCSPFault: String, Error, CaseIterable {
    case unreadable
    /// The responder refused to answer.
    case refused
    /// The signer is not allowed to answer.
    case untrustedResponder = "untrusted_responder"
    case badSignature = "bad_signature"
    /// The answer is about other certificates.
    case ofAnother = "of_another"
    /// The answer is too old, is dated in the future, or has no end.
    case notOfNow = "not_of_now"
}

extension OCSPFault {
    fileprivate init?(_ result: perennial_ocsp_result) {
        switch result {
        case PERENNIAL_OCSP_READ: return nil
        case PERENNIAL_OCSP_REFUSED: self = .refused
        case PERENNIAL_OCSP_STRANGER: self = .untrustedResponder
        case PERENNIAL_OCSP_BAD_SIGNATURE: self = .badSignature
        case PERENNIAL_OCSP_OF_ANOTHER: self = .ofAnother
        case PERENNIAL_OCSP_BAD_TIME: self = .notOfNow
        default: self = .unreadable
        }
    }
}

extension RevocationStatus {
    fileprivate init(_ status: perennial_ocsp_status) {
        switch status {
        case PERENNIAL_OCSP_GOOD: self = .good
        case PERENNIAL_OCSP_REVOKED: self = .revoked
        default: self = .unknown
        }
    }
}
