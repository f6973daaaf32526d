import Testing

@testable import Crypto

@Suite struct `A deterministic signature` {
    /// RFC 6979 A.2.5 and A.2.6.
    @Test func `is that of the RFC's vectors`() throws {
        let p256 = try SigningKey(
            .p256, number: bytes("C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721"))
        #expect(
            hexadecimal(p256.publicPoint)
                == "0460fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6"
                + "7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299")
        let digest = SHA256.digest(Array("sample".utf8).span)
        #expect(
            hexadecimal(p256.sign(digest: digest.span, isDeterministic: true))
                == "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
                + "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8")
    }
}
