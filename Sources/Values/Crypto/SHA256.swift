// SHA-256, and hexadecimal text.

internal import CCrypto

public enum SHA256 {
    /// 32 bytes.
    public static func digest(_ bytes: Span<UInt8>) -> [UInt8] { Prefix(bytes).digest() }

    /// The first 8 bytes as a big-endian number, for hashes that only have to differ.
    public static func beginning(of bytes: Span<UInt8>) -> UInt64 {
        withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { digest in
            bytes.withUnsafeBufferPointer { perennial_sha256_of($0.baseAddress, $0.count, digest.baseAddress) }
            return UInt64(bigEndian: digest.load(as: UInt64.self))
        }
    }

    /// The hash of a beginning that many texts share, so that it is computed once. A value; copying it copies 112
    /// bytes.
    public struct Prefix: Sendable {
        fileprivate var state: perennial_sha256

        public init(_ bytes: Span<UInt8>) {
            state = perennial_sha256()
            perennial_sha256_begin(&state)
            add(bytes)
        }

        public mutating func add(_ bytes: Span<UInt8>) {
            bytes.withUnsafeBufferPointer { perennial_sha256_add(&state, $0.baseAddress, $0.count) }
        }

        /// The hash of everything added so far.
        public func digest() -> [UInt8] {
            [UInt8](unsafeUninitializedCapacity: 32) { buffer, initialized in
                withUnsafePointer(to: state) { perennial_sha256_end($0, buffer.baseAddress) }
                initialized = 32
            }
        }

        /// The hash of the prefix followed by `bytes`.
        public func digest(followedBy bytes: Span<UInt8>) -> [UInt8] {
            var whole = self
            whole.add(bytes)
            return whole.digest()
        }
    }
}

/// Only for certificate signatures by keys on P-384.
enum SHA384 {
    static func digest(_ bytes: Span<UInt8>) -> [UInt8] {
        bytes.withUnsafeBufferPointer { bytes in
            [UInt8](unsafeUninitializedCapacity: 48) { buffer, initialized in
                perennial_sha384(bytes.baseAddress, bytes.count, buffer.baseAddress)
                initialized = 48
            }
        }
    }
}

/// Lower case.
public func hexadecimal(_ bytes: [UInt8]) -> String {
    let digits: StaticString = "0123456789abcdef"
    return String(unsafeUninitializedCapacity: 2 * bytes.count) { buffer in
        for (index, byte) in bytes.enumerated() {
            buffer[2 * index] = digits.utf8Start[Int(byte >> 4)]
            buffer[2 * index + 1] = digits.utf8Start[Int(byte & 15)]
        }
        return 2 * bytes.count
    }
}
