import AppStore
import Crypto
import Foundation
import KafkaTestKit
import Platform
import Testing

/// A chain with Apple's markers, and payloads that its leaf signs.
private struct Chain {
    static let now = WallClock.milliseconds()
    static let validity = now - 1000 * 86_400...now + 86_400_000

    let root, intermediate, leaf: Certificate
    let key = SigningKey(.p256)

    init() throws {
        let rootKey = SigningKey(.p384)
        let intermediateKey = SigningKey(.p384)
        let authority: [CertificateRequest.Extension] = [
            .basicConstraints(isAuthority: true, pathLength: nil), .keyUsage([5, 6]),
        ]
        func request(_ name: String, _ extensions: [CertificateRequest.Extension]) -> CertificateRequest {
            CertificateRequest(commonName: name, serial: [7], validity: Self.validity, extensions: extensions)
        }
        func marker(_ identifier: String) -> CertificateRequest.Extension {
            .other(identifier: identifier, isCritical: false, value: [0x05, 0x00])
        }
        root = try Certificate.make(request("Root", authority), key: rootKey)
        intermediate = try Certificate.make(
            request("Intermediate", authority + [marker("1.2.840.113635.100.6.2.1")]), key: intermediateKey,
            issuer: (root, rootKey))
        leaf = try Certificate.make(
            request("Leaf", [.keyUsage([0]), marker("1.2.840.113635.100.6.11.1")]), key: key,
            issuer: (intermediate, intermediateKey))
    }

    func sign(_ payload: String) -> String {
        let chain = [leaf, intermediate, root].map { "\"\(Data($0.der).base64EncodedString())\"" }
        let header = "{\"alg\":\"ES256\",\"x5c\":[\(chain.joined(separator: ","))]}"
        func text(_ bytes: [UInt8]) -> String { String(decoding: Base64.encodeURL(bytes.span), as: UTF8.self) }
        let signed = text(Array(header.utf8)) + "." + text(Array(payload.utf8))
        return signed + "." + text(key.sign(digest: SHA256.digest(Array(signed.utf8).span).span))
    }
}

private let transaction =
    #"{"transactionId":"2","originalTransactionId":"1","bundleId":"com.example.reader","productId":"p","#
    + #""environment":"Sandbox","new":[1.50]}"#

