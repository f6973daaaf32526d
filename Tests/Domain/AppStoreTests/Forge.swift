import AppStore
import Contract
import Crypto
import Records

/// Makes chains like Apple's, and signs any bytes.
struct Forge: Sendable {
    /// Noon of a day on which every certificate here is valid, unless a test says otherwise.
    static let now: Int64 = 1_788_350_400_000
    static let day: Int64 = 24 * 60 * 60 * 1000
    static let usual = now - 300 * day...now + 300 * day

    static let leafMarker = "1.2.840.113635.100.6.11.1"
    static let intermediateMarker = "1.2.840.113635.100.6.2.1"

    /// What a test wants to be different.
    struct Options: Sendable {
        var rootName = "Test Root CA"
        var intermediateName = "Test Intermediate CA"
        var leafMarkers = [Forge.leafMarker]
        var intermediateMarkers = [Forge.intermediateMarker]
        var leafUsage: [Int]? = [0]
        var leafCurve = SigningKey.Curve.p256
        var leafValidity = Forge.usual
        var intermediateValidity = Forge.usual
        var rootValidity = Forge.usual
    }

    /// The forge that tests share unless they need another, because making keys takes time.
    static let standard = Forge()

    let root, intermediate, leaf: Certificate
    let leafKey: SigningKey
    private let rootKey: SigningKey

    init(_ options: Options = Options()) {
        rootKey = SigningKey(.p384)
        let intermediateKey = SigningKey(.p384)
        leafKey = SigningKey(options.leafCurve)
        root = Self.certificate(options.rootName, 1, options.rootValidity, Self.authority, rootKey, nil)
        intermediate = Self.certificate(
            options.intermediateName, 2, options.intermediateValidity,
            Self.authority + options.intermediateMarkers.map(Self.marker), intermediateKey, (root, rootKey))
        leaf = Self.certificate(
            "Test Leaf", 3, options.leafValidity,
            [.basicConstraints(isAuthority: false, pathLength: nil)]
                + (options.leafUsage.map { [.keyUsage($0)] } ?? []) + options.leafMarkers.map(Self.marker),
            leafKey, (intermediate, intermediateKey))
    }

    /// The root again, with the same name and key and other dates.
    func renewedRoot(validity: ClosedRange<Int64>) -> Certificate {
        Self.certificate(Options().rootName, 9, validity, Self.authority, rootKey, nil)
    }

    private static let authority: [CertificateRequest.Extension] = [
        .basicConstraints(isAuthority: true, pathLength: nil), .keyUsage([5, 6]),
    ]

    private static func marker(_ identifier: String) -> CertificateRequest.Extension {
        // ASN.1 NULL, as in Apple's.
        .other(identifier: identifier, isCritical: false, value: [0x05, 0x00])
    }

    private static func certificate(
        _ name: String, _ serial: UInt8, _ validity: ClosedRange<Int64>, _ extensions: [CertificateRequest.Extension],
        _ key: SigningKey, _ issuer: (Certificate, SigningKey)?
    ) -> Certificate {
        let request = CertificateRequest(
            commonName: name, serial: [serial, 0x7f], validity: validity, extensions: extensions)
        do throws(CertificateFault) {
            return try Certificate.make(
                request, key: key, issuer: issuer.map { (certificate: $0.0, key: $0.1) })
        } catch {
            fatalError("the forge cannot make \(name): \(error)")
        }
    }

    // MARK: Signed texts

    var chain: [Certificate] { [leaf, intermediate, root] }

    static func base64(_ bytes: [UInt8]) -> String {
        String(decoding: Base64.encodeStandard(bytes.span), as: UTF8.self)
    }
    static func base64URL(_ bytes: [UInt8]) -> String { String(decoding: Base64.encodeURL(bytes.span), as: UTF8.self) }

    static func header(_ certificates: [Certificate], alg: String = "\"ES256\"", more: String = "") -> String {
        let chain = certificates.map { "\"\(base64($0.der))\"" }.joined(separator: ",")
        return "{\"alg\":\(alg),\"x5c\":[\(chain)]\(more)}"
    }

    var header: String { Self.header(chain) }

    func signature(of text: String) -> [UInt8] {
        let digest = SHA256.digest(Array(text.utf8).span)
        return leafKey.sign(digest: digest.span)
    }

    /// With `header` or `signature` nil it makes the right one.
    func sign(_ payload: String, header: String? = nil, signature: [UInt8]? = nil) -> String {
        sign(Array(payload.utf8), header: header, signature: signature)
    }

    func sign(_ payload: [UInt8], header: String? = nil, signature: [UInt8]? = nil) -> String {
        let signed = Self.base64URL(Array((header ?? self.header).utf8)) + "." + Self.base64URL(payload)
        return signed + "." + Self.base64URL(signature ?? self.signature(of: signed))
    }
}

