// Signatures of TLS handshakes, made by OpenSSL.

import CMicroHTTPD
import Crypto

/// GnuTLS does a handshake and asks this key for the signature. OpenSSL makes it in less than half of the time that GnuTLS needs.
final class HandshakeSigner: Sendable {
    private let key: ServerKey
    private let algorithm: gnutls_pk_algorithm_t
    private let bits: UInt32

    /// nil: OpenSSL does not sign with such a key.
    /// - Parameter own: the same key as GnuTLS has read it.
    init?(_ pem: [UInt8], like own: gnutls_privkey_t) {
        var bits: UInt32 = 0
        let algorithm = gnutls_pk_algorithm_t(UInt32(bitPattern: gnutls_privkey_get_pk_algorithm(own, &bits)))
        guard algorithm == GNUTLS_PK_RSA || algorithm == GNUTLS_PK_ECDSA, let key = ServerKey(pem: pem) else {
            return nil
        }
        (self.key, self.algorithm, self.bits) = (key, algorithm, bits)
    }

    /// A key for GnuTLS, which is valid as long as this object. nil: its signatures do not fit the certificate.
    func makeKey(for certified: gnutls_pubkey_t?) -> gnutls_privkey_t? {
        var key: gnutls_privkey_t?
        guard gnutls_privkey_init(&key) == 0 else { return nil }
        let context = Unmanaged.passUnretained(self).toOpaque()
        if gnutls_privkey_import_ext4(key, context, nil, onSignatureWanted, nil, nil, onKeyAsked, 0) == 0,
            signs(with: key, certified)
        {
            return key
        }
        gnutls_privkey_deinit(key)
        return nil
    }

    /// Two libraries have read the file of the key. This shows that both have found the same key in it.
    private func signs(with key: gnutls_privkey_t?, _ certified: gnutls_pubkey_t?) -> Bool {
        let form = gnutls_pk_to_sign(algorithm, GNUTLS_DIG_SHA256)
        var signature = gnutls_datum_t()
        defer { perennial_tls_free(signature.data) }
        return withDatum(Array("a handshake".utf8)) { probe in
            let result = gnutls_privkey_sign_data2(key, form, 0, probe, &signature)
            return result == 0 ? gnutls_pubkey_verify_data2(certified, form, 0, probe, &signature) : result
        } >= 0
    }

    fileprivate func sign(_ digest: UnsafeRawBufferPointer, _ form: gnutls_sign_algorithm_t) -> [UInt8]? {
        guard gnutls_sign_get_pk_algorithm(form) == GNUTLS_PK_RSA_PSS else { return key.sign(digest) }
        return key.sign(digest, pssHashBits: digest.count * 8)
    }

    /// What GnuTLS asks about a key that it has not read itself.
    fileprivate func answer(to question: UInt32) -> Int32 {
        if question & UInt32(GNUTLS_PRIVKEY_INFO_PK_ALGO) != 0 { return Int32(algorithm.rawValue) }
        if question & UInt32(GNUTLS_PRIVKEY_INFO_PK_ALGO_BITS) != 0 { return Int32(bits) }
        if question & UInt32(GNUTLS_PRIVKEY_INFO_HAVE_SIGN_ALGO) != 0 {
            return Int32(gnutls_sign_supports_pk_algorithm(gnutls_sign_algorithm_t(question >> 20), algorithm))
        }
        return -1
    }
}

private func onSignatureWanted(
    key: gnutls_privkey_t?, form: gnutls_sign_algorithm_t, context: UnsafeMutableRawPointer?, flags: UInt32,
    digest: UnsafePointer<gnutls_datum_t>?, signature: UnsafeMutablePointer<gnutls_datum_t>?
) -> Int32 {
    guard let context, let digest, let signature else { return GNUTLS_E_PK_SIGN_FAILED }
    let signer = Unmanaged<HandshakeSigner>.fromOpaque(context).takeUnretainedValue()
    let bytes = UnsafeRawBufferPointer(start: digest.pointee.data, count: Int(digest.pointee.size))
    guard let made = signer.sign(bytes, form) else { return GNUTLS_E_PK_SIGN_FAILED }
    return perennial_tls_copy(made, made.count, signature)
}

private func onKeyAsked(key: gnutls_privkey_t?, question: UInt32, context: UnsafeMutableRawPointer?) -> Int32 {
    guard let context else { return -1 }
    return Unmanaged<HandshakeSigner>.fromOpaque(context).takeUnretainedValue().answer(to: question)
}
