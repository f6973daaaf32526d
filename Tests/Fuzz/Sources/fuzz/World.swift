// What the verifier trusts here: an authority made like Apple's, the same in every run.

import AppStore
import Contract
import Crypto

final class World {
    nonisolated(unsafe) static let shared = World()

    /// 2026-01-01, within the validity of every certificate.
    static let now: Int64 = 1_767_225_600_000

    let anchors: TrustAnchors
    let intermediate: Certificate
    let leaf: Certificate
    let verifier: Verifier
    /// A valid notification: the only text that may be accepted.
    let genuine: [UInt8]

    /// The key of the intermediate, which answers for the leaf.
    let intermediateKey: SigningKey
    private let leafKey: SigningKey
    private let header: [UInt8]

    private init() {
        let dates = (World.now - 86_400_000)...(World.now + 86_400_000)
        let rootKey = SigningKey(.p384, seed: [1])
        intermediateKey = SigningKey(.p384, seed: [2])
        leafKey = SigningKey(.p256, seed: [3])
        let authority: [CertificateRequest.Extension] = [
            .basicConstraints(isAuthority: true, pathLength: nil), .keyUsage([5, 6]),
        ]
        func marker(_ identifier: String) -> CertificateRequest.Extension {
            .other(identifier: identifier, isCritical: false, value: [5, 0])
        }
        do {
            let root = try Certificate.make(
                CertificateRequest(commonName: "Root", serial: [1], validity: dates, extensions: authority),
                key: rootKey, isDeterministic: true)
            intermediate = try Certificate.make(
                CertificateRequest(
                    commonName: "Intermediate", serial: [2], validity: dates,
                    extensions: authority + [marker("1.2.840.113635.100.6.2.1")]),
                key: intermediateKey, issuer: (root, rootKey), isDeterministic: true)
            leaf = try Certificate.make(
                CertificateRequest(
                    commonName: "Leaf", serial: [3], validity: dates,
                    extensions: [
                        .basicConstraints(isAuthority: false, pathLength: nil), .keyUsage([0]),
                        marker("1.2.840.113635.100.6.11.1"),
                    ]),
                key: leafKey, issuer: (intermediate, intermediateKey), isDeterministic: true)
            anchors = TrustAnchors([root])
            let chain = [leaf, intermediate, root].map { certificate in
                let der = certificate.der
                return "\"" + String(decoding: Base64.encodeStandard(der.span), as: UTF8.self) + "\""
            }
            header = Array("{\"alg\":\"ES256\",\"x5c\":[\(chain.joined(separator: ","))]}".utf8)
        } catch {
            fatalError("the authority cannot be made: \(error)")
        }
        let app = App(bundleId: "com.example.app", appAppleId: 123, entitlements: [], periods: [])
        verifier = Verifier(VerificationPolicy(anchors: anchors, apps: [app]))
        genuine = World.sign(Array(World.test.utf8), header: header, key: leafKey)
    }

    /// The text of a JWS with a valid signature, whatever its payload contains.
    func signed(_ payload: [UInt8]) -> [UInt8] { World.sign(payload, header: header, key: leafKey) }

    private static func sign(_ payload: [UInt8], header: [UInt8], key: SigningKey) -> [UInt8] {
        let text = Base64.encodeURL(header.span) + [UInt8(ascii: ".")] + Base64.encodeURL(payload.span)
        let signature = key.sign(digest: SHA256.digest(text.span).span, isDeterministic: true)
        return text + [UInt8(ascii: ".")] + Base64.encodeURL(signature.span)
    }

    static let test = """
        {"notificationType":"TEST","notificationUUID":"a","version":"2.0","signedDate":\(now),\
        "data":{"appAppleId":123,"bundleId":"com.example.app","environment":"Production"}}
        """

    private static let transaction = """
        {"transactionId":"1","originalTransactionId":"1","bundleId":"com.example.app","productId":"p",\
        "type":"Auto-Renewable Subscription","purchaseDate":1,"expiresDate":2,"environment":"Production",\
        "signedDate":\(now),"price":9990,"currency":"USD","isUpgraded":true,"offerType":1,\
        "commitmentInfo":{"billingPeriodNumber":1,"totalBillingPeriods":12},"advancedCommerceInfo":{"items":[{}]}}
        """
    private static let renewal = """
        {"originalTransactionId":"1","autoRenewProductId":"p","productId":"p","autoRenewStatus":1,\
        "isInBillingRetryPeriod":false,"environment":"Production","signedDate":\(now),"renewalDate":2,\
        "eligibleWinBackOfferIds":["w"],"commitmentInfo":{"commitmentAutoRenewStatus":1}}
        """
    private static let appTransaction = """
        {"receiptType":"Production","appAppleId":123,"bundleId":"com.example.app","applicationVersion":"1",\
        "receiptCreationDate":\(now),"appTransactionId":"7","originalPlatform":"iOS"}
        """

    /// One payload of each kind that a verifier accepts. The target signs objects in members that hold signed texts.
    static let payloads = [
        "test": test,
        "token": """
        {"notificationType":"EXTERNAL_PURCHASE_TOKEN","subtype":"CREATED","notificationUUID":"b","signedDate":\(now),\
        "externalPurchaseToken":{"externalPurchaseId":"c","tokenCreationDate":1,"appAppleId":123,\
        "bundleId":"com.example.app"}}
        """,
        "summary": """
        {"notificationType":"RENEWAL_EXTENSION","subtype":"SUMMARY","notificationUUID":"d","signedDate":\(now),\
        "summary":{"requestIdentifier":"e","environment":"Sandbox","bundleId":"com.example.app","productId":"p",\
        "storefrontCountryCodes":["USA"],"succeededCount":1,"failedCount":0}}
        """,
        "transaction": transaction,
        "renewal": renewal,
        "app-transaction": appTransaction,
        "data": """
        {"notificationType":"DID_RENEW","notificationUUID":"f","signedDate":\(now),"data":{"appAppleId":123,\
        "bundleId":"com.example.app","environment":"Production","signedTransactionInfo":\(transaction),\
        "signedRenewalInfo":\(renewal),"status":1}}
        """,
        "app-data": """
        {"notificationType":"RESCIND_CONSENT","notificationUUID":"g","signedDate":\(now),"appData":{"appAppleId":123,\
        "bundleId":"com.example.app","environment":"Production","signedAppTransactionInfo":\(appTransaction)}}
        """,
        "app-data-namesake": """
        {"notificationType":"RESCIND_CONSENT","notificationUUID":"h","signedDate":\(now),"appData":{"appAppleId":123,\
        "bundleId":"com.example.app","environment":"Production","signedAppTransactionInfo":\(appTransaction),\
        "appTransaction":{}}}
        """,
    ]
}