/// A JSON object whose members a test changes; values are JSON.
struct Members: Sendable {
    private var members: [(name: String, json: String)]

    init(_ members: KeyValuePairs<String, String>) { self.members = members.map { ($0.key, $0.value) } }

    /// nil removes the member.
    subscript(_ name: String) -> String? {
        get { members.first { $0.name == name }?.json }
        set {
            let index = members.firstIndex { $0.name == name }
            switch (index, newValue) {
            case (let index?, let json?): members[index].json = json
            case (let index?, nil): members.remove(at: index)
            case (nil, let json?): members.append((name, json))
            case (nil, nil): break
            }
        }
    }

    func with(_ name: String, _ json: String?) -> Members {
        var changed = self
        changed[name] = json
        return changed
    }

    var text: String { "{" + members.map { "\"\($0.name)\":\($0.json)" }.joined(separator: ",") + "}" }
}

func quote(_ text: String) -> String { "\"\(text)\"" }

/// Payloads of one subscription.
enum Sample {
    static let bundleId = "com.example.reader"
    static let appAppleId: Int64 = 1_500_000_001
    static let app = App(bundleId: bundleId, appAppleId: appAppleId, entitlements: [], periods: [])

    static let transaction = Members([
        "transactionId": quote("2000000800000011"), "originalTransactionId": quote("2000000800000010"),
        "bundleId": quote(bundleId), "productId": quote("com.example.reader.basic.month"),
        "type": quote("Auto-Renewable Subscription"), "signedDate": "\(Forge.now)", "environment": quote("Production"),
        "price": "7990", "memberOfTomorrow": #"{"a": [1.50, 1e400]}"#,
    ])

    static let renewal = Members([
        "originalTransactionId": quote("2000000800000010"), "autoRenewProductId": quote("com.example.reader.pro.month"),
        "productId": quote("com.example.reader.another"), "autoRenewStatus": "1", "signedDate": "\(Forge.now)",
        "environment": quote("Production"),
    ])

    static func data(_ forge: Forge = .standard) -> Members {
        Members([
            "appAppleId": "\(appAppleId)", "bundleId": quote(bundleId), "bundleVersion": quote("412"),
            "environment": quote("Production"), "signedTransactionInfo": quote(forge.sign(transaction.text)),
            "signedRenewalInfo": quote(forge.sign(renewal.text)), "status": "1",
        ])
    }

    /// A notification without its content.
    static let envelope = Members([
        "notificationType": quote("DID_RENEW"), "subtype": quote("BILLING_RECOVERY"),
        "notificationUUID": quote("5f0a2c1e-7d0b-4c39-9e44-0b6f3f6d2a01"), "version": quote("2.0"),
        "signedDate": "\(Forge.now)",
    ])

    static func notification(_ forge: Forge = .standard) -> Members { envelope.with("data", data(forge).text) }

    static let appTransaction = Members([
        "receiptType": quote("Production"), "appAppleId": "\(appAppleId)", "bundleId": quote(bundleId),
        "receiptCreationDate": "\(Forge.now)", "appTransactionId": quote("704000000000000001"),
    ])

    static func appData(_ forge: Forge = .standard) -> Members {
        Members([
            "appAppleId": "\(appAppleId)", "bundleId": quote(bundleId), "environment": quote("Production"),
            "signedAppTransactionInfo": quote(forge.sign(appTransaction.text)),
        ])
    }
}

extension VerificationPolicy {
    static func trusting(_ forge: Forge = .standard, apps: [App]? = [Sample.app]) -> VerificationPolicy {
        VerificationPolicy(anchors: TrustAnchors([forge.root]), apps: apps)
    }
}

/// The refusal of one payload by a verifier that has seen nothing else; nil if it is accepted.
func refusal(
    _ jws: String, _ policy: VerificationPolicy = .trusting(), as kind: PayloadKind = .notification,
    now: Int64 = Forge.now
) -> Rejection? {
    do throws(Rejection) {
        let verifier = Verifier(policy)
        if kind == .notification {
            _ = try verifier.notification(Array(jws.utf8), now: now)
        } else {
            _ = try verifier.decoded(Array(jws.utf8), as: kind, now: now)
        }
        return nil
    } catch {
        return error
    }
}

func judge(
    _ jws: String, _ policy: VerificationPolicy = .trusting(), as kind: PayloadKind = .notification,
    now: Int64 = Forge.now
) -> RejectionReason? { refusal(jws, policy, as: kind, now: now)?.reason }

func verified(_ jws: String, _ policy: VerificationPolicy = .trusting(), now: Int64 = Forge.now) throws
    -> VerifiedNotification
{
    try Verifier(policy).notification(Array(jws.utf8), now: now)
}
