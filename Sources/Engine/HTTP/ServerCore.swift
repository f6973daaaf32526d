// State that all connections of a server share, and the functions that libmicrohttpd calls.

import CMicroHTTPD
import CPlatform
import Glibc
import Platform
import Synchronization
import Telemetry

final class ServerCore: Sendable {
    let configuration: HTTPServer.Configuration
    let handler: any HTTPHandler
    let metrics: ServerMetrics
    let logger: Logger
    /// nil: the server speaks plain HTTP.
    let identities: TLSIdentities?
    let bodies: BodyBudget
    private let connections = Mutex<[ObjectIdentifier: Connection]>([:])
    private let crowd = Burst(least: leastCrowd)
    /// Number of open connections of each client.
    private let clients = Mutex<[ClientKey: Int]>([:])
    private let hasToldOfUnsent = Atomic(false)
    private let inFlight = Atomic(0)
    private let drainStart = Mutex<ContinuousClock.Instant?>(nil)
    private let draining = Atomic(false)
    private let ended = Atomic(false)
    /// In connections. Each needs some fifty kilobytes for the library's buffer and TLS.
    private static let leastCrowd = 128
    /// Percent of `maxConnections`; the rest is for connections that arrive between two sweeps.
    private static let fullPercent = 90

    init(
        _ configuration: HTTPServer.Configuration, handler: any HTTPHandler, metrics: Metrics, logger: Logger
    ) throws(HTTPServerFault) {
        self.configuration = configuration
        if let identity = configuration.identity {
            identities = try TLSIdentities(identity)
        } else {
            identities = nil
        }
        bodies = BodyBudget(bytes: configuration.maxBufferedBytes)
        self.handler = handler
        self.metrics = ServerMetrics(metrics, server: configuration.name)
        self.logger = logger
    }

    var isDraining: Bool { draining.load(ordering: .relaxed) }
    var openConnections: Int { connections.withLock { $0.count } }

    func beginDrain() {
        drainStart.withLock { $0 = .now }
        draining.store(true, ordering: .relaxed)
    }

    /// Takes a place for one more request of the handler; false: too many are in flight.
    func takeSlot() -> Bool {
        guard inFlight.add(1, ordering: .relaxed).newValue <= configuration.maxInFlight else {
            inFlight.subtract(1, ordering: .relaxed)
            return false
        }
        metrics.inFlight.add(1)
        return true
    }

    func freeSlot() {
        inFlight.subtract(1, ordering: .relaxed)
        metrics.inFlight.add(-1)
    }

    /// Closes connections that have exceeded a deadline. Runs on the sweeper's thread.
    func sweep() {
        let drainStart = drainStart.withLock { $0 }
        let open = connections.withLock { Array($0.values) }
        let isCrowded = open.count > configuration.maxConnections / 4
        for connection in open { connection.sweep(at: .now, drainingSince: drainStart, isCrowded: isCrowded) }
        makeRoom(among: open)
        if isBurstOver(openConnections: open.count) { perennial_trim_memory() }
    }

    /// true after a burst of bodies or of connections, which need not have bodies.
    func isBurstOver(openConnections: Int) -> Bool {
        crowd.note(openConnections)
        let isCrowdGone = crowd.isOver(now: openConnections)
        return bodies.isBurstOver() || isCrowdGone
    }

    /// A connection without a request may be closed at any time. When few places are left, those that have been idle
    /// longest are closed, but none of preferred clients. So nobody can keep others out by opening connections and
    /// leaving them idle.
    private func makeRoom(among open: [Connection]) {
        // A connection that was cut is open until its thread has closed it, which may take longer than a sweep.
        let staying = open.count { !$0.isCut }
        let excess = staying - configuration.maxConnections * Self.fullPercent / 100
        guard excess > 0 else { return }
        let spare = open.filter { !$0.isPreferred }.compactMap { connection in
            connection.spareSince.map { (since: $0, connection) }
        }
        for (_, connection) in spare.sorted(by: { $0.since < $1.since }).prefix(excess) { connection.cutIfSpare() }
    }

    /// true: handlers receive no further request.
    var hasGivenUp: Bool { ended.load(ordering: .acquiring) }

    /// Answers all requests that handlers still hold, and prevents further ones: a connection checks `hasGivenUp` under
    /// the lock under which it passes a request to the handler. So either the connection sees it there, or the code
    /// below finds the request.
    func giveUp() {
        ended.store(true, ordering: .releasing)
        for connection in connections.withLock({ Array($0.values) }) { connection.giveUp() }
    }

    /// true for the first answer that could not be sent: if a client finds a way to cause this, it must not fill the
    /// log.
    var isFirstUnsent: Bool { !hasToldOfUnsent.exchange(true, ordering: .relaxed) }

