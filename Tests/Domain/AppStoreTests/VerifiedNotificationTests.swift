import AppStore
import Contract
import Crypto
import JSON
import Records
import Testing

private func text(_ bytes: [UInt8]?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

private func notification(_ name: String, _ object: Members, apps: [App]? = [Sample.app]) throws -> VerifiedNotification
{
    try verified(Forge.standard.sign(Sample.envelope.with(name, object.text).text), .trusting(apps: apps))
}

@Suite struct `A verified notification` {
    private let forge = Forge.standard

    @Test func `says what was signed, parts inside byte for byte`() throws {
        let signed = forge.sign(Sample.notification().text)
        let notification = try verified(signed)
        #expect(notification.environment == .production)
        #expect(notification.notificationUUID == "5f0a2c1e-7d0b-4c39-9e44-0b6f3f6d2a01")
        #expect(notification.notificationType == "DID_RENEW")
        #expect(notification.subtype == "BILLING_RECOVERY")
        #expect(notification.signedDate == Forge.now)
        #expect(notification.bundleId == Sample.bundleId)
        #expect(notification.appAppleId == Sample.appAppleId)
        #expect(notification.bundleVersion == "412")
        #expect(notification.status == 1)
        #expect(notification.consumptionRequestReason == nil)
        #expect(notification.sha256 == SHA256.digest(Array(signed.utf8).span))
        #expect(notification.leafSerial == "037f")
        #expect(notification.flags == [])
        guard case .data(let transaction, let renewal) = notification.content else {
            Issue.record("no data")
            return
        }
        #expect(text(transaction) == Sample.transaction.text)
        #expect(text(renewal) == Sample.renewal.text)
    }

    @Test func `is the same when its header is known, and its evidence too`() throws {
        let verifier = Verifier(.trusting())
        let signed = Array(forge.sign(Sample.notification().text).utf8)
        let first = try verifier.notification(signed, now: Forge.now)
        #expect(verifier.cachedHeaders == 1)
        let second = try verifier.notification(signed, now: Forge.now)
        #expect(first.sha256 == second.sha256 && second.sha256 == SHA256.digest(signed.span))
        #expect(verifier.cachedHeaders == 1)
    }

    @Test func `of TEST needs no parts inside and is keyed by its own id`() throws {
        let data = Members([
            "appAppleId": "\(Sample.appAppleId)", "bundleId": quote(Sample.bundleId),
            "environment": quote("Production"),
        ])
        let test = try notification("data", data)
        #expect(test.key == test.notificationUUID)
        guard case .data(nil, nil) = test.content else {
            Issue.record("a part from nowhere")
            return
        }
        #expect(test.flags == [])
    }

    @Test func `is keyed by the purchase it speaks of`() throws {
        #expect(try notification("data", Sample.data()).key == "2000000800000010")
        #expect(try notification("data", Sample.data().with("signedRenewalInfo", nil)).key == "2000000800000010")
        #expect(try notification("data", Sample.data().with("signedTransactionInfo", nil)).key == "2000000800000010")
        let appData = try notification("appData", Sample.appData())
        #expect(appData.key == "704000000000000001")
        let nameless = Sample.appTransaction.with("appTransactionId", quote(""))
        let unkeyed = try notification(
            "appData", Sample.appData().with("signedAppTransactionInfo", quote(forge.sign(nameless.text))))
        #expect(unkeyed.key == unkeyed.notificationUUID)
        let token = try notification("externalPurchaseToken", Self.token)
        #expect(token.key == "b2158121-7af9-49d4-9561-1f588205523e")
        let summary = try notification("summary", Self.summary)
        #expect(summary.key == summary.notificationUUID)
    }

    private static let token = Members([
        "externalPurchaseId": quote("b2158121-7af9-49d4-9561-1f588205523e"), "tokenCreationDate": "\(Forge.now)",
        "appAppleId": "\(Sample.appAppleId)", "bundleId": quote(Sample.bundleId),
    ])

    private static let summary = Members([
        "requestIdentifier": quote("r"), "environment": quote("Sandbox"), "bundleId": quote(Sample.bundleId),
        "productId": quote("p"), "storefrontCountryCodes": "[ \"USA\", \"DEU\" ]", "succeededCount": "5",
        "failedCount": "0",
    ])

    @Test func `carries a summary, a token and app data as they were signed`() throws {
        guard case .summary(let summary) = try notification("summary", Self.summary).content,
            case .externalPurchaseToken(let token) = try notification("externalPurchaseToken", Self.token).content,
            case .appData(let appData) = try notification("appData", Sample.appData().with("new", "[ 1.0 ]")).content
        else {
            Issue.record("another content")
            return
        }
        #expect(text(summary) == Self.summary.text)
        #expect(text(token) == Self.token.text)
        #expect(
            text(appData)
                == "{\"appAppleId\":1500000001,\"bundleId\":\"com.example.reader\",\"environment\":\"Production\","
                + "\"appTransaction\":\(Sample.appTransaction.text),\"new\":[ 1.0 ]}")
    }

    @Test func `takes the environment of a token from its identifier`() throws {
        #expect(try notification("externalPurchaseToken", Self.token).environment == .production)
        let sandbox = Self.token.with("externalPurchaseId", quote("SANDBOX_b2158121")).with("appAppleId", "1")
        #expect(try notification("externalPurchaseToken", sandbox).environment == .sandbox)
        let other = Self.token.with("appAppleId", "1")
        #expect(throws: Rejection.self) { try notification("externalPurchaseToken", other) }
    }

    @Test(arguments: [
        ("bundleId", "\"com.example.other\""), ("receiptType", "\"Sandbox\""), ("appAppleId", "7"), ("appAppleId", nil),
        ("receiptType", nil), ("bundleId", nil), ("originalPurchaseDate", "\"x\""),
    ])
    func `is refused with an app transaction that does not fit`(_ name: String, _ json: String?) {
        let other = Sample.appTransaction.with(name, json)
        let appData = Sample.appData().with("signedAppTransactionInfo", quote(forge.sign(other.text)))
        let verdict = judge(forge.sign(Sample.envelope.with("appData", appData.text).text), .trusting(apps: nil))
        #expect(verdict == .inconsistent)
    }

    /// In the published record `appTransaction` replaces the signed text.
    @Test(arguments: ["\"appTransaction\"", "\"appTr\\u0061nsaction\""])
    func `is refused when an app transaction would get a namesake`(_ name: String) throws {
        for json in ["{}", "null", "\"x\""] {
            let twice = Sample.appData().text.dropLast() + ",\(name):\(json)}"
            #expect(judge(forge.sign(Sample.envelope.with("appData", String(twice)).text)) == .inconsistent)
            let alone = Sample.appData().with("signedAppTransactionInfo", nil).text.dropLast() + ",\(name):\(json)}"
            #expect(judge(forge.sign(Sample.envelope.with("appData", String(alone)).text)) == nil)
        }
    }

    @Test(
        arguments: [
            ("notificationType", nil), ("notificationType", "\"\""), ("notificationType", "1"),
            ("notificationUUID", nil),
            ("notificationUUID", "\"\""), ("signedDate", nil), ("signedDate", "null"), ("subtype", "1"),
            ("version", "2"),
            (
                "data",
                "{\"bundleId\":\"com.example.reader\",\"appAppleId\":1500000001,\"environment\":\"Production\",\"signedTransactionInfo\":{}}"
            ),
        ] as [(String, String?)])
    func `is refused without a required member, or with a known one of another type`(_ name: String, _ json: String?) {
        #expect(judge(forge.sign(Sample.notification().with(name, json).text)) == .inconsistent)
    }

    @Test func `is refused when a required member of a part is missing or empty`() {
        let required: [(String, Members, [String])] = [
            (
                "signedTransactionInfo", Sample.transaction,
                ["transactionId", "originalTransactionId", "bundleId", "productId", "environment"]
            ),
            ("signedRenewalInfo", Sample.renewal, ["originalTransactionId", "environment", "autoRenewStatus"]),
        ]
        for (part, payload, names) in required {
            for name in names {
                for json in [nil, "null", "\"\"", "[]"] {
                    let signed = forge.sign(payload.with(name, json).text)
                    let data = Sample.data().with(part, quote(signed))
                    let verdict = judge(forge.sign(Sample.envelope.with("data", data.text).text))
                    #expect(verdict == .inconsistent, "\(part) \(name) \(json ?? "missing")")
                }
            }
        }
    }

    @Test func `counts what is not as Apple documents it, and takes it`() throws {
        let data = Sample.data()
        #expect(try notification("data", data.with("signedRenewalInfo", nil)).flags == ["no_renewal_info"])
        #expect(try notification("data", data.with("signedTransactionInfo", nil)).flags == ["no_transaction"])
        #expect(try notification("data", data.with("status", nil)).flags == ["no_status"])
        let apart = Sample.renewal.with("signedDate", "\(Forge.now - 61_000)")
        #expect(
            try notification("data", data.with("signedRenewalInfo", quote(forge.sign(apart.text)))).flags
                == ["dates_apart"])
        let unknown = Sample.notification().with("notificationType", quote("NEW")).with("subtype", quote("NEWER"))
        #expect(try verified(forge.sign(unknown.text)).flags == ["unknown_type", "unknown_subtype"])
        let consumable = Sample.transaction.with("type", quote("Consumable"))
        let oneTime = data.with("signedTransactionInfo", quote(forge.sign(consumable.text)))
            .with("signedRenewalInfo", nil).with("status", nil)
        #expect(try notification("data", oneTime).flags == [])
    }

    @Test func `is taken for any app when no apps are given`() throws {
        let other = quote("com.example.other")
        let transaction = quote(forge.sign(Sample.transaction.with("bundleId", other).text))
        let data = Sample.data().with("bundleId", other).with("signedTransactionInfo", transaction)
        #expect(try notification("data", data, apps: nil).bundleId == "com.example.other")
    }

    @Test func `tells which chains nobody knows the revocation of, each once`() throws {
        let verifier = Verifier(.trusting())
        var asked = 0
        verifier.revocation = { _ in
            asked += 1
            return .unknown
        }
        let signed = Array(forge.sign(Sample.notification().text).utf8)
        for _ in 0..<2 {
            _ = try verifier.notification(signed, now: Forge.now)
            #expect(verifier.unknownChains.map(\.leaf.der) == [forge.leaf.der])
        }
        #expect(asked == 6, "each of three signatures, known header or not")
    }

    @Test func `is refused as soon as its chain is revoked, known header or not`() throws {
        let verifier = Verifier(.trusting())
        let signed = Array(forge.sign(Sample.notification().text).utf8)
        _ = try verifier.notification(signed, now: Forge.now)
        verifier.revocation = { _ in .revoked }
        #expect(throws: Rejection(.revoked, "a certificate of the chain is revoked")) {
            try verifier.notification(signed, now: Forge.now)
        }
    }
}

