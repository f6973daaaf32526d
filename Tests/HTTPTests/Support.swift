import Foundation
import HTTP
import Platform
import Synchronization
import Telemetry

/// A server on a free port of the loopback, and what it counted and logged. Stop it before the test ends.
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
        var configuration = HTTPServer.Configuration(name: "test", address: try ListenAddress("127.0.0.1:0"))
        // Tests that stop a server with idle clients do not wait a second for them.
        configuration.drainGrace = .milliseconds(100)
        adjust(&configuration)
        server = try HTTPServer(configuration, handler: handler, metrics: metrics, logger: Logger { log.append($0) })
    }

    var port: UInt16 { server.address.port }
    func client(timeoutSeconds: Int = 10) throws -> RawClient {
        try RawClient(port: port, timeoutSeconds: timeoutSeconds)
    }

    @discardableResult
    func stop(_ duration: Duration = .seconds(5)) -> Bool { server.stop(by: Deadline(after: duration)) }

    /// The value of one line of the exposition.
    func metric(_ line: String) -> Double? {
        String(decoding: metrics.exposition(), as: UTF8.self).split(separator: "\n")
            .first { $0.hasPrefix(line + " ") }.flatMap { Double($0.dropFirst(line.count + 1)) }
    }

    func refused(_ cause: String) -> Double? {
        metric(#"perennial_http_refused_total{server="test",cause="\#(cause)"}"#)
    }
    func answered(_ code: String) -> Double? {
        metric(#"perennial_http_requests_total{server="test",code="\#(code)"}"#)
    }
}

/// GET / says hello; POST /echo gives the body back; GET /headers shows what came.
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

/// Waits until `condition` holds; false when it does not within ten seconds.
func eventually(_ condition: () -> Bool) -> Bool {
    let deadline = Deadline(after: .seconds(10))
    while !condition() {
        if deadline.hasPassed { return false }
        pause(for: .milliseconds(5))
    }
    return true
}

/// Runs a program to its end; what it wrote to both streams.
func run(_ path: String, _ arguments: [String], input: String = "") throws -> (status: Int32, output: String) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    let (stdin, stdout) = (Pipe(), Pipe())
    process.standardInput = stdin
    process.standardOutput = stdout
    process.standardError = stdout
    try process.run()
    stdin.fileHandleForWriting.write(Data(input.utf8))
    try stdin.fileHandleForWriting.close()
    let output = String(decoding: stdout.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return (process.terminationStatus, output)
}
