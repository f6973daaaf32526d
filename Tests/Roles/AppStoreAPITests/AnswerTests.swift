import AppStoreAPI
import Contract
import HTTP
import HTTPClient
import KafkaTestKit
import Platform
import TestTraits
import Testing

@Suite(.ownThreads) struct `An answer of Apple` {
    /// The outcome of the request when Apple answers `text` with 200.
    private func value<Value>(_ text: String, _ request: APIRequest<Value>) async throws -> Value {
        var value: Value?
        try await Scene.with(answering: { _ in json(200, text) }) { value = try $0.answer(to: request).value }
        return try #require(value)
    }

    /// Unknown members of every kind.
    private static let unknown = #""new":{"a":[1,null]},"other":"x","#

    @Test func `names the token of a test notification`() async throws {
        let answer = try await value(
            #"{\#(Self.unknown)"testNotificationToken":"ce3af791_1656711609000"}"#, .testNotification())
        #expect(answer.testNotificationToken == "ce3af791_1656711609000")
    }

    @Test func `tells of a test notification and of every try, with results that are new today`() async throws {
        let answer = try await value(
            #"""
            {\#(Self.unknown)"signedPayload":"a.b.c","sendAttempts":[
             {"attemptDate":1783848585000,"sendAttemptResult":"TIMED_OUT"},
             {\#(Self.unknown)"attemptDate":1783852185000,"sendAttemptResult":"NEVER_SEEN"},{}]}
            """#, .testNotificationStatus(token: "t"))
        #expect(answer.signedPayload == "a.b.c")
        #expect(answer.sendAttempts.map(\.attemptDate) == [1_783_848_585_000, 1_783_852_185_000, nil])
        #expect(answer.sendAttempts.map(\.sendAttemptResult) == ["TIMED_OUT", "NEVER_SEEN", nil])
    }

    @Test func `lists notifications by pages`() async throws {
        let query = NotificationHistoryQuery(startDate: 1, endDate: 2)
        let page = try await value(
            #"""
            {\#(Self.unknown)"paginationToken":"next","hasMore":true,"notificationHistory":[
             {"signedPayload":"one","sendAttempts":[{"attemptDate":1,"sendAttemptResult":"SUCCESS"}]},
             {\#(Self.unknown)"signedPayload":"two"}]}
            """#, .notificationHistory(query))
        #expect(page.hasMore && page.paginationToken == "next")
        #expect(page.notificationHistory.map(\.signedPayload) == ["one", "two"])
        #expect(page.notificationHistory.map(\.sendAttempts.count) == [1, 0])
        let last = try await value(#"{"hasMore":false}"#, .notificationHistory(query))
        #expect(!last.hasMore && last.paginationToken == nil && last.notificationHistory.isEmpty)
    }

    @Test func `lists transactions by pages`() async throws {
        let page = try await value(
            #"""
            {\#(Self.unknown)"revision":"r","hasMore":true,"bundleId":"b","appAppleId":5000000000,"environment":"Dream",
             "signedTransactions":["a","b"]}
            """#, .transactionHistory(of: "1"))
        #expect(page.hasMore && page.revision == "r" && page.bundleId == "b" && page.appAppleId == 5_000_000_000)
        #expect(page.environment == "Dream")
        #expect(page.signedTransactions == ["a", "b"])
    }

    @Test func `tells the state of every subscription`() async throws {
        let answer = try await value(
            #"""
            {\#(Self.unknown)"environment":"Sandbox","bundleId":"b","appAppleId":null,"data":[
             {"subscriptionGroupIdentifier":"g","lastTransactions":[
              {\#(Self.unknown)"status":9,"originalTransactionId":"o","signedTransactionInfo":"t","signedRenewalInfo":"r"},
              {"status":1}]},{}]}
            """#, .subscriptionStatuses(of: "1"))
        #expect(answer.environment == "Sandbox" && answer.bundleId == "b" && answer.appAppleId == nil)
        #expect(answer.data.map(\.subscriptionGroupIdentifier) == ["g", nil])
        let last = answer.data[0].lastTransactions
        #expect(last.map(\.status) == [9, 1])
        #expect(last.map(\.originalTransactionId) == ["o", nil])
        #expect(last.map(\.signedTransactionInfo) == ["t", nil])
        #expect(last.map(\.signedRenewalInfo) == ["r", nil])
    }

    @Test func `holds a transaction`() async throws {
        let answer = try await value(#"{"signedTransactionInfo":"a.b.c"}"#, .transactionInfo("1"))
        #expect(answer.signedTransactionInfo == "a.b.c")
    }

    @Test func `needs no body when a consumption answer is taken, and is never read then`() async throws {
        for body in ["", "nonsense", "{}"] {
            try await Scene.with(answering: { _ in json(202, body) }) { scene in
                let answer = try scene.answer(to: consumption)
                #expect(answer.httpStatus == 202 && answer.value == ConsumptionAccepted())
            }
        }
    }

    @Test(arguments: [
        ("", "not JSON (empty)"), ("<html>secret</html>", "not JSON"), (#"["secret"]"#, "an array, not an object"),
        (#"{"hasMore":true}"#, "no paginationToken"), (#"{"notificationHistory":[]}"#, "no hasMore"),
        (#"{"hasMore":"secret"}"#, "hasMore of it is a string"),
        (#"{"hasMore":false,"notificationHistory":{}}"#, "notificationHistory of it is an object"),
        (
            #"{"hasMore":false,"notificationHistory":[{"signedPayload":"a"},{"sendAttempts":[]}]}"#,
            "notificationHistory[1] has no signedPayload"
        ), (#"{"hasMore":false,"notificationHistory":["secret"]}"#, "notificationHistory[0] is a string"),
        (#"{"hasMore":false,"secret":1,"secret":2}"#, "not JSON (repeatedName)"),
    ])
    func `that cannot be read is an error that names the member`(_ text: String, _ words: String) async throws {
        try await Scene.with(answering: { _ in json(200, text) }) { scene in
            let query = NotificationHistoryQuery(startDate: 1, endDate: 2)
            let error = try #require(scene.failure(.notificationHistory(query)))
            #expect(error.httpStatus == 200 && error.fault == .badAnswer && error.errorCode == nil)
            #expect(error.detail.contains(words), "\(error.detail)")
            #expect(!error.description.contains("secret"))
        }
    }

    @Test func `is not read beyond its limit`() async throws {
        var configuration = AppStoreServerAPI.Configuration()
        configuration.maxAnswerBytes = 100
        let text = #"{"signedTransactionInfo":"\#(String(repeating: "a", count: 100))"}"#
        try await Scene.with(configuration: configuration, answering: { _ in json(200, text) }) { scene in
            #expect(scene.failure(.transactionInfo("1"))?.fault == .tooLarge)
        }
    }

    @Test func `may be as large as a page of notifications`() async throws {
        let payload = String(repeating: "a", count: 100_000)
        let entries = Array(repeating: #"{"signedPayload":"\#(payload)"}"#, count: 20).joined(separator: ",")
        let page = try await value(
            #"{"hasMore":false,"notificationHistory":[\#(entries)]}"#,
            .notificationHistory(NotificationHistoryQuery(startDate: 1, endDate: 2)))
        #expect(page.notificationHistory.count == 20)
    }

    @Test func `tells Apple's clock`() async throws {
        try await Scene.with { scene in
            let date = try #require(try scene.answer(to: consumption).serverDate)
            #expect(abs(date - WallClock.milliseconds()) < 120_000)
        }
    }
}

@Suite(.ownThreads) struct `A refusal of Apple` {
    private func error(
        _ response: HTTPResponse, clock: TestClock = TestClock(WallClock.milliseconds())
    ) async throws -> APIError {
        var error: APIError?
        try await Scene.with(clock: clock, answering: { _ in response }) { error = $0.failure(consumption) }
        return try #require(error)
    }

    @Test(arguments: [400, 401, 403, 404, 408, 409, 418, 429, 500, 502, 503, 302, 200, 204])
    func `keeps its status, and is none of success unless it is that of the request`(_ status: Int) async throws {
        let error = try await error(HTTPResponse(status: status))
        #expect(error.httpStatus == status)
        #expect(error.fault == nil && error.errorCode == nil && error.retryAfter == nil)
        #expect(error.description.contains("\(status)"))
    }

    @Test(arguments: [
        (
            #"{"errorCode":4040010,"errorMessage":"Transaction id not found."}"#,
            APIErrorCode.transactionIdNotFound as APIErrorCode?
        ),
        (#"{"new":1,"errorCode":4999999}"#, APIErrorCode(rawValue: 4_999_999)),
        (#"{"errorCode":99999999999999999999}"#, nil), (#"{"errorCode":"4040010"}"#, nil),
        (#"{"errorCode":null}"#, nil),
        (#"{"errorCode":404.5}"#, nil), (#"[4040010]"#, nil), ("<html>", nil), ("", nil),
    ])
    func `says its code when it has one`(_ body: String, _ code: APIErrorCode?) async throws {
        let error = try await error(json(404, body))
        #expect(error.httpStatus == 404)
        #expect(error.errorCode == code)
    }

    @Test func `says when to come again, in milliseconds since 1970`() async throws {
        let clock = TestClock(1_781_256_600_000)
        let error = try await error(
            json(429, #"{"errorCode":4290000}"#, ("Retry-After", "1781256660123")), clock: clock)
        #expect(error.errorCode == .rateLimitExceeded)
        #expect(error.errorCode?.repetition == .atRetryAfter)
        #expect(error.retryAfter == 1_781_256_660_123)
    }

    @Test(
        arguments: [
            (600, "the clock of this host is 600 s ahead of Apple's"),
            (-600, "the clock of this host is 600 s behind Apple's"),
            (0, "apple.key.id"),
        ] as [(Int64, String)])
    func `of the token blames the clock when it is wrong, and the key otherwise`(
        _ ahead: Int64, _ words: String
    ) async throws {
        let wall = WallClock.milliseconds()
        let clock = TestClock(wall / 1000 * 1000 + ahead * 1000)
        let error = try await error(json(401, "", ("Date", DateTexts().text(wall))), clock: clock)
        #expect(error.httpStatus == 401)
        #expect(error.serverDate == wall / 1000 * 1000)
        #expect(error.clockAhead == ahead * 1000)
        #expect(error.advice?.contains(words) == true, "\(error)")
        #expect(error.description.contains(words))
    }

    @Test(arguments: [
        (403, "", "rights"), (404, #"{"errorCode":4040010}"#, "environment"),
        (404, #"{"errorCode":4040003}"#, "bundleId"),
        (404, #"{"errorCode":4040007}"#, "App Store Connect"), (404, "", "apple.api.production"),
        (407, "", "https_proxy"),
        (429, #"{"errorCode":4290000}"#, "consumption.rate"),
    ])
    func `says what to do`(_ status: Int, _ body: String, _ words: String) async throws {
        let error = try await error(json(status, body))
        #expect(error.advice?.contains(words) == true, "\(error)")
    }

    @Test func `says what its code means`() async throws {
        let error = try await error(json(400, #"{"errorCode":4000209}"#))
        #expect(error.description.contains("4000209, an auto-renewable subscription has no consumptionPercentage"))
        #expect(error.errorCode?.repetition == .never)
    }
}

@Suite(.ownThreads) struct `No answer of Apple` {
    private func error(_ url: String) throws -> APIError {
        var configuration = AppStoreServerAPI.Configuration()
        configuration.production = url
        configuration.usesProxyOfEnvironment = false
        let api = try AppStoreServerAPI(key: .test(), configuration: configuration, now: WallClock.milliseconds)
        defer { api.close() }
        do throws(APIError) {
            _ = try api.answer(to: consumption, of: Scene.bundleId, in: .production)
        } catch {
            return error
        }
        throw NotInTime("a failure", limit: .zero)
    }

    @Test func `has no status, says why, and what to look at`() throws {
        let nobody = try Loopback.listen().port
        let refused = try error("http://127.0.0.1:\(nobody)")
        #expect(refused.httpStatus == nil && refused.fault == .notConnected && refused.retryAfter == nil)
        #expect(refused.clockAhead == nil && refused.serverDate == nil)
        #expect(refused.description.contains("not_connected") && refused.description.contains("https_proxy"))
        // RFC 6761: no name ends in ".invalid".
        let unknown = try error("http://nobody.invalid")
        #expect(unknown.fault == .nameNotFound)
        #expect(unknown.description.contains("apple.api.production"))
        #expect(try error("ftp://127.0.0.1").fault == .invalidRequest)
    }
}
