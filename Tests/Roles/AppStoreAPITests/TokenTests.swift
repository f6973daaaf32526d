import AppStoreAPI
import Contract
import Crypto
import JSON
import KafkaTestKit
import Platform
import TestTraits
import Testing

@Suite(.ownThreads) struct `A token` {
    /// In the middle of a second, so that rounding would show.
    private static let start: Int64 = 1_781_256_600_789

    private func withScene(_ body: (Scene) async throws -> Void) async throws {
        try await Scene.with(clock: TestClock(Self.start), body)
    }

    @Test func `says who calls, for which app, in seconds, signed with the key`() async throws {
        try await withScene { scene in
            try scene.answer(to: consumption)
            let token = try #require(scene.apple.tokens.first)
            #expect(token.header == .object(of: [("alg", "ES256"), ("kid", Scene.keyId), ("typ", "JWT")]))
            #expect(token.isSigned(by: scene.signingKey))
            #expect(!token.isSigned(by: SigningKey(.p256)))
            let names = try #require(token.claims.object).members.map(\.name)
            #expect(names == ["iss", "iat", "exp", "aud", "bid"])
            #expect(token.claims["iss"]?.string == Scene.issuerId)
            #expect(token.claims["aud"]?.string == "appstoreconnect-v1")
            #expect(token.claims["bid"]?.string == Scene.bundleId)
            let issued = try #require(token.claims["iat"]?.integer)
            let ends = try #require(token.claims["exp"]?.integer)
            // Apple refuses a token that was issued in the future, and its clock may be a minute behind ours.
            #expect(issued == Self.start / 1000 - 60)
            #expect(ends > issued && ends - issued <= 60 * 60)
        }
    }

    @Test func `is used again by both environments, and is another one for another app`() async throws {
        try await withScene { scene in
            for _ in 0..<5 { try scene.answer(to: consumption) }
            try scene.answer(to: consumption, in: .sandbox)
            #expect(Set(scene.apple.tokens.map(\.text)).count == 1)
            try scene.answer(to: consumption, of: "com.example.other")
            #expect(scene.apple.lastToken?.claims["bid"]?.string == "com.example.other")
            try scene.answer(to: consumption)
            #expect(scene.apple.tokens.count == 8)
            #expect(scene.apple.lastToken?.text == scene.apple.tokens.first?.text)
        }
    }

    @Test func `is never one that ends within ten minutes, and is not made anew before`() async throws {
        try await withScene { scene in
            // Two days, in uneven steps.
            for _ in 0..<400 {
                try scene.answer(to: consumption)
                let token = try #require(scene.apple.lastToken)
                let now = scene.clock.now() / 1000
                let (issued, ends) = (token.claims["iat"]?.integer ?? 0, token.claims["exp"]?.integer ?? 0)
                #expect(issued <= now - 60 && ends - now > 600)
                scene.clock.advance(seconds: 433)
            }
            let made = Set(scene.apple.tokens.map(\.text)).count
            #expect((100...200).contains(made), "\(made) tokens for 400 requests in two days")
        }
    }

    @Test func `is made anew when the clock was set back`() async throws {
        try await withScene { scene in
            try scene.answer(to: consumption)
            scene.clock.advance(seconds: -3600)
            try scene.answer(to: consumption)
            let issued = scene.apple.tokens.compactMap { $0.claims["iat"]?.integer }
            #expect(issued == [Self.start / 1000 - 60, Self.start / 1000 - 3660])
        }
    }

    @Test func `is made anew for its app alone when it was refused`() async throws {
        try await withScene { scene in
            for bundleId in [Scene.bundleId, "com.example.other"] { try scene.answer(to: consumption, of: bundleId) }
            scene.api.renewToken(of: Scene.bundleId)
            for bundleId in [Scene.bundleId, "com.example.other"] { try scene.answer(to: consumption, of: bundleId) }
            let texts = scene.apple.tokens.map(\.text)
            try #require(texts.count == 4)
            #expect(texts[0] != texts[2])
            #expect(texts[1] == texts[3])
        }
    }

    @Test func `is made once by many threads at once`() async throws {
        try await withScene { scene in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<16 {
                    group.addTask {
                        try await blocking { for _ in 0..<8 { try scene.answer(to: consumption) } }
                    }
                }
                try await group.waitForAll()
            }
            #expect(scene.apple.tokens.count == 128)
            #expect(Set(scene.apple.tokens.map(\.text)).count == 1)
        }
    }

    @Test func `carries ids of any text as JSON has it`() async throws {
        try await withScene { scene in
            let odd = #"com."quoted"\é"#
            try scene.answer(to: consumption, of: odd)
            #expect(scene.apple.tokens.first?.claims["bid"]?.string == odd)
        }
    }
}

@Suite struct `A key of the App Store Server API` {
    private func fault(issuerId: String = "issuer", keyId: String = "key", pem: [UInt8]) -> String? {
        do throws(APIKeyFault) {
            _ = try APIKey(issuerId: issuerId, keyId: keyId, pem: pem)
            return nil
        } catch {
            return error.description
        }
    }

    @Test func `is taken as App Store Connect gives it`() {
        #expect(fault(pem: SigningKey(.p256).pem) == nil)
    }

    @Test func `says what is wrong with it, and nothing of it`() throws {
        let pem = SigningKey(.p256).pem
        #expect(fault(pem: [])?.contains("cannot be read") == true)
        #expect(fault(pem: SigningKey(.p384).pem)?.contains("not on P-256") == true)
        #expect(fault(keyId: "", pem: pem)?.contains("key id") == true)
        #expect(fault(issuerId: "two words", pem: pem)?.contains("issuer id") == true)
        let broken = Array(String(decoding: pem, as: UTF8.self).replacing("BEGIN PRIVATE", with: "BEGIN").utf8)
        let said = try #require(fault(pem: broken))
        for line in String(decoding: pem, as: UTF8.self).split(separator: "\n") where !line.hasPrefix("-") {
            #expect(!said.contains(line.prefix(8)))
        }
    }
}

extension JSONValue {
    fileprivate static func object(of members: [(String, String)]) -> JSONValue {
        .object(JSONObject(members.map { .init(name: $0.0, value: .string($0.1)) }))
    }
}
