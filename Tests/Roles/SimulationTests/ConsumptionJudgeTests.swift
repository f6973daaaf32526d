import Contract
import Crypto
import JSON
import Simulation
import Testing

private let now: Int64 = 1_767_225_600_000
private let key = SimulatedAPIKey(seed: 1)
private let bundleId = "com.example.reader"

private func known(_ id: String, _ type: String, adjust: (inout KnownTransaction) -> Void = { _ in })
    -> FoundTransaction
{
    var transaction = KnownTransaction(
        transactionId: id, originalTransactionId: id, bundleId: bundleId, environment: .production, type: type)
    adjust(&transaction)
    return .transaction(transaction)
}

private let coins = "2000000000000001"
private let plan = "2000000000000002"
private let purchases: [String: FoundTransaction] = [
    coins: known(coins, "Consumable"), plan: known(plan, "Auto-Renewable Subscription"),
    "2000000000000003": known("2000000000000003", "Auto-Renewable Subscription") { $0.isFamilyShared = true },
    "2000000000000004": known("2000000000000004", "Auto-Renewable Subscription") { $0.isAdvancedCommerce = true },
    "2000000000000005": known("2000000000000005", "Consumable") { $0.bundleId = "com.example.player" },
    "2000000000000006": known("2000000000000006", "Consumable") { $0.environment = .sandbox },
    "704000000000000001": .appTransaction,
]

private let judge = ConsumptionJudge(
    key: key, bundleIds: [bundleId, "com.example.player"], environments: [.production], find: { purchases[$0] })

/// Mistakes in a caller's token.
private struct Token {
    var header = [("alg", "\"ES256\""), ("kid", "\"\(key.keyId)\""), ("typ", "\"JWT\"")]
    var claims = [
        ("iss", "\"\(key.issuerId)\""), ("aud", "\"appstoreconnect-v1\""), ("bid", "\"\(bundleId)\""),
        ("iat", "\(now / 1000)"), ("exp", "\(now / 1000 + 300)"),
    ]
    var signer = key.key
    var scheme = "Bearer"

    /// - Parameter value: nil removes the member.
    func with(_ name: String, _ value: String?) -> Token {
        var token = self
        for list in [\Token.header, \Token.claims] {
            guard let index = token[keyPath: list].firstIndex(where: { $0.0 == name }) else { continue }
            if let value { token[keyPath: list][index].1 = value } else { token[keyPath: list].remove(at: index) }
        }
        return token
    }

    var authorization: String {
        func section(_ members: [(String, String)]) -> [UInt8] {
            let bytes = Array("{\(members.map { "\"\($0.0)\":\($0.1)" }.joined(separator: ","))}".utf8)
            return Base64.encodeURL(bytes.span)
        }
        let text = section(header) + Array(".".utf8) + section(claims)
        let signature = signer.sign(digest: SHA256.digest(text.span).span)
        return "\(scheme) " + String(decoding: text + Array(".".utf8) + Base64.encodeURL(signature.span), as: UTF8.self)
    }
}

private let whole = #"{"customerConsented":true,"sampleContentProvided":false,"deliveryStatus":"DELIVERED"}"#

private func ask(
    _ id: String = coins, body: String = whole, token: Token? = Token(), method: String = "PUT", version: Int = 2,
    type: String? = "application/json"
) -> APIVerdict {
    let headers = token.map { [("authorization", $0.authorization)] } ?? []
    return judge.verdict(
        on: APIRequest(
            method: method, path: "/inApps/v\(version)/transactions/consumption/\(id)",
            headers: headers + (type.map { [("Content-Type", $0)] } ?? []), body: Array(body.utf8)), now: now)
}

/// The usual body with one member changed; nil: the member is left out.
private func with(_ name: String, _ value: String?) -> String {
    var members = [
        ("customerConsented", "true"), ("sampleContentProvided", "false"), ("deliveryStatus", "\"DELIVERED\""),
    ].filter { $0.0 != name }
    if let value { members.append((name, value)) }
    return "{\(members.map { "\"\($0.0)\":\($0.1)" }.joined(separator: ","))}"
}

