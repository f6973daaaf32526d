import Testing

@testable import Crypto

@Suite struct `A path` {
    private typealias Keys = Chain.Keys
    private let chain: Chain

    init() throws { chain = try Chain() }

    private func holds(_ chain: Chain, roots: [Certificate]? = nil) -> Bool {
        let root = TrustAnchors(roots ?? [chain.root]).roots(of: chain.leaf, through: chain.intermediate).first
        return root?.der == chain.root.der
    }

    private func root(_ roots: [Certificate], _ leaf: Certificate, _ intermediate: Certificate) -> Certificate? {
        TrustAnchors(roots).roots(of: leaf, through: intermediate).first
    }

    @Test func `leads from the leaf through the intermediate to a pinned root`() throws {
        #expect(holds(chain))
        let stranger = try Certificate.make(Chain.request("Stranger", Chain.authority), key: Keys.stranger)
        #expect(holds(chain, roots: [stranger, chain.root]))
        #expect(holds(chain, roots: [chain.root, chain.root]))
        // Another object with the same bytes.
        let again = Chain.copy(try Certificate(der: chain.intermediate.der), in: chain)
        #expect(holds(again))
    }

    @Test func `leads nowhere without pinned roots`() {
        #expect(root([], chain.leaf, chain.intermediate) == nil)
    }

    @Test func `does not lead to a root that only the sender knows`() throws {
        let own = try Certificate.make(Chain.request("Root", Chain.authority), key: Keys.root)
        let stranger = try Certificate.make(Chain.request("Root", Chain.authority), key: Keys.stranger)
        // Even with the same name; `own` has the key of the chain's root.
        #expect(root([stranger], chain.leaf, chain.intermediate) == nil)
        #expect(root([own], chain.leaf, chain.intermediate)?.der == own.der)
    }

    @Test func `finds its root among others of the same name, in any order`() throws {
        let stranger = try Certificate.make(Chain.request("Root", Chain.authority), key: Keys.stranger)
        #expect(holds(chain, roots: [stranger, chain.root]))
        #expect(holds(chain, roots: [chain.root, stranger]))
    }

    @Test func `does not pass a forged intermediate under the genuine root's name`() throws {
        let forged = try Certificate.make(
            Chain.request("Intermediate", Chain.intermediateAuthority), key: Keys.intermediate,
            issuer: (chain.root, Keys.stranger))
        #expect(root([chain.root], chain.leaf, forged) == nil)
    }

    @Test func `does not pass a forged leaf under the genuine intermediate's name`() throws {
        let forged = try Certificate.make(
            Chain.request("Leaf", Chain.signer), key: Keys.leaf, issuer: (chain.intermediate, Keys.stranger))
        #expect(root([chain.root], forged, chain.intermediate) == nil)
    }

    @Test func `does not pass a certificate with one bit of its signature changed`() throws {
        for (changesLeaf, changesIntermediate) in [(true, false), (false, true)] {
            var leaf = chain.leaf.der
            var intermediate = chain.intermediate.der
            if changesLeaf { leaf[leaf.count - 1] ^= 1 }
            if changesIntermediate { intermediate[intermediate.count - 1] ^= 1 }
            #expect(root([chain.root], try Certificate(der: leaf), try Certificate(der: intermediate)) == nil)
        }
    }

    /// Each of the three in each of the three places: one arrangement of 27 is valid.
    @Test func `has its certificates in their order and each once`() {
        let three = [chain.leaf, chain.intermediate, chain.root]
        for leaf in three {
            for intermediate in three {
                for pinned in three {
                    let isRight = leaf === chain.leaf && intermediate === chain.intermediate && pinned === chain.root
                    #expect((root([pinned], leaf, intermediate) != nil) == isRight)
                }
            }
        }
        #expect(root(three, chain.leaf, chain.intermediate)?.der == chain.root.der)
        #expect(root(three, chain.intermediate, chain.root) == nil)
        #expect(root(three, chain.root, chain.root) == nil)
    }

    @Test func `has no fourth certificate`() throws {
        // Here the intermediate may have authorities below it.
        let chain = try Chain(intermediate: Chain.authority)
        let lower = try Certificate.make(
            Chain.request("Lower", Chain.authority), key: Keys.stranger, issuer: (chain.intermediate, Keys.intermediate)
        )
        let leaf = try Certificate.make(
            Chain.request("Leaf", Chain.signer), key: Keys.leaf, issuer: (lower, Keys.stranger))
        #expect(root([chain.root], leaf, lower) == nil)
        #expect(root([chain.root, chain.intermediate], leaf, lower) == nil)
        #expect(root([chain.root], leaf, chain.intermediate) == nil)
    }

    @Test func `has no leaf that the root itself has signed`() throws {
        let leaf = try Certificate.make(
            Chain.request("Leaf", Chain.signer), key: Keys.leaf, issuer: (chain.root, Keys.root))
        #expect(root([chain.root], leaf, chain.intermediate) == nil)
        // Here the certificate between them has the root's name and key, so the leaf's signature is right for both.
        let again = try Certificate.make(Chain.request("Root", Chain.authority, serial: 2), key: Keys.root)
        #expect(root([chain.root], leaf, again) == nil)
    }

