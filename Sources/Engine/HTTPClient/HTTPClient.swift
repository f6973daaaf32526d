// The HTTP client: libcurl's multi interface, run by one thread.

internal import CCurl
public import Platform
import Synchronization

/// Sends requests over connections that are kept open. Any number of threads may use one client.
///
/// Certificates of servers are always verified, TLS 1.2 is the minimum, and redirects are not followed.
public final class HTTPClient: Sendable {
    public struct Configuration: Sendable {
        /// The name that `top -H` shows, 15 bytes at most.
        public var threadName = "http-client"
        /// Most requests in flight, and at most as many connections. Further requests wait.
        public var maxInFlight = 32
        /// Most requests that wait; further ones are refused as `overloaded`, because memory for bodies is limited.
        public var maxWaiting = 1024
        /// Time for name look-up, TCP and TLS together.
        public var connectTimeout: Duration = .seconds(10)
        /// Time from the start of a request, after any wait, to the last byte of its answer.
        public var timeout: Duration = .seconds(30)
        /// Byte limit of an answer's body.
        public var maxResponseBytes = 1 << 20
        /// PEM, trusted in addition to the authorities of the system.
        public var extraAuthorities: [UInt8]?
        /// true: uses `http_proxy`, `https_proxy` and `no_proxy` of the environment. false: connects directly.
        public var usesProxyOfEnvironment = false
        /// nil: requests have no `User-Agent`.
        public var userAgent: String?

        public init() {}
    }

    public struct Request: Sendable, CustomStringConvertible, CustomReflectable {
        public var method: String
        public var url: String
        public var headers: [Header]
        public var body: [UInt8]
        /// Replaces the time limit of the configuration, if set.
        public var timeout: Duration?
        /// Called at the last moment: the connection is ready, and nothing of the request has been written. If it
        /// returns false, the request ends as `withdrawn`. nil: the request may always be sent.
        ///
        /// It is called again for each retry that the client makes by itself because a kept connection was dead. An
        /// earlier attempt has been written by then, so false ends the request as `broken`.
        ///
        /// Called on the client's thread; must not block.
        public var mayBegin: (@Sendable () -> Bool)?

        public init(_ method: String, _ url: String, headers: [Header] = [], body: [UInt8] = []) {
            self.method = method
            self.url = url
            self.headers = headers
            self.body = body
        }

        /// Only the method: all other parts may contain what must not be logged.
        public var description: String { "a request \(method)" }
        public var customMirror: Mirror { Mirror(self, children: ["method": method]) }
    }

    public struct Header: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
        public let name: String
        public let value: String

        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }

        /// Only the name: the value may be a key.
        public var description: String { "\(name): ..." }
        public var customMirror: Mirror { Mirror(self, children: ["name": name]) }
    }

    public struct Response: Sendable, Equatable {
        public let status: Int
        /// In the order in which they arrived, without blanks around values.
        public let headers: [Header]
        public let body: [UInt8]

        /// The first value of `name`, without regard to case.
        public func header(_ name: String) -> String? {
            headers.first { $0.name.lowercased() == name.lowercased() }?.value
        }
    }

    /// Identifies a request until it is answered.
    public struct Ticket: Sendable, Hashable { let number: UInt64 }

    public typealias Completion = @Sendable (Result<Response, HTTPClientFault>) -> Void

    private let core: ClientCore

    /// Starts the thread. A client closes itself when its last reference goes.
    public init(_ configuration: Configuration = Configuration()) throws(HTTPClientFault) {
        precondition(configuration.maxInFlight >= 1 && configuration.maxWaiting >= 0)
        core = try ClientCore(configuration)
        // The closure captures only the core: otherwise the thread would keep the client alive.
        let worker = WorkerThread.start(configuration.threadName) { [core] in core.run() }
        guard case .failure(let error)? = worker.result else { return }
        // Nobody else will release it.
        core.release()
        throw HTTPClientFault(.failed, "the thread of the client did not start: \(error)")
    }

    deinit { core.beginClose() }

    /// Never blocks. `completion` is called once: on the client's thread, where it must not block, or, if the request
    /// is refused at once (`overloaded`, `cancelled` after `close`), on the caller's thread before this returns.
    @discardableResult
    public func send(_ request: Request, completion: @escaping Completion) -> Ticket {
        core.add(request, completion)
    }

    /// Ends a request whose answer is not needed any more; its completion is called with `cancelled`. Does nothing if
    /// the request has been answered.
    public func cancel(_ ticket: Ticket) { core.cancel(ticket) }

    /// Ends every request as `cancelled`, and waits until the last completion has returned and the connections are
    /// closed. false: that took longer than the deadline. Must not be called from a completion.
    @discardableResult
    public func close(by deadline: Deadline = Deadline(after: .seconds(5))) -> Bool {
        core.beginClose()
        return core.ended.wait(until: deadline)
    }
}
