// The HTTP client: libcurl's multi interface, driven by one thread.

internal import CCurl
public import Platform
import Synchronization

/// Sends requests over connections that are kept. Any number of threads may use one client.
///
/// Certificates of servers are always verified, TLS 1.2 is the least, redirects are answers like any other.
public final class HTTPClient: Sendable {
    public struct Configuration: Sendable {
        /// What `top -H` shows, 15 bytes at most.
        public var threadName = "http-client"
        /// Requests on their way at the same time, and at most as many connections. Beyond it they wait.
        public var maxInFlight = 32
        /// Requests that wait; beyond it they are refused as `overloaded`, since memory for bodies has to end somewhere.
        public var maxWaiting = 1024
        /// Name look-up, TCP and TLS together.
        public var connectTimeout: Duration = .seconds(10)
        /// From the start of a request, which may have waited before, to the last byte of its answer.
        public var timeout: Duration = .seconds(30)
        /// Of the body of an answer.
        public var maxResponseBytes = 1 << 20
        /// PEM, trusted besides the authorities of the system.
        public var extraAuthorities: [UInt8]?
        /// `http_proxy`, `https_proxy` and `no_proxy` of the environment; otherwise connections are always direct.
        public var usesProxyOfEnvironment = false
        /// nil: requests do not say who asks.
        public var userAgent: String?

        public init() {}
    }

    public struct Request: Sendable, CustomStringConvertible, CustomReflectable {
        public var method: String
        public var url: String
        public var headers: [Header]
        public var body: [UInt8]
        /// Instead of the configuration's, when it is given.
        public var timeout: Duration?
        /// Asked at the last moment: the connection is ready, and nothing of the request has been written. When it says no, the
        /// request ends as `withdrawn`. nil: the request may always begin.
        ///
        /// It is asked again for each try that the client makes by itself, because a kept connection turned out to be dead. By
        /// then an earlier try has been written: a no ends the request as `broken`.
        ///
        /// Called on the client's thread, where it must not block.
        public var mayBegin: (@Sendable () -> Bool)?

        public init(_ method: String, _ url: String, headers: [Header] = [], body: [UInt8] = []) {
            self.method = method
            self.url = url
            self.headers = headers
            self.body = body
        }

        /// The method alone: all the rest may hold what must not be logged.
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

        /// The name alone: a value may be a key.
        public var description: String { "\(name): ..." }
        public var customMirror: Mirror { Mirror(self, children: ["name": name]) }
    }

    public struct Response: Sendable, Equatable {
        public let status: Int
        /// In the order of the wire, blanks around values dropped.
        public let headers: [Header]
        public let body: [UInt8]

        /// The first value of `name`, whatever its case.
        public func header(_ name: String) -> String? {
            headers.first { $0.name.lowercased() == name.lowercased() }?.value
        }
    }

    /// Names one request until it is answered.
    public struct Ticket: Sendable, Hashable { let number: UInt64 }

    public typealias Completion = @Sendable (Result<Response, HTTPClientFault>) -> Void

    private let core: ClientCore

    /// Starts the thread. A client that nobody holds any more closes itself.
    public init(_ configuration: Configuration = Configuration()) throws(HTTPClientFault) {
        precondition(configuration.maxInFlight >= 1 && configuration.maxWaiting >= 0)
        core = try ClientCore(configuration)
        // The closure holds the core only: the client has to be able to end before its thread.
        let worker = WorkerThread.start(configuration.threadName) { [core] in core.run() }
        guard case .failure(let error)? = worker.result else { return }
        // Nobody else will.
        core.release()
        throw HTTPClientFault(.failed, "the thread of the client did not start: \(error)")
    }

    deinit { core.beginClose() }

    /// Never blocks. `completion` is called once: on the client's thread, where it must not block, or on the caller's before
    /// this returns when the request is refused at once (`overloaded`, `cancelled` after `close`).
    @discardableResult
    public func send(_ request: Request, completion: @escaping Completion) -> Ticket {
        core.add(request, completion)
    }

    /// Blocks until the answer is there or the time limits of the configuration are over. Not from a completion.
    public func answer(to request: Request) throws(HTTPClientFault) -> Response {
        let answered = Latch()
        let result = Mutex<Result<Response, HTTPClientFault>?>(nil)
        send(request) { outcome in
            result.withLock { $0 = outcome }
            answered.open()
        }
        answered.wait()
        // Set before the latch opened.
        return try result.withLock { $0! }.get()
    }

    /// Ends a request whose answer nobody wants any more; its completion is called with `cancelled`. Of one that has been
    /// answered nothing happens.
    public func cancel(_ ticket: Ticket) { core.cancel(ticket) }

    /// Ends every request as `cancelled` and waits until the last completion has returned and the connections are closed.
    /// false: that took longer. Not from a completion.
    @discardableResult
    public func close(by deadline: Deadline = Deadline(after: .seconds(5))) -> Bool {
        core.beginClose()
        return core.ended.wait(until: deadline)
    }
}
