import HTTP
import HTTPClient
import KafkaTestKit
import Platform
import Synchronization
import Telemetry
import Testing

@testable import Crypto
@testable import Revocation

/// A responder on a free loopback port. Stop it before the test ends.
final class TestResponder: HTTPHandler {
    enum Reply {
        case says(Answer.Status)
        case bytes([UInt8])
        case status(Int)
    }

    private struct State {
        var leaf: Reply
        var intermediate: Reply
        var requests: [HTTPRequest] = []
    }

    private let chain: Chain
    private let now: Int64
    private let state: Mutex<State>
    private let server: Mutex<HTTPServer?> = Mutex(nil)

    init(_ chain: Chain, leaf: Reply = .says(.good), intermediate: Reply = .says(.good), now: Int64 = Chain.now) throws
    {
        self.chain = chain
        self.now = now
        state = Mutex(State(leaf: leaf, intermediate: intermediate))
        var configuration = HTTPServer.Configuration(name: "ocsp", address: ListenAddress("127.0.0.1:0")!)
        configuration.drainGrace = .milliseconds(100)
        let server = try HTTPServer(configuration, handler: self, metrics: Metrics(), logger: Logger { _ in })
        self.server.withLock { $0 = server }
    }

    /// `http://127.0.0.1:port`
    var origin: String { server.withLock { "http://\($0!.address)" } }
    var requests: [HTTPRequest] { state.withLock { $0.requests } }
    func say(leaf: Reply) { state.withLock { $0.leaf = leaf } }

    func stop() {
        let server = server.withLock { server in
            defer { server = nil }
            return server
        }
        _ = server?.stop(by: Deadline(after: .seconds(5)))
    }

    func earlyAnswer(to head: HTTPRequest) -> HTTPResponse? { nil }

    func handle(_ request: HTTPRequest, _ responder: Responder) {
        let isOfLeaf = request.path.hasSuffix("leaf")
        let reply = state.withLock { state in
            state.requests.append(request)
            return isOfLeaf ? state.leaf : state.intermediate
        }
        switch reply {
        case .says(let status):
            var answer =
                isOfLeaf
                ? Answer(chain.leaf.certificate, by: chain.intermediate)
                : Answer(chain.intermediate.certificate, by: chain.root)
            answer.status = status
            answer.thisUpdate = now - Chain.hour
            answer.nextUpdate = now + Chain.hour
            responder.respond(.content(200, "application/ocsp-response", answer.der))
        case .bytes(let bytes): responder.respond(.content(200, "application/ocsp-response", bytes))
        case .status(let status): responder.respond(HTTPResponse(status: status))
        }
    }
}

/// A watch whose requests for `ocsp.apple.com` go to a responder of the test, or to nobody. Stop it before the test ends.
final class WatchRun: Sendable {
    let watch: RevocationWatch
    let metrics = Metrics()
    private let asked: SharedTexts
    private let lines: SharedTexts
    private let client: HTTPClient

    /// - Parameter responder: nil: nothing listens.
    init(_ responder: TestResponder?, maxWaiters: Int = 4096) throws {
        let (asked, lines) = (SharedTexts(), SharedTexts())
        var clientConfiguration = HTTPClient.Configuration()
        clientConfiguration.maxResponseBytes = 64 << 10
        let client = try HTTPClient(clientConfiguration)
        // Nothing listens on port 1 of loopback.
        let origin = responder?.origin ?? "http://127.0.0.1:1"
        var configuration = RevocationWatch.Configuration()
        configuration.maxWaiters = maxWaiters
        watch = try RevocationWatch(
            configuration,
            send: { request, completion in
                asked.add(request.url)
                var redirected = request
                redirected.url = origin + request.url.dropFirst("http://ocsp.apple.com".count)
                client.send(redirected, completion: completion)
            }, metrics: metrics, logger: Logger(format: .text) { lines.add(String(decoding: $0, as: UTF8.self)) },
            now: { Chain.now })
        self.client = client
        (self.asked, self.lines) = (asked, lines)
    }

    var addressesAsked: [String] { asked.all }
    var logLines: [String] { lines.all }

    func stop() {
        watch.close()
        client.close()
    }

    func wait(for chain: Chain, _ duration: Duration = patience) -> RevocationStatus {
        watch.status(of: [chain.trusted], waitingUntil: Deadline(after: duration))
    }

    func failures(_ cause: String) -> Double {
        value(#"perennial_ocsp_failures_total{cause="\#(cause)"}"#)
    }

    func value(_ series: String) -> Double {
        String(decoding: metrics.exposition(), as: UTF8.self).split(separator: "\n")
            .first { $0.hasPrefix(series + " ") }.flatMap { Double($0.dropFirst(series.count + 1)) } ?? -1
    }
}

/// Texts that several threads add to.
final class SharedTexts: Sendable {
    private let texts = Mutex<[String]>([])
    var all: [String] { texts.withLock { $0 } }
    func add(_ text: String) { texts.withLock { $0.append(text) } }
}