@Suite struct `A decoded payload` {
    private let forge = Forge.standard

    private func decoded(_ payload: String, as kind: PayloadKind) throws -> String? {
        let verifier = Verifier(.trusting())
        return text(try verifier.decoded(Array(forge.sign(payload).utf8), as: kind, now: Forge.now))
    }

    @Test func `is what was signed, byte for byte`() throws {
        let odd = "{ \"new\" : [1.50, 1e400, \"\\u00e9\"],\n" + Sample.transaction.text.dropFirst()
        #expect(try decoded(odd, as: .transaction) == odd)
        #expect(try decoded(" \n" + odd + "\n ", as: .transaction) == odd)
        #expect(try decoded(Sample.renewal.text, as: .renewal) == Sample.renewal.text)
        #expect(try decoded(Sample.appTransaction.text, as: .appTransaction) == Sample.appTransaction.text)
    }

    @Test func `has payloads signed inside of it in their places, under their own names`() throws {
        let data = Sample.data()
        let expected = Sample.envelope.with(
            "data",
            data.with("signedTransactionInfo", Sample.transaction.text)
                .with("signedRenewalInfo", Sample.renewal.text).text)
        #expect(try decoded(Sample.notification().text, as: .notification) == expected.text)
        let appData = Sample.envelope.with("appData", Sample.appData().text)
        let expectedAppData = Sample.envelope.with(
            "appData", Sample.appData().with("signedAppTransactionInfo", Sample.appTransaction.text).text)
        #expect(try decoded(appData.text, as: .notification) == expectedAppData.text)
    }

