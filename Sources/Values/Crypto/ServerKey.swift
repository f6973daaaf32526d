// The private key of a TLS server.

internal import CCrypto

/// A key of RSA or of a curve. Signing only reads it: any number of threads may share one.
public final class ServerKey: @unchecked Sendable {
    private let key: OpaquePointer

    /// nil: it is another key, not PEM, or encrypted.
    public init?(pem: [UInt8]) {
        guard let key = pem.withUnsafeBufferPointer({ perennial_server_key_from_pem($0.baseAddress, $0.count) }) else {
            return nil
        }
        self.key = key
    }

    deinit { perennial_server_key_destroy(key) }

    /// Signs a hash: with a curve in DER, or with RSA. nil: it failed.
    /// - Parameters:
    ///   - digest: the hash. For RSA without PSS the DigestInfo of PKCS #1, which has the hash in it.
    ///   - pssHashBits: RSA with the padding of PSS, for a hash of SHA-2 with 256, 384 or 512 bits.
    public func sign(_ digest: UnsafeRawBufferPointer, pssHashBits: Int? = nil) -> [UInt8]? {
        let limit = perennial_server_key_signature_limit(key)
        let signature = [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            count = perennial_server_key_sign(
                key, Int32(pssHashBits ?? 0), digest.bindMemory(to: UInt8.self).baseAddress, digest.count,
                buffer.baseAddress, buffer.count)
        }
        return signature.isEmpty ? nil : signature
    }
}
