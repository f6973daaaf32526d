// The HTTP server: libmicrohttpd with a few threads, and the strictness that it leaves to its user.

import CMicroHTTPD
import Glibc
public import Platform
import Synchronization
public import Telemetry

/// Listens from `init` to `stop`. One that is never stopped goes on listening until the process ends.
public final class HTTPServer: Sendable {
    /// Certificate chain (the server's own first) and private key, both PEM.
    public struct Identity: Sendable, Equatable {
        public var certificate: [UInt8]
        public var key: [UInt8]

        public init(certificate: [UInt8], key: [UInt8]) {
            self.certificate = certificate
            self.key = key
        }
    }

    public struct Configuration: Sendable {
        /// Tells the servers of a process apart in metrics and logs.
        public var name: String
        public var address: ListenAddress
        /// nil: `address` is taken when the server is made.
        public var reserved: ReservedAddress?
        /// nil: plaintext. `replaceIdentity` changes it while the server runs.
        public var identity: Identity?
        /// Threads that read, call the handler and write. Two keep one busy handshake from stopping everything.
        public var threads = 2
        /// Beyond it connections wait in the backlog. 1,024 is what the usual limit of file descriptors leaves room for
        /// beside Kafka's and the store's.
        public var maxConnections = 1024
        /// Connections that the kernel holds until they are accepted.
        public var backlog: Int32 = 512
        /// Request line and headers; browsers and proxies stay below 8 KB.
        public var maxHeadBytes = 16 << 10
        /// Declared or chunked.
        public var maxBodyBytes = 256 << 10
        /// Of all bodies together, until their requests are answered; beyond it 503.
        public var maxBufferedBytes = 64 << 20
        /// false: a chunked request is answered 411. For servers behind a proxy, which may read chunks otherwise.
        public var takesChunks = true
        /// Asked before the handshake of TLS, with the number of connections that the address has (an IPv6 address: its /64)
        /// already. false: the connection is closed.
        public var accepts: @Sendable (_ peer: IPAddress, _ open: Int) -> Bool = { _, _ in true }
        /// Whose connections are kept, and whose bodies are taken, where there is too little room for all.
        public var prefers: @Sendable (_ peer: IPAddress) -> Bool = { _ in false }
        /// A refused body is still read up to this size, because a client that is cut off while it sends often never sees
        /// the answer.
        public var maxDiscardedBytes = 1 << 20
        /// From the first byte of a request to the last. A sender of one byte a second would hold a connection for ever.
        public var requestDeadline: Duration = .seconds(10)
        /// To the end of the head.
        public var headDeadline: Duration = .seconds(10)
        /// Of a new connection, to the end of its first request line: the handshake of TLS is part of it. Whoever connects
        /// and says nothing takes the place of somebody else.
        public var greetingDeadline: Duration = .seconds(3)
        /// The same for both when a quarter of `maxConnections` are open, except for those who are preferred: more than a client far
        /// away needs. Each connection that is open makes all requests dearer, and waiting for places takes longer than any of them.
        public var crowdedDeadline: Duration = .milliseconds(500)
        /// From the first byte of an answer to the last.
        public var sendDeadline: Duration = .seconds(30)
        /// Between two requests. Above the 60 s after which most proxies close from their side, which avoids that both
        /// act at once. Less when nine tenths of `maxConnections` are open: then those go first that have been idle longest.
        public var idleTimeout: Duration = .seconds(75)
        /// Requests given to the handler and not answered; beyond it 503.
        public var maxInFlight = 2048
        /// For that 503: by then a burst is over.
        public var retryAfterSeconds = 60
        /// How the server's own refusals look; `words` are for people.
        public var refusal: @Sendable (_ status: Int, _ words: String) -> HTTPResponse = { .text($0, $1) }
        /// A stop leaves idle connections this long, so that a busy client learns by `Connection: close` and loses nothing.
        public var drainGrace: Duration = .seconds(1)

        public init(name: String, address: ListenAddress) {
            self.name = name
            self.address = address
        }
    }

    /// Where it listens; the port is the real one when 0 was asked for.
    public let address: ListenAddress
    private let core: ServerCore
    private let daemon: DaemonHandle
    private let stopping = Mutex(false)
    private let sweeperStop = Latch()
    private let sweeperEnd = Latch()

    /// TLS 1.2 and 1.3 and nothing else, as GnuTLS writes it.
    ///
    /// Without what TLS 1.2 has left of weak parts: keys that are not made anew for each connection, CBC, and SHA-1. Without
    /// Diffie-Hellman outside of curves too: a client that asks for its largest group has this server calculate for a third of
    /// a second, and needs no key for that.
    private static let tlsPriorities =
        "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:-DHE-RSA:-GROUP-DH-ALL:-AES-128-CBC:-AES-256-CBC:-SHA1"
        + ":-SIGN-RSA-SHA1:-SIGN-ECDSA-SHA1"
    /// A connection's buffer: a notification of 19.5 KB in one piece beside a usual head. It is cleared
    /// for every request, so more of it costs time.
    private static let connectionMemoryBytes = 32 << 10

    public convenience init(
        _ configuration: Configuration, handler: any HTTPHandler, metrics: Metrics, logger: Logger
    ) throws(HTTPServerFault) {
        if let fault = HeadCheck.fault { throw .refused(reason: fault) }
        try self.init(unchecked: configuration, handler: handler, metrics: metrics, logger: logger)
    }

