import Testing

@testable import Crypto

@Suite struct `A certificate` {
    private static let key = SigningKey(.p256, seed: [3])

    private func make(
        serial: [UInt8] = [1], validity: ClosedRange<Int64> = Chain.validity,
        _ extensions: [CertificateRequest.Extension] = []
    ) throws -> Certificate {
        try Certificate.make(
            CertificateRequest(commonName: "Made", serial: serial, validity: validity, extensions: extensions),
            key: Self.key)
    }

    /// One place of `old` replaced; both have the same length.
    private func replacing(_ old: [UInt8], _ new: [UInt8], in certificate: Certificate) throws -> [UInt8] {
        var der = certificate.der
        let start = try #require(der.indices.first { der[$0...].starts(with: old) })
        der.replaceSubrange(start..<start + old.count, with: new)
        return der
    }

    @Test(arguments: [
        ("1950-01-01T00:00:00Z", "1950-01-01T00:00:01Z"), ("1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z"),
        ("2000-02-29T12:34:56Z", "2024-02-29T23:59:59Z"), ("2049-12-31T23:59:59Z", "2050-01-01T00:00:00Z"),
        ("2100-02-28T00:00:00Z", "2100-03-01T00:00:00Z"), ("2025-01-01T00:00:00Z", "9999-12-31T23:59:59Z"),
    ])
    func `is valid from the first millisecond of notBefore to the last of notAfter`(
        _ first: String, _ last: String
    ) throws {
        let (first, last) = (try milliseconds(first), try milliseconds(last))
        // Fractions of a second are dropped.
        for validity in [first...last, first + 1...last + 999] {
            let made = try make(validity: validity)
            #expect(made.notBefore == first && made.notAfter == last + 999)
            #expect(made.isValid(at: first) && made.isValid(at: last + 999))
            #expect(!made.isValid(at: first - 1) && !made.isValid(at: last + 1000))
        }
    }

    @Test func `has dates as RFC 5280 writes them`() throws {
        let made = try make(
            validity: try milliseconds("2025-01-01T00:00:00Z")...(try milliseconds("2025-06-01T00:00:00Z")))
        let tree = DERTree.read(made.der[...]).tree
        func reads(_ date: String, tag: UInt8) -> Bool {
            let changed = tree.replacing(Array("250101000000Z".utf8), tag: tag, Array(date.utf8))
            return (try? Certificate(der: changed.written(.usual, at: 0))) != nil
        }
        let (short, long): (UInt8, UInt8) = (0x17, 0x18)
        #expect(reads("250101000000Z", tag: short))
        #expect(reads("20250101000000Z", tag: long))
        for bad in [
            "250101000000+", "25010100000 Z", "251301000000Z", "250230000000Z", "250101240000Z", "2501010000.0Z",
            "2501010000Z", "250101000000", "250101000000+0000", "2501010000+0000", "20250101000000Z", "",
        ] {
            #expect(!reads(bad, tag: short), "\(bad)")
        }
        for bad in [
            "202501010000Z", "20250101000000", "20250101000000.5Z", "202501010000.5Z", "20250101000000+0000",
            "202501010000+00", "2025010100+0000", "250101000000Z",
        ] {
            #expect(!reads(bad, tag: long), "\(bad)")
        }
    }

