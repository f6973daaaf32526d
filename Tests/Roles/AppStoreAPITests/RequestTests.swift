import AppStoreAPI
import Contract
import Crypto
import HTTP
import HTTPClient
import JSON
import KafkaTestKit
import Platform
import Synchronization
import TestTraits
import Testing

@Suite(.ownThreads) struct `A request to Apple` {
    @Test func `puts a consumption answer, byte for byte, to the transaction of its version`() async throws {
        let body = Array(#"{"customerConsented":true, "sampleContentProvided":false}"#.utf8)
        try await Scene.with { scene in
            let answer = try scene.answer(to: .consumptionV2(transactionId: "2000000123456789", body: body))
            #expect(answer.httpStatus == 202)
            try scene.answer(to: .consumptionV1(transactionId: "2000000123456789", body: body))
            let requests = scene.apple.requests
            #expect(requests.map(\.method) == ["PUT", "PUT"])
            #expect(
                requests.map(\.path) == [
                    "/inApps/v2/transactions/consumption/2000000123456789",
                    "/inApps/v1/transactions/consumption/2000000123456789",
                ])
            for request in requests {
                #expect(request.body == body)
                #expect(request.query == nil)
                #expect(request.headers.all("Content-Type") == ["application/json"])
                #expect(request.headers.all("Accept") == ["application/json"])
                #expect(request.headers.all("Authorization").count == 1)
            }
        }
    }

    @Test func `goes to the host of its environment, and says who asks`() async throws {
        var configuration = AppStoreServerAPI.Configuration()
        configuration.userAgent = "perennial/test"
        try await Scene.with(configuration: configuration) { scene in
            try scene.answer(to: consumption, in: .production)
            try scene.answer(to: consumption, in: .sandbox)
            let paths = scene.apple.requests.map(\.path)
            #expect(paths.map { $0.hasPrefix("/of-sandbox/inApps/") } == [false, true])
            #expect(scene.apple.requests.map { $0.headers["User-Agent"] } == ["perennial/test", "perennial/test"])
        }
    }

    @Test func `goes to Apple unless another address is given`() {
        let configuration = AppStoreServerAPI.Configuration()
        #expect(configuration.production == "https://api.storekit.apple.com")
        #expect(configuration.sandbox == "https://api.storekit-sandbox.apple.com")
        #expect(configuration.timeout == .seconds(30))
        #expect(configuration.usesProxyOfEnvironment)
    }

    /// Ids that could lead to another path, or that are not Apple's.
    static let noIds = [
        "", "../1", "1/2", "1?x=y", "1#x", "1%2F2", "1 2", "1\r\nX: y", "1\u{0}", "é", "1.", "1-2", "１２",
        String(repeating: "1", count: 65),
    ]

    @Test(arguments: noIds) func `is not sent when its transaction id is none`(_ id: String) async throws {
        try await Scene.with { scene in
            let failures = [
                scene.failure(.consumptionV2(transactionId: id, body: [])),
                scene.failure(.consumptionV1(transactionId: id, body: [])),
                scene.failure(.transactionInfo(id)), scene.failure(.transactionHistory(of: id)),
                scene.failure(.subscriptionStatuses(of: id)),
            ]
            for failure in failures {
                #expect(failure?.fault == .invalidRequest)
                #expect(failure?.httpStatus == nil)
                #expect(id.isEmpty || failure?.description.contains(id) == false)
            }
            #expect(scene.apple.requests.isEmpty)
            let ticket = scene.api.send(.transactionInfo(id), of: Scene.bundleId, in: .production) { _ in }
            #expect(ticket == nil)
        }
    }

    @Test(arguments: ["", "../x", "a/b", "a?b", "a b", "é", String(repeating: "a", count: 257)])
    func `is not sent when its test token is none`(_ token: String) async throws {
        try await Scene.with { scene in
            #expect(scene.failure(.testNotificationStatus(token: token))?.fault == .invalidRequest)
            #expect(scene.apple.requests.isEmpty)
        }
    }

    @Test func `begins only when it may, and says that nothing was sent`() async throws {
        try await Scene.with { scene in
            let asked = Mutex(0)
            let refusal = scene.failure(consumption) {
                asked.withLock { $0 += 1 }
                return false
            }
            #expect(refusal?.fault == .withdrawn)
            #expect(refusal?.httpStatus == nil)
            #expect(asked.withLock { $0 } == 1)
            #expect(scene.apple.requests.isEmpty)
            #expect(scene.failure(consumption) { true } == nil)
            #expect(scene.apple.requests.count == 1)
        }
    }

