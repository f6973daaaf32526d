import AppStore
import Configuration
import Contract
import Crypto
import HTTP
import HTTPClient
import HTTPTestKit
import KafkaTestKit
import Log
import Platform
import Simulation
import Synchronization
import Telemetry
import Testing

@testable import Ingest

/// The log that tests read: it keeps publications and gives them the outcome that the test sets.
final class FakeLog: RecordSink {
    enum Answer: Sendable {
        case outcome(PublishOutcome)
        /// No outcome; the test finishes what it finds in `publications`.
        case silence
    }

    private struct State {
        var answer: Answer
        var publications: [Publication] = []
    }

    private let state: Mutex<State>

    init(_ answer: Answer = .outcome(.written)) { state = Mutex(State(answer: answer)) }

    func publish(_ publication: Publication) {
        let answer = state.withLock { state in
            state.publications.append(publication)
            return state.answer
        }
        if case .outcome(let outcome) = answer {
            publication.finish(outcome)
            publication.end(wasSent: outcome == .written)
        }
    }

    func answer(_ answer: Answer) { state.withLock { $0.answer = answer } }
    var publications: [Publication] { state.withLock { $0.publications } }
    var records: [OutgoingRecord] { publications.flatMap(\.records) }
    func records(of topic: TopicID) -> [OutgoingRecord] { records.filter { $0.topic == topic } }
}

extension OutgoingRecord {
    func header(_ name: String) -> String? {
        headers.first { $0.name == name }?.value.map { String(decoding: $0, as: UTF8.self) }
    }
}

/// The simulated Apple of these tests.
enum Apple {
    static let authority = try! SimulatedAuthority(seed: 1)
    /// An authority with another root, which is not trusted.
    static let stranger = try! SimulatedAuthority(seed: 2)
    static let app = App(bundleId: "com.example.app", appAppleId: 1234, entitlements: [], periods: [])
    /// The 1st of March 2026.
    static let now: Int64 = 1_772_323_200_000

    static var policy: VerificationPolicy {
        VerificationPolicy(anchors: .init([authority.root]), apps: [app])
    }

    static func body(
        _ signedBy: SimulatedAuthority = authority, bundleId: String = "com.example.app", uuid: String = "u-1",
        signedDate: Int64 = now - 1000, environment: String = "Production"
    ) -> [UInt8] {
        let payload = """
            {"notificationType":"TEST","notificationUUID":"\(uuid)","version":"2.0","signedDate":\(signedDate),\
            "data":{"appAppleId":1234,"bundleId":"\(bundleId)","environment":"\(environment)"}}
            """
        return wrapped(signedBy.sign(Array(payload.utf8)))
    }

    static func wrapped(_ jws: [UInt8]) -> [UInt8] {
        Array(#"{"signedPayload":""#.utf8) + jws + Array(#""}"#.utf8)
    }
}

/// An endpoint over a fake log, behind a real server on loopback. Stop it before the test ends.
final class Door: Sendable {
    let log: FakeLog
    let metrics = Metrics()
    let lines: Lines
    let refusals: RefusalLog
    private let server: HTTPServer
    private let client: HTTPClient

    /// Log lines of the part under test.
    final class Lines: Sendable {
        private let text = Mutex("")
        var all: String { text.withLock { $0 } }
        func append(_ line: [UInt8]) { text.withLock { $0 += String(decoding: line, as: UTF8.self) } }
    }

    init(
        _ log: FakeLog = FakeLog(), judge: any NotificationJudge = VerifierPool(Apple.policy, revocation: nil),
        now: Int64 = Apple.now, adjust: (inout Endpoint.Configuration) -> Void = { _ in }
    ) throws {
        self.log = log
        let lines = Lines()
        self.lines = lines
        let logger = Logger { lines.append($0) }
        refusals = RefusalLog(logger)
        var configuration = Endpoint.Configuration(app: "perennial/test")
        // The test itself plays the proxy.
        configuration.clients = ClientAddresses(trustedProxies: [try .init("127.0.0.1")])
        adjust(&configuration)
        let endpoint = Endpoint(
            configuration, judge: judge, sink: log, metrics: metrics, refusals: refusals, now: { now })
        var options = HTTPServer.Configuration(name: "test", address: ListenAddress("127.0.0.1:0")!)
        options.drainGrace = .milliseconds(50)
        options.refusal = HTTPResponse.refusalInJSON
        server = try HTTPServer(options, handler: endpoint, metrics: metrics, logger: logger)
        client = try HTTPClient()
    }

    func stop() {
        client.close()
        server.stop(by: Deadline(after: .seconds(5)))
    }

    func send(
        _ method: String = "POST", _ path: String = "/notifications", _ body: [UInt8] = [],
        headers: [String: String] = ["Content-Type": "application/json"]
    ) throws -> HTTPClient.Response {
        try client.answer(
            to: .init(
                method, "http://\(server.address)\(path)", headers: headers.map { .init($0.key, $0.value) }, body: body)
        )
    }

    func notify(_ body: [UInt8], from address: String? = nil) throws -> HTTPClient.Response {
        var headers = ["Content-Type": "application/json"]
        if let address { headers["X-Forwarded-For"] = address }
        return try send("POST", "/notifications", body, headers: headers)
    }

    func metric(_ line: String) -> Double? {
        String(decoding: metrics.exposition(), as: UTF8.self).split(separator: "\n")
            .first { $0.hasPrefix(line + " ") }.flatMap { Double($0.dropFirst(line.count + 1)) }
    }

    /// Sum over all environments and apps.
    func outcome(_ word: String) -> Double {
        String(decoding: metrics.exposition(), as: UTF8.self).split(separator: "\n")
            .filter { $0.hasPrefix(#"perennial_ingest_requests_total{outcome="\#(word)","#) }
            .compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }.reduce(0, +)
    }
    func kept(_ reason: String, _ kept: Bool) -> Double? {
        metric(#"perennial_ingest_rejected_total{reason="\#(reason)",kept="\#(kept)"}"#)
    }
    func alarms(_ reason: String, fromApple: Bool) -> Double? {
        metric(#"perennial_ingest_alarms_total{reason="\#(reason)",from_apple="\#(fromApple)"}"#)
    }
}

extension HTTPClient.Response {
    var text: String { String(decoding: body, as: UTF8.self) }
}

/// Knows nothing at first; a waiting request gets `answer`.
final class FakeResponder: RevocationSource {
    private let answer: RevocationStatus
    private let isAsked = Atomic(false)

    init(_ answer: RevocationStatus) { self.answer = answer }

    func status(of chain: TrustedChain) -> RevocationStatus {
        isAsked.load(ordering: .relaxed) ? answer : .unknown
    }

    func whenKnown(
        _ chains: [TrustedChain], by deadline: Deadline, completion: @escaping @Sendable (RevocationStatus) -> Void
    ) {
        isAsked.store(true, ordering: .relaxed)
        completion(answer)
    }
}
