import AppStore
import HTTP
import KafkaTestKit
import Platform
import Synchronization
import TestTraits
import Testing

@testable import Crypto
@testable import Ingest
@testable import Revocation

extension Chain {
    /// A TEST notification in the form of JWS, signed at `date`.
    func notification(at date: Int64 = now, spoilsSignature: Bool = false, header: [UInt8]? = nil) -> [UInt8] {
        let payload = """
            {"notificationType":"TEST","notificationUUID":"9c7f1d1e-0000-4000-8000-000000000001","version":"2.0",\
            "signedDate":\(date),"data":{"bundleId":"com.example.app","environment":"Sandbox"}}
            """
        let signed = encoded(header ?? self.header) + [UInt8(ascii: ".")] + encoded(Array(payload.utf8))
        var signature = leaf.key.sign(digest: SHA256.digest(signed.span).span)
        if spoilsSignature { signature[10] ^= 1 }
        return signed + [UInt8(ascii: ".")] + encoded(signature)
    }

    private var header: [UInt8] {
        let texts = [leaf, intermediate, root].map { holder in
            let der = holder.certificate.der
            return "\"\(String(decoding: Base64.encodeStandard(der.span), as: UTF8.self))\""
        }
        return Array(#"{"alg":"ES256","x5c":[\#(texts.joined(separator: ","))]}"#.utf8)
    }

    private func encoded(_ bytes: [UInt8]) -> [UInt8] { Base64.encodeURL(bytes.span) }

    var policy: VerificationPolicy { VerificationPolicy(anchors: TrustAnchors([root.certificate]), apps: nil) }
}

/// What ingest does with each state of revocation.
@Suite(.ownThreads) struct `A verdict of ingest` {
    enum Mode { case soft, hard }

    private func pool(_ chain: Chain, _ mode: Mode, _ run: WatchRun) -> VerifierPool {
        VerifierPool(chain.policy, watch: run.watch, isRevocationRequired: mode == .hard)
    }

    private func judge(
        _ jws: [UInt8], _ chain: Chain, _ mode: Mode, _ run: WatchRun
    ) async throws -> Verdict {
        try await judge(jws, pool(chain, mode, run))
    }

    /// - Parameter limit: how long the request may wait.
    private func judge(
        _ jws: [UInt8], _ pool: VerifierPool, limit: Duration = patience
    ) async throws -> Verdict {
        let verdict = Mutex<Verdict?>(nil)
        let body = Array("{\"signedPayload\":\"\(String(decoding: jws, as: UTF8.self))\"}".utf8)
        pool.judge(body, isFromApple: false, now: Chain.now, by: Deadline(after: limit), unless: { _ in false }) {
            found in
            verdict.withLock { $0 = found }
        }
        try await waitUntil("a verdict") { verdict.withLock { $0 != nil } }
        return verdict.withLock { $0! }
    }

    private func reason(_ verdict: Verdict) -> RejectionReason? {
        if case .rejected(let rejection, _) = verdict { rejection.reason } else { nil }
    }

    @Test(arguments: [true, false]) func `refuses what a revoked chain has signed`(_ isLeaf: Bool) async throws {
        let chain = try Chain()
        let responder = try TestResponder(
            chain, leaf: .says(isLeaf ? .revoked : .good), intermediate: .says(isLeaf ? .good : .revoked))
        defer { responder.stop() }
        let run = try WatchRun(responder)
        defer { run.stop() }
        #expect(reason(try await judge(chain.notification(), chain, .hard, run)) == .revoked)
        // It is known by now, so that soft refuses it, too; this comes before the signature is checked.
        #expect(reason(try await judge(chain.notification(), chain, .soft, run)) == .revoked)
        #expect(reason(try await judge(chain.notification(spoilsSignature: true), chain, .soft, run)) == .revoked)
    }

    @Test func `is given under hard when the answer has come`() async throws {
        let chain = try Chain()
        let responder = try TestResponder(chain)
        defer { responder.stop() }
        let run = try WatchRun(responder)
        defer { run.stop() }
        guard case .verified = try await judge(chain.notification(), chain, .hard, run) else {
            Issue.record("it was not accepted")
            return
        }
        #expect(reason(try await judge(chain.notification(spoilsSignature: true), chain, .hard, run)) == .badSignature)
    }

