import Foundation
import KafkaTestKit
import Platform
import Testing

@testable import Crypto

/// When bytes are an answer. The tests write the responses themselves; at the end OpenSSL's own tool writes one.
@Suite struct `An answer about revocation` {
    private static let hour = Chain.hour
    private let chain: Chain
    private let question: OCSPQuestion

    init() throws {
        chain = try Chain()
        question = OCSPQuestion(about: chain.leaf.certificate, issuedBy: chain.intermediate.certificate)
    }

    private func judge(_ response: [UInt8], now: Int64 = Chain.now) -> Result<OCSPAnswer, OCSPFault> {
        do throws(OCSPFault) {
            return .success(try question.answer(response, now: now))
        } catch {
            return .failure(error)
        }
    }

    /// A good answer with a change.
    private func judge(now: Int64 = Chain.now, _ change: (inout Answer) -> Void) -> Result<OCSPAnswer, OCSPFault> {
        var answer = Answer(chain.leaf.certificate, by: chain.intermediate)
        change(&answer)
        return judge(answer.der, now: now)
    }

    private func judge(signedBy signer: Chain.Holder, attached: Bool = true) -> Result<OCSPAnswer, OCSPFault> {
        judge {
            $0.signer = signer
            if attached { $0.attached = [signer.certificate] }
        }
    }

    private static let good = Result<OCSPAnswer, OCSPFault>.success(
        OCSPAnswer(status: .good, validUntil: (Chain.now + 12 * hour) / 1000 * 1000))

    @Test(arguments: [(Answer.Status.good, RevocationStatus.good), (.revoked, .revoked), (.unknown, .unknown)])
    func `says what the issuer has signed`(_ said: Answer.Status, _ understood: RevocationStatus) throws {
        #expect(try judge { $0.status = said }.get().status == understood)
    }

    @Test func `may name the certificate by SHA-1`() {
        #expect(judge { $0.namesBySHA1 = true } == Self.good)
    }

    @Test func `holds until its nextUpdate and is none when it is stale`() {
        let end = Chain.now + 12 * Self.hour
        #expect(judge { _ in } == Self.good)
        #expect(judge(now: end - 1) { _ in } == Self.good)
        #expect(judge(now: end) { _ in } == .failure(.notOfNow))
        #expect(judge(now: end) { $0.status = .revoked } == .failure(.notOfNow))
    }

    @Test func `of the future is none, but for five minutes between clocks`() {
        #expect(judge { $0.thisUpdate = Chain.now + 300_000 } == Self.good)
        #expect(judge { $0.thisUpdate = Chain.now + 301_000 } == .failure(.notOfNow))
    }

    @Test func `without an end is none`() {
        #expect(judge { $0.nextUpdate = nil } == .failure(.notOfNow))
    }

    @Test func `signed by a stranger is none`() throws {
        let stranger = try Chain(seed: "stranger").intermediate
        #expect(judge(signedBy: stranger, attached: false) == .failure(.untrustedResponder))
        #expect(judge(signedBy: stranger) == .failure(.untrustedResponder))
        // In the issuer's name, but with another key.
        let liar = Chain.Holder(certificate: chain.intermediate.certificate, key: stranger.key)
        #expect(judge(signedBy: liar, attached: false) == .failure(.badSignature))
    }

    @Test func `signed by the leaf itself or by the root is none`() {
        #expect(judge(signedBy: chain.leaf) == .failure(.untrustedResponder))
        #expect(judge(signedBy: chain.root) == .failure(.untrustedResponder))
    }

    @Test func `may come from a responder that the issuer has named`() throws {
        let responder = try Chain.Holder.responder(of: chain.intermediate)
        #expect(judge(signedBy: responder) == Self.good)
        // Its certificate must be in the response.
        #expect(judge(signedBy: responder, attached: false) == .failure(.untrustedResponder))
    }

    @Test(arguments: [nil, .signingCode, .any] as [Chain.Holder.Purpose?])
    func `signed by a certificate of the issuer that is for something else is none`(
        _ purpose: Chain.Holder.Purpose?
    ) throws {
        let other = try Chain.Holder.responder(of: chain.intermediate, purpose: purpose)
        #expect(judge(signedBy: other) == .failure(.untrustedResponder))
    }

    @Test func `signed by a responder whose certificate forbids it is none`() throws {
        // Without digitalSignature; and with an unknown critical extension.
        let encipherer = try Chain.Holder.responder(of: chain.intermediate, keyUsage: [2])
        #expect(judge(signedBy: encipherer) == .failure(.untrustedResponder))
        let strange = try Chain.Holder.responder(
            of: chain.intermediate,
            and: [.other(identifier: "1.3.6.1.4.1.99999.1", isCritical: true, value: [5, 0])])
        #expect(judge(signedBy: strange) == .failure(.untrustedResponder))
    }