private func v1(_ name: String = "", _ value: String? = nil) -> String {
    var members = [
        ("accountTenure", "5"), ("appAccountToken", "\"\""), ("consumptionStatus", "2"), ("customerConsented", "true"),
        ("deliveryStatus", "0"), ("lifetimeDollarsPurchased", "3"), ("lifetimeDollarsRefunded", "1"), ("platform", "1"),
        ("playTime", "3"), ("refundPreference", "1"), ("sampleContentProvided", "false"), ("userStatus", "1"),
    ].filter { $0.0 != name }
    if let value { members.append((name, value)) }
    return "{\(members.map { "\"\($0.0)\":\($0.1)" }.joined(separator: ","))}"
}

private let wrongBodies: [(body: String, code: Int)] = [
    (with("customerConsented", "false"), 4_000_035), (with("customerConsented", nil), 4_000_035),
    (with("customerConsented", "1"), 4_000_000), (with("sampleContentProvided", nil), 4_000_041),
    (with("sampleContentProvided", "\"no\""), 4_000_000), (with("deliveryStatus", "\"LOST\""), 4_000_036),
    (with("deliveryStatus", nil), 4_000_036), (with("deliveryStatus", "0"), 4_000_000),
    (with("refundPreference", "\"NO_PREFERENCE\""), 4_000_044), (with("refundPreference", "null"), 4_000_000),
    (with("consumptionPercentage", "100001"), 4_000_000), (with("consumptionPercentage", "-1"), 4_000_000),
    (with("consumptionPercentage", "0.5"), 4_000_000), (with("consumptionPercentage", "3000000000"), 4_000_000),
    (with("refundPreference", "\"GRANT_PRORATED\""), 4_000_000), (with("accountTenure", "1"), 4_000_000),
    ("", 4_000_000), ("[]", 4_000_000), ("{", 4_000_000), (whole + whole, 4_000_000),
    (#"{"customerConsented":true,"customerConsented":true}"#, 4_000_000),
]

private let wrongIds: [(id: String, version: Int, code: Int)] = [
    ("2000000000000003", 2, 4_000_185), ("2000000000000003", 1, 4_000_185), ("2000000000000004", 2, 4_000_000),
    ("2000000000000005", 2, 4_040_010), ("2000000000000006", 2, 4_040_010), ("2000000000000009", 2, 4_040_010),
    ("704000000000000001", 2, 4_000_048), ("abc", 2, 4_000_006), ("-1", 2, 4_000_006),
    ("20000000000000000000", 2, 4_000_006), ("2000000000000001%20", 2, 4_000_006),
]

private let wrongMembers: [(name: String, value: String?, code: Int)] = [
    ("accountTenure", "8", 4_000_032), ("accountTenure", nil, 4_000_032), ("appAccountToken", nil, 4_000_033),
    ("appAccountToken", "\"3b8c\"", 4_000_033), ("consumptionStatus", "4", 4_000_034),
    ("customerConsented", "false", 4_000_035), ("deliveryStatus", "6", 4_000_036),
    ("lifetimeDollarsPurchased", "8", 4_000_037), ("lifetimeDollarsRefunded", "-1", 4_000_038),
    ("platform", "3", 4_000_039), ("playTime", nil, 4_000_040), ("sampleContentProvided", nil, 4_000_041),
    ("userStatus", "5", 4_000_042), ("refundPreference", "4", 4_000_044), ("playTime", "\"1\"", 4_000_000),
    ("consumptionPercentage", "0", 4_000_000),
]

private let forger = SigningKey(.p256, seed: [1])

private let wrongTokens: [Token?] = [
    nil, Token().with("alg", "\"none\""), Token().with("alg", "\"RS256\""), Token().with("kid", "\"ABCDEFGHIJ\""),
    Token().with("kid", nil), Token().with("typ", "\"JWS\""), Token().with("iss", "\"somebody\""),
    Token().with("aud", "\"appstoreconnect-v2\""), Token().with("aud", nil), Token().with("bid", "\"com.else\""),
    Token().with("bid", nil), Token().with("exp", nil), Token().with("exp", "\"soon\""),
    Token().with("exp", "\(now / 1000)"), Token().with("exp", "\(now / 1000 + 3601)"),
    Token().with("iat", "\(now / 1000 + 61)"), Token().with("iat", "1.5"),
    Token().with("iat", "-9223372036854775808"), Token().with("iat", nil).with("exp", "\(now / 1000 + 4000)"),
    Token(signer: forger), Token(scheme: "Basic"),
]

@Suite struct `The judge of consumption answers` {
    @Test func `takes what Apple takes, and knows what was answered`() {
        let verdict = ask()
        #expect(verdict.status == 202 && verdict.errorCode == nil && verdict.body.isEmpty)
        #expect(verdict.transactionId == coins && verdict.bundleId == bundleId && verdict.version == .v2)
        #expect(verdict.answer == .noPreference)
        #expect(ask(body: with("refundPreference", "\"DECLINE\"")).answer == .decline)
        #expect(ask(plan, body: with("refundPreference", "\"GRANT_PRORATED\"")).answer == .grantProrated)
        #expect(ask(plan, body: v1(), version: 1).answer == .grantFull)
        #expect(ask("2000000000000004", body: v1("refundPreference", "2"), version: 1).answer == .decline)
        #expect(ask(type: "Application/JSON; charset=utf-8").status == 202)
    }

    @Test(arguments: wrongTokens)
    private func `refuses a token that does not hold, without a number`(_ token: Token?) {
        let verdict = ask(token: token)
        #expect(verdict.status == 401 && verdict.errorCode == nil && verdict.body.isEmpty)
        #expect(verdict.bundleId == nil && verdict.answer == nil)
    }

    @Test func `takes a token to the last second, and one that does not say when it was made`() {
        #expect(ask(token: Token().with("iat", nil)).status == 202)
        #expect(ask(token: Token().with("exp", "\(now / 1000 + 3600)")).status == 202)
        let early = Token().with("iat", "\(now / 1000 + 60)").with("exp", "\(now / 1000 + 3660)")
        #expect(ask(token: early).status == 202)
        #expect(ask(token: Token().with("exp", "\(now / 1000 + 1)")).status == 202)
    }

    @Test(arguments: wrongBodies)
    fileprivate func `refuses a body by what is wrong with it`(_ body: String, _ code: Int) throws {
        let verdict = ask(body: body)
        #expect(verdict.status == 400 && verdict.errorCode == code, "\(verdict)")
        #expect(try JSONValue.read(verdict.body)["errorCode"]?.integer == Int64(code))
    }

    @Test func `knows which percentages go with what was bought and delivered`() {
        func code(_ id: String, _ delivery: String, _ percentage: Int?, _ preference: String? = nil) -> Int? {
            var members = #"{"customerConsented":true,"sampleContentProvided":false,"deliveryStatus":"\#(delivery)""#
            if let percentage { members += #","consumptionPercentage":\#(percentage)"# }
            if let preference { members += #","refundPreference":"\#(preference)""# }
            return ask(id, body: members + "}").errorCode
        }
        #expect(code(plan, "DELIVERED", 0) == 4_000_209)
        #expect(code(coins, "UNDELIVERED_OTHER", 0) == nil)
        #expect(code(coins, "UNDELIVERED_OTHER", 1) == 4_000_000)
        #expect(code(coins, "DELIVERED", 100_000) == nil)
        #expect(code(coins, "DELIVERED", 100_000, "GRANT_PRORATED") == 4_000_000)
        #expect(code(coins, "DELIVERED", 0, "GRANT_PRORATED") == 4_000_000)
        #expect(code(coins, "DELIVERED", 99_999, "GRANT_PRORATED") == nil)
        #expect(code(coins, "DELIVERED", 1, "GRANT_PRORATED") == nil)
    }

    @Test(arguments: wrongIds)
    fileprivate func `refuses an id by what it names`(_ id: String, _ version: Int, _ code: Int) {
        let verdict = ask(id, body: version == 1 ? v1() : whole, version: version)
        #expect(verdict.errorCode == code && verdict.status == code / 10_000)
    }

    @Test(arguments: wrongMembers)
    fileprivate func `wants every member of version 1`(_ name: String, _ value: String?, _ code: Int) {
        #expect(ask(body: v1(name, value), version: 1).errorCode == code)
    }

    @Test func `refuses other paths, methods and media types before it reads a body`() {
        #expect(ask(method: "POST").status == 405 && ask(method: "POST").allow == "PUT")
        #expect(ask(version: 3).status == 404 && ask("").status == 404 && ask("1/2").status == 404)
        #expect(ask(type: nil).status == 415 && ask(type: "text/plain").status == 415)
        // A caller that is not authorised does not learn what exists.
        #expect(ask("abc", token: nil).status == 401)
    }
}
