import Testing

@testable import Crypto

@Suite struct `A signature on P-256` {
    private static let key = SigningKey(.p256, seed: [7])
    private static let sample = digest("sample")
    private static let signature = key.signs(sample, isDeterministic: true)
    private let publicKey: P256PublicKey

    init() throws { publicKey = try #require(Self.key.p256PublicKey) }

    private func verifies(_ signature: [UInt8], digest: [UInt8] = sample) -> Bool {
        publicKey.verifies(signature, digest: digest)
    }

    /// RFC 7515 A.3.
    @Test func `verifies in the example of JWS`() throws {
        let x = try #require(Base64.read(Array("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU".utf8), .url))
        let y = try #require(Base64.read(Array("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0".utf8), .url))
        let point = [4] + x + y
        let key = try #require(P256PublicKey.read(point))
        let signed = digest(
            "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
        )
        let text = "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
        let signature = try #require(Base64.read(Array(text.utf8), .url))
        #expect(key.verifies(signature, digest: signed))
    }

    @Test func `does not verify with any one bit changed`() {
        #expect(verifies(Self.signature))
        for bit in 0..<512 {
            var changed = Self.signature
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(!verifies(changed))
        }
    }

    @Test func `does not verify for a digest with any one bit changed`() {
        for bit in 0..<256 {
            var changed = Self.sample
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(!verifies(Self.signature, digest: changed))
        }
    }

    @Test func `does not verify with another key`() throws {
        let other = try #require(SigningKey(.p256, seed: [8]).p256PublicKey)
        #expect(!other.verifies(Self.signature, digest: Self.sample))
    }

    @Test func `has 64 bytes and no other number of them`() {
        for count in 0...130 where count != 64 {
            #expect(!verifies(Array((Self.signature + Self.signature + Self.signature).prefix(count))))
            #expect(!verifies([UInt8](repeating: 0, count: max(0, count - 64)) + Self.signature.suffix(count)))
        }
    }

    @Test func `is not written in DER`() {
        let (r, s) = (Array(Self.signature.prefix(32)), Array(Self.signature.suffix(32)))
        #expect(!verifies(DER.sequence(DER.integer(r), DER.integer(s))))
    }

    @Test func `has no number that is 0, the order or above`() {
        let largest = [UInt8](repeating: 0xff, count: 32)
        var above = P256.order
        above[31] += 1
        let (r, s) = (Array(Self.signature.prefix(32)), Array(Self.signature.suffix(32)))
        let bad = [[UInt8](repeating: 0, count: 32), P256.order, above, P256.prime, largest]
        // Numbers that could pass by arithmetic alone, together with genuine ones.
        let numbers = bad + [P256.one, P256.subtract(P256.order, P256.one), r, s]
        for first in numbers {
            for second in numbers where bad.contains(first) || bad.contains(second) {
                #expect(!verifies(first + second))
                #expect(!verifies(first + second, digest: [UInt8](repeating: 0, count: 32)))
            }
        }
    }

    /// For each r there are two values of s. Refusing one would refuse half of all genuine signatures: ES256 requires neither.
    @Test func `verifies with the other s as well`() {
        let (r, s) = (Array(Self.signature.prefix(32)), Array(Self.signature.suffix(32)))
        #expect(verifies(r + P256.subtract(P256.order, s)))
        #expect(!verifies(P256.subtract(P256.order, r) + s))
    }

    @Test func `verifies when r or s begins with zeros`() {
        var (isShortR, isShortS) = (false, false)
        var counter = 0
        while !(isShortR && isShortS) && counter < 10_000 {
            let signed = digest("\(counter)")
            let signature = Self.key.signs(signed, isDeterministic: true)
            if signature[0] == 0 || signature[32] == 0 {
                #expect(verifies(signature, digest: signed))
                isShortR = isShortR || signature[0] == 0
                isShortS = isShortS || signature[32] == 0
            }
            counter += 1
        }
        #expect(isShortR && isShortS)
    }

    @Test func `verifies for digests of only zeros and only ones`() {
        for byte: UInt8 in [0, 0xff] {
            let digest = [UInt8](repeating: byte, count: 32)
            #expect(verifies(Self.key.signs(digest), digest: digest))
        }
    }

    /// The x of the nonce's point is the prime minus 3, which is above the order: r is x minus the order. This r verifies, and x
    /// itself, which has the same remainder, does not. The public key was computed backwards from such a point.
    @Test func `takes the remainder of a large x and not that x`() throws {
        let point = bytes(
            "04031b94b2254738c21102034289de40de76d5b2af9aec166405ffdaa3c6a230ce"
                + "4730d1e66c4f49334bc68ab670becc70aad8b8e92e8c13c0f9770e5d670b8bce")
        let key = try #require(P256PublicKey.read(point))
        let r = bytes("000000000000000000000000000000004319055358e8617b0c46353d039cdaab")
        let s = bytes("ea305fe1ea354fbb93056ed6e4e240fe67428999e509b3c8bb181c206369df39")
        let x = bytes("ffffffff00000001000000000000000000000000fffffffffffffffffffffffc")
        let (small, large) = (r + s, x + s)
        #expect(key.verifies(small, digest: Self.sample))
        #expect(!key.verifies(large, digest: Self.sample))
    }

    /// With the private key 1 the public point is the generator: both terms of the sum are multiples of it.
    @Test func `is right where the two points of the sum are equal or opposite`() throws {
        let key = try #require(SigningKey(.p256, number: P256.one).p256PublicKey)
        // The digest equals r, so both terms are the same point.
        let r = bytes("7640617e32ab1669d633b7c1edb758002f6966a33e0bd13f6556b739204d2129")
        let s = bytes("b41c486fa031c606c3221205d8c24aba87d4d684c458bc85bc8fa90589d6f052")
        let equal = r + s
        #expect(key.verifies(equal, digest: r))
        // r is 1 and the digest -1: the sum is the point at infinity, which has no x.
        let digest = P256.subtract(P256.order, P256.one)
        for s in [P256.one, r, digest] {
            let opposite = P256.one + s
            #expect(!key.verifies(opposite, digest: digest))
        }
    }

    /// Under load the threads meet inside OpenSSL; a shared temporary value would give a wrong answer.
    @Test func `is judged by several threads with one key`() async {
        var changed = Self.signature
        changed[40] ^= 1
        let (signature, forged, sample) = (Self.signature, changed, Self.sample)
        let wrong = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<8 {
                group.addTask { [publicKey] in
                    (0..<200).count { turn in
                        let isGenuine = turn.isMultiple(of: 2)
                        let bytes = isGenuine ? signature : forged
                        return publicKey.verifies(bytes, digest: sample) != isGenuine
                    }
                }
            }
            return await group.reduce(0, +)
        }
        #expect(wrong == 0)
    }
}

