import AppStore
import Contract
import Crypto
import JSON
import Records
import Simulation
import Testing

private let authority = try! SimulatedAuthority(seed: 5)

private func parts(_ jws: [UInt8]) -> [[UInt8]] { jws.split(separator: UInt8(ascii: ".")).map(Array.init) }

private func decoded(_ text: [UInt8]) throws -> [UInt8] {
    let bytes = Base64.decodeURL(text.span)
    return try #require(bytes)
}

private func policy(_ apps: [SimulatedApp] = [app, otherApp]) -> VerificationPolicy {
    VerificationPolicy(anchors: TrustAnchors([authority.root]), apps: apps.map(\.contractApp))
}

@Suite struct `The authority` {
    @Test func `has Apple's shape: sizes, curves, markers, path`() {
        let sizes = [(authority.leaf, 1077), (authority.intermediate, 794), (authority.root, 583)]
        for (certificate, size) in sizes {
            // Signatures on P-384 vary by a few bytes.
            #expect(abs(certificate.der.count - size) <= 8, "\(certificate.subject): \(certificate.der.count)")
        }
        #expect(authority.leaf.p256Key != nil && authority.intermediate.p256Key == nil)
        #expect(authority.leaf.hasExtension("1.2.840.113635.100.6.11.1"))
        #expect(authority.intermediate.hasExtension("1.2.840.113635.100.6.2.1"))
        #expect(!authority.leaf.isAuthority && authority.intermediate.isAuthority && authority.root.isAuthority)
        let path = TrustAnchors([authority.root]).roots(of: authority.leaf, through: authority.intermediate)
        #expect(path.map(\.der) == [authority.root.der])
    }

    @Test func `writes its root as a file for verify.roots`() throws {
        #expect(try Certificate.read(authority.rootPEM).map(\.der) == [authority.root.der])
    }

    @Test func `signs what its leaf verifies, inside and outside`() throws {
        let notification = try #require(try simulation(of: .graceRecovered).life(of: 0).notifications.last)
        let outer = notification.signedPayload(by: authority)
        let payload = try JSONValue.read(try decoded(parts(outer)[1]))
        let inner = ["signedTransactionInfo", "signedRenewalInfo"].compactMap { payload["data"]?[$0]?.string }
        #expect(inner.count == 2)
        let key = try #require(authority.leaf.p256Key)
        for text in [outer] + inner.map({ Array($0.utf8) }) {
            let parts = parts(text)
            let digest = SHA256.digest((parts[0] + [UInt8(ascii: ".")] + parts[1]).span)
            let signature = try decoded(parts[2])
            let isGood = key.verify(signature.span, digest: digest.span)
            #expect(isGood)
        }
        #expect(try decoded(parts(Array(inner[0].utf8))[1]) == notification.transaction)
    }

    /// A real notification of a subscription has about 19.5 KB, with slightly longer names than these: buffers have that size.
    @Test func `makes notifications as large as Apple's`() throws {
        let simulation = try simulation(of: .steady, subscribers: 3)
        let sizes = simulation.notifications.map { $0.signedPayload(by: authority).count }
        #expect(sizes.allSatisfy { (18_800...20_000).contains($0) }, "\(sizes)")
    }

    @Test func `is believed by the verifier in every story`() throws {
        let verifier = Verifier(policy())
        for (seed, story) in Story.allCases.enumerated() {
            let simulation = try simulation(of: story, seed: UInt64(seed), sandbox: seed % 3 == 0)
            for notification in simulation.life(of: 0).notifications.prefix(6) {
                let signed = notification.signedPayload(by: authority)
                let verified = try verifier.notification(signed, now: notification.at)
                #expect(verified.notificationUUID == notification.notificationUUID)
                #expect(verified.key == notification.key)
                #expect(verified.environment == notification.environment)
                #expect(verified.signedDate == notification.at)
                #expect(verified.status == notification.status.map(Int64.init))
                #expect(
                    verified.flags.isEmpty || notification.kind == "SUBSCRIPTION_BLESSED/TWICE", "\(verified.flags)")
            }
        }
    }
}

@Suite struct `A forgery` {
    private let forger = try! Forger(authority, seed: 9)

    private func sample(_ story: Story = .steady, sandbox: Bool = false) throws -> SimulatedNotification {
        try #require(try simulation(of: story, sandbox: sandbox).life(of: 0).notifications.last)
    }

    @Test(arguments: Forgery.allCases) func `is refused for the reason it stands for`(_ forgery: Forgery) throws {
        let verifier = Verifier(policy())
        for notification in [try sample(), try sample(sandbox: true), try sample(.massExtension)] {
            guard forgery.applies(to: notification) else { continue }
            let forged = forger.forge(forgery, of: notification)
            do {
                _ = try verifier.notification(forged, now: notification.at)
                Issue.record("\(forgery) passed")
            } catch {
                #expect(error.reason.rawValue == forgery.reason, "\(error)")
            }
        }
    }

    @Test func `is like no other, and none is genuine`() throws {
        let notification = try sample()
        var seen: Set = [notification.signedPayload(by: authority)]
        for forgery in Forgery.allCases {
            #expect(seen.insert(forger.forge(forgery, of: notification)).inserted, "\(forgery)")
        }
    }

    @Test func `has a reason of the contract, and most of them are there`() {
        let reasons = Set(Forgery.allCases.map(\.reason))
        let known = Set(RejectionReason.allCases.map(\.rawValue))
        // A revoked certificate needs a responder.
        #expect(reasons == known.subtracting(["revoked"]))
    }

    @Test func `is only asked of what it can spoil`() throws {
        for story in [Story.test, .externalPurchase, .consentRescinded, .consumable, .steady] {
            let notification = try sample(story, sandbox: true)
            for forgery in Forgery.allCases where forgery.applies(to: notification) {
                #expect(forger.forge(forgery, of: notification) != notification.signedPayload(by: authority))
            }
        }
    }
}
