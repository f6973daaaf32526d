// Payloads that a verifier has to reject, each with the expected reason.

internal import Contract
public import Crypto
internal import JSON

/// One way in which a posted payload differs from what Apple would send for this app.
public enum Forgery: String, Sendable, CaseIterable {
    // Made by anybody, without a key of the authority
    case changedSignature, changedPayload, foreignSignature, derSignature
    case algorithmNone, algorithmOfAnotherCurve
    case ownRoot, ownChainUnderGenuineRoot
    case swappedChain, chainOfTwo, chainOfFour, certificateWithTrailingByte
    case criticalHeader, truncated, cutOff, padded, repeatedMember, oversized
    // Made with a certificate of the authority that is not for the store
    case missingLeafMarker, missingIntermediateMarker, leafOnAnotherCurve, expiredLeaf
    // Signed by Apple, but for another app or with faulty content
    case wrongApp, wrongAppleId, wrongEnvironment
    case otherBundleInside, otherEnvironmentInside, renewalOfAnother, innerSignatureBroken
    case twoContents, transactionInPlaceOfNotification
    case fromTheFuture

    /// The public reason code.
    public var reason: String {
        switch self {
        case .changedSignature, .changedPayload, .foreignSignature, .derSignature: "bad_signature"
        case .algorithmNone, .algorithmOfAnotherCurve: "bad_algorithm"
        case .ownRoot, .ownChainUnderGenuineRoot: "untrusted_chain"
        case .chainOfTwo, .chainOfFour: "bad_chain_length"
        // The key of Apple's intermediate is on P-384, which is not allowed for a leaf.
        case .swappedChain, .certificateWithTrailingByte, .leafOnAnotherCurve: "bad_certificate"
        case .criticalHeader, .truncated, .cutOff, .padded, .repeatedMember: "malformed"
        case .oversized: "too_large"
        case .missingLeafMarker, .missingIntermediateMarker: "missing_marker"
        case .expiredLeaf: "expired_chain"
        case .wrongApp, .wrongAppleId: "wrong_app"
        case .wrongEnvironment: "wrong_environment"
        case .otherBundleInside, .otherEnvironmentInside, .renewalOfAnother, .innerSignatureBroken, .twoContents,
            .transactionInPlaceOfNotification:
            "inconsistent"
        case .fromTheFuture: "in_future"
        }
    }

    /// Whether a notification contains what this forgery changes.
    public func applies(to notification: SimulatedNotification) -> Bool {
        switch self {
        case .wrongAppleId: notification.environment == .production
        // Its environment is derived from the beginning of an id.
        case .wrongEnvironment: notification.notificationType != "EXTERNAL_PURCHASE_TOKEN"
        case .otherBundleInside, .otherEnvironmentInside, .innerSignatureBroken, .transactionInPlaceOfNotification:
            notification.transaction != nil
        case .renewalOfAnother: notification.renewalInfo != nil
        default: true
        }
    }
}

/// Makes forgeries of what an authority would sign. Owns the certificates that forgers use.
public final class Forger: Sendable {
    /// Base64 turns three bytes into four characters, so this exceeds the largest limit a verifier can have: 512 KiB.
    static let oversize = 400_000
    /// The year 2049: no clock shows it.
    static let future = Int64(dayNumber(2049, 1, 1)) * day

    private let authority: SimulatedAuthority
    private let stranger: CertificateChain
    private let withoutLeafMarker: CertificateChain
    private let withoutIntermediateMarker: CertificateChain
    private let onAnotherCurve: CertificateChain
    private let expired: CertificateChain

    public init(_ authority: SimulatedAuthority, seed: UInt64) throws(CertificateFault) {
        self.authority = authority
        let root = (certificate: authority.root, key: authority.rootKey)
        stranger = try CertificateChain(seed: seed &+ 1)
        // A similar extension in the right place: an OID with the same beginning must not be accepted.
        withoutLeafMarker = try CertificateChain(
            seed: seed &+ 2, defects: CertificateChain.Defects(leafMarker: Marker.leaf + "1"), root: root)
        withoutIntermediateMarker = try CertificateChain(
            seed: seed &+ 3, defects: CertificateChain.Defects(intermediateMarker: Marker.leaf), root: root)
        onAnotherCurve = try CertificateChain(
            seed: seed &+ 4, defects: CertificateChain.Defects(leafCurve: .p384), root: root)
        // A day before the earliest simulation: nothing was signed then.
        let validity = SimulatedAuthority.validity.lowerBound...SimulatedAuthority.validity.lowerBound + day
        expired = try CertificateChain(
            seed: seed &+ 5, defects: CertificateChain.Defects(leafValidity: validity), root: root)
    }

