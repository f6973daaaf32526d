// Base64 in its two alphabets, strict: one text for one value.

internal import CCrypto

public enum Base64 {
    enum Alphabet { case url, standard }

    /// RFC 4648 section 5 without padding. nil for another alphabet, padding, a length of 1 modulo 4, and non-zero bits
    /// at the end: two texts for one value would be two signatures for one payload.
    public static func decodeURL(_ text: Span<UInt8>) -> [UInt8]? { decode(text, .url) }

    /// RFC 4648 section 4 with padding and without line breaks, in canonical form.
    public static func decodeStandard(_ text: Span<UInt8>) -> [UInt8]? { decode(text, .standard) }

    public static func encodeURL(_ bytes: Span<UInt8>) -> [UInt8] { encode(bytes, .url) }
    public static func encodeStandard(_ bytes: Span<UInt8>) -> [UInt8] { encode(bytes, .standard) }

    /// With `withVectors` false it does what machines without AVX2 do, so that other machines can test it.
    static func decode(_ text: Span<UInt8>, _ alphabet: Alphabet, withVectors: Bool = true) -> [UInt8]? {
        let decoder = withVectors ? perennial_base64_decode : perennial_base64_decode_scalar
        return text.withUnsafeBufferPointer { text in
            let count = perennial_base64_decoded_count(text.baseAddress, text.count, alphabet == .url)
            guard count >= 0 else { return nil }
            var isCanonical = false
            let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
                isCanonical = decoder(text.baseAddress, text.count, alphabet == .url, buffer.baseAddress)
                initialized = isCanonical ? count : 0
            }
            return isCanonical ? bytes : nil
        }
    }

    private static func encode(_ bytes: Span<UInt8>, _ alphabet: Alphabet) -> [UInt8] {
        bytes.withUnsafeBufferPointer { bytes in
            [UInt8](unsafeUninitializedCapacity: (bytes.count + 2) / 3 * 4) { buffer, initialized in
                initialized = perennial_base64_encode(
                    bytes.baseAddress, bytes.count, alphabet == .url, buffer.baseAddress)
            }
        }
    }
}
