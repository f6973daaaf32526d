import HTTP
import KafkaTestKit
import Platform
import Synchronization
import Telemetry
import Testing

/// A server on a free loopback port, with its metrics and its log. Stop it before the test ends.
final class TestServer: Sendable {
    let server: HTTPServer
    let metrics = Metrics()
    let log: Log

    final class Log: Sendable {
        private let lines = Mutex<[String]>([])
        var text: String { lines.withLock { $0.joined() } }
        func append(_ line: [UInt8]) { lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) } }
    }

    init(_ handler: any HTTPHandler = echo, adjust: (inout HTTPServer.Configuration) -> Void = { _ in }) throws {
        let log = Log()
        self.log = log
        var configuration = HTTPServer.Configuration(name: "test", address: ListenAddress("127.0.0.1:0")!)
        // A test may pause between two steps of a client. Those that are about a limit set it.
        configuration.greetingDeadline = patience
        configuration.headDeadline = patience
        configuration.requestDeadline = patience
        // Tests that stop a server with idle clients must not wait a second for them.
        configuration.drainGrace = .milliseconds(100)
        adjust(&configuration)
        server = try HTTPServer(configuration, handler: handler, metrics: metrics, logger: Logger { log.append($0) })
    }

    var port: UInt16 { server.address.port }
    func client(timeoutSeconds: Int = 20) throws -> RawClient {
        try RawClient(port: port, timeoutSeconds: timeoutSeconds)
    }

    @discardableResult
    func stop(_ duration: Duration = patience) -> Bool { server.stop(by: Deadline(after: duration)) }

    /// The value of one line of the exposition.
    func metric(_ line: String) -> Double? {
        String(decoding: metrics.exposition(), as: UTF8.self).split(separator: "\n")
            .first { $0.hasPrefix(line + " ") }.flatMap { Double($0.dropFirst(line.count + 1)) }
    }

    func refused(_ cause: String) -> Double? {
        metric(#"perennial_http_refused_total{server="test",cause="\#(cause)"}"#)
    }
    func waitUntilRefused(_ cause: String, times: Double = 1) async throws {
        try await waitUntil("\(times) requests are refused as \(cause)") { refused(cause) == times }
    }
    func waitUntilConnections(_ count: Double) async throws {
        try await waitUntil("there are \(count) connections") {
            metric(#"perennial_http_connections{server="test"}"#) == count
        }
    }
    func answered(_ code: String) -> Double? {
        metric(#"perennial_http_requests_total{server="test",code="\#(code)"}"#)
    }
}

/// GET / says hello; POST /echo sends the body back; GET /headers shows the request's headers.
var echo: Router {
    var router = Router()
    router.get("/") { _ in .text(200, "hello") }
    router.get("/headers") { request in
        .text(
            200,
            request.headers.all("x-test").joined(separator: "|")
                + " \(request.query ?? "-") \(request.peer?.description ?? "?")")
    }
    router.add("POST", "/echo") { request, responder in
        responder.respond(HTTPResponse(status: 200, body: request.body))
    }
    return router
}

/// Keeps requests until the test answers.
final class Holder: HTTPHandler {
    private let held = Mutex<[(request: HTTPRequest, responder: Responder)]>([])

    var count: Int { held.withLock { $0.count } }
    func waitUntilHolds(_ count: Int) async throws {
        try await waitUntil("the handler holds \(count) requests") { self.count == count }
    }

    func earlyAnswer(to head: HTTPRequest) -> HTTPResponse? { nil }
    func handle(_ request: HTTPRequest, _ responder: Responder) { held.withLock { $0.append((request, responder)) } }
    func take() -> [(request: HTTPRequest, responder: Responder)] {
        held.withLock { held in
            defer { held = [] }
            return held
        }
    }
}

/// A server whose handler holds the request of a client.
func heldRequest() async throws -> (holder: Holder, server: TestServer, client: RawClient) {
    let holder = Holder()
    let server = try TestServer(holder)
    let client = try server.client()
    client.sendGet()
    try await holder.waitUntilHolds(1)
    return (holder, server, client)
}
