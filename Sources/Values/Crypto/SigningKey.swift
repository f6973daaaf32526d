// Private keys on NIST curves: for the simulator, for tests, and for signing requests to Apple.

internal import CCrypto

/// A private key. Signing only reads it: any number of threads may share one.
public final class SigningKey: @unchecked Sendable {
    public enum Curve: Sendable { case p256, p384 }
    public let curve: Curve
    /// 0x04, x, y (SEC 1, uncompressed).
    public let publicPoint: [UInt8]
    private let key: OpaquePointer

    /// Made from the system's randomness, or from a seed, for test data that must be the same each time.
    public init(_ curve: Curve, seed: [UInt8]? = nil) {
        self.curve = curve
        if let seed {
            key = Self.key(curve, seed: seed)
        } else {
            guard let key = perennial_key_random(curve.size) else {
                // The kernel's generator does not fail after boot, and a key takes a few hundred bytes.
                fatalError("the system has no randomness or no memory")
            }
            self.key = key
        }
        publicPoint = Self.point(of: key, curve)
    }

    /// PKCS #8 or SEC 1, PEM, not encrypted, on P-256 or P-384.
    public init(pem: [UInt8]) throws(CertificateFault) {
        var read: OpaquePointer?
        var size: Int32 = 0
        let result = pem.withUnsafeBufferPointer { perennial_key_from_pem($0.baseAddress, $0.count, &read, &size) }
        guard let read else { throw Self.fault(result) }
        key = read
        curve = Int(size) == PERENNIAL_P384 ? .p384 : .p256
        publicPoint = Self.point(of: read, curve)
    }

    /// Made from the private number, big endian, with as many bytes as the curve has.
    init(_ curve: Curve, number: [UInt8]) throws(CertificateFault) {
        guard number.count == Int(curve.size), let key = perennial_key_from_number(curve.size, number) else {
            throw CertificateFault("not a private number of the curve")
        }
        self.curve = curve
        self.key = key
        publicPoint = Self.point(of: key, curve)
    }

    deinit { perennial_key_destroy(key) }

    /// PKCS #8.
    public var pem: [UInt8] {
        // The text has 241 or 306 bytes, depending on the curve.
        [UInt8](unsafeUninitializedCapacity: 1024) { buffer, initialized in
            initialized = perennial_key_pem(key, buffer.baseAddress, buffer.count)
            precondition((1...buffer.count).contains(initialized), "no memory to write a key")
        }
    }

    /// nil on P-384.
    public var p256PublicKey: P256PublicKey? {
        // Swift can lend the bytes of a variable, but not those of a class's property.
        let point = publicPoint
        return P256PublicKey(point: point.span)
    }

    /// The form of JWS: r and s, 32 bytes each (48 on P-384). With `isDeterministic`, the same key and digest always
    /// give the same bytes (RFC 6979). `digest` is a SHA-256 or a SHA-384.
    public func sign(digest: Span<UInt8>, isDeterministic: Bool = false) -> [UInt8] {
        precondition(digest.count == 32 || digest.count == 48, "a SHA-256 or a SHA-384")
        let count = 2 * Int(curve.size)
        return digest.withUnsafeBufferPointer { digest in
            [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
                guard
                    perennial_key_sign(
                        key, curve.size, digest.baseAddress, digest.count, isDeterministic, buffer.baseAddress)
                else {
                    // All arguments are valid by construction.
                    fatalError("the system has no randomness or no memory")
                }
                initialized = count
            }
        }
    }

    /// Candidates are hashes of a counter and the seed; the first one that is a private number of the curve is used,
    /// nearly always the first.
    private static func key(_ curve: Curve, seed: [UInt8]) -> OpaquePointer {
        var counter: UInt8 = 0
        while true {
            let blocks = (0..<2 as Range<UInt8>).flatMap { block in
                let label: [UInt8] = [UInt8(curve.size), counter, block]
                return SHA256.digest((label + seed).span)
            }
            if let key = perennial_key_from_number(curve.size, blocks) { return key }
            // Each candidate fails with a probability of 2 to the -32 at most.
            precondition(counter < .max, "no memory for a key")
            counter += 1
        }
    }

    private static func point(of key: OpaquePointer, _ curve: Curve) -> [UInt8] {
        let count = 1 + 2 * Int(curve.size)
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            precondition(perennial_key_point(key, curve.size, buffer.baseAddress), "a key has its point")
            initialized = count
        }
    }

    private static func fault(_ result: perennial_key_result) -> CertificateFault {
        switch result {
        case PERENNIAL_KEY_ENCRYPTED:
            CertificateFault("the key is encrypted: store it without a password (openssl pkcs8 -topk8 -nocrypt)")
        case PERENNIAL_KEY_NOT_A_NIST_CURVE: CertificateFault("the key is not on P-256 or P-384")
        case PERENNIAL_KEY_INCONSISTENT: CertificateFault("the private and the public part of the key do not match")
        default: CertificateFault("no private key in PEM (BEGIN PRIVATE KEY or BEGIN EC PRIVATE KEY)")
        }
    }
}

extension SigningKey.Curve {
    /// Size of a number in bytes.
    fileprivate var size: Int32 { Int32(self == .p384 ? PERENNIAL_P384 : PERENNIAL_P256) }
}
