import HTTP
import HTTPClient
import HTTPTestKit
import KafkaTestKit
import Platform
import Synchronization
import Telemetry
import Testing

/// A server on a free loopback port. Stop it before the test ends.
final class TestServer: Sendable {
    let server: HTTPServer
    private let metrics = Metrics()
    private let scheme: String

    init(_ handler: any HTTPHandler = mirror, identity: HTTPServer.Identity? = nil) throws {
        var configuration = HTTPServer.Configuration(name: "test", address: ListenAddress("127.0.0.1:0")!)
        configuration.identity = identity
        configuration.maxBodyBytes = 4 << 20
        configuration.drainGrace = .milliseconds(100)
        scheme = identity == nil ? "http" : "https"
        server = try HTTPServer(configuration, handler: handler, metrics: metrics, logger: Logger { _ in })
    }

    func url(_ path: String) -> String { "\(scheme)://\(server.address)\(path)" }
    func stop() { server.stop(by: Deadline(after: .seconds(5))) }

    var connections: Double? {
        String(decoding: metrics.exposition(), as: UTF8.self).split(separator: "\n")
            .first { $0.hasPrefix(#"perennial_http_connections{server="test"} "#) }
            .flatMap { Double($0.split(separator: " ")[1]) }
    }
}

/// Records its requests, and sends the body back.
var mirror: any HTTPHandler { Mirror() }

private struct Mirror: HTTPHandler {
    func earlyAnswer(to head: HTTPRequest) -> HTTPResponse? { nil }

    func handle(_ request: HTTPRequest, _ responder: Responder) {
        var response = HTTPResponse(status: Int(request.path.dropFirst()) ?? 200, body: request.body)
        response.headers.add("X-Method", request.method)
        for field in request.headers.fields { response.headers.add("X-Had-\(field.name)", "<\(field.value)>") }
        if response.status == 302 { response.headers.add("Location", "/200") }
        responder.respond(response)
    }
}

/// Keeps requests until the test answers.
final class Holder: HTTPHandler {
    private let held = Mutex<[Responder]>([])

    var count: Int { held.withLock { $0.count } }
    func earlyAnswer(to head: HTTPRequest) -> HTTPResponse? { nil }
    func handle(_ request: HTTPRequest, _ responder: Responder) { held.withLock { $0.append(responder) } }
    func answerAll() {
        let responders = held.withLock { held in
            defer { held = [] }
            return held
        }
        for responder in responders { responder.respond(.text(200, "at last")) }
    }
}

/// The outcomes of requests, in the order of their ends.
final class Outcomes: Sendable {
    private let kept = Mutex<[Result<HTTPClient.Response, HTTPClientFault>]>([])

    var all: [Result<HTTPClient.Response, HTTPClientFault>] { kept.withLock { $0 } }
    var count: Int { kept.withLock { $0.count } }
    var statuses: [Int] { all.compactMap { try? $0.get().status } }
    var faults: [HTTPClientFault.Kind] {
        all.compactMap { if case .failure(let fault) = $0 { fault.kind } else { nil } }
    }
    var take: HTTPClient.Completion { { outcome in self.kept.withLock { $0.append(outcome) } } }
}

extension HTTPClient {
    static func make(_ adjust: (inout Configuration) -> Void = { _ in }) throws -> HTTPClient {
        var configuration = Configuration()
        adjust(&configuration)
        return try HTTPClient(configuration)
    }

    /// The kind of fault that a request ends with; nil if it is answered.
    func fault(_ request: Request) -> HTTPClientFault.Kind? {
        do throws(HTTPClientFault) {
            _ = try answer(to: request)
            return nil
        } catch {
            return error.kind
        }
    }
}

/// Self-signed certificates of servers for this run.
enum TestIdentity {
    static let localhost = Task { try await make(names: "IP:127.0.0.1") }
    static let elsewhere = Task { try await make(names: "DNS:elsewhere.example") }

    private static func make(names: String) async throws -> HTTPServer.Identity {
        let folder = try ScratchDirectory("http-client-tests")
        let (certificate, key) = ("\(folder.path)/certificate.pem", "\(folder.path)/key.pem")
        // From the Debian package openssl.
        let made = try await run(
            "openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                "-out", certificate, "-subj", "/CN=test", "-addext", "subjectAltName=\(names)", "-days", "2",
            ])
        try #require(made.code == 0, "\(made.words)")
        return HTTPServer.Identity(certificate: try readFile(certificate), key: try readFile(key))
    }
}