    @Test(
        arguments: [
            (PayloadKind.transaction, "bundleId", "\"x\"", RejectionReason.wrongApp),
            (.appTransaction, "bundleId", nil, .wrongApp), (.appTransaction, "appAppleId", "1", .wrongApp),
            (.appTransaction, "receiptType", nil, .wrongEnvironment), (.transaction, "bundleId", nil, .inconsistent),
            (.transaction, "environment", nil, .inconsistent), (.renewal, "environment", nil, .inconsistent),
            (.transaction, "environment", "\"Xcode\"", .wrongEnvironment),
            (.renewal, "environment", "1", .wrongEnvironment),
            (.transaction, "commitmentInfo", "{\"totalBillingPeriods\":\"12\"}", .inconsistent),
            (.renewal, "eligibleWinBackOfferIds", "[1]", .inconsistent),
            (.renewal, "eligibleWinBackOfferIds", "{}", .inconsistent),
            (.transaction, "isUpgraded", "1", .inconsistent),
            (.transaction, "signedDate", "\(Forge.now + Forge.day)", .inFuture),
            (.appTransaction, "receiptCreationDate", "\(Forge.now + Forge.day)", .inFuture),
        ] as [(PayloadKind, String, String?, RejectionReason)])
    func `is refused by the steps of its kind`(
        _ kind: PayloadKind, _ name: String, _ json: String?, _ expected: RejectionReason
    ) {
        let payload =
            switch kind {
            case .notification: Sample.notification()
            case .transaction: Sample.transaction
            case .renewal: Sample.renewal
            case .appTransaction: Sample.appTransaction
            }
        #expect(judge(forge.sign(payload.with(name, json).text), as: kind) == expected)
    }
}
