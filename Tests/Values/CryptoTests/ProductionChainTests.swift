import Testing

@testable import Crypto

/// Apple's certificates, unchanged.
@Suite struct `Apple's production chain` {
    private let leaf: Certificate
    private let intermediate: Certificate
    private let root: Certificate

    init() throws {
        leaf = try Certificate(der: fixture("apple/leaf.der"))
        intermediate = try Certificate(der: fixture("apple/intermediate.der"))
        root = try Certificate(der: fixture("apple/root.der"))
    }

    @Test func `is a path, and only in its order`() {
        #expect(TrustAnchors([root]).roots(of: leaf, through: intermediate).map(\.der) == [root.der])
        #expect(TrustAnchors([root]).roots(of: intermediate, through: leaf).isEmpty)
        #expect(TrustAnchors([intermediate]).roots(of: leaf, through: intermediate).isEmpty)
        #expect(TrustAnchors([leaf]).roots(of: leaf, through: intermediate).isEmpty)
    }

    @Test func `is valid in November 2025 and no more in 2028`() throws {
        let november = try milliseconds("2025-11-01T00:00:00Z")
        let later = try milliseconds("2028-01-01T00:00:00Z")
        for certificate in [leaf, intermediate, root] { #expect(certificate.isValid(at: november)) }
        #expect(!leaf.isValid(at: later))
        #expect(intermediate.isValid(at: later))
    }

    @Test func `has the dates that are known of it`() throws {
        for (certificate, first, last) in [
            (leaf, "2025-09-19T19:44:51Z", "2027-10-13T17:47:23Z"),
            (intermediate, "2021-03-17T20:37:10Z", "2036-03-19T00:00:00Z"),
            (root, "2014-04-30T18:19:06Z", "2039-04-30T18:19:06Z"),
        ] {
            #expect(certificate.notBefore == (try milliseconds(first)))
            #expect(certificate.notAfter == (try milliseconds(last) + 999))
        }
    }

    @Test func `has the serial numbers, fingerprints and sizes that are known of it`() {
        #expect(leaf.serial == "47c287cdd9f9e7867f528ada74dc7db7")
        #expect(intermediate.serial == "22c1a1470a747369ef538612c9c69f3d38f36cd7")
        #expect(root.serial == "2dc5fc88d2c54b95")
        let fingerprints = [leaf, intermediate, root].map { certificate in
            let der = certificate.der
            return hexadecimal(SHA256.digest(der.span))
        }
        #expect(
            fingerprints == [
                "4c381556c16121e605d1fc2eef6d0de4e072ed65964fe72f575f19711e84c417",
                "bdd4ed6e74691f0c2bfd01be0296197af1379e0418e2d300efa9c3bef642ca30",
                "63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179",
            ])
        #expect([leaf, intermediate, root].map(\.der.count) == [1077, 794, 583])
    }

    @Test func `has its markers where they belong`() {
        #expect(leaf.hasExtension("1.2.840.113635.100.6.11.1"))
        #expect(!leaf.hasExtension("1.2.840.113635.100.6.2.1"))
        #expect(intermediate.hasExtension("1.2.840.113635.100.6.2.1"))
        #expect(!intermediate.hasExtension("1.2.840.113635.100.6.11.1"))
        #expect(!root.hasExtension("1.2.840.113635.100.6.2.1"))
    }

    @Test func `has a key for JWS in its leaf alone`() {
        #expect(leaf.p256Key != nil)
        #expect(intermediate.p256Key == nil)
        #expect(root.p256Key == nil)
        #expect(leaf.mayVerifySignatures)
        #expect(!intermediate.mayVerifySignatures)
        #expect([leaf, intermediate, root].map(\.isAuthority) == [false, true, true])
        #expect([leaf, intermediate, root].map(\.isSelfSigned) == [false, false, true])
    }

    @Test func `is shown by its names`() {
        #expect(
            leaf.subject
                == "CN=Prod ECC Mac App Store and iTunes Store Receipt Signing, "
                + "OU=Apple Worldwide Developer Relations, O=Apple Inc., C=US")
        #expect(root.subject == "CN=Apple Root CA - G3, OU=Apple Certification Authority, O=Apple Inc., C=US")
    }
}
