// The HTTP server: libmicrohttpd with a few threads, and the strict checks that libmicrohttpd leaves to its user.

import CMicroHTTPD
import Glibc
public import Platform
import Synchronization
public import Telemetry

/// Listens from `init` to `stop`. A server that is never stopped listens until the process ends.
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
        /// Name of this server in metrics and logs.
        public var name: String
        public var address: ListenAddress
        /// nil: the server binds `address` when it is made.
        public var reserved: ReservedAddress?
        /// nil: the server speaks plain HTTP. `replaceIdentity` changes it while the server runs.
        public var identity: Identity?
        /// Threads that read, call the handler and write. With two, one busy handshake does not stop everything.
        public var threads = 2
        /// Most connections that are open; further ones wait in the backlog. The usual limit of file descriptors leaves
        /// room for 1,024 beside those of Kafka and the store.
        public var maxConnections = 1024
        /// Connections that the kernel holds until the server accepts them.
        public var backlog: Int32 = 512
        /// Byte limit of request line and headers; browsers and proxies stay below 8 KB.
        public var maxHeadBytes = 16 << 10
        /// Byte limit of one body, declared or chunked.
        public var maxBodyBytes = 256 << 10
        /// Byte limit of all bodies together. A body counts until its request is answered; beyond the limit the answer
        /// is 503.
        public var maxBufferedBytes = 64 << 20
        /// false: a chunked request is answered 411. For servers behind a proxy that may read chunks differently.
        public var takesChunks = true
        /// Called before the TLS handshake with the number of connections that the address (an IPv6 address: its /64)
        /// already has. false: the connection is closed.
        public var accepts: @Sendable (_ peer: IPAddress, _ open: Int) -> Bool = { _, _ in true }
        /// Clients whose connections are kept and whose bodies are accepted when there is not enough room for all.
        public var prefers: @Sendable (_ peer: IPAddress) -> Bool = { _ in false }
        /// A refused body is still read up to this size: a client that is cut off while it sends often never sees the
        /// answer.
        public var maxDiscardedBytes = 1 << 20
        /// Time from the first byte of a request to its last. Without it, a client that sends one byte a second would
        /// hold a connection for ever.
        public var requestDeadline: Duration = .seconds(10)
        /// Time from the first byte of a request to the end of its head.
        public var headDeadline: Duration = .seconds(10)
        /// Time from the start of a new connection to the end of its first request line, TLS handshake included. A
        /// client that connects and sends nothing takes the place of another.
        public var greetingDeadline: Duration = .seconds(3)
        /// Replaces the two limits above when a quarter of `maxConnections` are open, except for preferred clients. A
        /// distant client needs less. Every open connection makes all requests slower, and waiting for a place takes
        /// longer than any of them.
        public var crowdedDeadline: Duration = .milliseconds(500)
        /// Time from the first byte of an answer to its last.
        public var sendDeadline: Duration = .seconds(30)
        /// Longest time between two requests. It is above the 60 s after which most proxies close the connection, so
        /// that both sides do not close it at the same time. When nine tenths of `maxConnections` are open, the
        /// connections that have been idle longest are closed earlier.
        public var idleTimeout: Duration = .seconds(75)
        /// Most requests in flight: the handler has them and has not answered. Beyond this the answer is 503.
        public var maxInFlight = 2048
        /// `Retry-After` of that 503: a burst is over by then.
        public var retryAfterSeconds = 60
        /// The form of the server's own refusals; `words` are for people.
        public var refusal: @Sendable (_ status: Int, _ words: String) -> HTTPResponse = { .text($0, $1) }
        /// When the server stops, idle connections stay open this long, so that a busy client learns by `Connection:
        /// close` and loses no request.
        public var drainGrace: Duration = .seconds(1)

        public init(name: String, address: ListenAddress) {
            self.name = name
            self.address = address
        }
    }

    /// The address that the server listens on, with the real port if port 0 was asked for.
    public let address: ListenAddress
    private let core: ServerCore
    private let daemon: DaemonHandle
    private let stopping = Mutex(false)
    private let sweeperStop = Latch()
    private let sweeperEnd = Latch()

    /// TLS 1.2 and 1.3 only, in the syntax of GnuTLS.
    ///
    /// Without the weak parts of TLS 1.2: keys that are not made anew for each connection, CBC, and SHA-1. Also without
    /// Diffie-Hellman except on curves: a client that asks for its largest group makes the server calculate for a third
    /// of a second, and needs no key for that.
    ///
    /// Of what a client offers, the server takes what costs it least: X25519 before the other curves, and AES with 128 bits,
    /// whose handshakes hash with SHA-256. Processors have instructions for SHA-256, and none for SHA-384. A client that offers
    /// X25519 without having sent a share of it is asked for one, a round trip more: clients send it.
    private static let tlsPriorities =
        "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:-DHE-RSA:-SHA1:-SIGN-RSA-SHA1:-SIGN-ECDSA-SHA1"
        + ":-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1:+GROUP-SECP521R1:+GROUP-X448"
        + ":-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:+AES-128-CCM:+AES-256-CCM:%SERVER_PRECEDENCE"
    /// Size of a connection's buffer: it holds a notification of 19.5 KB in one piece beside a usual head. The library
    /// clears it for every request, so a larger one costs time. Above 32 KiB it begins on a page of its own, on which `RawHead`
    /// rests.
    private static let connectionMemoryBytes = 36 << 10

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
        // Large bodies may use half of it.
        precondition(configuration.maxBufferedBytes >= 2 * configuration.maxBodyBytes)
        precondition(configuration.maxHeadBytes < Self.connectionMemoryBytes)
        core = try ServerCore(configuration, handler: handler, metrics: metrics, logger: logger)
        let reserved =
            if let taken = configuration.reserved { taken } else { try ReservedAddress(configuration.address) }
        let socket = try reserved.listen(backlog: configuration.backlog)
        address = reserved.address
        guard let started = Self.startDaemon(core, socket: socket) else {
            // The library closes the socket, or it does not, and does not say which. The process is about to end.
            throw .refused(reason: "libmicrohttpd gave up (threads or descriptors exhausted?)")
        }
        daemon = started
        // Without the sweeper no deadline would be enforced.
        guard case .failure(let error)? = startSweeper().result else { return }
        stop(by: Deadline(after: .zero))
        throw .refused(reason: "\(error)")
    }

    private static func startDaemon(_ core: ServerCore, socket: Int32) -> DaemonHandle? {
        let configuration = core.configuration
        let priorities = strdup(Array(tlsPriorities.utf8))
        // One reference for the callbacks, released when the daemon has ended and calls none any more. A server that is
        // never stopped keeps it: a leak is better than a callback into freed memory.
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

    /// A separate C string. `bytes` contains no NUL.
    private static func strdup(_ bytes: [UInt8]) -> UnsafeMutablePointer<CChar> {
        let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count + 1)
        for (index, byte) in bytes.enumerated() { copy[index] = CChar(bitPattern: byte) }
        copy[bytes.count] = 0
        return copy
    }

    /// libmicrohttpd has only a timer that every received byte restarts, so it would never cut a client that sends
    /// slowly.
    private func startSweeper() -> WorkerThread {
        let (core, stop, end) = (core, sweeperStop, sweeperEnd)
        // Often enough to keep deadlines within a few percent, rarely enough to cost nothing.
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

    /// Bytes of all bodies together.
    var bufferedBytes: Int { core.bodies.usedBytes }

    /// Uses another certificate for new connections; open ones keep theirs. false: this certificate is in use already.
    ///
    /// Throws if the certificate cannot be used; then the current one stays in use.
    @discardableResult
    public func replaceIdentity(_ identity: Identity) throws(HTTPServerFault) -> Bool {
        guard let identities = core.identities else {
            throw .badIdentity(reason: "this server was started without TLS")
        }
        return try identities.replace(with: identity)
    }

    /// Ends the server in this order. Blocks until `deadline` at the longest, unless a handler blocks in its thread.
    ///
    /// 1. The server accepts no new connection and closes the listening socket at once: nobody would serve connections
    ///    that the kernel still accepts on it.
    /// 2. Requests are still answered, with `Connection: close`; idle connections are closed after a short grace
    ///    period.
    /// 3. At the deadline the requests in flight are answered 503, so that every client knows.
    ///
    /// true: every request was answered in time. A second call does nothing and returns true at once, whether or not
    /// the first has ended.
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
        // Also when no connection is open: a connection accepted a moment ago may not be counted yet, and libmicrohttpd
        // aborts the process if it ends while a request is suspended.
        core.giveUp()
        if !isDrained {
            // The 503 must still be sent; local buffers accept it at once.
            _ = waitUntilEmpty(by: Deadline(after: .milliseconds(250)))
        }
        MHD_stop_daemon(daemon.pointer)
        sweeperStop.open()
        sweeperEnd.wait(for: .seconds(5))
        daemon.release()
        return isDrained
    }

    private func waitUntilEmpty(by deadline: Deadline) -> Bool {
        // Read twice: a connection that was just accepted is counted a moment later.
        var emptyReadings = 0
        while true {
            emptyReadings = core.openConnections == 0 ? emptyReadings + 1 : 0
            if emptyReadings == 2 { return true }
            if deadline.hasPassed { return false }
            pause(for: .milliseconds(10))
        }
    }
}

/// The pointers of a running daemon. Unchecked: they never change, and `release` is called once, after the end.
private struct DaemonHandle: @unchecked Sendable {
    let pointer: OpaquePointer
    let context: Unmanaged<ServerCore>
    let priorities: UnsafeMutablePointer<CChar>

    func release() {
        context.release()
        priorities.deallocate()
    }
}
