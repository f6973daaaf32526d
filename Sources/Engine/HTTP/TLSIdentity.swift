// A certificate and its key, ready for handshakes, and its replacement while clients connect.

import CMicroHTTPD
import Synchronization

/// Unchecked: made once, then only read; GnuTLS allows any number of handshakes to use it at the same time.
final class TLSIdentity: @unchecked Sendable {
    /// No chain of a public certificate is longer than this.
    private static let limitChain = 16

    let chain: UnsafeMutablePointer<gnutls_pcert_st>
    let count: UInt32
    let key: gnutls_privkey_t
    /// Signs for `key`. nil: GnuTLS does it itself.
    private let signer: HandshakeSigner?

    init(_ identity: HTTPServer.Identity) throws(HTTPServerFault) {
        let chain = UnsafeMutablePointer<gnutls_pcert_st>.allocate(capacity: Self.limitChain)
        var count = UInt32(Self.limitChain)
        let imported = withDatum(identity.certificate) {
            gnutls_pcert_list_import_x509_raw(chain, &count, $0, GNUTLS_X509_FMT_PEM, 0)
        }
        guard imported == 0, count > 0 else {
            chain.deallocate()
            throw .badIdentity(reason: "the certificate is not PEM: \(words(imported))")
        }
        var key: gnutls_privkey_t?
        var result = gnutls_privkey_init(&key)
        if result == 0 {
            result = withDatum(identity.key) { gnutls_privkey_import_x509_raw(key, $0, GNUTLS_X509_FMT_PEM, nil, 0) }
        }
        guard let key, result == 0, Self.belongTogether(chain[0].pubkey, key) else {
            Self.free(chain, count, key)
            throw .badIdentity(
                reason: result == 0
                    ? "the key does not belong to the certificate, which must be the first one in its file"
                    : "the key is not unencrypted PEM: \(words(result))")
        }
        signer = HandshakeSigner(identity.key, like: key)
        (self.chain, self.count) = (chain, count)
        if let signing = signer?.makeKey(for: chain[0].pubkey) {
            gnutls_privkey_deinit(key)
            self.key = signing
        } else {
            self.key = key
        }
    }

    deinit { Self.free(chain, count, key) }

    /// OpenSSL signs, and not GnuTLS.
    var isSignedByOpenSSL: Bool { gnutls_privkey_get_type(key) == GNUTLS_PRIVKEY_EXT }

    private static func free(
        _ chain: UnsafeMutablePointer<gnutls_pcert_st>, _ count: UInt32, _ key: gnutls_privkey_t?
    ) {
        for index in 0..<Int(count) { gnutls_pcert_deinit(chain + index) }
        chain.deallocate()
        gnutls_privkey_deinit(key)
    }

    /// Compares the identifiers of both public keys: GnuTLS itself would notice a difference only at the first
    /// handshake.
    private static func belongTogether(_ certified: gnutls_pubkey_t?, _ key: gnutls_privkey_t) -> Bool {
        var own: gnutls_pubkey_t?
        guard gnutls_pubkey_init(&own) == 0 else { return false }
        defer { gnutls_pubkey_deinit(own) }
        guard gnutls_pubkey_import_privkey(own, key, 0, 0) == 0, let ownName = identifier(own) else { return false }
        return ownName == identifier(certified)
    }

    private static func identifier(_ key: gnutls_pubkey_t?) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 64)
        var size = bytes.count
        guard gnutls_pubkey_get_key_id(key, UInt32(GNUTLS_KEYID_USE_SHA256.rawValue), &bytes, &size) == 0 else {
            return nil
        }
        return Array(bytes.prefix(size))
    }
}

/// The identity that the server shows to new connections.
final class TLSIdentities: Sendable {
    private struct State {
        var source: HTTPServer.Identity
        var current: TLSIdentity
        /// A handshake that has begun keeps its identity, and GnuTLS does not say when the last handshake has released
        /// it. So none is freed before the server: some ten kilobytes each, a few times a year.
        var replaced: [TLSIdentity] = []
    }

    private let state: Mutex<State>
    /// nil: there was no randomness for a key, and every handshake is a full one.
    let tickets = TicketKey()

    init(_ identity: HTTPServer.Identity) throws(HTTPServerFault) {
        state = Mutex(State(source: identity, current: try TLSIdentity(identity)))
    }

    var current: TLSIdentity { state.withLock { $0.current } }

    /// false: this identity is in use already.
    func replace(with identity: HTTPServer.Identity) throws(HTTPServerFault) -> Bool {
        if state.withLock({ $0.source == identity }) { return false }
        let next = try TLSIdentity(identity)
        state.withLock { state in
            state.replaced.append(state.current)
            state.current = next
            state.source = identity
        }
        return true
    }
}

/// The key that encrypts TLS session tickets. A client that reconnects within an hour sends its ticket, and the server
/// need not sign. Each server has its own key; GnuTLS derives a new one from it every few hours.
///
/// Unchecked: made once, then only read.
final class TicketKey: @unchecked Sendable {
    private var key = gnutls_datum_t()

    init?() {
        guard gnutls_session_ticket_key_generate(&key) == 0 else { return nil }
    }

    deinit {
        guard let bytes = key.data else { return }
        gnutls_memset(bytes, 0, Int(key.size))
        perennial_tls_free(bytes)
    }

    func offer(to connection: ConnectionHandle) {
        _ = withUnsafePointer(to: key) { perennial_httpd_offer_tickets(connection.pointer, $0) }
    }
}

func words(_ code: Int32) -> String { String(cString: gnutls_strerror(code)) }

func withDatum(_ bytes: [UInt8], _ body: (UnsafePointer<gnutls_datum_t>) -> Int32) -> Int32 {
    var bytes = bytes
    return bytes.withUnsafeMutableBufferPointer { buffer in
        var datum = gnutls_datum_t(data: buffer.baseAddress, size: UInt32(buffer.count))
        return body(&datum)
    }
}

/// GnuTLS calls this in every handshake. libmicrohttpd has made the connection the session's own pointer (seen in
/// 0.9.75; the tests of TLS fail if it has not).
func onCertificateWanted(
    session: gnutls_session_t?, info: UnsafePointer<gnutls_cert_retr_st>?,
    chain: UnsafeMutablePointer<UnsafeMutablePointer<gnutls_pcert_st>?>?, count: UnsafeMutablePointer<UInt32>?,
    responses: UnsafeMutablePointer<UnsafeMutablePointer<gnutls_ocsp_data_st>?>?,
    responseCount: UnsafeMutablePointer<UInt32>?, key: UnsafeMutablePointer<gnutls_privkey_t?>?,
    flags: UnsafeMutablePointer<UInt32>?
) -> Int32 {
    guard let pointer = gnutls_session_get_ptr(session), let connection = lentConnection(OpaquePointer(pointer)),
        let identity = connection.core.identities?.current
    else { return -1 }
    chain?.pointee = identity.chain
    count?.pointee = identity.count
    key?.pointee = identity.key
    responses?.pointee = nil
    responseCount?.pointee = 0
    // We free the values.
    flags?.pointee = 0
    return 0
}