    @Test func `is not given under hard while nobody answers, whatever the signature`() async throws {
        let chain = try Chain()
        let run = try WatchRun(nil)
        defer { run.stop() }
        let pool = pool(chain, .hard, run)
        for isSpoilt in [false, true] {
            let jws = chain.notification(spoilsSignature: isSpoilt)
            guard case .none = try await judge(jws, pool, limit: .milliseconds(200)) else {
                Issue.record("there was a verdict")
                return
            }
        }
        // What is refused before the revocation check needs no answer.
        let other = Array(#"{"alg":"none"}"#.utf8)
        #expect(reason(try await judge(chain.notification(header: other), pool)) == .badAlgorithm)
    }

    @Test func `is given at once under soft while nobody answers`() async throws {
        let chain = try Chain()
        let run = try WatchRun(nil)
        defer { run.stop() }
        guard case .verified = try await judge(chain.notification(), chain, .soft, run) else {
            Issue.record("it was not accepted")
            return
        }
        let spoilt = chain.notification(spoilsSignature: true)
        #expect(reason(try await judge(spoilt, chain, .soft, run)) == .badSignature)
        try await waitUntil("a question beside") { run.failures("http_not_connected") >= 2 }
    }

    @Test(arguments: ["http://127.0.0.1:9/", "http://ocsp.apple.com/ocsp03-leaf"])
    func `on a forged chain is given without asking anybody`(_ address: String) async throws {
        let genuine = try Chain()
        let forged = try Chain(seed: "forged", leafAddress: address, intermediateAddress: address)
        let run = try WatchRun(nil)
        defer { run.stop() }
        // Under another root, and in the name of the genuine one.
        let mixed = try Chain(
            seed: "forged", leafAddress: address, intermediateAddress: address, claimedRoot: genuine.root)
        for chain in [forged, mixed] {
            #expect(reason(try await judge(chain.notification(), genuine, .hard, run)) == .untrustedChain)
        }
        #expect(run.addressesAsked == [])
        #expect(run.watch.chainsKnown == 0)
    }
}

/// From end to end: the built program, the proxy of its environment, and a responder behind it.
@Suite struct `perennial verify with verify.ocsp` {
    private let chain: Chain
    private let now = WallClock.milliseconds()

    init() throws { chain = try Chain() }

    private func verify(
        _ jws: [UInt8], _ mode: String, proxy: String
    ) async throws -> (code: Int32, output: String, message: String) {
        let folder = try ScratchDirectory("ocsp-verify")
        let der = chain.root.certificate.der
        let pem = "-----BEGIN CERTIFICATE-----\n\(String(decoding: Base64.encodeStandard(der.span), as: UTF8.self))\n"
        let root = try folder.write(pem + "-----END CERTIFICATE-----\n", to: "root.pem")
        let result = try await run(
            try productPath("perennial"), ["verify", "--verify.ocsp", mode, "--verify.roots", root],
            environment: .only(["http_proxy": proxy]), workingDirectory: "/",
            stdin: String(decoding: jws, as: UTF8.self))
        return (result.code, result.standardOutput, result.standardError)
    }

    @Test func `prints what verifies when nothing is revoked`() async throws {
        let responder = try TestResponder(chain, now: now)
        defer { responder.stop() }
        let result = try await verify(chain.notification(at: now), "hard", proxy: responder.origin)
        #expect(result.code == 0, "\(result.message)")
        #expect(result.output.contains("TEST"))
        #expect(responder.requests.map { $0.headers.all("Host") } == [["ocsp.apple.com"], ["ocsp.apple.com"]])
    }

    @Test(arguments: ["soft", "hard"]) func `refuses a revoked chain`(_ mode: String) async throws {
        let responder = try TestResponder(chain, leaf: .says(.revoked), now: now)
        defer { responder.stop() }
        let result = try await verify(chain.notification(at: now), mode, proxy: responder.origin)
        #expect(result.code == 1, "\(result.message)")
        #expect(result.output == "revoked\n")
    }

    @Test func `gives no verdict under hard when nobody answers, whatever the signature`() async throws {
        async let whole = verify(chain.notification(at: now), "hard", proxy: "http://127.0.0.1:1")
        async let spoilt = verify(
            chain.notification(at: now, spoilsSignature: true), "hard", proxy: "http://127.0.0.1:1")
        for result in try await [whole, spoilt] {
            #expect(result.code == 3 && result.output == "", "\(result.message)")
            #expect(result.message.contains("no verdict") && result.message.contains("http_not_connected"))
        }
    }

    @Test func `says under soft that nobody answers, and takes it`() async throws {
        let result = try await verify(chain.notification(at: now), "soft", proxy: "http://127.0.0.1:1")
        #expect(result.code == 0)
        #expect(result.message.contains("it is not known whether"), "\(result.message)")
    }

    @Test func `asks nobody when it is off`() async throws {
        let responder = try TestResponder(chain, leaf: .says(.revoked), now: now)
        defer { responder.stop() }
        let result = try await verify(chain.notification(at: now), "off", proxy: responder.origin)
        #expect(result.code == 0)
        #expect(responder.requests.isEmpty)
    }
}
