// What all connections of a server share, and the functions that libmicrohttpd calls.

import CMicroHTTPD
import Synchronization
import Telemetry

final class ServerCore: Sendable {
    let configuration: HTTPServer.Configuration
    let handler: any HTTPHandler
    let metrics: ServerMetrics
    let logger: Logger
    /// nil: plaintext.
    let identities: TLSIdentities?
    private let connections = Mutex<[ObjectIdentifier: Connection]>([:])
    private let inFlight = Atomic(0)
    private let drainStart = Mutex<ContinuousClock.Instant?>(nil)
    private let draining = Atomic(false)
    private let ended = Atomic(false)
    /// Of `maxConnections`; the rest is for those that come between two looks.
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

    /// One more request for the handler; false when there are enough.
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

    /// Closes what has taken too long. Runs on the sweeper's thread.
    func sweep() {
        let drainStart = drainStart.withLock { $0 }
        let open = connections.withLock { Array($0.values) }
        for connection in open { connection.sweep(at: .now, drainingSince: drainStart) }
        makeRoom(among: open)
    }

    /// Idle connections are a courtesy to their clients: when few places are left, those that have been idle longest go. So
    /// nobody can keep others out by opening connections and leaving them.
    private func makeRoom(among open: [Connection]) {
        let excess = open.count - configuration.maxConnections * Self.fullPercent / 100
        guard excess > 0 else { return }
        let idle = open.compactMap { connection in connection.idleSince.map { (since: $0, connection) } }
        for (_, connection) in idle.sorted(by: { $0.since < $1.since }).prefix(excess) { connection.cutIfIdle() }
    }

    /// Nothing is given to a handler any more.
    var hasGivenUp: Bool { ended.load(ordering: .acquiring) }

    /// Answers whatever handlers still hold, and lets nothing follow: a connection asks `hasGivenUp` under the lock under
    /// which it gives a request away, so this one is either seen there or finds the request below.
    func giveUp() {
        ended.store(true, ordering: .releasing)
        for connection in connections.withLock({ Array($0.values) }) { connection.giveUp() }
    }

    fileprivate func opened(_ connection: Connection) {
        connections.withLock { $0[ObjectIdentifier(connection)] = connection }
        metrics.connections.add(1)
    }

    fileprivate func closed(_ connection: Connection) {
        connections.withLock { $0[ObjectIdentifier(connection)] = nil }
        metrics.connections.add(-1)
    }
}

// The callbacks run on the threads of libmicrohttpd; of one connection never two at a time. They are top-level functions:
// a closure could inherit an actor's isolation and would trap there.

/// A connection was accepted, or is about to be closed. The registry of the server keeps the object alive in between; C
/// only lends it back.
func onConnection(
    context: UnsafeMutableRawPointer?, handle: OpaquePointer?,
    slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, event: MHD_ConnectionNotificationCode
) {
    guard let context, let handle, let slot else { return }
    let core = Unmanaged<ServerCore>.fromOpaque(context).takeUnretainedValue()
    if event == .CONNECTION_NOTIFY_STARTED {
        let connection = Connection(core, ConnectionHandle(pointer: handle))
        core.opened(connection)
        slot.pointee = Unmanaged.passUnretained(connection).toOpaque()
    } else if let pointer = slot.pointee {
        let connection = Unmanaged<Connection>.fromOpaque(pointer).takeUnretainedValue()
        slot.pointee = nil
        connection.closed()
        core.closed(connection)
    }
}

/// The request line is there, its target untouched. What is returned becomes the context of the request.
func onRequestLine(
    context: UnsafeMutableRawPointer?, target: UnsafePointer<CChar>?, handle: OpaquePointer?
) -> UnsafeMutableRawPointer? {
    guard let target, let connection = lentConnection(handle) else { return nil }
    connection.requestLine(target: String(cString: target))
    return nil
}

func onRequest(
    context: UnsafeMutableRawPointer?, handle: OpaquePointer?, url: UnsafePointer<CChar>?,
    method: UnsafePointer<CChar>?, version: UnsafePointer<CChar>?, upload: UnsafePointer<CChar>?,
    uploadBytes: UnsafeMutablePointer<Int>?, slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
    guard let method, let version, let uploadBytes, let connection = lentConnection(handle) else { return .NO }
    if !connection.hasHead {
        return connection.head(line: method, version: String(cString: version))
    }
    guard uploadBytes.pointee > 0, let upload else { return connection.complete() }
    let bytes = UnsafeRawBufferPointer(start: upload, count: uploadBytes.pointee)
    // Everything is taken, also of a body that is refused.
    uploadBytes.pointee = 0
    return connection.take(bytes)
}

/// The answer is out, or the request died.
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
