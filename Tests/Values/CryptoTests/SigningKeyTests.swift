import Testing

@testable import Crypto

@Suite struct `A signing key` {
    private static let sample = digest("sample")

    @Test(arguments: [SigningKey.Curve.p256, .p384])
    func `is the same again for a seed, and another for another`(_ curve: SigningKey.Curve) {
        let long = [UInt8](repeating: 1, count: 1000)
        for seed in [[], [1], [1, 2], long] {
            #expect(SigningKey(curve, seed: seed).publicPoint == SigningKey(curve, seed: seed).publicPoint)
        }
        let points = [[], [0], [0, 0], [1], long].map { SigningKey(curve, seed: $0).publicPoint }
        #expect(Set(points).count == points.count)
    }

    /// Chains that others keep as fixtures must not change.
    @Test func `keeps what a seed means`() {
        #expect(
            hexadecimal(SigningKey(.p256, seed: [1]).publicPoint)
                == "040a1fc99d4bf085acef0d8482e5fcb6ecdc0af458c3e1905210ccf1dfd41b389d"
                + "897e7569ca8c53ec1c6051d8494c8968970de9ca756888d54e05f9146efa952d")
        #expect(
            hexadecimal(SigningKey(.p384, seed: [1]).publicPoint)
                == "0409d2fd43347a60d7824e7356652a44554baa7d4152f81116eb9cdde5576cab6e57fb3d55af0222aa9a5948b8c65a726a"
                + "dc7319e30589a8b520c0f6283d93a1580dcf5c39c7ca30b4b990aaa5540984ca336fcf5fd55d1fd563f718eff2c0a5e2")
    }

    @Test(arguments: [SigningKey.Curve.p256, .p384])
    func `is random without a seed`(_ curve: SigningKey.Curve) {
        #expect(SigningKey(curve).publicPoint != SigningKey(curve).publicPoint)
    }

    @Test func `comes from numbers above 0 and below the order`() throws {
        let zero = [UInt8](repeating: 0, count: 32)
        for number in [zero, P256.order, [UInt8](repeating: 0xff, count: 32), [], [1]] {
            #expect(throws: CertificateFault.self) { try SigningKey(.p256, number: number) }
        }
        _ = try SigningKey(.p256, number: P256.subtract(P256.order, P256.one))
    }

    @Test(arguments: [SigningKey.Curve.p256, .p384])
    func `comes back from its PEM`(_ curve: SigningKey.Curve) throws {
        let key = SigningKey(curve, seed: [5])
        #expect(text(key.pem).hasPrefix("-----BEGIN PRIVATE KEY-----\n"))
        let read = try SigningKey(pem: key.pem)
        #expect(read.curve == curve)
        #expect(read.publicPoint == key.publicPoint)
        #expect(
            read.signs(Self.sample, isDeterministic: true)
                == key.signs(Self.sample, isDeterministic: true))
    }

    @Test func `comes from SEC 1 with the curve's name before it`() throws {
        let key = try SigningKey(pem: try fixture("keys/sec1-with-parameters.pem"))
        #expect(key.curve == .p256)
        #expect(try SigningKey(pem: key.pem).publicPoint == key.publicPoint)
    }

    @Test(arguments: [
        ("keys/encrypted.pem", "encrypted"), ("keys/rsa.pem", "P-256"), ("keys/secp256k1.pem", "P-256"),
        ("keys-that-are-not-p256.pem", "no private key"), ("README", "no private key"),
    ])
    func `says what is wrong with a file`(_ path: String, _ words: String) throws {
        let file = try fixture(path)
        let fault = #expect(throws: CertificateFault.self) { try SigningKey(pem: file) }
        #expect(fault?.description.contains(words) == true)
    }

    @Test func `says so of nothing, and of half a file`() throws {
        let pem = SigningKey(.p256, seed: [5]).pem
        for bad in [[], Array(pem[..<(pem.count / 2)]), pem.map { $0 == UInt8(ascii: "M") ? UInt8(ascii: "!") : $0 }] {
            #expect(throws: CertificateFault.self) { try SigningKey(pem: bad) }
        }
    }

    @Test func `signs with a new nonce each time unless asked for the same`() throws {
        let key = SigningKey(.p256, seed: [5])
        let (first, second) = (key.signs(Self.sample), key.signs(Self.sample))
        #expect(first.prefix(32) != second.prefix(32))
        let publicKey = try #require(key.p256PublicKey)
        #expect(publicKey.verifies(first, digest: Self.sample))
        #expect(publicKey.verifies(second, digest: Self.sample))
    }

    @Test func `on P-384 has signatures of 96 bytes and no key for JWS`() {
        let key = SigningKey(.p384, seed: [5])
        #expect(key.signs(Self.sample).count == 96)
        #expect(key.p256PublicKey == nil)
    }

    struct Vector: Sendable, CustomTestStringConvertible {
        let curve: SigningKey.Curve
        let message: String
        let isSHA384: Bool
        let r: String
        let s: String
        var testDescription: String { "\(curve), \(isSHA384 ? "SHA-384" : "SHA-256"), \(message)" }
    }

    /// RFC 6979 A.2.5 and A.2.6.
    static let vectors = [
        Vector(
            curve: .p256, message: "sample", isSHA384: false,
            r: "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716",
            s: "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8"),
        Vector(
            curve: .p256, message: "test", isSHA384: false,
            r: "f1abb023518351cd71d881567b1ea663ed3efcf6c5132b354f28d3b0b7d38367",
            s: "019f4113742a2b14bd25926b49c649155f267e60d3814b4c0cc84250e46f0083"),
        Vector(
            curve: .p256, message: "sample", isSHA384: true,
            r: "0eafea039b20e9b42309fb1d89e213057cbf973dc0cfc8f129edddc800ef7719",
            s: "4861f0491e6998b9455193e34e7b0d284ddd7149a74b95b9261f13abde940954"),
        Vector(
            curve: .p256, message: "test", isSHA384: true,
            r: "83910e8b48bb0c74244ebdf7f07a1c5413d61472bd941ef3920e623fbccebeb6",
            s: "8ddbec54cf8cd5874883841d712142a56a8d0f218f5003cb0296b6b509619f2c"),
        Vector(
            curve: .p384, message: "sample", isSHA384: false,
            r: "21b13d1e013c7fa1392d03c5f99af8b30c570c6f98d4ea8e354b63a21d3daa33bde1e888e63355d92fa2b3c36d8fb2cd",
            s: "f3aa443fb107745bf4bd77cb3891674632068a10ca67e3d45db2266fa7d1feebefdc63eccd1ac42ec0cb8668a4fa0ab0"),
        Vector(
            curve: .p384, message: "test", isSHA384: false,
            r: "6d6defac9ab64dabafe36c6bf510352a4cc27001263638e5b16d9bb51d451559f918eedaf2293be5b475cc8f0188636b",
            s: "2d46f3becbcc523d5f1a1256bf0c9b024d879ba9e838144c8ba6baeb4b53b47d51ab373f9845c0514eefb14024787265"),
        Vector(
            curve: .p384, message: "sample", isSHA384: true,
            r: "94edbb92a5ecb8aad4736e56c691916b3f88140666ce9fa73d64c4ea95ad133c81a648152e44acf96e36dd1e80fabe46",
            s: "99ef4aeb15f178cea1fe40db2603138f130e740a19624526203b6351d0a3a94fa329c145786e679e7b82c71a38628ac8"),
        Vector(
            curve: .p384, message: "test", isSHA384: true,
            r: "8203b63d3c853e8d77227fb377bcf7b7b772e97892a80f36ab775d509d7a5feb0542a7f0812998da8f1dd3ca3cf023db",
            s: "ddd0760448d42d8a43af45af836fce4de8be06b485e9b61b827c2f13173923e06a739f040649a667bf3b828246baa5a5"),
    ]

    @Test(arguments: vectors)
    func `signs as RFC 6979 shows`(_ vector: Vector) throws {
        let number =
            vector.curve == .p256
            ? "c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721"
            : "6b9d3dad2e1b8c1c05b19875b6659f4de23c3b667bf297ba9aa47740787137d8"
                + "96d5724e4c70a825f872c9ea60d2edf5"
        let key = try SigningKey(vector.curve, number: bytes(number))
        let message = Array(vector.message.utf8)
        let digest = vector.isSHA384 ? SHA384.digest(message.span) : SHA256.digest(message.span)
        #expect(hexadecimal(key.signs(digest, isDeterministic: true)) == vector.r + vector.s)
    }
}
