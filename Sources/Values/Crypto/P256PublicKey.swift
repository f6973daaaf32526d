// Verifies signatures of JWS with ES256.

internal import CCrypto

/// A public key on P-256.
///
/// Verifying only reads the key: any number of threads may share one.
public final class P256PublicKey: @unchecked Sendable {
    private let key: OpaquePointer

    /// `point` is 0x04, x and y, 65 bytes (SEC 1, uncompressed). nil if the point is not on the curve.
    public init?(point: Span<UInt8>) {
        guard point.count == 65, point[0] == 4 else { return nil }
        guard let key = point.withUnsafeBufferPointer({ perennial_key_from_point($0.baseAddress) }) else { return nil }
        self.key = key
    }

    deinit { perennial_key_destroy(key) }

    /// `signature` is r and s, 32 bytes each. Any other length, 0, and numbers not below the order of the group are not
    /// valid. Both values of s that belong to one r are valid, as RFC 7518 says. `digest` is a SHA-256, 32 bytes.
    public func verify(_ signature: Span<UInt8>, digest: Span<UInt8>) -> Bool {
        precondition(digest.count == 32, "ES256 signs a SHA-256")
        guard signature.count == 64 else { return false }
        return signature.withUnsafeBufferPointer { signature in
            digest.withUnsafeBufferPointer { perennial_key_verify(key, signature.baseAddress, $0.baseAddress) }
        }
    }
}
