import AppStore
import Contract
import Crypto
import KafkaTestKit
import Records
import Testing

/// Rows 21 to 40 of the list of attacks: the signed content, and the body around it.
@Suite struct `Of payloads and bodies` {
    private let forge = Forge.standard

    private func reason(_ payload: Members, _ policy: VerificationPolicy = .trusting()) -> RejectionReason? {
        judge(forge.sign(payload.text), policy)
    }

    private func reason(ofData data: Members, _ policy: VerificationPolicy = .trusting()) -> RejectionReason? {
        reason(Sample.envelope.with("data", data.text), policy)
    }

    @Test(arguments: ["\"com.example.other\"", "\"com.example.reader2\"", "\"com.example.Reader\"", "\"\"", "1", nil])
    func `another app's payload is refused`(_ bundleId: String?) {
        #expect(reason(ofData: Sample.data().with("bundleId", bundleId)) == .wrongApp)
    }

    @Test func `bundle ids are compared by their bytes`() {
        let app = App(bundleId: "com.example.caf\u{e9}", appAppleId: nil, entitlements: [], periods: [])
        let data = Sample.data().with("bundleId", "\"com.example.cafe\u{301}\"").with("environment", "\"Sandbox\"")
        #expect(reason(ofData: data, .trusting(apps: [app])) == .wrongApp)
    }

    @Test(arguments: ["2", "1500000001.0", "\"1500000001\"", nil])
    func `another appAppleId is refused in production`(_ id: String?) {
        #expect(reason(ofData: Sample.data().with("appAppleId", id)) == .wrongApp)
    }

    @Test func `an app without appAppleId in the settings is not taken in production`() {
        let app = App(bundleId: Sample.bundleId, appAppleId: nil, entitlements: [], periods: [])
        #expect(reason(ofData: Sample.data(), .trusting(apps: [app])) == .wrongApp)
    }

    @Test func `in sandbox appAppleId is not looked at`() {
        let transaction = Sample.transaction.with("environment", quote("Sandbox"))
        let renewal = Sample.renewal.with("environment", quote("Sandbox"))
        for id in [nil, "7"] {
            let data = Sample.data().with("environment", quote("Sandbox")).with("appAppleId", id)
                .with("signedTransactionInfo", quote(forge.sign(transaction.text)))
                .with("signedRenewalInfo", quote(forge.sign(renewal.text)))
            #expect(reason(ofData: data) == nil)
        }
    }

    @Test(arguments: [Contract.Environment.production, .sandbox])
    func `a payload says of which of the two environments it is`(
        _ environment: Contract.Environment
    ) throws {
        let name = quote(environment.nameOfApple)
        let data = Sample.data().with("environment", name)
            .with("signedTransactionInfo", quote(forge.sign(Sample.transaction.with("environment", name).text)))
            .with("signedRenewalInfo", quote(forge.sign(Sample.renewal.with("environment", name).text)))
        let notification = try verified(forge.sign(Sample.envelope.with("data", data.text).text))
        #expect(notification.environment == environment)
    }

    @Test(arguments: ["\"Xcode\"", "\"LocalTesting\"", "\"production\"", "\"\"", "1", nil])
    func `any environment but the two is refused, with and without apps`(_ environment: String?) {
        for apps in [[Sample.app], nil] {
            let data = Sample.data().with("environment", environment)
            #expect(reason(ofData: data, .trusting(apps: apps)) == .wrongEnvironment)
        }
    }

    @Test func `a payload signed by Xcode is refused`() {
        let header = "{\"alg\":\"ES256\",\"kid\":\"Apple_Xcode_Key\",\"x5c\":[\"\(Forge.base64(forge.leaf.der))\"]}"
        let payload = Sample.transaction.with("environment", quote("Xcode")).text
        #expect(judge(forge.sign(payload, header: header), as: .transaction) == .badChainLength)
        #expect(judge(forge.sign(payload), as: .transaction) == .wrongEnvironment)
    }