private let notification = #"""
    {"notificationType":"TEST","notificationUUID":"u","signedDate":\#(Chain.now),"data":{"bundleId":"com.example.reader",
    "environment":"Sandbox"}}
    """#

@Suite struct `perennial verify` {
    private let chain: Chain
    private let directory: ScratchDirectory

    init() throws {
        chain = try Chain()
        directory = try ScratchDirectory("perennial-verify")
        try file("root.der", Data(chain.root.der))
    }

    private func file(_ name: String, _ content: Data) throws {
        try content.write(to: URL(fileURLWithPath: "\(directory.path)/\(name)"))
    }

    /// With the chain's root among the trusted ones. `input` is the content of the file to verify. May run in parallel with
    /// others.
    private func verify(
        _ input: String, _ arguments: [String] = [], roots: String? = "root.der"
    ) async throws -> ProgramResult {
        let name = "input-\(UInt32.random(in: 0 ... .max))"
        try file(name, Data(input.utf8))
        return try await run(
            productPath("perennial"),
            ["verify", name] + (roots.map { ["--verify.roots", $0] } ?? []) + arguments,
            environment: .only([:]), workingDirectory: directory.path)
    }

    @Test func `prints what was signed, from a signed text with or without a line end, and from a body`() async throws {
        let signed = chain.sign(notification)
        for input in [
            signed, signed + "\n", "{\"signedPayload\":\"\(signed)\"}", " {\"signedPayload\":\"\(signed)\"}\n",
        ] {
            let outcome = try await verify(input)
            #expect(outcome.code == 0, "\(outcome.standardError)")
            #expect(outcome.standardOutput == notification + "\n")
            #expect(outcome.standardError.contains("bundleId and appAppleId were not checked"))
        }
    }

    @Test func `reads standard input when no file is named`() async throws {
        try file("input", Data(chain.sign(notification).utf8))
        let outcome = try await run(
            "/bin/sh", ["-c", #"exec "$0" verify --verify.roots root.der < input"#, productPath("perennial")],
            environment: .only([:]), workingDirectory: directory.path)
        #expect(outcome.code == 0)
        #expect(outcome.standardOutput == notification + "\n")
    }

    @Test func `prints the code of a refusal and nothing else, and why on standard error`() async throws {
        let signed = chain.sign(notification)
        let refused: [(String, String)] = [
            ("", "malformed"), ("a.b.c", "malformed"), (signed + "\r\n", "malformed"), (signed + "\n\n", "malformed"),
            ("{\"signedPayload\":1}", "malformed"), (signed.dropLast(3) + "AAA", "bad_signature"),
            (chain.sign(transaction), "inconsistent"), (String(repeating: "a", count: 524_290), "too_large"),
            (String(repeating: "a", count: 800_000), "too_large"),
        ]
        for (input, code) in refused {
            let outcome = try await verify(input)
            #expect(outcome.code == 1)
            #expect(outcome.standardOutput == code + "\n", "\(input.prefix(20).debugDescription)")
            #expect(outcome.standardError.hasPrefix("perennial verify: "))
        }
        let untrusted = try await verify(signed, roots: nil)
        #expect(untrusted.standardOutput == "untrusted_chain\n")
    }

    @Test func `takes what ingest takes at the greatest value of ingest.max.body.bytes`() async throws {
        let empty = chain.sign(notification)
        // base64url: four characters for three bytes.
        let blanks = String(repeating: " ", count: (524_288 - empty.utf8.count) / 4 * 3)
        let signed = chain.sign(notification + blanks)
        #expect((524_280...524_288).contains(signed.utf8.count))
        let outcome = try await verify(signed)
        #expect(outcome.code == 0, "\(outcome.standardError)")
    }

    @Test func `expects the kind it is told`() async throws {
        let taken = try await verify(chain.sign(transaction), ["--kind", "transaction"])
        #expect(taken.code == 0)
        #expect(taken.standardOutput == transaction + "\n")
        let refused = try await verify(chain.sign(notification), ["--kind", "transaction"])
        #expect(refused.standardOutput == "inconsistent\n")
        #expect(try await verify(chain.sign(notification), ["--kind", "receipt"]).code == 2)
    }

    @Test func `holds the payload to the apps, where there are any`() async throws {
        try file("ours.json", Data(#"[{"bundleId":"com.example.reader"}]"#.utf8))
        try file("others.json", Data(#"[{"bundleId":"com.example.other"}]"#.utf8))
        let signed = chain.sign(notification)
        let ours = try await verify(signed, ["--apps", "ours.json"])
        #expect(ours.code == 0)
        #expect(ours.standardError.isEmpty)
        let others = try await verify(signed, ["--apps", "others.json"])
        #expect(others.code == 1)
        #expect(others.standardOutput == "wrong_app\n")
        #expect(
            others.standardError.contains(
                "bundleId is com.example.reader, and the setting apps has com.example.other"), "\(others.words)")
    }

    @Test func `exits 2 for a file that cannot be read`() async throws {
        let outcome = try await run(
            productPath("perennial"), ["verify", "nowhere"], environment: .only([:]), workingDirectory: directory.path)
        #expect(outcome.code == 2)
        #expect(outcome.standardOutput.isEmpty)
        #expect(outcome.standardError.contains("cannot read nowhere"))
    }

    @Test func `exits 2 for a root that is no authority, none at all, or no certificate`() async throws {
        try file("leaf.der", Data(chain.leaf.der))
        try file("intermediate.der", Data(chain.intermediate.der))
        try file("text.pem", Data("no certificate".utf8))
        let signed = chain.sign(notification)
        let leaf = try await verify(signed, roots: "root.der,leaf.der")
        #expect(leaf.code == 2)
        #expect(leaf.standardOutput.isEmpty)
        #expect(leaf.standardError.contains("leaf.der is not a CA certificate"))
        let intermediate = try await verify(signed, roots: "root.der,intermediate.der")
        #expect(intermediate.code == 2)
        #expect(intermediate.standardOutput.isEmpty)
        #expect(intermediate.standardError.contains("intermediate.der is not self-signed"))
        let text = try await verify(signed, roots: "text.pem")
        #expect(text.code == 2)
        #expect(text.standardError.contains("text.pem is not a certificate"))
    }

    @Test func `gives no verdict when Apple has to be asked and nobody can be`() async throws {
        let signed = chain.sign(notification)
        async let whole = verify(signed, ["--verify.ocsp", "hard"])
        async let empty = verify(chain.sign("{}"), ["--verify.ocsp", "hard"])
        async let spoilt = verify(
            String(signed.dropLast(86)) + String(repeating: "A", count: 86), ["--verify.ocsp", "hard"])
        async let soft = verify(signed, ["--verify.ocsp", "soft"])
        // In parallel: each takes ten seconds.
        for outcome in try await [whole, empty, spoilt] {
            #expect(outcome.code == 3)
            #expect(outcome.standardOutput.isEmpty)
            #expect(outcome.standardError.contains("no verdict"))
        }
        #expect(try await verify("a.b.c", ["--verify.ocsp", "hard"]).standardOutput == "malformed\n")
        #expect(try await soft.code == 0)
    }
}
