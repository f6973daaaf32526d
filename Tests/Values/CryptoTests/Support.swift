import Foundation

@testable import Crypto

/// Bytes from hexadecimal text; blanks and line breaks in it are skipped.
func bytes(_ hexadecimal: String) -> [UInt8] {
    var rest = hexadecimal.filter { !$0.isWhitespace }[...]
    precondition(rest.count.isMultiple(of: 2))
    var result: [UInt8] = []
    while !rest.isEmpty {
        guard let byte = UInt8(rest.prefix(2), radix: 16) else {
            preconditionFailure("no hexadecimal: \(rest.prefix(2))")
        }
        result.append(byte)
        rest = rest.dropFirst(2)
    }
    return result
}

func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

func digest(_ text: String) -> [UInt8] { digest(Array(text.utf8)) }
func digest(_ bytes: [UInt8]) -> [UInt8] { SHA256.digest(bytes.span) }

func fixture(_ path: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: Bundle.module.resourceURL!.appendingPathComponent("Fixtures/\(path)")))
}

/// Milliseconds of a moment written as 2025-11-01T00:00:00Z.
func milliseconds(_ moment: String) throws -> Int64 {
    Int64(try Date(moment, strategy: .iso8601).timeIntervalSince1970) * 1000
}

/// The numbers of P-256.
enum P256 {
    static let order = bytes("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551")
    static let prime = bytes("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff")
    static let one = [UInt8](repeating: 0, count: 31) + [1]

    /// For numbers of equal length, big endian, with `a` not below `b`.
    static func subtract(_ a: [UInt8], _ b: [UInt8]) -> [UInt8] {
        var borrow = 0
        var result = a
        for index in a.indices.reversed() {
            let difference = Int(a[index]) - Int(b[index]) - borrow
            result[index] = UInt8(truncatingIfNeeded: difference)
            borrow = difference < 0 ? 1 : 0
        }
        return result
    }
}

/// A chain like Apple's, made here; a test can replace each part.
struct Chain {
    static let leafMarker = "1.2.840.113635.100.6.11.1"
    static let intermediateMarker = "1.2.840.113635.100.6.2.1"
    static let validity: ClosedRange<Int64> = 1_700_000_000_000...1_900_000_000_000

    /// One key for each name, made once, because P-384 signatures take time.
    enum Keys {
        static let root = SigningKey(.p384, seed: [1])
        static let intermediate = SigningKey(.p384, seed: [2])
        static let leaf = SigningKey(.p256, seed: [3])
        static let stranger = SigningKey(.p384, seed: [4])
    }

    static let authority: [CertificateRequest.Extension] = [
        .basicConstraints(isAuthority: true, pathLength: nil), .keyUsage([5, 6]),
    ]
    static let intermediateAuthority: [CertificateRequest.Extension] = [
        .basicConstraints(isAuthority: true, pathLength: 0), .keyUsage([5, 6]), marker(intermediateMarker),
    ]
    static let signer: [CertificateRequest.Extension] = [
        .basicConstraints(isAuthority: false, pathLength: nil), .keyUsage([0]), marker(leafMarker),
    ]

    static func marker(_ identifier: String, isCritical: Bool = false) -> CertificateRequest.Extension {
        .other(identifier: identifier, isCritical: isCritical, value: [5, 0])
    }

    static func request(
        _ name: String, _ extensions: [CertificateRequest.Extension], serial: UInt8 = 1,
        validity: ClosedRange<Int64> = validity
    ) -> CertificateRequest {
        CertificateRequest(commonName: name, serial: [serial], validity: validity, extensions: extensions)
    }

    var root: Certificate
    var intermediate: Certificate
    var leaf: Certificate

    init(
        root: [CertificateRequest.Extension] = authority,
        intermediate: [CertificateRequest.Extension] = intermediateAuthority,
        leaf: [CertificateRequest.Extension] = signer, leafKey: SigningKey = Keys.leaf,
        validity: ClosedRange<Int64> = validity
    ) throws {
        self.root = try .make(Self.request("Root", root, validity: validity), key: Keys.root)
        self.intermediate = try .make(
            Self.request("Intermediate", intermediate, validity: validity), key: Keys.intermediate,
            issuer: (self.root, Keys.root))
        self.leaf = try .make(
            Self.request("Leaf", leaf, validity: validity), key: leafKey,
            issuer: (self.intermediate, Keys.intermediate))
    }
}

// Functions that return arrays, because a span cannot be passed to the macro that evaluates an expectation.

extension Base64 {
    static func encode(_ bytes: [UInt8], _ alphabet: Alphabet) -> [UInt8] {
        alphabet == .url ? encodeURL(bytes.span) : encodeStandard(bytes.span)
    }

    static func read(_ text: [UInt8], _ alphabet: Alphabet, withVectors: Bool = true) -> [UInt8]? {
        decode(text.span, alphabet, withVectors: withVectors)
    }
}

extension P256PublicKey {
    static func read(_ point: [UInt8]) -> P256PublicKey? { P256PublicKey(point: point.span) }

    func verifies(_ signature: [UInt8], digest: [UInt8]) -> Bool { verify(signature.span, digest: digest.span) }
}

extension SigningKey {
    func signs(_ digest: [UInt8], isDeterministic: Bool = false) -> [UInt8] {
        sign(digest: digest.span, isDeterministic: isDeterministic)
    }
}

extension SHA256.Prefix {
    func digest(then bytes: [UInt8]) -> [UInt8] { digest(followedBy: bytes.span) }
}

extension StrictDER {
    static func accepts(_ bytes: [UInt8]) -> Bool { isWellFormed(bytes.span) }
}
