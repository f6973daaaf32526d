import AppStore
import Crypto
import Foundation
import Testing

/// RFC 2104 with SHA-256.
private func hmac(_ text: [UInt8], secret: [UInt8]) -> [UInt8] {
    var key = secret.count > 64 ? SHA256.digest(secret.span) : secret
    key += [UInt8](repeating: 0, count: 64 - key.count)
    let inner = key.map { $0 ^ 0x36 } + text
    let outer = key.map { $0 ^ 0x5c } + SHA256.digest(inner.span)
    return SHA256.digest(outer.span)
}

private func pem(_ label: String, _ der: [UInt8]) -> [UInt8] {
    var rest = Forge.base64(der)[...]
    var text = "-----BEGIN \(label)-----\n"
    while !rest.isEmpty {
        text += rest.prefix(64) + "\n"
        rest = rest.dropFirst(64)
    }
    return Array((text + "-----END \(label)-----\n").utf8)
}

/// The bytes of SubjectPublicKeyInfo before the point of a P-256 key.
private let p256Prefix: [UInt8] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
]

/// Rows 1 to 20 of the list of attacks: header, chain, signature, encoding. Numbers are those of the list, so that one can see a
/// row without a test.
@Suite struct `Of headers, chains and signatures` {
    private let forge = Forge.standard
    private let payload = Sample.notification().text

    private func reason(ofHeader header: String) -> RejectionReason? {
        judge(forge.sign(payload, header: header))
    }

    @Test func `what the forge makes is taken unless something is wrong with it`() {
        #expect(judge(forge.sign(payload)) == nil)
    }

    @Test func `alg none is refused, with a signature and without`() {
        let header = Forge.header(forge.chain, alg: quote("none"))
        #expect(reason(ofHeader: header) == .badAlgorithm)
        #expect(judge(forge.sign(payload, header: header, signature: [])) == .malformed, "a part is empty")
    }

    @Test func `an HMAC with the public key as its secret is refused`() {
        #expect(
            hexadecimal(hmac(Array("what do ya want for nothing?".utf8), secret: Array("Jefe".utf8)))
                == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843", "RFC 4231, 4.3")
        let header = Forge.header(forge.chain, alg: quote("HS256"))
        let signed = Forge.base64URL(Array(header.utf8)) + "." + Forge.base64URL(Array(payload.utf8))
        let point = forge.leafKey.publicPoint
        for secret in [point, pem("PUBLIC KEY", p256Prefix + point), pem("CERTIFICATE", forge.leaf.der)] {
            let code = hmac(Array(signed.utf8), secret: secret)
            #expect(judge(signed + "." + Forge.base64URL(code)) == .badAlgorithm)
        }
    }

    @Test(arguments: [
        "\"ES384\"", "\"RS256\"", "\"es256\"", "[\"ES256\"]", "null", "256", "\"ES256 \"", "{\"alg\":\"ES256\"}",
    ])
    func `any alg but the string ES256 is refused`(_ alg: String) {
        #expect(reason(ofHeader: Forge.header(forge.chain, alg: alg)) == .badAlgorithm)
    }

    @Test func `a header without alg is refused`() {
        let header = Forge.header(forge.chain).replacing("\"alg\":\"ES256\",", with: "")
        #expect(reason(ofHeader: header) == .badAlgorithm)
    }

    @Test(arguments: [
        #","jwk":{"kty":"EC"}"#, #","jku":"https://example.com"#.appending("\""), #","x5u":"http://example.com/c""#,
        #","kid":"k","typ":"JWT","cty":"x","zip":"DEF","x5t":"y""#, #","b64":true"#,
    ])
    func `other sources of keys are ignored`(_ more: String) {
        #expect(reason(ofHeader: Forge.header(forge.chain, more: more)) == nil)
    }

