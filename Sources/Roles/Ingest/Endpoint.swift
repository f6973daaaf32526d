// The HTTP endpoint of ingest: see docs/reference/ingest-http.md.

import AppStore
public import Configuration
public import Contract
public import HTTP
import Platform
import Synchronization
public import Telemetry

public final class Endpoint: HTTPHandler {
    public struct Configuration: Sendable {
        public var allowed: AllowedAddresses = .any
        public var clients = ClientAddresses(trustedProxies: [])
        /// nil: the path `/usage` does not exist.
        public var usageToken: String?
        /// The environment of usage records that do not name one.
        public var usageEnvironment: Contract.Environment = .production
        /// Time from receiving the complete body to answering.
        public var timeout: Duration = .seconds(2)
        public var rejectedBytesPerHour = 64 << 20
        /// How long an acknowledged notification is remembered; 0: it is not remembered.
        public var repeatedMilliseconds: Int64 = 3 * 3_600_000
        public var archivesSignedPayloads = true
        /// Bundle ids of the accepted apps, for metrics.
        public var bundles: [String] = []
        /// Header `app` of every record.
        public var app: String

        public init(app: String) {
            self.app = app
        }
    }

    private enum Path: String {
        case notifications = "/notifications"
        case usage = "/usage"
    }

    private let configuration: Configuration
    private let usageTokens: Mutex<[String]>
    private let metrics: IngestMetrics
    private let refusals: RefusalLog
    private let notifications: NotificationIntake
    private let usage: UsageIntake
    private let now: @Sendable () -> Int64

    /// - Parameter now: milliseconds since 1970.
    public init(
        _ configuration: Configuration, judge: any NotificationJudge, sink: any RecordSink, metrics: Metrics,
        refusals: RefusalLog, now: @escaping @Sendable () -> Int64
    ) {
        self.configuration = configuration
        usageTokens = Mutex(configuration.usageToken.map { [$0] } ?? [])
        self.metrics = IngestMetrics(metrics, bundles: configuration.bundles)
        self.refusals = refusals
        self.now = now
        let records = RecordFactory(
            app: configuration.app, archivesSignedPayloads: configuration.archivesSignedPayloads)
        notifications = NotificationIntake(
            judge: judge, sink: sink, metrics: self.metrics, refusals: refusals, records: records,
            repeatedMilliseconds: configuration.repeatedMilliseconds,
            rejected: RejectedKeeper(
                sink: sink, metrics: self.metrics, records: records, bytesPerHour: configuration.rejectedBytesPerHour))
        usage = UsageIntake(
            sink: sink, metrics: self.metrics, refusals: refusals, records: records,
            environment: configuration.usageEnvironment)
    }

    /// `/usage` is there or not for the life of the process: without tokens it refuses everybody.
    func replace(usageTokens: [String]) { self.usageTokens.withLock { $0 = usageTokens } }

    /// Notifications of these apps are counted under their own names from now on.
    func replace(bundles: [String]) { metrics.know(bundles) }

    /// The first check that fails, in the order of "Before anything is verified" in docs/reference/ingest-http.md. A
    /// client that is not admitted learns nothing about the paths.
    public func earlyAnswer(to head: HTTPRequest) -> HTTPResponse? {
        guard isAllowed(head) else {
            var response = refuse(.forbidden, 403)
            response.endsConnection = true
            return response
        }
        guard let path = path(head) else { return refuse(.notFound, 404) }
        guard head.method == "POST" else {
            var response = refuse(.methodNotAllowed, 405)
            response.headers.add("Allow", "POST")
            return response
        }
        if path == .usage, !head.headers.bear(anyOf: usageTokens.withLock { $0 }) {
            var response = refuse(.unauthorized, 401)
            response.headers.add("WWW-Authenticate", "Bearer")
            return response
        }
        guard hasJSONBody(head.headers) else { return refuse(.mediaType, 415) }
        return nil
    }

    /// Whether a request from `peer` could be admitted. A trusted proxy always may connect: its requests are judged by
    /// the client that they come from.
    func admits(_ peer: IPAddress) -> Bool {
        configuration.clients.isTrusted(peer) || configuration.allowed.contains(peer)
    }

    /// Whether `peer` may have any number of connections: true for trusted proxies and for Apple, whose addresses
    /// nobody else can use for a connection.
    func isTrusted(_ peer: IPAddress) -> Bool { configuration.clients.isTrusted(peer) || peer.isApple }

    public func handle(_ request: HTTPRequest, _ responder: Responder) {
        let metrics = metrics
        let arrival = Arrival(
            body: request.body, receivedDate: now(), deadline: Deadline(after: configuration.timeout),
            isFromApple: configuration.clients.client(of: request)?.isApple ?? false)
        metrics.bodyBytes.add(UInt64(arrival.body.count))
        let start = ContinuousClock.now
        let answer: Answer = { response in
            metrics.seconds.observe(start.duration(to: .now))
            responder.respond(response)
        }
        switch path(request) {
        case .notifications: notifications.take(arrival, answer)
        case .usage: usage.take(arrival, answer)
        // `earlyAnswer` has refused everything else.
        case nil: answer(refuse(.notFound, 404))
        }
    }

    private func path(_ head: HTTPRequest) -> Path? {
        switch head.path {
        case Path.notifications.rawValue: .notifications
        case Path.usage.rawValue where configuration.usageToken != nil: .usage
        default: nil
        }
    }

    private func isAllowed(_ head: HTTPRequest) -> Bool {
        if case .any = configuration.allowed { return true }
        return configuration.clients.client(of: head).map(configuration.allowed.contains) ?? false
    }

    private func refuse(_ ending: IngestMetrics.Ending, _ status: Int) -> HTTPResponse {
        metrics.count(ending)
        refusals.note(ending.rawValue)
        return .error(status, ending.rawValue)
    }
}

/// A body that has arrived.
struct Arrival: Sendable {
    let body: [UInt8]
    /// Milliseconds since 1970.
    let receivedDate: Int64
    let deadline: Deadline
    let isFromApple: Bool
}

typealias Answer = @Sendable (HTTPResponse) -> Void
