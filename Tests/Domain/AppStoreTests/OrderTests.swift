import AppStore
import Contract
import Crypto
import Testing

/// One fault of a notification, in the order of the contract's steps.
private enum Defect: Int, CaseIterable, Comparable {
    case size, form, algorithm, critical, chainLength, certificate, trust, marker, date, revocation, signature
    case contents, app, environment, member, part, future

    static func < (left: Defect, right: Defect) -> Bool { left.rawValue < right.rawValue }

    var reason: RejectionReason {
        switch self {
        case .size: .tooLarge
        case .form, .critical: .malformed
        case .algorithm: .badAlgorithm
        case .chainLength: .badChainLength
        case .certificate: .badCertificate
        case .trust: .untrustedChain
        case .marker: .missingMarker
        case .date: .expiredChain
        case .revocation: .revoked
        case .signature: .badSignature
        case .contents, .member, .part: .inconsistent
        case .app: .wrongApp
        case .environment: .wrongEnvironment
        case .future: .inFuture
        }
    }

    /// Whether the payload's signature is still valid, so that its environment is known.
    var isBehindTheSignature: Bool { self > .signature }
}

private struct Forgery {
    private static let expired = forge(lacking: [.date])
    private static let unmarked = forge(lacking: [.marker])
    private static let unmarkedAndExpired = forge(lacking: [.marker, .date])

    let defects: Set<Defect>

    private static func forge(lacking defects: Set<Defect>) -> Forge {
        var options = Forge.Options()
        if defects.contains(.marker) { options.leafMarkers = [] }
        if defects.contains(.date) { options.leafValidity = Forge.now - 9 * Forge.day...Forge.now - 8 * Forge.day }
        return Forge(options)
    }

    private var forge: Forge {
        switch (defects.contains(.marker), defects.contains(.date)) {
        case (false, false): .standard
        case (true, false): Self.unmarked
        case (false, true): Self.expired
        case (true, true): Self.unmarkedAndExpired
        }
    }

    private var payload: String {
        var data = Sample.data(forge)
        if defects.contains(.app) { data["bundleId"] = quote("com.example.other") }
        if defects.contains(.environment) { data["environment"] = quote("Xcode") }
        if defects.contains(.member) { data["status"] = "1.5" }
        if defects.contains(.part) { data["signedRenewalInfo"] = quote("a.b.c") }
        var notification = Sample.envelope.with("data", data.text)
        if defects.contains(.contents) { notification["summary"] = "{}" }
        if defects.contains(.future) { notification["signedDate"] = "\(Forge.now + Forge.day)" }
        if defects.contains(.form) { notification["new"] = "{\"a\":1,\"a\":1}" }
        return notification.text
    }

    private var header: String {
        var chain = forge.chain
        if defects.contains(.chainLength) { chain.append(chain[2]) }
        let header = Forge.header(
            chain, alg: defects.contains(.algorithm) ? quote("none") : quote("ES256"),
            more: defects.contains(.critical) ? ",\"crit\":[]" : "")
        guard defects.contains(.certificate) else { return header }
        let text = Forge.base64(forge.root.der)
        return header.replacing(text, with: Forge.base64(forge.root.der + [0]))
    }

    var verdict: Rejection? {
        let signature = defects.contains(.signature) ? [UInt8](repeating: 1, count: 64) : nil
        let signed = forge.sign(payload, header: header, signature: signature)
        let anchor = defects.contains(.trust) ? AppleRoot.g3 : forge.root
        var policy = VerificationPolicy(anchors: TrustAnchors([anchor]), apps: [Sample.app])
        if defects.contains(.size) { policy.maxBytes = signed.utf8.count - 1 }
        let verifier = Verifier(policy)
        if defects.contains(.revocation) { verifier.revocation = { _ in .revoked } }
        do throws(Rejection) {
            _ = try verifier.notification(Array(signed.utf8), now: Forge.now)
            return nil
        } catch {
            return error
        }
    }
}

@Suite struct `The order of the steps` {
    @Test func `has a code for each defect alone`() {
        #expect(Forgery(defects: []).verdict == nil)
        for defect in Defect.allCases {
            #expect(Forgery(defects: [defect]).verdict?.reason == defect.reason, "\(defect)")
        }
        let codes = Set(Defect.allCases.map(\.reason))
        #expect(codes == Set(RejectionReason.allCases), "every code has a defect here")
    }

    @Test func `gives of two defects the code of the earlier one`() {
        for first in Defect.allCases {
            for second in Defect.allCases where first < second {
                let verdict = Forgery(defects: [first, second]).verdict
                #expect(verdict?.reason == first.reason, "\(first) and \(second): \(verdict?.description ?? "taken")")
            }
        }
    }

    @Test func `names the environment once the signature holds, and not before`() {
        for defect in Defect.allCases {
            let verdict = Forgery(defects: [defect]).verdict
            let isKnown = defect.isBehindTheSignature && defect != .environment
            #expect(verdict?.environment == (isKnown ? .production : nil), "\(defect)")
        }
    }

    @Test func `tells of a part inside which one it is, and its own reason`() {
        let detail = Forgery(defects: [.part]).verdict?.detail
        #expect(detail?.hasPrefix("data.signedRenewalInfo: malformed, ") == true, "\(detail ?? "")")
    }

    @Test func `judges a part inside by chain and signature of its own`() {
        let attacker = Forge()
        var expired = Forge.Options()
        expired.leafValidity = Forge.now - 9 * Forge.day...Forge.now - 8 * Forge.day
        let forge = Forge.standard
        let forged: [(String, String)] = [
            (attacker.sign(Sample.transaction.text), "untrusted_chain"),
            (forge.sign(Sample.transaction.text, signature: Array(repeating: 1, count: 64)), "bad_signature"),
            (forge.sign(Sample.transaction.text, header: Forge.header(forge.chain, alg: "1")), "bad_algorithm"),
            (forge.sign(Sample.transaction.with("signedDate", "\(Forge.now - 999 * Forge.day)").text), "expired_chain"),
        ]
        for (text, own) in forged {
            let data = Sample.data().with("signedTransactionInfo", quote(text))
            let verdict = refusal(forge.sign(Sample.envelope.with("data", data.text).text))
            #expect(verdict?.reason == .inconsistent)
            #expect(
                verdict?.detail.hasPrefix("data.signedTransactionInfo: \(own), ") == true, "\(verdict?.detail ?? "")")
        }
    }
}
