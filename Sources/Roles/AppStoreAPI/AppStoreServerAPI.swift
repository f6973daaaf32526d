// The client of the App Store Server API.

public import Contract
public import HTTPClient
public import Platform
import Synchronization

/// Sends requests for any app that the key is valid for, over connections that are kept open. Any number of threads may
/// use one client.
///
/// It retries nothing, except as `mayBegin` of `HTTPClient.Request` describes. No description and no mirror shows the
/// key or a token.
public final class AppStoreServerAPI: Sendable, CustomStringConvertible, CustomReflectable {
    public struct Configuration: Sendable {
        /// Base addresses. Each may have a path, which is prepended to Apple's paths.
        public var production = "https://api.storekit.apple.com"
        public var sandbox = "https://api.storekit-sandbox.apple.com"
        /// nil: requests have no `User-Agent`.
        public var userAgent: String?
        /// PEM, trusted in addition to the authorities of the system.
        public var authorities: [UInt8]?
        /// Whether `http_proxy`, `https_proxy` and `no_proxy` are used.
        public var usesProxyOfEnvironment = true
        /// Time limit for one request, including its connection; the same as in Apple's own libraries.
        public var timeout: Duration = .seconds(30)
        public var connectTimeout: Duration = .seconds(10)
        /// Enough for Apple's limit of 50 requests a second for each app, at half a second each.
        public var maxInFlight = 32
        /// Few enough that the last waiting request begins while its token is valid, even if all before it time out.
        public var maxWaiting = 256
        /// A page of 20 notifications has half a megabyte.
        public var maxAnswerBytes = 4 << 20
        /// The name that `top -H` shows, 15 bytes at most.
        public var threadName = "apple-api"

        public init() {}
    }

    public typealias Completion<Value: Sendable> = @Sendable (Result<APIAnswer<Value>, APIError>) -> Void

    private let configuration: Configuration
    private let tokens: Tokens
    private let client: HTTPClient
    private let now: @Sendable () -> Int64

    /// - Parameter now: the wall clock, milliseconds since 1970; used for tokens and to judge answers.
    public init(
        key: APIKey, configuration: Configuration = Configuration(), now: @escaping @Sendable () -> Int64
    ) throws(HTTPClientFault) {
        self.configuration = configuration
        self.now = now
        tokens = Tokens(key)
        var http = HTTPClient.Configuration()
        http.threadName = configuration.threadName
        http.maxInFlight = configuration.maxInFlight
        http.maxWaiting = configuration.maxWaiting
        http.connectTimeout = configuration.connectTimeout
        http.timeout = configuration.timeout
        http.maxResponseBytes = configuration.maxAnswerBytes
        http.extraAuthorities = configuration.authorities
        http.usesProxyOfEnvironment = configuration.usesProxyOfEnvironment
        http.userAgent = configuration.userAgent
        client = try HTTPClient(http)
    }

    /// Never blocks.
    /// - Parameters:
    ///   - timeout: replaces the time limit of the configuration.
    ///   - mayBegin: as in `HTTPClient.Request`: called on the client's thread when the connection is ready.
    ///   - completion: called once: on the client's thread, where it must not block, or, if the request is refused at
    ///     once, on the caller's thread before this returns.
    /// - Returns: the ticket for `cancel`; nil if the request is not valid and nothing is sent.
    @discardableResult
    public func send<Value>(
        _ request: APIRequest<Value>, of bundleId: String, in environment: Environment, timeout: Duration? = nil,
        mayBegin: (@Sendable () -> Bool)? = nil, completion: @escaping Completion<Value>
    ) -> HTTPClient.Ticket? {
        guard let target = request.target else {
            let detail = "an id for the request \(request.name) has characters that no id of Apple has: nothing sent"
            completion(.failure(APIError(fault: .invalidRequest, detail: detail)))
            return nil
        }
        var http = HTTPClient.Request(request.method, address(target, in: environment), body: request.body)
        http.headers = [
            .init("Authorization", "Bearer \(tokens.token(of: bundleId, now: now()))"),
            .init("Accept", "application/json"),
        ]
        if !request.body.isEmpty { http.headers.append(.init("Content-Type", "application/json")) }
        http.timeout = timeout
        http.mayBegin = mayBegin
        return client.send(http) { [now] outcome in completion(Self.read(outcome, of: request, now: now())) }
    }

    /// Blocks until the answer is there or the time limit has passed. Must not be called from a completion.
    public func answer<Value>(
        to request: APIRequest<Value>, of bundleId: String, in environment: Environment, timeout: Duration? = nil,
        mayBegin: (@Sendable () -> Bool)? = nil
    ) throws(APIError) -> APIAnswer<Value> {
        let answered = Latch()
        let result = Mutex<Result<APIAnswer<Value>, APIError>?>(nil)
        send(request, of: bundleId, in: environment, timeout: timeout, mayBegin: mayBegin) { outcome in
            result.withLock { $0 = outcome }
            answered.open()
        }
        answered.wait()
        // Set before the latch was opened.
        return try result.withLock { $0! }.get()
    }

    /// Ends a request whose answer is not needed any more, with the fault `cancelled`. It may have been sent.
    public func cancel(_ ticket: HTTPClient.Ticket) { client.cancel(ticket) }

    /// To be called after Apple has answered 401: the next request of the app makes a new token. Requests that wait
    /// keep theirs.
    public func renewToken(of bundleId: String) { tokens.forget(bundleId) }

    /// The same as `HTTPClient.close`.
    @discardableResult
    public func close(by deadline: Deadline = Deadline(after: .seconds(5))) -> Bool { client.close(by: deadline) }

    public var description: String { "a client of the App Store Server API" }
    public var customMirror: Mirror { Mirror(self, children: []) }

    private func address(_ target: String, in environment: Environment) -> String {
        let base =
            switch environment {
            case .production: configuration.production
            case .sandbox: configuration.sandbox
            }
        return (base.hasSuffix("/") ? String(base.dropLast()) : base) + target
    }

    private static func read<Value>(
        _ outcome: Result<HTTPClient.Response, HTTPClientFault>, of request: APIRequest<Value>, now: Int64
    ) -> Result<APIAnswer<Value>, APIError> {
        switch outcome {
        case .failure(let fault): return .failure(APIError(fault))
        case .success(let response):
            guard response.status == request.successStatus else {
                return .failure(APIError(response, expected: request.successStatus, now: now))
            }
            do throws(UnreadableAnswer) {
                let value = try request.read(response.body)
                let serverDate = response.header("Date").flatMap(HTTPDate.milliseconds)
                return .success(APIAnswer(httpStatus: response.status, value: value, serverDate: serverDate))
            } catch {
                return .failure(APIError(response, error, now: now))
            }
        }
    }
}
