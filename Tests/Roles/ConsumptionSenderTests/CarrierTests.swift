import AppStoreAPI
import Contract
import Crypto
import HTTP
import HTTPClient
import JSON
import KafkaTestKit
import Platform
import Synchronization
import Telemetry
import TestTraits
import Testing

@testable import ConsumptionSender

/// A server that this client takes for Apple: over TLS, with an authority of its own.
private final class SecureApple: HTTPHandler {
    private let kept = Mutex<[HTTPRequest]>([])
    private let answer: HTTPResponse

    init(_ answer: HTTPResponse) { self.answer = answer }

    var requests: [HTTPRequest] { kept.withLock { $0 } }
    func earlyAnswer(to head: HTTPRequest) -> HTTPResponse? { nil }
    func handle(_ request: HTTPRequest, _ responder: Responder) {
        kept.withLock { $0.append(request) }
        responder.respond(answer)
    }
}

@Suite(.ownThreads) struct `The way to the App Store Server API` {
    private static let body = Array(#"{"customerConsented":true}"#.utf8)

    private func delivery(
        _ apple: SecureApple, isV1: Bool = false, trusts: Bool = true, ahead: Int64 = 0, mayBegin: Bool = true
    ) async throws -> Delivery {
        let folder = try ScratchDirectory("carrier-tests")
        let (certificate, key) = ("\(folder.path)/certificate.pem", "\(folder.path)/key.pem")
        // From the Debian package openssl.
        let made = try await KafkaTestKit.run(
            "openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                "-out", certificate, "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2",
            ])
        try #require(made.code == 0, "\(made.words)")
        let authority = try readFile(certificate)
        var serving = HTTPServer.Configuration(name: "apple", address: try #require(ListenAddress("127.0.0.1:0")))
        serving.identity = HTTPServer.Identity(certificate: authority, key: try readFile(key))
        serving.drainGrace = .milliseconds(100)
        let server = try HTTPServer(serving, handler: apple, metrics: Metrics(), logger: Logger { _ in })
        defer { server.stop(by: Deadline(after: .seconds(5))) }
        var configuration = AppStoreServerAPI.Configuration()
        configuration.production = "https://\(server.address)"
        configuration.usesProxyOfEnvironment = false
        configuration.authorities = trusts ? authority : nil
        let now: @Sendable () -> Int64 = { WallClock.milliseconds() + ahead }
        let api = try AppStoreServerAPI(
            key: APIKey(
                issuerId: "57246542-96fe-1a63-e053-0824d011072a", keyId: "2X9R4HXF34", pem: SigningKey(.p256).pem),
            configuration: configuration, now: now)
        defer { api.close() }
        let carrier = AppStoreCarrier(api, .production, now: now)
        let delivered = Mutex<Delivery?>(nil)
        let over = Latch()
        carrier.send(
            Dispatch(
                bundleId: "com.example.app", transactionId: "2000000123456789", isV1: isV1, body: Self.body,
                mayBegin: { mayBegin })
        ) { delivery in
            delivered.withLock { $0 = delivery }
            over.open()
        }
        try #require(over.wait(until: Deadline(after: .seconds(60))))
        return try #require(delivered.withLock { $0 })
    }

    @Test(arguments: [false, true])
    func `is TLS with a private authority, and carries the bytes of the decision`(_ isV1: Bool) async throws {
        let apple = SecureApple(HTTPResponse(status: 202))
        let delivery = try await delivery(apple, isV1: isV1)
        #expect(delivery.result == .answered(status: 202))
        let request = try #require(apple.requests.first)
        #expect(apple.requests.count == 1)
        #expect(request.body == Self.body)
        let version = isV1 ? "v1" : "v2"
        #expect("\(request.path)".contains("/inApps/\(version)/transactions/consumption/2000000123456789") || isV1)
        #expect(request.headers["Authorization"]?.hasPrefix("Bearer ") == true)
        #expect(abs(try #require(delivery.clockAhead)) < 30_000)
    }

    @Test func `tells how far the clock is off`() async throws {
        let delivery = try await delivery(SecureApple(HTTPResponse(status: 202)), ahead: 120_000)
        #expect((90_000...150_000).contains(try #require(delivery.clockAhead)))
    }

    @Test func `tells what Apple says of a refusal`() async throws {
        let until = WallClock.milliseconds() + 90_000
        var limited = HTTPResponse.json(429, Array(#"{"errorCode":4290000,"errorMessage":"slow down"}"#.utf8))
        limited.headers.add("Retry-After", "\(until)")
        let delivery = try await delivery(SecureApple(limited))
        #expect(delivery.result == .answered(status: 429))
        #expect(delivery.errorCode == 4_290_000)
        #expect(delivery.retryAfter == until)
    }

    @Test func `sends nothing to a server of another authority`() async throws {
        let apple = SecureApple(HTTPResponse(status: 202))
        guard case .unanswered = try await delivery(apple, trusts: false).result else {
            Issue.record("it was answered")
            return
        }
        #expect(apple.requests.isEmpty)
    }

    @Test func `sends nothing without leave when the connection is there`() async throws {
        let apple = SecureApple(HTTPResponse(status: 202))
        #expect(try await delivery(apple, mayBegin: false).result == .withdrawn)
        #expect(apple.requests.isEmpty)
    }
}