    @Test func `is answered on another thread when it is not waited for, and can be given up`() async throws {
        try await Scene.with { scene in
            let outcomes = Mutex<[Result<APIAnswer<ConsumptionAccepted>, APIError>]>([])
            for _ in 0..<20 {
                scene.api.send(consumption, of: Scene.bundleId, in: .production) { outcome in
                    outcomes.withLock { $0.append(outcome) }
                }
            }
            try await waitUntil("every request is answered") { outcomes.withLock { $0.count } == 20 }
            for outcome in outcomes.withLock({ $0 }) { #expect(try outcome.get().httpStatus == 202) }
        }
        // Nothing listens there.
        let silent = try Loopback.listen()
        var configuration = AppStoreServerAPI.Configuration()
        configuration.production = "http://127.0.0.1:\(silent.port)"
        configuration.usesProxyOfEnvironment = false
        let api = try AppStoreServerAPI(key: .test(), configuration: configuration, now: WallClock.milliseconds)
        let ended = Mutex<[HTTPClientFault.Kind?]>([])
        let ticket = api.send(consumption, of: Scene.bundleId, in: .production) { outcome in
            ended.withLock { $0.append(outcome.fault) }
        }
        api.cancel(try #require(ticket))
        try await waitUntil("the request is cancelled") { ended.withLock { $0 } == [.cancelled] }
        api.send(consumption, of: Scene.bundleId, in: .production, timeout: .milliseconds(50)) { outcome in
            ended.withLock { $0.append(outcome.fault) }
        }
        try await waitUntil("its own time is over") { ended.withLock { $0 } == [.cancelled, .timedOut] }
        #expect(api.close())
        #expect(Scene.failure(of: api) == .cancelled)
    }

    @Test func `trusts an authority of its own beside the system's, and no other`() async throws {
        let identity = try await TestIdentity.localhost.value
        var configuration = AppStoreServerAPI.Configuration()
        try await Scene.with(identity: identity, configuration: configuration) { scene in
            #expect(scene.failure(consumption)?.fault == .tls)
            #expect(scene.apple.requests.isEmpty)
        }
        configuration.authorities = identity.certificate
        try await Scene.with(identity: identity, configuration: configuration) { scene in
            for _ in 0..<3 { try scene.answer(to: consumption) }
            #expect(scene.apple.requests.count == 3)
        }
    }
}

@Suite(.ownThreads) struct `A client of the App Store Server API` {
    @Test func `shows neither key nor token to who prints it`() async throws {
        try await Scene.with { scene in
            try scene.answer(to: consumption)
            let token = try #require(scene.apple.tokens.first).text
            let key = try APIKey(issuerId: Scene.issuerId, keyId: Scene.keyId, pem: scene.signingKey.pem)
            let request = APIRequest.consumptionV2(transactionId: "2000000123456789", body: Array("secret".utf8))
            var dumped = ""
            dump(scene.api, to: &dumped)
            dump(key, to: &dumped)
            dump([key], to: &dumped)
            dump(request, to: &dumped)
            var texts = ["\(scene.api)", "\(key)", "\([key])", "\(Optional(key) as Any)", "\(request)", dumped]
            texts += [scene.api, key, [key], request].map { String(reflecting: $0 as Any) }
            let secrets =
                [Scene.issuerId, Scene.keyId, token, "2000000123456789", "secret", "115, 101", "SigningKey"]
                + token.split(separator: ".").map(String.init)
                + String(decoding: scene.signingKey.pem, as: UTF8.self).split(separator: "\n").map(String.init)
            for text in texts {
                #expect(!text.isEmpty)
                for secret in secrets { #expect(!text.contains(secret), "\(secret) in \(text)") }
            }
        }
    }

    @Test func `tells neither token, path nor body in its errors`() async throws {
        let body = #"{"errorCode":4000006,"errorMessage":"the secret of 2000000123456789"}"#
        for status in [400, 401, 403, 404, 429, 500, 302, 200] {
            try await Scene.with(answering: { _ in json(status, body) }) { scene in
                let error = try #require(scene.failure(consumption))
                let token = try #require(scene.apple.tokens.first).text
                var dumped = ""
                dump(error, to: &dumped)
                for text in [error.description, dumped, String(reflecting: error)] {
                    for secret in [token, "secret", "2000000123456789", "inApps", Scene.keyId, Scene.issuerId] {
                        #expect(!text.contains(secret), "\(secret) in \(text)")
                    }
                }
            }
        }
    }
}

extension Result where Failure == APIError {
    var fault: HTTPClientFault.Kind? {
        if case .failure(let error) = self { error.fault } else { nil }
    }
}

extension Scene {
    static func failure(of api: AppStoreServerAPI) -> HTTPClientFault.Kind? {
        do throws(APIError) {
            _ = try api.answer(to: consumption, of: bundleId, in: .production)
            return nil
        } catch {
            return error.fault
        }
    }
}
