import AppStore
import Crypto
import Foundation
import Testing

@Suite struct `Apple's own chain` {
    private func certificate(_ name: String) throws -> Certificate {
        let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../Values/CryptoTests/Fixtures/apple/\(name).der").standardized
        return try Certificate(der: Array(Data(contentsOf: path)))
    }

    @Test func `ends in the root that is built in`() throws {
        let der = AppleRoot.g3.der
        #expect(
            hexadecimal(SHA256.digest(der.span))
                == "63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179")
        #expect(AppleRoot.g3.isAuthority)
        #expect(try certificate("root").der == AppleRoot.g3.der)
    }

    /// Nobody here has Apple's key, so these tests can only reach the step where the signature does not verify.
    @Test(
        arguments: [
            (1_761_998_400_000, RejectionReason.badSignature), (1_830_297_600_000, .expiredChain),
            (1_756_684_800_000, .expiredChain),
        ] as [(Int64, RejectionReason)])
    func `is trusted at its time and at no other`(_ date: Int64, _ expected: RejectionReason) throws {
        let chain = [try certificate("leaf"), try certificate("intermediate"), try certificate("root")]
        let payload = Sample.notification().with("signedDate", "\(date)").text
        let signed = Forge.standard.sign(
            payload, header: Forge.header(chain), signature: Array(repeating: 1, count: 64))
        let policy = VerificationPolicy(anchors: TrustAnchors([AppleRoot.g3]), apps: nil)
        #expect(judge(signed, policy, now: date) == expected)
    }
}