    @Test func `signed by SHA-1 is none`() {
        #expect(judge { $0.isSignedBySHA1 = true } == .failure(.badSignature))
    }

    @Test func `signed by a responder that somebody else has named is none`() throws {
        // One certificate issued by the root, and one that claims to be issued by the issuer.
        let ofTheRoot = try Chain.Holder.responder(of: chain.root)
        #expect(judge(signedBy: ofTheRoot) == .failure(.untrustedResponder))
        let forger = Chain.Holder(certificate: chain.intermediate.certificate, key: try Chain(seed: "forger").root.key)
        #expect(judge(signedBy: try .responder(of: forger)) == .failure(.untrustedResponder))
    }

    @Test func `holds as long as the certificate of its responder`() throws {
        // Certificates count whole seconds, and the last one is still valid.
        let now = Chain.now / 1000 * 1000
        let end = now + Self.hour + 1000
        let responder = try Chain.Holder.responder(
            of: chain.intermediate, validity: now - Self.hour...now + Self.hour)
        let change = { (answer: inout Answer) in
            answer.signer = responder
            answer.attached = [responder.certificate]
            answer.thisUpdate = now - 2 * Self.hour
        }
        #expect(judge(change) == .success(OCSPAnswer(status: .good, validUntil: end)))
        #expect(judge(now: end, change) == .failure(.notOfNow))
        #expect(judge(now: now - Self.hour - 1, change) == .failure(.notOfNow))
    }

    @Test func `with another serial is none`() {
        #expect(judge { $0.serial = [1, 2, 3] } == .failure(.ofAnother))
    }

    @Test func `about another certificate is none`() {
        #expect(judge(Answer(chain.intermediate.certificate, by: chain.root).der) == .failure(.untrustedResponder))
        // The same serial under another issuer, signed by ours.
        #expect(judge { $0.issuer = chain.root } == .failure(.ofAnother))
    }

    @Test func `that speaks twice is the worse of the two for the shorter time`() {
        let end = Chain.now / 1000 * 1000 + Self.hour
        let expected = Result<OCSPAnswer, OCSPFault>.success(OCSPAnswer(status: .revoked, validUntil: end))
        #expect(judge { $0.more = [(.revoked, end)] } == expected)
        #expect(
            judge {
                $0.status = .revoked
                $0.nextUpdate = end
                $0.more = [(.good, end + Self.hour)]
            } == expected)
    }

    @Test func `with a critical extension is none`() {
        #expect(judge { $0.hasCriticalExtension = true } == .failure(.unreadable))
    }

    @Test(arguments: [1, 2, 3, 5, 6] as [UInt8]) func `that refuses is none`(_ status: UInt8) {
        #expect(judge { $0.responseStatus = status } == .failure(.refused))
    }

    @Test func `cut off or changed anywhere is none`() {
        let whole = Answer(chain.leaf.certificate, by: chain.intermediate).der
        for count in whole.indices { #expect((try? judge(Array(whole[..<count])).get()) == nil) }
        #expect(judge(whole + [0]) == .failure(.unreadable))
        for index in whole.indices {
            var changed = whole
            changed[index] ^= 1
            #expect((try? judge(changed).get()) == nil, "byte \(index) can be changed")
        }
    }

    /// A program other than ours reads the request and writes the response.
    @Test(arguments: [("V\t401114000000Z\t", RevocationStatus.good), ("R\t401114000000Z\t260101000000Z", .revoked)])
    func `agrees with OpenSSL's tool`(_ entry: String, _ expected: RevocationStatus) async throws {
        let folder = try ScratchDirectory("ocsp")
        func file(_ name: String, _ bytes: [UInt8]) throws -> String {
            let path = "\(folder.path)/\(name)"
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            return path
        }
        let authority = try file("issuer.der", chain.intermediate.certificate.der)
        let pem = "\(folder.path)/issuer.pem"
        let converted = try await run("openssl", ["x509", "-inform", "DER", "-in", authority, "-out", pem])
        try #require(converted.code == 0, "\(converted.words)")
        let key = try file("key.pem", chain.intermediate.key.pem)
        let request = try file("request.der", question.request)
        let serial = chain.leaf.certificate.serial.uppercased()
        let index = try file("index.txt", Array("\(entry)\t\(serial)\tunknown\t/CN=Leaf\n".utf8))
        let response = "\(folder.path)/response.der"
        let made = try await run(
            "openssl",
            [
                "ocsp", "-index", index, "-CA", pem, "-rsigner", pem, "-rkey", key, "-reqin", request, "-respout",
                response,
                "-ndays", "1",
            ])
        try #require(made.code == 0, "\(made.words)")
        // The tool dates it by this host's clock.
        let answer = try question.answer(try readFile(response), now: WallClock.milliseconds())
        #expect(answer.status == expected)
    }
}