    /// In one set with the roots, OpenSSL would prefer a pinned intermediate over the one in the header.
    @Test func `goes through the intermediate that was sent, whatever else is pinned`() throws {
        let other = try Certificate.make(
            Chain.request("Intermediate", Chain.intermediateAuthority, serial: 2), key: Keys.intermediate,
            issuer: (chain.root, Keys.root))
        for roots in [[chain.root], [chain.root, chain.intermediate], [chain.intermediate, chain.root]] {
            #expect(root(roots, chain.leaf, other)?.der == chain.root.der)
        }
        #expect(root([chain.intermediate], chain.leaf, other) == nil)
    }

    @Test func `leads to every root of one name and key, in the order in which they are pinned`() throws {
        let early = try Certificate.make(
            Chain.request("Root", Chain.authority, serial: 2, validity: 0...1000), key: Keys.root)
        let narrow = try Certificate.make(
            Chain.request("Root", [.basicConstraints(isAuthority: true, pathLength: 0)], serial: 3), key: Keys.root)
        for roots in [[chain.root, narrow, early], [early, narrow, chain.root]] {
            let found = TrustAnchors(roots).roots(of: chain.leaf, through: chain.intermediate)
            #expect(found.map(\.der) == roots.filter { $0 !== narrow }.map(\.der))
        }
    }

    @Test func `does not end at a pinned certificate that has not signed itself`() throws {
        #expect(root([chain.intermediate], chain.leaf, chain.intermediate) == nil)
        // Three certificates, the last of which is pinned and signed by a fourth that is not.
        let upper = try Certificate.make(Chain.request("Upper", Chain.authority), key: Keys.stranger)
        let cross = try Certificate.make(
            Chain.request("Root", Chain.authority), key: Keys.root, issuer: (upper, Keys.stranger))
        #expect(root([cross], chain.leaf, chain.intermediate) == nil)
        #expect(!cross.isSelfSigned)
    }

    @Test func `passes only authorities above the leaf`() throws {
        let endsHere: [CertificateRequest.Extension] = [.basicConstraints(isAuthority: false, pathLength: nil)]
        let signsListsOnly: [CertificateRequest.Extension] = [
            .basicConstraints(isAuthority: true, pathLength: nil), .keyUsage([0, 6]),
        ]
        for extensions in [endsHere, signsListsOnly] {
            #expect(try !holds(Chain(intermediate: extensions)))
            #expect(try !holds(Chain(root: extensions)))
        }
        #expect(try holds(Chain(intermediate: [.basicConstraints(isAuthority: true, pathLength: nil)])))
    }

    /// OpenSSL accepts a root, and only a root, as an authority because of keyUsage alone. `isAuthority` shows that to the code
    /// that pins it.
    @Test func `passes an authority without basicConstraints only as its root`() throws {
        #expect(try !holds(Chain(intermediate: [.keyUsage([5, 6])])))
        let chain = try Chain(root: [.keyUsage([5, 6])])
        #expect(holds(chain))
        #expect(!chain.root.isAuthority)
    }

    @Test func `keeps to the root's path length`() throws {
        #expect(try !holds(Chain(root: [.basicConstraints(isAuthority: true, pathLength: 0)])))
        #expect(try holds(Chain(root: [.basicConstraints(isAuthority: true, pathLength: 1)])))
    }

    @Test func `has no critical extension that nobody knows`() throws {
        let unknown = Chain.marker("1.2.840.113635.100.6.99", isCritical: true)
        #expect(try !holds(Chain(leaf: Chain.signer + [unknown])))
        #expect(try !holds(Chain(intermediate: Chain.intermediateAuthority + [unknown])))
        #expect(try holds(Chain(leaf: Chain.signer + [Chain.marker("1.2.840.113635.100.6.99")])))
    }

    @Test func `says nothing about dates`() throws {
        for validity in [0...1000, 4_000_000_000_000...5_000_000_000_000] as [ClosedRange<Int64>] {
            #expect(try holds(Chain(validity: validity)))
        }
    }

    @Test func `says nothing about markers and the leaf's key`() throws {
        let plain = try Chain(leaf: [.keyUsage([0])], leafKey: SigningKey(.p384, seed: [9]))
        #expect(holds(plain))
        #expect(!plain.leaf.hasExtension(Chain.leafMarker))
    }

    @Test func `is judged by several threads with one set of roots`() async throws {
        let anchors = TrustAnchors([chain.root])
        let forged = try Certificate.make(
            Chain.request("Leaf", Chain.signer), key: Keys.leaf, issuer: (chain.intermediate, Keys.stranger))
        let wrong = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<4 {
                group.addTask { [chain] in
                    (0..<10).count { turn in
                        let isGenuine = turn.isMultiple(of: 2)
                        let found = anchors.roots(of: isGenuine ? chain.leaf : forged, through: chain.intermediate)
                        return found.isEmpty == isGenuine
                    }
                }
            }
            return await group.reduce(0, +)
        }
        #expect(wrong == 0)
    }
}

extension Chain {
    fileprivate static func copy(_ intermediate: Certificate, in chain: Chain) -> Chain {
        var copy = chain
        copy.intermediate = intermediate
        return copy
    }
}