    /// Without a look at the library: for the server that is this look.
    init(
        unchecked configuration: Configuration, handler: any HTTPHandler, metrics: Metrics, logger: Logger
    ) throws(HTTPServerFault) {
        precondition(configuration.threads >= 1 && configuration.maxConnections >= configuration.threads)
        // Large bodies have half of it.
        precondition(configuration.maxBufferedBytes >= 2 * configuration.maxBodyBytes)
        precondition(configuration.maxHeadBytes < Self.connectionMemoryBytes)
        core = try ServerCore(configuration, handler: handler, metrics: metrics, logger: logger)
        let reserved =
            if let taken = configuration.reserved { taken } else { try ReservedAddress(configuration.address) }
        let socket = try reserved.listen(backlog: configuration.backlog)
        address = reserved.address
        guard let started = Self.startDaemon(core, socket: socket) else {
            close(socket)
            throw .refused(reason: "libmicrohttpd gave up (threads or descriptors exhausted?)")
        }
        daemon = started
        // Without the sweeper no deadline would be kept.
        guard case .failure(let error)? = startSweeper().result else { return }
        stop(by: Deadline(after: .zero))
        throw .refused(reason: "\(error)")
    }

    private static func startDaemon(_ core: ServerCore, socket: Int32) -> DaemonHandle? {
        let configuration = core.configuration
        let priorities = strdup(Array(tlsPriorities.utf8))
        // One reference for the callbacks, given back when the daemon has ended and none can come any more. A server that
        // is never stopped keeps it: better a leak than a callback into freed memory.
        let context = Unmanaged.passRetained(core)
        var settings = perennial_httpd_settings(
            listen_socket: socket, connection_limit: UInt32(configuration.maxConnections),
            connection_memory: connectionMemoryBytes, threads: UInt32(configuration.threads),
            certificate: core.identities == nil ? nil : onCertificateWanted, priorities: priorities)
        var callbacks = perennial_httpd_callbacks(
            context: context.toOpaque(), request: onRequest, request_line: onRequestLine, completed: onCompleted,
            connection: onConnection, accept: onAccept)
        guard let daemon = perennial_httpd_start(&settings, &callbacks) else {
            context.release()
            priorities.deallocate()
            return nil
        }
        return DaemonHandle(pointer: daemon, context: context, priorities: priorities)
    }

    /// A C string of its own. `bytes` has no NUL.
    private static func strdup(_ bytes: [UInt8]) -> UnsafeMutablePointer<CChar> {
        let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count + 1)
        for (index, byte) in bytes.enumerated() { copy[index] = CChar(bitPattern: byte) }
        copy[bytes.count] = 0
        return copy
    }

    /// libmicrohttpd knows only a timer that each byte winds up again; whoever drips would never be cut.
    private func startSweeper() -> WorkerThread {
        let (core, stop, end) = (core, sweeperStop, sweeperEnd)
        // Often enough that a deadline is kept to a few percent, rarely enough to cost nothing.
        let configuration = core.configuration
        let shortest = min(
            configuration.requestDeadline, configuration.headDeadline, configuration.greetingDeadline,
            configuration.crowdedDeadline, configuration.drainGrace)
        let interval = max(.milliseconds(20), min(.milliseconds(250), shortest / 4))
        return WorkerThread.start("http-sweeper") {
            while !stop.wait(for: interval) { core.sweep() }
            end.open()
        }
    }

    /// Of all bodies together.
    var bufferedBytes: Int { core.bodies.usedBytes }

    /// Shows new connections another certificate; those that are open go on. false: it is the one that is shown already.
    ///
    /// When it cannot be used this throws, and the one before stays.
    @discardableResult
    public func replaceIdentity(_ identity: Identity) throws(HTTPServerFault) -> Bool {
        guard let identities = core.identities else {
            throw .badIdentity(reason: "this server was started without TLS")
        }
        return try identities.replace(with: identity)
    }

    /// Ends the server in this order. Blocks until `deadline` at the longest, unless a handler blocks in its thread.
    ///
    /// 1. No new connection is taken, and the listening socket is closed at once: what the kernel would still accept on it,
    ///    nobody would serve.
    /// 2. Requests go on being answered, with `Connection: close`; idle connections are closed after a short grace.
    /// 3. At the deadline what is still held is answered 503, so that every client knows.
    ///
    /// true: every request had its answer in time. A second call changes nothing and returns true at once, whether or not the
    /// first has ended.
    @discardableResult
    public func stop(by deadline: Deadline) -> Bool {
        let isFirst = stopping.withLock { stopping in
            defer { stopping = true }
            return !stopping
        }
        guard isFirst else { return true }
        core.beginDrain()
        let socket = MHD_quiesce_daemon(daemon.pointer)
        if socket >= 0 { close(socket) }
        let isDrained = waitUntilEmpty(by: deadline)
        // Also when nothing is open: a connection accepted a moment ago may not be counted yet, and libmicrohttpd aborts the
        // process when it ends while a request is suspended.
        core.giveUp()
        if !isDrained {
            // The 503 has to get out; local buffers take it at once.
            _ = waitUntilEmpty(by: Deadline(after: .milliseconds(250)))
        }
        MHD_stop_daemon(daemon.pointer)
        sweeperStop.open()
        sweeperEnd.wait(for: .seconds(5))
        daemon.release()
        return isDrained
    }

    private func waitUntilEmpty(by deadline: Deadline) -> Bool {
        // Twice in a row: a connection that was just accepted is counted a moment later.
        var emptyReadings = 0
        while true {
            emptyReadings = core.openConnections == 0 ? emptyReadings + 1 : 0
            if emptyReadings == 2 { return true }
            if deadline.hasPassed { return false }
            pause(for: .milliseconds(10))
        }
    }
}

/// What belongs to a running daemon. Unchecked: the pointers never change; `release` is called once, after the end.
private struct DaemonHandle: @unchecked Sendable {
    let pointer: OpaquePointer
    let context: Unmanaged<ServerCore>
    let priorities: UnsafeMutablePointer<CChar>

    func release() {
        context.release()
        priorities.deallocate()
    }
}
