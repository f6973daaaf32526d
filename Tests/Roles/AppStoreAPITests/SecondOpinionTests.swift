import AppStoreAPI
import Crypto
import Foundation
import HTTP
import JSON
import KafkaTestKit
import Platform
import TestTraits
import Testing

/// The opinion of Apple's own Python library, which other people wrote from the same documents.
@Suite(.ownThreads, .enabled(if: Interop.isInstalled, Comment(rawValue: Interop.absence)))
struct `Apple's library` {
    /// Arguments of the script. The folder holds the key, and must live as long as the script runs.
    private func keyArguments(_ scene: Scene, _ folder: ScratchDirectory) throws -> [String] {
        let key = try folder.write(String(decoding: scene.signingKey.pem, as: UTF8.self), to: "key.p8")
        return [key, Scene.keyId, Scene.issuerId, Scene.bundleId]
    }

    @Test func `would have made our token itself, but for its times`() async throws {
        let folder = try ScratchDirectory("app-store-api")
        try await Scene.with { scene in
            try scene.answer(to: consumption)
            scene.api.renewToken(of: Scene.bundleId)
            try scene.answer(to: consumption)
            let good = scene.apple.tokens.map(\.text)
            try scene.answer(to: consumption, of: "com.example.other")
            let ofOther = try #require(scene.apple.lastToken).text
            scene.clock.advance(seconds: 3600)
            try scene.answer(to: consumption)
            let early = try #require(scene.apple.lastToken).text
            let broken = String(good[0].dropLast(4) + (good[0].hasSuffix("AAAA") ? "BBBB" : "AAAA"))
            let lines = good + [ofOther, early, broken]
            let result = try await Interop.run(
                "check_api.py", ["jwt"] + keyArguments(scene, folder), stdin: lines.map { $0 + "\n" }.joined())
            #expect(result.code == 0, "\(result.standardError)")
            let opinions = result.standardOutput.split(separator: "\n")
            try #require(opinions.count == 5, "\(result.words)")
            #expect(opinions[..<2] == ["ok", "ok"])
            // It does not answer this to everything.
            #expect(opinions[2].contains("its claims are"))
            #expect(opinions[3].contains("ImmatureSignatureError"))
            #expect(opinions[4].contains("InvalidSignatureError"))
        }
        withExtendedLifetime(folder) {}
    }

