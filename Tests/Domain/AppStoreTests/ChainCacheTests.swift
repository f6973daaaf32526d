import Crypto
import Testing

@testable import AppStore

@Suite struct `The cache of headers` {
    private static let forge = Forge.standard

    private func header(_ text: String, at checkedAt: Int64 = 0) throws -> CheckedHeader {
        CheckedHeader(
            text: Array(text.utf8),
            chain: TrustedChain(
                leaf: Self.forge.leaf, intermediate: Self.forge.intermediate, root: Self.forge.root),
            roots: [Self.forge.root],
            key: try #require(Self.forge.leaf.p256Key), checkedAt: checkedAt)
    }

    private func text(of cache: inout ChainCache, for signed: String, now: Int64 = 0) -> String? {
        cache.entry(for: Array(signed.utf8).span, now: now).map { String(decoding: $0.text, as: UTF8.self) }
    }

    @Test func `finds a header by all of its bytes and the dot behind`() throws {
        var cache = ChainCache()
        cache.keep(try header("abc"))
        cache.keep(try header("ab"))
        #expect(text(of: &cache, for: "abc.d") == "abc")
        #expect(text(of: &cache, for: "ab.d") == "ab")
        for other in ["abd.d", "abcd.e", "abc", "", "a.b", "Abc.d"] { #expect(text(of: &cache, for: other) == nil) }
    }

    @Test func `forgets a header after a quarter of an hour, and when the clock goes back`() throws {
        for (now, isKnown) in [
            (1000, true), (1000 + ChainCache.lifetime - 1, true), (1000 + ChainCache.lifetime, false),
            (999, false),
        ] as [(Int64, Bool)] {
            var cache = ChainCache()
            cache.keep(try header("abc", at: 1000))
            #expect((text(of: &cache, for: "abc.d", now: now) != nil) == isKnown)
            #expect(cache.count == (isKnown ? 1 : 0))
        }
    }

    @Test func `gives up the header used least recently when it is full`() throws {
        var cache = ChainCache()
        for number in 0..<ChainCache.limitEntries { cache.keep(try header("h\(number)")) }
        #expect(text(of: &cache, for: "h0.x") == "h0")
        cache.keep(try header("new"))
        #expect(cache.count == ChainCache.limitEntries)
        #expect(text(of: &cache, for: "h0.x") == "h0")
        #expect(text(of: &cache, for: "h1.x") == nil)
    }

    @Test func `checks the chain again after a quarter of an hour`() throws {
        let verifier = Verifier(.trusting())
        let signed = Array(Self.forge.sign(Sample.notification().text).utf8)
        for minutes: Int64 in [0, 14, 15, 31] {
            _ = try verifier.notification(signed, now: Forge.now + minutes * 60 * 1000)
            #expect(verifier.cachedHeaders == 1)
        }
    }
}