@Suite struct `A public key on P-256` {
    private static let point = SigningKey(.p256, seed: [7]).publicPoint

    @Test func `is an uncompressed point`() {
        let point = Self.point
        #expect(P256PublicKey.read(point) != nil)
        let isOdd = point[64] & 1
        // Compressed, hybrid, at infinity, without its first byte, too long.
        let bad: [[UInt8]] = [
            [2 + isOdd] + point[1...32], [6 + isOdd] + point[1...], [0], [], Array(point[1...]), point + [0],
            Array(point[..<64]),
        ]
        for point in bad {
            #expect(P256PublicKey.read(point) == nil)
        }
    }

    @Test func `is on the curve`() {
        for index in [1, 32, 33, 64] {
            var beside = Self.point
            beside[index] ^= 1
            #expect(P256PublicKey.read(beside) == nil)
        }
        let zeros = [4] + [UInt8](repeating: 0, count: 64)
        #expect(P256PublicKey.read(zeros) == nil)
    }

    /// With two encodings of one point there would be two certificates for one key.
    @Test func `has coordinates below the prime`() {
        let y = "459243b9aa581806fe913bce99817ade11ca503c64d9a3c533415c083248fbcc"
        let five = bytes("040000000000000000000000000000000000000000000000000000000000000005" + y)
        let fiveAndPrime = bytes("04ffffffff00000001000000000000000000000001000000000000000000000004" + y)
        #expect(P256PublicKey.read(five) != nil)
        #expect(P256PublicKey.read(fiveAndPrime) == nil)
    }
}