    @Test func `reads bodies of consumption answers as we mean them, and refuses what Apple would`() async throws {
        let v1 = #"""
            {"accountTenure":5,"appAccountToken":"3b8c3d2e-5a0f-4b57-8a0e-0f1d2c3b4a59","consumptionStatus":2,\#
            "customerConsented":true,"deliveryStatus":0,"lifetimeDollarsPurchased":3,"lifetimeDollarsRefunded":1,\#
            "platform":1,"playTime":3,"refundPreference":1,"sampleContentProvided":false,"userStatus":1}
            """#
        let least = #"{"customerConsented":true,"sampleContentProvided":false,"deliveryStatus":"DELIVERED"}"#
        let bodies: [(Interop.ConsumptionVersion, String, String?)] = [
            (
                .v2, least,
                #"{"customerConsented": true, "deliveryStatus": "DELIVERED", "sampleContentProvided": false}"#
            ),
            (
                .v2, least.with(#""consumptionPercentage":50000,"refundPreference":"GRANT_PRORATED""#),
                #"{"consumptionPercentage": 50000, "customerConsented": true, "deliveryStatus": "DELIVERED", "#
                    + #""refundPreference": "GRANT_PRORATED", "sampleContentProvided": false}"#
            ), (.v2, least.with(#""refundPreference":null"#), nil),
            (.v2, least.with(#""refundPreference":"MAYBE""#), nil),
            (.v2, least.with(#""consumptionPercentage":0.5"#), nil), (.v2, least.with(#""platform":1"#), nil),
            (.v2, least.with(#""customerConsented":true"#), nil),
            (.v2, least.replacing("true", with: "1"), nil), (.v2, least.replacing("DELIVERED", with: "0"), nil),
            (.v2, #"{"customerConsented":true,"sampleContentProvided":false}"#, nil), (.v2, "[]", nil), (.v2, "{", nil),
            (.v1, v1, ""), (.v1, v1.replacing(#""playTime":3,"#, with: ""), nil),
            (.v1, v1.replacing(#""playTime":3"#, with: #""playTime":8"#), nil), (.v1, least, nil), (.v2, v1, nil),
        ]
        let opinions = try await Interop.opinions(on: bodies.map { ($0.0, Array($0.1.utf8)) })
        for ((_, body, fields), opinion) in zip(bodies, opinions) {
            #expect(opinion.isTaken == (fields != nil), "\(body): \(opinion.words)")
            if let fields, !fields.isEmpty { #expect(opinion.words == fields) }
        }
        let ofV1 = try JSONValue.read(Array(opinions[12].words.utf8))
        #expect(ofV1["refundPreference"]?.string == "PREFER_GRANT")
        #expect(ofV1["deliveryStatus"]?.string == "DELIVERED_AND_WORKING_PROPERLY")
        #expect(ofV1["accountTenure"]?.string == "NINETY_DAYS_TO_ONE_HUNDRED_EIGHTY_DAYS")
        #expect(ofV1["consumptionStatus"]?.string == "PARTIALLY_CONSUMED")
        #expect(ofV1["playTime"]?.string == "ONE_TO_SIX_HOURS")
    }

    @Test func `knows no code that we do not know`() async throws {
        let result = try await Interop.run("check_api.py", ["codes"])
        let codes = Set(result.standardOutput.split(separator: "\n").compactMap { Int64($0) })
        #expect(codes.count > 80, "\(result.words)")
        #expect(codes.subtracting(APIErrorCode.known.map(\.rawValue)).isEmpty)
    }

    @Test func `sends the same requests as we do, and reads answers that we read`() async throws {
        let folder = try ScratchDirectory("app-store-api")
        try await Scene.with(answering: typicalAnswer) { scene in
            try sendAll(scene)
            let ours = scene.apple.requests
            let result = try await Interop.run(
                "check_api.py",
                ["calls", try #require(scene.apple.requests.first).origin] + keyArguments(scene, folder))
            #expect(result.code == 0, "\(result.words)")
            #expect(result.standardOutput.split(separator: "\n").count == ours.count)
            let theirs = Array(scene.apple.requests.dropFirst(ours.count))
            try #require(theirs.count == ours.count)
            for (ours, theirs) in zip(ours, theirs) {
                #expect(ours.method == theirs.method)
                #expect(ours.path == theirs.path)
                #expect(ours.parameters == theirs.parameters)
                #expect(ours.headers["Accept"] == theirs.headers["Accept"])
                #expect(ours.headers["Content-Type"] == theirs.headers["Content-Type"])
                #expect(try sortedJSON(ours.body) == sortedJSON(theirs.body))
            }
        }
        withExtendedLifetime(folder) {}
    }

    /// The calls of the script, in its order.
    private func sendAll(_ scene: Scene) throws {
        let id = "2000000123456789"
        let least = #"{"customerConsented":true,"sampleContentProvided":false,"deliveryStatus":"DELIVERED"}"#
        try scene.answer(to: .consumptionV2(transactionId: id, body: Array(least.utf8)))
        try scene.answer(to: .consumptionV1(transactionId: id, body: Array(#"{"customerConsented":true}"#.utf8)))
        try scene.answer(to: .testNotification())
        try scene.answer(to: .testNotificationStatus(token: "ce3af791-365e-4c60-841b-1674b43c1609_1656711609000"))
        var failures = NotificationHistoryQuery(startDate: 1_781_256_600_000, endDate: 1_784_534_400_000)
        failures.onlyFailures = true
        failures.notificationType = "DID_RENEW"
        failures.notificationSubtype = "BILLING_RECOVERY"
        try scene.answer(to: .notificationHistory(failures))
        var ofCustomer = NotificationHistoryQuery(startDate: 1_781_256_600_000, endDate: 1_784_534_400_000)
        ofCustomer.transactionId = id
        try scene.answer(to: .notificationHistory(ofCustomer, paginationToken: "a+b/c=&?%20"))
        var everything = TransactionHistoryQuery()
        everything.startDate = 1_781_256_600_000
        everything.endDate = 1_784_534_400_000
        everything.productIds = ["pro.monthly", "coins & more/é"]
        everything.productTypes = ["AUTO_RENEWABLE", "CONSUMABLE"]
        everything.order = .descending
        everything.subscriptionGroupIdentifiers = ["21456789"]
        everything.inAppOwnershipType = "FAMILY_SHARED"
        everything.revoked = false
        try scene.answer(to: .transactionHistory(of: id, everything, revision: "1781256600000_1"))
        try scene.answer(to: .transactionHistory(of: id))
        try scene.answer(to: .subscriptionStatuses(of: id, statuses: [1, 4]))
        try scene.answer(to: .transactionInfo(id))
    }
}

private let typicalAnswer: FakeApple.Answering = { request in
    // The first argument that is part of the path.
    let texts = [
        ("/consumption/", ""), ("/notifications/test/", #"{"signedPayload":"a","sendAttempts":[]}"#),
        ("/notifications/test", #"{"testNotificationToken":"t"}"#),
        (
            "/notifications/history",
            #"{"hasMore":false,"notificationHistory":[{"signedPayload":"a","sendAttempts":[]}]}"#
        ),
        ("/v2/history/", #"{"hasMore":false,"revision":"r","signedTransactions":["a"]}"#),
        ("/subscriptions/", #"{"environment":"Production","data":[]}"#),
        ("/v1/transactions/", #"{"signedTransactionInfo":"a"}"#),
    ]
    let text = texts.first { request.path.contains($0.0) }?.1
    return text == "" ? accepted : json(200, text ?? "")
}

extension HTTPRequest {
    fileprivate var origin: String { "http://\(headers["Host"] ?? "")" }

    /// Decoded, because the order does not count. Their library writes booleans with a capital letter.
    fileprivate var parameters: [String] {
        (query ?? "").split(separator: "&").map { pair in
            let text = pair.replacing("+", with: " ")
            return (text.removingPercentEncoding ?? "?").replacing("revoked=False", with: "revoked=false")
        }.sorted()
    }
}

/// nil: there is no body.
private func sortedJSON(_ body: [UInt8]) throws -> [String]? {
    guard !body.isEmpty else { return nil }
    let object = try #require(try JSONValue.read(body).object)
    return object.members.map { "\($0.name)=\($0.value)" }.sorted()
}

extension String {
    /// An object with some members added.
    fileprivate func with(_ members: String) -> String { dropLast() + "," + members + "}" }
}