    /// The value that the forger posts as `signedPayload`.
    public func forge(_ forgery: Forgery, of notification: SimulatedNotification) -> [UInt8] {
        precondition(forgery.applies(to: notification), "\(forgery) has nothing to spoil here")
        switch forgery {
        case .changedSignature, .changedPayload, .foreignSignature, .derSignature, .truncated, .cutOff, .padded:
            return spoil(notification.signedPayload(by: authority), forgery)
        case .algorithmNone, .algorithmOfAnotherCurve, .criticalHeader, .swappedChain, .chainOfTwo, .chainOfFour,
            .certificateWithTrailingByte, .ownRoot, .ownChainUnderGenuineRoot, .missingLeafMarker,
            .missingIntermediateMarker, .leafOnAnotherCurve, .expiredLeaf:
            return signWithBadHeader(notification.payload(signedBy: authority), forgery)
        case .repeatedMember, .oversized, .wrongApp, .wrongAppleId, .wrongEnvironment, .otherBundleInside,
            .otherEnvironmentInside, .renewalOfAnother, .innerSignatureBroken, .twoContents,
            .transactionInPlaceOfNotification, .fromTheFuture:
            return authority.sign(payload(forgery, notification))
        }
    }

    // MARK: The signed text

    private func spoil(_ genuine: [UInt8], _ forgery: Forgery) -> [UInt8] {
        let dot = UInt8(ascii: ".")
        let parts = genuine.split(separator: dot).map(Array.init)
        switch forgery {
        case .changedPayload:
            // Another version of the same length: everything else stays valid.
            let payload = decoded(parts[1])
            let changed = replacing(#""version":"2.0""#, with: #""version":"2.1""#, in: payload)
            return parts[0] + [dot] + encoded(changed) + [dot] + parts[2]
        case .foreignSignature:
            let other = authority.sign(Array(#"{"of":"another payload"}"#.utf8)).split(separator: dot)
            return parts[0] + [dot] + parts[1] + [dot] + Array(other[2])
        case .changedSignature:
            var signature = decoded(parts[2])
            signature[40] ^= 1
            return parts[0] + [dot] + parts[1] + [dot] + encoded(signature)
        case .derSignature:
            return parts[0] + [dot] + parts[1] + [dot] + encoded(der(signature: decoded(parts[2])))
        case .truncated: return parts[0] + [dot] + parts[1]
        // A single base64 character is not a complete byte.
        case .cutOff: return Array(genuine.dropLast(1))
        default: return genuine + Array("==".utf8)
        }
    }

    /// The signature in X.509 form: right numbers, wrong encoding.
    private func der(signature: [UInt8]) -> [UInt8] {
        func integer(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
            var digits = Array(bytes.drop { $0 == 0 })
            if digits.first ?? 0x80 >= 0x80 { digits.insert(0, at: 0) }
            return [0x02, UInt8(digits.count)] + digits
        }
        let numbers = integer(signature[..<32]) + integer(signature[32...])
        return [0x30, UInt8(numbers.count)] + numbers
    }

    // MARK: The header

    private func signWithBadHeader(_ payload: [UInt8], _ forgery: Forgery) -> [UInt8] {
        let genuine = [authority.leaf.der, authority.intermediate.der, authority.root.der]
        func certificates(_ chain: CertificateChain) -> [[UInt8]] {
            [chain.leaf.der, chain.intermediate.der, chain.root.der]
        }
        func sign(_ certificates: [[UInt8]], key: SigningKey, algorithm: String = "ES256") -> [UInt8] {
            let header = JWS.header(
                algorithm: algorithm, certificates: certificates, isCritical: forgery == .criticalHeader)
            return JWS.sign(payload, header: header, key: key)
        }
        switch forgery {
        case .algorithmNone:
            // The signature is not empty: an empty one would be rejected for its form.
            return sign(genuine, key: stranger.leafKey, algorithm: "none")
        case .algorithmOfAnotherCurve: return sign(genuine, key: authority.leafKey, algorithm: "ES384")
        case .swappedChain: return sign([genuine[1], genuine[0], genuine[2]], key: authority.leafKey)
        case .chainOfTwo: return sign(Array(genuine.prefix(2)), key: authority.leafKey)
        case .chainOfFour: return sign(genuine + [genuine[2]], key: authority.leafKey)
        case .certificateWithTrailingByte:
            return sign([genuine[0] + [0], genuine[1], genuine[2]], key: authority.leafKey)
        case .ownRoot: return sign(certificates(stranger), key: stranger.leafKey)
        case .ownChainUnderGenuineRoot:
            return sign([stranger.leaf.der, stranger.intermediate.der, genuine[2]], key: stranger.leafKey)
        case .missingLeafMarker: return sign(certificates(withoutLeafMarker), key: withoutLeafMarker.leafKey)
        case .missingIntermediateMarker:
            return sign(certificates(withoutIntermediateMarker), key: withoutIntermediateMarker.leafKey)
        case .leafOnAnotherCurve: return sign(certificates(onAnotherCurve), key: onAnotherCurve.leafKey)
        case .expiredLeaf: return sign(certificates(expired), key: expired.leafKey)
        default: return sign(genuine, key: authority.leafKey)
        }
    }

    // MARK: The payload

    private func payload(_ forgery: Forgery, _ notification: SimulatedNotification) -> [UInt8] {
        var transaction = notification.transaction
        var renewalInfo = notification.renewalInfo
        var changes = SimulatedNotification.Changes()
        switch forgery {
        case .transactionInPlaceOfNotification: return transaction ?? []
        case .otherBundleInside:
            transaction = transaction.map {
                replacing("\"bundleId\":\"\(notification.bundleId)\"", with: #""bundleId":"com.example.other""#, in: $0)
            }
        case .otherEnvironmentInside:
            let (here, there) =
                notification.environment == .production ? ("Production", "Sandbox") : ("Sandbox", "Production")
            transaction = transaction.map { replacing("\"\(here)\"", with: "\"\(there)\"", in: $0) }
        case .renewalOfAnother:
            let id = notification.originalTransactionId ?? ""
            renewalInfo = renewalInfo.map { replacing("\"\(id)\"", with: #""2000000000000000""#, in: $0) }
        case .wrongApp: changes.bundleId = "com.example.other"
        case .wrongAppleId: changes.appAppleId = 1
        case .wrongEnvironment: changes.environment = "Xcode"
        case .fromTheFuture: changes.at = Self.future
        case .repeatedMember: changes.extraMembers = { $0.member("version", "2.0") }
        case .oversized:
            changes.extraMembers = { $0.member("filler", String(repeating: "x", count: Self.oversize)) }
        case .twoContents:
            let name = notification.notificationType == "TEST" || notification.transaction != nil ? "summary" : "data"
            changes.extraMembers = { json in
                json.name(text: name)
                json.object { $0.member("bundleId", notification.bundleId) }
            }
        default: break
        }
        var signedTransaction = transaction.map(authority.sign)
        if forgery == .innerSignatureBroken {
            signedTransaction = signedTransaction.map { spoil($0, .changedSignature) }
        }
        return notification.payload(
            transaction: signedTransaction, renewalInfo: renewalInfo.map(authority.sign),
            appTransaction: notification.appTransaction.map(authority.sign), changes: changes)
    }

    private func replacing(_ old: String, with new: String, in text: [UInt8]) -> [UInt8] {
        let old = Array(old.utf8)
        guard text.count >= old.count,
            let place = text.indices.dropLast(old.count - 1).first(where: { text[$0...].starts(with: old) })
        else { return text }
        return text[..<place] + Array(new.utf8) + text[(place + old.count)...]
    }

    private func decoded(_ text: [UInt8]) -> [UInt8] { Base64.decodeURL(text.span) ?? [] }
    private func encoded(_ bytes: [UInt8]) -> [UInt8] { Base64.encodeURL(bytes.span) }
}