    @Test func `a key of the header's own does not sign`() {
        let attacker = Forge()
        let header = Forge.header(forge.chain, more: #","jwk":{"kty":"EC","crv":"P-256"}"#)
        let signed = Forge.base64URL(Array(header.utf8)) + "." + Forge.base64URL(Array(payload.utf8))
        let signature = attacker.signature(of: signed)
        #expect(judge(forge.sign(payload, header: header, signature: signature)) == .badSignature)
    }

    @Test(arguments: [#","crit":["b64"]"#, #","crit":[]"#, #","crit":null"#, #","b64":false"#, #","b64":null"#])
    func `crit and unencoded payloads are refused`(_ more: String) {
        #expect(reason(ofHeader: Forge.header(forge.chain, more: more)) == .malformed)
    }

    @Test func `a chain of the sender's own is refused`() {
        let attacker = Forge()
        #expect(judge(attacker.sign(payload)) == .untrustedChain)
    }

    @Test func `a chain under a root of the same name is refused`() {
        let attacker = Forge()
        #expect(
            judge(attacker.sign(payload, header: Forge.header([attacker.leaf, attacker.intermediate, forge.root])))
                == .untrustedChain)
    }

    @Test func `Apple's root behind a forged leaf and intermediate is refused`() {
        var options = Forge.Options()
        options.rootName = "Apple Root CA - G3"
        options.intermediateName = "Apple Worldwide Developer Relations Certification Authority"
        let attacker = Forge(options)
        let header = Forge.header([attacker.leaf, attacker.intermediate, AppleRoot.g3])
        let policy = VerificationPolicy(anchors: TrustAnchors([AppleRoot.g3]), apps: nil)
        #expect(judge(attacker.sign(payload, header: header), policy) == .untrustedChain)
    }

    @Test func `a chain of 1, 2, 4 or 0 certificates is refused`() {
        let chain = forge.chain
        for certificates in [[chain[0]], [chain[0], chain[1]], chain + [chain[2]], []] {
            #expect(reason(ofHeader: Forge.header(certificates)) == .badChainLength)
        }
    }

    @Test(arguments: ["\"x\"", "null", "{}", "[1,2,3]", "[\"a\",\"b\",null]"])
    func `a chain that is no array of strings is refused`(_ chain: String) {
        #expect(reason(ofHeader: "{\"alg\":\"ES256\",\"x5c\":\(chain)}") == .malformed)
        #expect(reason(ofHeader: "{\"alg\":\"ES256\"}") == .malformed)
    }

    @Test func `another certificate of the same authority is refused`() {
        var options = Forge.Options()
        options.leafMarkers = ["1.2.840.113635.100.6.1.2"]
        let developer = Forge(options)
        #expect(judge(developer.sign(payload), .trusting(developer)) == .missingMarker)
    }

    @Test func `an intermediate without its marker is refused`() {
        var options = Forge.Options()
        options.intermediateMarkers = []
        let other = Forge(options)
        #expect(judge(other.sign(payload), .trusting(other)) == .missingMarker)
    }

    @Test func `markers in the wrong certificate, and look-alikes, are refused`() {
        var swapped = Forge.Options()
        swapped.leafMarkers = [Forge.intermediateMarker]
        swapped.intermediateMarkers = [Forge.leafMarker]
        var lookAlikeLeaf = Forge.Options()
        lookAlikeLeaf.leafMarkers = ["1.2.840.113635.100.6.11.2"]
        var lookAlikeIntermediate = Forge.Options()
        lookAlikeIntermediate.intermediateMarkers = ["1.2.840.113635.100.6.2.2"]
        for options in [swapped, lookAlikeLeaf, lookAlikeIntermediate] {
            let other = Forge(options)
            #expect(judge(other.sign(payload), .trusting(other)) == .missingMarker)
        }
    }

    @Test func `leaf and intermediate in each other's place are refused`() {
        let header = Forge.header([forge.intermediate, forge.leaf, forge.root])
        #expect(reason(ofHeader: header) == .badCertificate, "the first key is not on P-256")
        let twice = Forge.header([forge.leaf, forge.leaf, forge.root])
        #expect(reason(ofHeader: twice) == .untrustedChain)
    }

    @Test func `a certificate that is expired or not yet valid at the payload's date is refused`() {
        let past = Forge.now - 200 * Forge.day...Forge.now - Forge.day
        let future = Forge.now + Forge.day...Forge.now + 200 * Forge.day
        for validity in [past, future] {
            for place in [\Forge.Options.leafValidity, \.intermediateValidity, \.rootValidity] {
                var options = Forge.Options()
                options[keyPath: place] = validity
                let other = Forge(options)
                #expect(judge(other.sign(payload), .trusting(other)) == .expiredChain)
            }
        }
    }

    /// Two roots with one name and key: an authority renews its certificate and keeps the rest.
    @Test func `of roots with one name and key it is enough that one is valid`() {
        let current = forge.root
        let past = forge.renewedRoot(validity: Forge.now - 9 * Forge.day...Forge.now - 8 * Forge.day)
        let future = forge.renewedRoot(validity: Forge.now + 8 * Forge.day...Forge.now + 9 * Forge.day)
        func reason(_ roots: [Certificate]) -> RejectionReason? {
            judge(forge.sign(payload), VerificationPolicy(anchors: TrustAnchors(roots), apps: [Sample.app]))
        }
        for roots in [[current, past], [past, current], [future, past, current]] { #expect(reason(roots) == nil) }
        // Valid before and after, but not now: the time between the two is not covered by either.
        for roots in [[past, future], [future, past], [past]] { #expect(reason(roots) == .expiredChain) }
    }

    @Test func `a validity that ends before it begins is none, and nobody's business in the third certificate`()
        throws
    {
        let root = forge.renewedRoot(validity: Forge.now - Forge.day...Forge.now + Forge.day)
        var der = root.der
        // A sequence of two UTCTime of 13 characters each.
        let start = try #require(der.indices.first { der[$0...].starts(with: [0x30, 0x1e, 0x17, 0x0d]) }) + 2
        let (first, last) = (der[start..<start + 15], der[start + 15..<start + 30])
        der.replaceSubrange(start..<start + 30, with: last + first)
        let backwards = try Certificate(der: der)
        let policy = VerificationPolicy(anchors: TrustAnchors([backwards]), apps: [Sample.app])
        #expect(judge(forge.sign(payload), policy) == .expiredChain)
        let header = Forge.header([forge.leaf, forge.intermediate, backwards])
        #expect(judge(forge.sign(payload, header: header)) == nil)
    }

    @Test func `the date is the payload's own, now only where it has none or one ahead`() {
        let later = Forge.now + 1000 * Forge.day
        #expect(judge(forge.sign(payload), now: later) == nil, "valid when it was signed")
        for date in [nil, "null", "1.5", "1788350400000.0", "\"1788350400000\"", "\(later + 6 * 60 * 1000)"] {
            let undated = Sample.notification().with("signedDate", date).text
            #expect(judge(forge.sign(undated), now: later) == .expiredChain, "\(date ?? "none")")
        }
        let born = Forge.usual.lowerBound
        let ahead = Sample.notification().with("signedDate", "\(born + 60_000)").text
        #expect(judge(forge.sign(ahead), now: born - 10 * 60 * 1000) == .expiredChain, "not valid yet, it says later")
        let old = Sample.notification().with("signedDate", "\(Forge.now - 1000 * Forge.day)").text
        #expect(judge(forge.sign(old)) == .expiredChain, "not valid yet when it was signed")
    }

    @Test func `an app transaction is dated by its receipt`() {
        let later = Forge.now + 1000 * Forge.day
        let signed = forge.sign(Sample.appTransaction.text)
        #expect(judge(signed, as: .appTransaction, now: later) == nil)
        let undated = forge.sign(
            Sample.appTransaction.with("receiptCreationDate", nil).with("signedDate", "\(Forge.now)").text)
        #expect(judge(undated, as: .appTransaction, now: later) == .expiredChain)
    }

    @Test func `a leaf whose key is on another curve is refused`() {
        var options = Forge.Options()
        options.leafCurve = .p384
        let other = Forge(options)
        #expect(judge(other.sign(payload), .trusting(other)) == .badCertificate)
    }

    @Test func `a leaf that may not sign is refused, one without keyUsage is not`() {
        var options = Forge.Options()
        options.leafUsage = [5]
        let other = Forge(options)
        #expect(judge(other.sign(payload), .trusting(other)) == .badCertificate)
        options.leafUsage = nil
        let free = Forge(options)
        #expect(judge(free.sign(Sample.notification(free).text), .trusting(free)) == nil)
    }

    @Test func `a signature that is not r and s of 32 bytes, in range, is refused`() {
        let signed = forge.sign(payload).split(separator: ".").dropLast().joined(separator: ".")
        let right = forge.signature(of: signed)
        let order: [UInt8] = [
            0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa, 0xad,
            0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
        ]
        let zero = [UInt8](repeating: 0, count: 32)
        let (r, s) = (Array(right[..<32]), Array(right[32...]))
        let der: [UInt8] = [0x30, 0x46, 0x02, 0x21, 0] + r + [0x02, 0x21, 0] + s
        for wrong in [
            der, Array(right.dropLast()), right + [0], [0], zero + s, r + zero, zero + zero, order + s, r + order,
            [UInt8](repeating: 0xff, count: 64), s + r,
        ] {
            #expect(judge(signed + "." + Forge.base64URL(wrong)) == .badSignature)
        }
        #expect(judge(signed + "." + Forge.base64URL(right)) == nil)
    }

    @Test func `a payload changed by one bit, or with another's signature, is refused`() {
        let parts = forge.sign(payload).split(separator: ".").map(String.init)
        let bytes = Array(payload.utf8)
        for index in stride(from: 0, to: bytes.count, by: max(1, bytes.count / 40)) {
            var changed = bytes
            changed[index] ^= 0x01
            let verdict = judge(parts[0] + "." + Forge.base64URL(changed) + "." + parts[2])
            #expect(verdict == .badSignature || verdict == .malformed)
        }
        let digit = payload.replacing("\"status\":1", with: "\"status\":2")
        #expect(judge(parts[0] + "." + Forge.base64URL(Array(digit.utf8)) + "." + parts[2]) == .badSignature)
        let other = forge.sign(Sample.transaction.text).split(separator: ".").map(String.init)
        #expect(judge(parts[0] + "." + parts[1] + "." + other[2]) == .badSignature)
    }

    @Test func `a header that was known is no help to another signature`() throws {
        let verifier = Verifier(.trusting())
        _ = try verifier.notification(Array(forge.sign(payload).utf8), now: Forge.now)
        let forged = forge.sign(payload, signature: Array(repeating: 1, count: 64))
        #expect(throws: Rejection.self) { try verifier.notification(Array(forged.utf8), now: Forge.now) }
    }

    @Test func `base64url that is not canonical is refused in every part`() {
        let parts = forge.sign(payload).split(separator: ".").map(String.init)
        for index in parts.indices {
            for ending in ["=", "==", "+", "/", " ", "\n", "\r\n", "\u{e9}", "."] {
                var changed = parts
                changed[index] += ending
                #expect(
                    judge(changed.joined(separator: ".")) == .malformed, "part \(index) and \(ending.debugDescription)")
            }
        }
        // 64 bytes leave 4 unused bits in the last character.
        let last = parts[2].last!
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        let next = alphabet[alphabet.firstIndex(of: last)! + 1]
        #expect(judge(parts[0] + "." + parts[1] + "." + parts[2].dropLast() + String(next)) == .malformed)
    }

    @Test(arguments: [
        "", ".", "..", "...", "a", "a.b", "a..c", ".b.c", "a.b.", "a.b.c.d", "e30.e30.", "\u{0}.\u{0}.\u{0}",
    ])
    func `what has not three parts is refused`(_ text: String) { #expect(judge(text) == .malformed) }

    @Test func `base64 that lost its end is refused`() {
        let parts = forge.sign(payload).split(separator: ".").map(String.init)
        for index in parts.indices {
            var changed = parts
            while changed[index].count % 4 != 1 { changed[index].removeLast() }
            #expect(judge(changed.joined(separator: ".")) == .malformed)
        }
    }

    @Test func `a certificate in another form than base64 of DER is refused, the unused third one too`() {
        for place in 0..<3 {
            let der = forge.chain[place].der
            let text = Forge.base64(der)
            let lines = text.prefix(64) + "\\n" + text.dropFirst(64)
            // Among hundreds of random characters there is always one in which the alphabets differ.
            #expect(Forge.base64URL(der) != text)
            for wrong in [
                Forge.base64URL(der), Forge.base64URL(der) + "-_", String(lines), text + " ", Forge.base64(der + [0]),
                "", "AAAA", Forge.base64(Array(der.dropLast())), "-----BEGIN CERTIFICATE-----" + text,
            ] {
                let header = forge.header.replacing(quote(text), with: quote(wrong))
                #expect(reason(ofHeader: header) == .badCertificate, "x5c[\(place)] = \(wrong.prefix(20))")
            }
        }
    }
}