    @Test func `whose validity ends before it begins is one, but never valid`() throws {
        let (first, last) = (try milliseconds("2025-01-01T00:00:00Z"), try milliseconds("2024-12-31T23:59:59Z"))
        let made = try make(validity: first...first + 1000)
        let der = try replacing(Array("250101000001Z".utf8), Array("241231235959Z".utf8), in: made)
        let backwards = try Certificate(der: der)
        #expect(backwards.notBefore == first && backwards.notAfter == last + 999)
        for date in [last - 1, last, first, first + 1] { #expect(!backwards.isValid(at: date)) }
    }

    @Test(
        arguments: [
            ([1], "01"), ([0, 1], "01"), ([0x80], "80"), ([0x12, 0x00], "1200"),
            ([UInt8](repeating: 0xff, count: 20), String(repeating: "ff", count: 20)),
        ] as [([UInt8], String)])
    func `has a serial number in whole bytes`(_ serial: [UInt8], _ expected: String) throws {
        #expect(try make(serial: serial).serial == expected)
    }

    @Test func `has a minus before a negative serial number`() throws {
        let der = try replacing([2, 1, 0x55], [2, 1, 0x85], in: try make(serial: [0x55]))
        #expect(try Certificate(der: der).serial == "-7b")
    }

    @Test func `shows its subject without control characters`() throws {
        let request = CertificateRequest(
            commonName: "Zoë\nlevel=error", serial: [1], validity: Chain.validity, extensions: [])
        let subject = try Certificate.make(request, key: Self.key).subject
        #expect(subject == "CN=Zoë\\0Alevel\\=error, O=Perennial" || subject == "CN=Zoë\\0Alevel=error, O=Perennial")
        #expect(!subject.contains("\n"))
    }

    @Test func `is an authority when basicConstraints says so and keyUsage does not forbid it`() throws {
        #expect(try make([.basicConstraints(isAuthority: true, pathLength: nil)]).isAuthority)
        #expect(try make([.basicConstraints(isAuthority: true, pathLength: 3), .keyUsage([5])]).isAuthority)
        #expect(try !make([.basicConstraints(isAuthority: true, pathLength: nil), .keyUsage([0, 6])]).isAuthority)
        #expect(try !make([.basicConstraints(isAuthority: false, pathLength: nil)]).isAuthority)
        #expect(try !make([.keyUsage([5])]).isAuthority)
        #expect(try !make([]).isAuthority)
    }

    @Test func `may verify signatures unless keyUsage leaves it out`() throws {
        #expect(try make([]).mayVerifySignatures)
        #expect(try make([.keyUsage([0])]).mayVerifySignatures)
        #expect(try make([.keyUsage([0, 7])]).mayVerifySignatures)
        #expect(try !make([.keyUsage([1, 5])]).mayVerifySignatures)
        #expect(try !make([.keyUsage([8])]).mayVerifySignatures)
        #expect(try !make([.keyUsage([])]).mayVerifySignatures)
        // An integer in place of the bit string.
        let unreadable = CertificateRequest.Extension.other(
            identifier: "2.5.29.15", isCritical: true, value: [2, 1, 0])
        #expect(try !make([unreadable]).mayVerifySignatures)
    }

    @Test func `has an extension under its exact identifier only`() throws {
        let made = try make([Chain.marker("1.2.840.113635.100.6.11.1")])
        #expect(made.hasExtension("1.2.840.113635.100.6.11.1"))
        #expect(made.hasExtension("2.5.29.14"))
        for other in [
            "1.2.840.113635.100.6.11.2", "1.2.840.113635.100.6.11", "1.2.840.113635.100.6.11.1.1", "2.5.29.35", "", "x",
            "subjectKeyIdentifier",
        ] {
            #expect(!made.hasExtension(other))
        }
    }

    @Test func `has a key for JWS only on P-256, the curve by name and the point uncompressed`() throws {
        #expect(try make().p256Key != nil)
        #expect(try Chain(leafKey: SigningKey(.p384, seed: [9])).leaf.p256Key == nil)
        let others = try Certificate.read(fixture("keys-that-are-not-p256.pem"))
        #expect(others.map(\.subject) == ["CN=explicit", "CN=compressed", "CN=secp256k1", "CN=rsa"])
        for other in others { #expect(other.p256Key == nil, "\(other.subject)") }
    }

    @Test func `verifies with that key what its owner has signed`() throws {
        let key = try #require(try make().p256Key)
        let sample = digest("sample")
        let signature = Self.key.signs(sample)
        #expect(key.verifies(signature, digest: sample))
    }

    @Test func `is self-signed by its own key in its own name`() throws {
        let chain = try Chain()
        #expect(chain.root.isSelfSigned)
        #expect(!chain.intermediate.isSelfSigned)
        let forged = try Certificate.make(
            Chain.request("Root", Chain.authority), key: Chain.Keys.root, issuer: (chain.root, Chain.Keys.stranger))
        #expect(!forged.isSelfSigned)
    }
}

@Suite struct `A certificate made here` {
    @Test func `is the same again where that is asked for`() throws {
        func make() throws -> [UInt8] {
            try Certificate.make(
                Chain.request("Same", Chain.authority), key: SigningKey(.p384, seed: [1]), isDeterministic: true
            ).der
        }
        #expect(try make() == make())
        let random = try Certificate.make(Chain.request("Same", Chain.authority), key: SigningKey(.p384, seed: [1]))
        #expect(random.der != (try make()))
    }

    /// The output of OpenSSL's own tools, read once from openssl x509 -text.
    @Test func `names the keys of its subject and its issuer`() throws {
        let chain = try Chain()
        for certificate in [chain.root, chain.intermediate, chain.leaf] {
            #expect(certificate.hasExtension("2.5.29.14"))
        }
        #expect(!chain.root.hasExtension("2.5.29.35"))
        #expect(chain.leaf.hasExtension("2.5.29.35"))
        #expect(chain.root.subjectKeyIdentifier.count == 20)
        #expect(chain.root.subjectKeyIdentifier != chain.intermediate.subjectKeyIdentifier)
    }

    @Test func `takes what is given in the place of what it would add`() throws {
        let own = CertificateRequest.Extension.other(
            identifier: "2.5.29.14", isCritical: false, value: DER.octets([1, 2, 3]))
        let made = try Certificate.make(Chain.request("Own", [own]), key: Chain.Keys.leaf)
        #expect(made.subjectKeyIdentifier == [1, 2, 3])
    }

    @Test func `refuses what cannot be written`() throws {
        typealias Extension = CertificateRequest.Extension
        let bad: [CertificateRequest] = [
            Chain.request("", []), Chain.request(String(repeating: "x", count: 65), []),
            CertificateRequest(commonName: "x", serial: [], validity: Chain.validity, extensions: []),
            CertificateRequest(commonName: "x", serial: [0], validity: Chain.validity, extensions: []),
            CertificateRequest(
                commonName: "x", serial: [UInt8](repeating: 1, count: 21), validity: Chain.validity, extensions: []),
            Chain.request("x", [], validity: Int64.min...0), Chain.request("x", [], validity: 0...Int64.max),
            Chain.request("x", [.keyUsage([9])]), Chain.request("x", [.keyUsage([-1])]),
            Chain.request("x", [.keyUsage([0]), .keyUsage([0])]),
            Chain.request("x", [.basicConstraints(isAuthority: false, pathLength: 0)]),
            Chain.request("x", [.basicConstraints(isAuthority: true, pathLength: -1)]),
            Chain.request("x", [.subjectAlternativeNames(dns: [], addresses: ["localhost"])]),
            Chain.request("x", [.other(identifier: "1", isCritical: false, value: [])]),
            Chain.request("x", [.other(identifier: "3.1", isCritical: false, value: [])]),
            Chain.request("x", [.other(identifier: "1.2.+3", isCritical: false, value: [])]),
        ]
        for request in bad {
            #expect(throws: CertificateFault.self) { try Certificate.make(request, key: Chain.Keys.leaf) }
        }
    }
}