    fileprivate func accepts(_ peer: IPAddress) -> Bool {
        let open = clients.withLock { $0[ClientKey(peer)] ?? 0 }
        if configuration.accepts(peer, open) { return true }
        metrics.count(.notAdmitted)
        return false
    }

    private func count(_ peer: IPAddress?, _ change: Int) {
        guard let peer else { return }
        clients.withLock { clients in
            let count = (clients[ClientKey(peer)] ?? 0) + change
            clients[ClientKey(peer)] = count > 0 ? count : nil
        }
    }

    fileprivate func opened(_ connection: Connection) {
        connections.withLock { $0[ObjectIdentifier(connection)] = connection }
        count(connection.peer, 1)
        metrics.connections.add(1)
    }

    fileprivate func closed(_ connection: Connection) {
        connections.withLock { $0[ObjectIdentifier(connection)] = nil }
        count(connection.peer, -1)
        metrics.connections.add(-1)
    }
}

/// What counts as one client: everybody who has IPv6 has a /64 at least.
private struct ClientKey: Hashable {
    private let bytes: [UInt8]

    init(_ address: IPAddress) {
        bytes = address.isIPv4 ? address.bytes : Array(address.bytes.prefix(8))
    }
}

// The callbacks run on the threads of libmicrohttpd, never two at a time for one connection. They are top-level
// functions: a closure could inherit an actor's isolation and would trap there.

/// A connection was accepted, or is about to be closed. The server's registry keeps the object alive in between; C only
/// holds an unowned pointer.
func onConnection(
    context: UnsafeMutableRawPointer?, handle: OpaquePointer?,
    slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, event: MHD_ConnectionNotificationCode
) {
    guard let context, let handle, let slot else { return }
    let core = Unmanaged<ServerCore>.fromOpaque(context).takeUnretainedValue()
    if event == .CONNECTION_NOTIFY_STARTED {
        let connection = Connection(core, ConnectionHandle(pointer: handle))
        core.identities?.tickets?.offer(to: connection.handle)
        core.opened(connection)
        slot.pointee = Unmanaged.passUnretained(connection).toOpaque()
    } else if let pointer = slot.pointee {
        let connection = Unmanaged<Connection>.fromOpaque(pointer).takeUnretainedValue()
        slot.pointee = nil
        connection.closed()
        core.closed(connection)
    }
}

/// A client has connected; it has sent nothing yet. `NO` closes the socket.
func onAccept(
    context: UnsafeMutableRawPointer?, address: UnsafePointer<sockaddr>?, length: socklen_t
) -> MHD_Result {
    guard let context, let address, let peer = IPAddress(address) else { return .YES }
    return Unmanaged<ServerCore>.fromOpaque(context).takeUnretainedValue().accepts(peer) ? .YES : .NO
}

/// The request line has arrived; its target is still unchanged. The returned value becomes the context of the request.
func onRequestLine(
    context: UnsafeMutableRawPointer?, target: UnsafePointer<CChar>?, handle: OpaquePointer?
) -> UnsafeMutableRawPointer? {
    guard let target, let connection = lentConnection(handle) else { return nil }
    connection.requestLine(target: target)
    return nil
}

func onRequest(
    context: UnsafeMutableRawPointer?, handle: OpaquePointer?, url: UnsafePointer<CChar>?,
    method: UnsafePointer<CChar>?, version: UnsafePointer<CChar>?, upload: UnsafePointer<CChar>?,
    uploadBytes: UnsafeMutablePointer<Int>?, slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
    guard let method, let version, let uploadBytes, let connection = lentConnection(handle) else { return .NO }
    if !connection.hasHead {
        return connection.head(line: method, version: version)
    }
    guard uploadBytes.pointee > 0, let upload else { return connection.complete() }
    let bytes = UnsafeRawBufferPointer(start: upload, count: uploadBytes.pointee)
    // All bytes are taken, even those of a refused body.
    uploadBytes.pointee = 0
    return connection.take(bytes)
}

/// The answer was sent, or the request failed.
func onCompleted(
    context: UnsafeMutableRawPointer?, handle: OpaquePointer?,
    slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, ending: MHD_RequestTerminationCode
) {
    guard let handle, let connection = lentConnection(handle) else { return }
    connection.completed(status: Int(perennial_httpd_status(handle)))
}

func lentConnection(_ handle: OpaquePointer?) -> Connection? {
    guard let handle, let pointer = perennial_httpd_context(handle) else { return nil }
    return Unmanaged<Connection>.fromOpaque(pointer).takeUnretainedValue()
}
