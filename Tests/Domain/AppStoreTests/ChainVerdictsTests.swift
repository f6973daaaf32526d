import Crypto
import Testing

@testable import AppStore

@Suite struct `A chain` {
    private static let forge = Forge.standard
    private let payload = Sample.notification().text

    /// A different header for each number, as anybody who has seen Apple's chain can make them.
    private func signed(_ chain: [Certificate], _ number: Int, signature: [UInt8]? = nil) -> [UInt8] {
        let header = Forge.header(chain, more: ",\"kid\":\"\(number)\"")
        return Array(
            (signature.map { Self.forge.sign(payload, header: header, signature: $0) }
                ?? Self.forge.sign(payload, header: header)).utf8)
    }

    private func reason(_ verifier: Verifier, _ text: [UInt8]) -> RejectionReason? {
        do throws(Rejection) {
            _ = try verifier.notification(text, now: Forge.now)
            return nil
        } catch {
            return error.reason
        }
    }

    /// The leaf with the last byte of its signature changed.
    private func forgedLeaf(_ number: Int) throws -> Certificate {
        var der = Self.forge.leaf.der
        der[der.count - 1] ^= UInt8(number + 1)
        return try Certificate(der: der)
    }

    @Test func `is judged once, whatever stands beside it and whatever else is sent`() throws {
        let verifier = Verifier(.trusting())
        let chain = Self.forge.chain
        let noSignature = [UInt8](repeating: 1, count: 64)
        for number in 0..<5 {
            #expect(reason(verifier, signed(chain, number, signature: noSignature)) == .badSignature)
        }
        // The nested parts have the same chain.
        #expect(reason(verifier, signed(chain, 5)) == nil)
        #expect(verifier.judgedChains == 1)
        // The third certificate may be any certificate, but must be one.
        let thirds = [chain[0], chain[1], Self.forge.intermediate]
        #expect(reason(verifier, signed(thirds, 6)) == nil)
        let text = Forge.header(chain).replacing(Forge.base64(chain[2].der), with: "AAAA")
        #expect(reason(verifier, Array(Self.forge.sign(payload, header: text).utf8)) == .badCertificate)
        #expect(verifier.judgedChains == 1)
        // Forged chains: each is judged once, and none of them displaces the genuine one.
        for number in 0..<ChainVerdicts.limitEach + 1 {
            let forged = [try forgedLeaf(number), chain[1], chain[2]]
            for repetition in 0..<2 { #expect(reason(verifier, signed(forged, repetition)) == .untrustedChain) }
        }
        #expect(verifier.judgedChains == ChainVerdicts.limitEach + 2)
        #expect(reason(verifier, signed(chain, 7)) == nil)
        #expect(verifier.judgedChains == ChainVerdicts.limitEach + 2)
    }

    private func verdict(_ texts: [String], at date: Int64 = 0, isTrusted: Bool = false) throws -> ChainVerdict {
        let forge = Self.forge
        let path = TrustedPath(
            chain: TrustedChain(leaf: forge.leaf, intermediate: forge.intermediate, root: forge.root),
            roots: [forge.root], key: try #require(forge.leaf.p256Key))
        return ChainVerdict(
            texts: texts.map { Array($0.utf8) },
            result: isTrusted ? .success(path) : .failure(Rejection(.untrustedChain, texts[0])), judgedAt: date)
    }

    @Test func `has a verdict that is that of leaf and intermediate together, for a quarter of an hour`() throws {
        var verdicts = ChainVerdicts()
        func finds(_ texts: [String], now: Int64 = 0) -> Bool {
            verdicts.verdict(on: texts.map { Array($0.utf8) }, now: now) != nil
        }
        verdicts.keep(try verdict(["a", "b", "c"], isTrusted: true))
        #expect(finds(["a", "b", "c"]) && finds(["a", "b", "x"]))
        #expect(!finds(["x", "b", "c"]) && !finds(["a", "x", "c"]) && !finds(["b", "a", "c"]))
        #expect(finds(["a", "b", "c"], now: ChainCache.lifetime - 1))
        #expect(!finds(["a", "b", "c"], now: ChainCache.lifetime))
        verdicts.keep(try verdict(["a", "b", "c"], at: 1000, isTrusted: true))
        #expect(!finds(["a", "b", "c"], now: 999))
        #expect(verdicts.counts == (0, 0))
    }

    /// With a key of its own, a forged intermediate could make every leaf below it slow to verify.
    @Test func `is looked into no further when no root vouches for its intermediate, which is asked once`() {
        var verdicts = ChainVerdicts()
        var asked = 0
        func isVouchedFor(_ text: String, _ answer: Bool, now: Int64 = 0) -> Bool {
            verdicts.isVouchedFor(Array(text.utf8), now: now) {
                asked += 1
                return answer
            }
        }
        #expect(isVouchedFor("genuine", true))
        for number in 0...ChainVerdicts.limitEach {
            for _ in 0..<2 { #expect(!isVouchedFor("forged \(number)", false)) }
        }
        #expect(isVouchedFor("genuine", false) && asked == ChainVerdicts.limitEach + 2)
        #expect(!isVouchedFor("genuine", false, now: ChainCache.lifetime))
        #expect(!TrustAnchors([Self.forge.root]).haveSigned(Self.forge.leaf))
        #expect(TrustAnchors([Self.forge.root]).haveSigned(Self.forge.intermediate))
    }

    @Test func `is forgotten by its turn when there are many of its kind`() throws {
        var verdicts = ChainVerdicts()
        verdicts.keep(try verdict(["genuine", "b", "c"], isTrusted: true))
        for number in 0...ChainVerdicts.limitEach { verdicts.keep(try verdict(["\(number)", "b", "c"])) }
        #expect(verdicts.counts == (1, ChainVerdicts.limitEach))
        #expect(verdicts.verdict(on: [Array("0".utf8), Array("b".utf8), []], now: 0) == nil)
        #expect(verdicts.verdict(on: [Array("1".utf8), Array("b".utf8), []], now: 0) != nil)
    }
}
