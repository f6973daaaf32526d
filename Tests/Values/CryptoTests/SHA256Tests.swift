import Testing

@testable import Crypto

@Suite struct `SHA-256` {
    /// FIPS 180-2 B.1, B.2, and the empty input.
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
    ])
    func `is that of the standard's examples`(_ text: String, _ expected: String) {
        #expect(hexadecimal(digest(text)) == expected)
    }

    @Test func `begins with the eight bytes that are a number, too`() {
        #expect(SHA256.beginning(of: Array("abc".utf8).span) == 0xba78_16bf_8f01_cfea)
    }

    @Test func `goes on from a prefix as often as wanted, wherever that ends`() {
        let whole = (0..<200).map { UInt8($0) }
        let expected = digest(whole)
        for cut in 0...whole.count {
            let (front, back) = (Array(whole[..<cut]), Array(whole[cut...]))
            let prefix = SHA256.Prefix(front.span)
            #expect(prefix.digest(then: back) == expected)
            #expect(prefix.digest(then: back) == expected)
            #expect(prefix.digest() == digest(front))
            var added = prefix
            added.add(back.span)
            #expect(added.digest() == expected)
        }
    }

    /// FIPS 180-2 D.1.
    @Test func `has SHA-384 beside it for certificates`() {
        let abc = Array("abc".utf8)
        let digest = SHA384.digest(abc.span)
        #expect(
            hexadecimal(digest)
                == "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed"
                + "8086072ba1e7cc2358baeca134c825a7")
    }

    @Test func `is shown in lower case hexadecimal`() {
        #expect(hexadecimal([]) == "")
        #expect(hexadecimal([0x00, 0x0a, 0xf0, 0xff]) == "000af0ff")
    }
}
