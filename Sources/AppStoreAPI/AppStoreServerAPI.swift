// The client of the App Store Server API.

public import Contract
public import HTTPClient
public import Platform
import Synchronization

/// Sends requests for any app that the key is of, over connections that are kept. Any number of threads may use one.
///
/// Nothing is sent a second time by it, but for what `mayBegin` of `HTTPClient.Request` says. No text and no mirror of it shows
/// the key or a token.
public final class AppStoreServerAPI: Sendable, CustomStringConvertible, CustomReflectable {
    public struct Configuration: Sendable {
        /// Base addresses. Each may have a path, which is put in front of Apple's.
        public var production = "https://api.storekit.apple.com"
        public var sandbox = "https://api.storekit-sandbox.apple.com"
        /// nil: requests do not say who asks.
        public var userAgent: String?
        /// PEM, trusted besides the authorities of the system.
        public var authorities: [UInt8]?
        /// `http_proxy`, `https_proxy` and `no_proxy`.
        public var usesProxyOfEnvironment = true
        /// Of one request, its connection included; as in Apple's own libraries.
        public var timeout: Duration = .seconds(30)
        public var connectTimeout: Duration = .seconds(10)
        /// Enough for Apple's 50 requests a second and app at half a second each.
        public var maxInFlight = 32
        /// So few that the last one, with every one before it timing out, is begun while its token is good.
        public var maxWaiting = 256
        /// A page of 20 notifications has half a megabyte.
        public var maxAnswerBytes = 4 << 20
        /// What `top -H` shows, 15 bytes at most.
        public var threadName = "apple-api"

        public init() {}
    }

    public typealias Completion<Value: Sendable> = @Sendable (Result<APIAnswer<Value>, APIError>) -> Void

    private let configuration: Configuration
    private let tokens: Tokens
    private let client: HTTPClient
    private let now: @Sendable () -> Int64

    /// - Parameter now: the clock of the wall, milliseconds since 1970; tokens and answers are held to it.
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
    ///   - timeout: instead of the configuration's.
    ///   - mayBegin: as in `HTTPClient.Request`: asked on the client's thread, when the connection is ready.
    ///   - completion: called once: on the client's thread, where it must not block, or on the caller's before this returns when
    ///     the request is refused at once.
    /// - Returns: what `cancel` takes; nil when the request cannot be one and nothing is sent.
    @discardableResult
    public func send<Value>(
        _ request: APIRequest<Value>, of bundleId: String, in environment: Environment, timeout: Duration? = nil,
        mayBegin: (@Sendable () -> Bool)? = nil, completion: @escaping Completion<Value>
    ) -> HTTPClient.Ticket? {
        guard let target = request.target else {
            let detail = "an id for the request \(request.name) has other characters than Apple's ids: nothing was sent"
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

    /// Blocks until the answer is there or the time is over. Not from a completion.
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
        // Set before the latch opened.
        return try result.withLock { $0! }.get()
    }

    /// Ends a request whose answer nobody wants any more, with the fault `cancelled`. It may have been sent.
    public func cancel(_ ticket: HTTPClient.Ticket) { client.cancel(ticket) }

    /// After Apple has answered 401: the next request of the app makes a new token. Those that wait keep theirs.
    public func renewToken(of bundleId: String) { tokens.forget(bundleId) }

    /// As `HTTPClient.close`.
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