    @Test func `a payload of another kind is refused`() {
        let payloads: [(PayloadKind, String)] = [
            (.notification, Sample.notification().text), (.transaction, Sample.transaction.text),
            (.renewal, Sample.renewal.text), (.appTransaction, Sample.appTransaction.text),
        ]
        for (kind, payload) in payloads {
            for expected in PayloadKind.allCases {
                let verdict = judge(forge.sign(payload), .trusting(apps: nil), as: expected)
                #expect(
                    (verdict == nil) == (kind == expected), "\(kind) as \(expected): \(verdict?.rawValue ?? "taken")")
            }
        }
        #expect(reason(Sample.transaction) == .inconsistent)
        let notification = forge.sign(Sample.notification().text)
        #expect(judge(notification, as: .transaction) == .inconsistent)
        #expect(judge(notification, as: .renewal) == .inconsistent)
    }

    @Test(arguments: [
        ("summary", "{}"), ("externalPurchaseToken", "{}"), ("appData", "{\"bundleId\":\"com.example.reader\"}"),
    ])
    func `two of the four contents are refused, one beside null is not`(_ name: String, _ object: String) {
        #expect(reason(Sample.notification().with(name, object)) == .inconsistent)
        #expect(reason(Sample.notification().with(name, "null")) == nil)
    }

    @Test(arguments: [nil, "null", "\"text\"", "[]", "1"])
    func `none of the four contents is refused`(_ data: String?) {
        #expect(reason(Sample.envelope.with("data", data)) == .inconsistent)
    }

    private func nested(_ name: String, _ payload: Members) -> RejectionReason? {
        reason(ofData: Sample.data().with(name, quote(forge.sign(payload.text))), .trusting(apps: nil))
    }

    @Test func `a transaction of another app is refused`() {
        let other = Sample.transaction.with("bundleId", quote("com.example.other"))
        #expect(nested("signedTransactionInfo", other) == .inconsistent)
        #expect(reason(ofData: Sample.data().with("bundleId", nil), .trusting(apps: nil)) == .inconsistent)
    }

    @Test func `a part of another environment is refused`() {
        for (name, part) in [("signedTransactionInfo", Sample.transaction), ("signedRenewalInfo", Sample.renewal)] {
            #expect(nested(name, part.with("environment", quote("Sandbox"))) == .inconsistent)
            #expect(nested(name, part.with("environment", quote("Xcode"))) == .inconsistent)
        }
    }

    @Test func `a renewal of another subscription is refused`() {
        let other = Sample.renewal.with("originalTransactionId", quote("2000000800000099"))
        #expect(nested("signedRenewalInfo", other) == .inconsistent)
    }

    @Test func `subscriptions are compared by their bytes`() {
        let transaction = Sample.transaction.with("originalTransactionId", quote("caf\u{e9}"))
        let renewal = Sample.renewal.with("originalTransactionId", quote("cafe\u{301}"))
        let data = Sample.data().with("signedTransactionInfo", quote(forge.sign(transaction.text)))
        #expect(reason(ofData: data.with("signedRenewalInfo", quote(forge.sign(renewal.text)))) == .inconsistent)
        let same = renewal.with("originalTransactionId", quote("caf\\u00e9"))
        #expect(reason(ofData: data.with("signedRenewalInfo", quote(forge.sign(same.text)))) == nil)
    }

    @Test func `a transaction of another subscription is refused, another product is not`() {
        let other = Sample.transaction.with("originalTransactionId", quote("2000000800000099"))
        #expect(nested("signedTransactionInfo", other) == .inconsistent)
        #expect(nested("signedRenewalInfo", Sample.renewal.with("productId", quote("com.example.third"))) == nil)
    }

    @Test func `an old notification is taken, again and again`() throws {
        let verifier = Verifier(.trusting())
        let old = Sample.notification().with("signedDate", "\(Forge.now - 180 * Forge.day)").text
        for _ in 0..<3 {
            let notification = try verifier.notification(Array(forge.sign(old).utf8), now: Forge.now)
            #expect(notification.signedDate == Forge.now - 180 * Forge.day)
        }
    }

    @Test func `a date more than five minutes ahead is refused, up to there it is not`() {
        let limit = Forge.now + 5 * 60 * 1000
        #expect(reason(Sample.notification().with("signedDate", "\(limit)")) == nil)
        #expect(reason(Sample.notification().with("signedDate", "\(limit + 1)")) == .inFuture)
        #expect(reason(Sample.notification().with("signedDate", "\(Int64.max)")) == .inFuture)
    }

    @Test func `a part dated ahead is taken`() {
        let ahead = Sample.transaction.with("signedDate", "\(Forge.now + Forge.day)")
        #expect(nested("signedTransactionInfo", ahead) == nil)
    }

    @Test func `a text beyond the limit is refused, one at it is not`() {
        var policy = VerificationPolicy.trusting()
        let signed = forge.sign(Sample.notification().text)
        policy.maxBytes = signed.utf8.count
        #expect(judge(signed, policy) == nil)
        policy.maxBytes -= 1
        #expect(judge(signed, policy) == .tooLarge)
    }

    @Test func `nesting beyond sixteen is refused, in payload and header`() {
        func nest(_ depth: Int) -> String {
            // The surrounding object is the first level.
            String(repeating: "[", count: depth - 1) + String(repeating: "]", count: depth - 1)
        }
        #expect(reason(Sample.notification().with("new", nest(16))) == nil)
        #expect(reason(Sample.notification().with("new", nest(17))) == .malformed)
        let header = Forge.header(forge.chain, more: ",\"new\":\(nest(17))")
        #expect(judge(forge.sign(Sample.notification().text, header: header)) == .malformed)
    }

    @Test func `twenty thousand members are read in time, and a repeated one among them is found`() {
        let many = (0..<20_000).map { "\"m\($0)\":0" }.joined(separator: ",")
        let payload = Sample.notification().text.dropLast() + "," + many
        var policy = VerificationPolicy.trusting()
        policy.maxBytes = 1 << 20
        let time = threadTime {
            #expect(judge(forge.sign(payload + "}"), policy) == nil)
            #expect(judge(forge.sign(payload + ",\"m77\":1}"), policy) == .malformed)
        }
        // If they were compared one by one, a debug build would take minutes.
        #expect(time < .seconds(20))
    }

    @Test func `a member given twice is refused at every level`() {
        let payload = Sample.notification().text
        #expect(judge(forge.sign(payload.dropLast() + ",\"version\":\"2.0\"}")) == .malformed)
        #expect(judge(forge.sign(payload.dropLast() + ",\"v\\u0065rsion\":\"2.0\"}")) == .malformed)
        #expect(reason(Sample.notification().with("new", "[{\"a\":{\"b\":1,\"b\":1}}]")) == .malformed)
        let header = Forge.header(forge.chain, more: ",\"alg\":\"ES256\"")
        #expect(judge(forge.sign(payload, header: header)) == .malformed)
        let twice = Sample.transaction.text.dropLast() + ",\"price\":1}"
        #expect(
            reason(ofData: Sample.data().with("signedTransactionInfo", quote(forge.sign(String(twice)))))
                == .inconsistent)
    }

    @Test func `a payload or header that is no JSON object in UTF-8 is refused`() {
        let payload = Sample.notification().text
        let wrong: [[UInt8]] = [
            Array("[]".utf8), Array("null".utf8), Array("\"text\"".utf8), Array("1".utf8), Array("{".utf8),
            Array("\u{feff}\(payload)".utf8), Array((payload + "{}").utf8), Array((payload + "\0").utf8),
            Array(payload.utf8) + [0xff], Array(payload.replacing("2.0", with: "\\ud800").utf8),
            Array(payload.replacing("version", with: "\\udc00").utf8), Array(payload.replacing("2.0", with: "\n").utf8),
        ]
        for bytes in wrong { #expect(judge(forge.sign(bytes)) == .malformed) }
        for header in ["[]", "\u{feff}" + forge.header, forge.header + " x"] {
            #expect(judge(forge.sign(payload, header: header)) == .malformed)
        }
    }

    @Test(arguments: ["1.0", "1e0", "9223372036854775808", "-9223372036854775809", "\"1\"", "true", "[]"])
    func `a known number that is no whole number of 64 bits is refused`(_ number: String) {
        #expect(reason(ofData: Sample.data().with("status", number)) == .inconsistent)
        #expect(nested("signedTransactionInfo", Sample.transaction.with("price", number)) == .inconsistent)
        #expect(nested("signedRenewalInfo", Sample.renewal.with("autoRenewStatus", number)) == .inconsistent)
        #expect(reason(Sample.notification().with("signedDate", number)) == .inconsistent)
    }

    @Test(arguments: ["9223372036854775807", "-9223372036854775808", "0", "-0", "null"])
    func `a whole number of 64 bits is taken`(_ number: String) {
        #expect(reason(ofData: Sample.data().with("status", number)) == nil)
    }

    @Test func `NaN is no JSON, and unknown members may hold any number`() {
        #expect(reason(Sample.notification().with("new", "NaN")) == .malformed)
        #expect(reason(Sample.notification().with("new", "[1e999,0.1,99999999999999999999]")) == nil)
        let commerce = Sample.transaction.with("advancedCommerceInfo", "[{\"items\":1.5}]")
        #expect(nested("signedTransactionInfo", commerce) == nil)
    }

    @Test(arguments: [
        "", "{}", "[]", "null", "\"text\"", "{\"signedPayload\":1}", "{\"signedPayload\":null}",
        "{\"signedPayload\":\"a\",\"signedPayload\":\"a\"}", "{\"signedPayload\":[\"a\"]}", "{\"SignedPayload\":\"a\"}",
        "\u{feff}{\"signedPayload\":\"a\"}", "{\"signedPayload\":\"a\"}x", "{\"signedPayload\":\"\\ud800\"}",
        "{\"signedPayload\":\"a\",\"b\":{\"c\":1,\"c\":1}}", "{\"signedPayload\":\"a\",\"\\udc00\":1}",
    ])
    func `a body without one signedPayload that is a string is refused`(_ body: String) {
        let bytes = Array(body.utf8)
        #expect(Self.reason { () throws(Rejection) in try NotificationBody.signedPayload(of: bytes) } == .malformed)
        let verifier = Verifier(.trusting())
        #expect(Self.reason { () throws(Rejection) in try verifier.signedPayload(of: bytes) } == .malformed)
    }

    private static func reason(_ read: () throws(Rejection) -> [UInt8]) -> RejectionReason? {
        do throws(Rejection) {
            _ = try read()
            return nil
        } catch {
            return error.reason
        }
    }

    @Test func `other members of the body are ignored`() throws {
        let body = Array(#" {"new":[1], "signedPayload":"a\u002eb.c"} "#.utf8)
        #expect(try NotificationBody.signedPayload(of: body) == Array("a.b.c".utf8))
        #expect(try Verifier(.trusting()).signedPayload(of: body) == Array("a.b.c".utf8))
    }

    @Test func `a flood of forged chains is not kept, and what is kept has a bound`() throws {
        let verifier = Verifier(.trusting())
        let payload = Sample.notification().text
        let attacker = Forge()
        for number in 0..<5 {
            let more = ",\"n\":\(number)"
            let forgedChain = attacker.sign(payload, header: Forge.header(attacker.chain, more: more))
            let forgedSignature = forge.sign(
                payload, header: Forge.header(forge.chain, more: more), signature: Array(repeating: 1, count: 64))
            for forged in [forgedChain, forgedSignature] {
                #expect(throws: Rejection.self) { try verifier.notification(Array(forged.utf8), now: Forge.now) }
            }
        }
        #expect(verifier.cachedHeaders == 0)
        for number in 0..<40 {
            let signed = forge.sign(
                Sample.envelope.with("data", Sample.data().with("signedRenewalInfo", nil).text).text,
                header: Forge.header(forge.chain, more: ",\"n\":\(number)"))
            _ = try verifier.notification(Array(signed.utf8), now: Forge.now)
        }
        #expect(verifier.cachedHeaders == 32)
    }

    @Test func `a body of version 1 is refused, and told apart`() {
        let body = Array(#"{"notification_type":"CANCEL","password":"x","unified_receipt":{}}"#.utf8)
        do throws(Rejection) {
            _ = try NotificationBody.signedPayload(of: body)
            Issue.record("the payload was accepted")
        } catch {
            #expect(error.reason == .malformed)
            #expect(error.detail.contains("version 2"))
        }
    }
}
