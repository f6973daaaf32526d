// The validity period of a server's certificate.

import CMicroHTTPD
import Telemetry

/// The period of the server's own certificate, which is the first of its file. The other certificates of the chain may
/// have expired: some authorities send cross-signed certificates that have.
public struct CertificateTerm: Sendable, Equatable {
    /// For people: `CN=notify.example.com`.
    public let subject: String
    /// Milliseconds since 1970.
    public let notBefore: Int64
    public let notAfter: Int64
    /// An RSA signature is most of the server's work in a handshake.
    public let hasRSAKey: Bool

    /// Authorities that issue certificates for 90 days advise replacing them 30 days before they expire. A certificate
    /// that is closer to its end than 21 days is overdue by more than a week.
    private static let warningTime: Int64 = 21 * 86_400_000

    /// nil: clients accept the certificate.
    public func trouble(at now: Int64) -> String? {
        if now > notAfter {
            return "the TLS certificate \(subject) expired at \(rfc3339(milliseconds: notAfter)): clients, Apple among "
                + "them, refuse it. Replace it"
        }
        if now < notBefore {
            return "the TLS certificate \(subject) is not valid before \(rfc3339(milliseconds: notBefore)): clients, "
                + "Apple among them, refuse it. Use one that is valid now, or set this machine's clock"
        }
        return nil
    }

    /// nil: the certificate expires later than `warningTime`, or it is not valid at all.
    public func warning(at now: Int64) -> String? {
        guard trouble(at: now) == nil, notAfter - now <= Self.warningTime else { return nil }
        let days = (notAfter - now) / 86_400_000
        return "the TLS certificate \(subject) expires in \(days == 1 ? "1 day" : "\(days) days"), at "
            + "\(rfc3339(milliseconds: notAfter)): after that clients, Apple among them, refuse it"
    }
}

extension HTTPServer.Identity {
    /// Throws the same errors as a server that is given this identity.
    public func term() throws(HTTPServerFault) -> CertificateTerm { try TLSIdentity(self).term() }
}

extension TLSIdentity {
    func term() throws(HTTPServerFault) -> CertificateTerm {
        var certificate: gnutls_x509_crt_t?
        let exported = gnutls_pcert_export_x509(chain, &certificate)
        guard exported == 0, let certificate else {
            throw .badIdentity(reason: "the certificate cannot be read: \(words(exported))")
        }
        defer { gnutls_x509_crt_deinit(certificate) }
        let (first, last) = (
            gnutls_x509_crt_get_activation_time(certificate), gnutls_x509_crt_get_expiration_time(certificate)
        )
        guard first >= 0, last >= 0 else { throw .badIdentity(reason: "the certificate has no dates") }
        let algorithm = gnutls_x509_crt_get_pk_algorithm(certificate, nil)
        return CertificateTerm(
            subject: subject(of: certificate), notBefore: Int64(first) * 1000, notAfter: Int64(last) * 1000 + 999,
            hasRSAKey: [GNUTLS_PK_RSA, GNUTLS_PK_RSA_PSS].contains { algorithm == Int32($0.rawValue) })
    }

    private func subject(of certificate: gnutls_x509_crt_t) -> String {
        var text = [UInt8](repeating: 0, count: 1024)
        var size = text.count
        let result = text.withUnsafeMutableBytes { gnutls_x509_crt_get_dn(certificate, $0.baseAddress, &size) }
        return result == 0 ? String(decoding: text.prefix(size), as: UTF8.self) : "whose name cannot be read"
    }
}
