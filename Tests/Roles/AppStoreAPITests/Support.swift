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
import Testing

/// Answers as the test says, and records its requests.
final class FakeApple: HTTPHandler {
    typealias Answering = @Sendable (HTTPRequest) -> HTTPResponse

    private let kept = Mutex<[HTTPRequest]>([])
    private let answering: Answering

    init(_ answering: @escaping Answering) { self.answering = answering }

    var requests: [HTTPRequest] { kept.withLock { $0 } }
    var lastToken: Token? { Token(requests.last?.headers["Authorization"]) }
    var tokens: [Token] { requests.compactMap { Token($0.headers["Authorization"]) } }

    func earlyAnswer(to head: HTTPRequest) -> HTTPResponse? { nil }

    func handle(_ request: HTTPRequest, _ responder: Responder) {
        kept.withLock { $0.append(request) }
        responder.respond(answering(request))
    }
}

/// A server on a free loopback port. Stop it before the test ends.
final class TestServer: Sendable {
    private let server: HTTPServer
    private let scheme: String

    init(_ apple: FakeApple, identity: HTTPServer.Identity? = nil) throws {
        var configuration = HTTPServer.Configuration(name: "apple", address: ListenAddress("127.0.0.1:0")!)
        configuration.identity = identity
        configuration.maxBodyBytes = 1 << 20
        configuration.drainGrace = .milliseconds(100)
        scheme = identity == nil ? "http" : "https"
        server = try HTTPServer(configuration, handler: apple, metrics: Metrics(), logger: Logger { _ in })
    }

    var url: String { "\(scheme)://\(server.address)" }
    func stop() { server.stop(by: Deadline(after: .seconds(5))) }
}

/// A client and its server.
struct Scene {
    static let bundleId = "com.example.app"
    static let issuerId = "57246542-96fe-1a63-e053-0824d011072a"
    static let keyId = "2X9R4HXF34"

    let apple: FakeApple
    let api: AppStoreServerAPI
    let signingKey: SigningKey
    let clock: TestClock

    /// Every request gets the same answer, unless `answering` says otherwise.
    static func with(
        clock: TestClock = TestClock(WallClock.milliseconds()), identity: HTTPServer.Identity? = nil,
        configuration: AppStoreServerAPI.Configuration = .init(),
        answering: @escaping FakeApple.Answering = { _ in accepted },
        _ body: (Scene) async throws -> Void
    ) async throws {
        let apple = FakeApple(answering)
        let server = try TestServer(apple, identity: identity)
        defer { server.stop() }
        let key = SigningKey(.p256)
        var configuration = configuration
        configuration.production = server.url
        configuration.sandbox = server.url + "/of-sandbox"
        configuration.usesProxyOfEnvironment = false
        let api = try AppStoreServerAPI(
            key: APIKey(issuerId: issuerId, keyId: keyId, pem: key.pem), configuration: configuration, now: clock.now)
        defer { api.close() }
        try await body(Scene(apple: apple, api: api, signingKey: key, clock: clock))
    }

    @discardableResult
    func answer<Value>(
        to request: APIRequest<Value>, of bundleId: String = Scene.bundleId, in environment: Environment = .production
    ) throws(APIError) -> APIAnswer<Value> {
        try api.answer(to: request, of: bundleId, in: environment)
    }

    /// The error of the request; nil if it succeeds.
    func failure<Value>(_ request: APIRequest<Value>, mayBegin: (@Sendable () -> Bool)? = nil) -> APIError? {
        do throws(APIError) {
            _ = try api.answer(to: request, of: Self.bundleId, in: .production, mayBegin: mayBegin)
            return nil
        } catch {
            return error
        }
    }
}

final class TestClock: Sendable {
    private let time: Mutex<Int64>

    init(_ time: Int64) { self.time = Mutex(time) }

    var now: @Sendable () -> Int64 { { self.time.withLock { $0 } } }
    func advance(seconds: Int64) { time.withLock { $0 += seconds * 1000 } }
}

let accepted = HTTPResponse(status: 202)
let consumption = APIRequest.consumptionV2(transactionId: "2000000123456789", body: Array("{}".utf8))

func json(_ status: Int, _ text: String, _ headers: (String, String)...) -> HTTPResponse {
    var response = HTTPResponse.json(status, Array(text.utf8))
    for (name, value) in headers { response.headers.add(name, value) }
    return response
}

/// The parts of a request.
struct Token {
    let text: String
    let header: JSONValue
    let claims: JSONValue
    private let signed: [UInt8]
    private let signature: [UInt8]

    init?(_ authorization: String?) {
        guard let authorization, authorization.hasPrefix("Bearer ") else { return nil }
        text = String(authorization.dropFirst("Bearer ".count))
        let parts = text.split(separator: ".", omittingEmptySubsequences: false).map { Array($0.utf8) }
        guard parts.count == 3, let header = Self.json(parts[0]), let claims = Self.json(parts[1]),
            let signature = Self.decoded(parts[2])
        else { return nil }
        self.header = header
        self.claims = claims
        self.signature = signature
        signed = parts[0] + [UInt8(ascii: ".")] + parts[1]
    }

    private static func json(_ part: [UInt8]) -> JSONValue? {
        decoded(part).flatMap { try? JSONValue.read($0) }
    }

    private static func decoded(_ part: [UInt8]) -> [UInt8]? { Base64.decodeURL(part.span) }

    func isSigned(by key: SigningKey) -> Bool {
        let digest = SHA256.digest(signed.span)
        guard let publicKey = key.p256PublicKey else { return false }
        return publicKey.verify(signature.span, digest: digest.span)
    }
}

extension APIKey {
    static func test() throws -> APIKey {
        try APIKey(issuerId: Scene.issuerId, keyId: Scene.keyId, pem: SigningKey(.p256).pem)
    }
}

/// A self-signed certificate for this run.
enum TestIdentity {
    static let localhost = Task { try await make() }

    private static func make() async throws -> HTTPServer.Identity {
        let folder = try ScratchDirectory("app-store-api-tests")
        let (certificate, key) = ("\(folder.path)/certificate.pem", "\(folder.path)/key.pem")
        // From the Debian package openssl.
        let made = try await run(
            "openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                "-out", certificate, "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2",
            ])
        try #require(made.code == 0, "\(made.words)")
        let identity = HTTPServer.Identity(certificate: try readFile(certificate), key: try readFile(key))
        return withExtendedLifetime(folder) { identity }
    }
}
