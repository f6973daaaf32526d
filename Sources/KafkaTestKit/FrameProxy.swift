// A proxy that understands where Kafka's requests begin and end.

import Glibc
import Platform
import Synchronization

/// Stands between clients and brokers on loopback and lets everything pass, except for what a rule says: hold one request back
/// and send it later, delay, count, cut.
///
/// This is how a request that arrives late is made: the client gives up and repeats it on another connection, and then the first
/// one reaches the broker. One thread does all the work; it ends with `close()`, or when nobody holds the proxy any more.
public final class FrameProxy: Sendable {
    enum Order: Sendable {
        case release(RequestHold)
        case discard(RequestHold)
        case dropConnections
        case close
    }

    /// What tests ask for and the proxy's thread reads.
    struct Rules {
        var holds: [RequestHold] = []
        var delays: [KafkaAPI: Duration] = [:]
        var distance: Duration = .zero
        var counts: [KafkaAPI: Int] = [:]
        var orders: [Order] = []
    }

    /// Shared with the thread, which must not keep the proxy itself alive.
    final class Desk: Sendable {
        let rules = Mutex(Rules())
        /// Both ends live as long as the desk: writing to a pipe without a reader would kill the process with SIGPIPE.
        let wakeReader: Descriptor
        private let wakeWriter: Descriptor

        init() throws(SystemFailure) {
            var pipe: [Int32] = [-1, -1]
            guard pipe2(&pipe, O_CLOEXEC | O_NONBLOCK) == 0 else { throw .last("make a pipe") }
            wakeReader = Descriptor(owning: pipe[0])
            wakeWriter = Descriptor(owning: pipe[1])
        }

        func order(_ order: Order) {
            rules.withLock { $0.orders.append(order) }
            // A full pipe is fine: then the thread is about to wake anyway.
            var byte: UInt8 = 0
            _ = write(wakeWriter.number, &byte, 1)
        }
    }

    /// Where clients connect; in the order of the broker ports.
    public let ports: [UInt16]
    private let desk: Desk
    private let worker: WorkerThread

    /// Listens on one free port for each broker port, on loopback. The brokers need not run yet.
    public init(brokerPorts: [UInt16]) throws {
        let desk = try Desk()
        let routes = try brokerPorts.map { ProxyRoute(listener: try Loopback.listen(), brokerPort: $0) }
        ports = routes.map { $0.listener.port }
        self.desk = desk
        let loop = ProxyLoop(desk: desk, routes: routes)
        // Handed over for good: only the new thread uses it from here on.
        let hand = Box<ProxyLoop>()
        hand.put(loop)
        worker = WorkerThread.start("frame-proxy") { hand.take().run() }
    }

    deinit { desk.order(.close) }

    // MARK: Rules

    /// Holds back one request that is still to come. Several rules may wait; the oldest that matches takes a request.
    /// - Parameters:
    ///   - occurrence: 1 for the next matching request, 2 for the one after it.
    ///   - matches: looks at the frame, for example for a transactional id. Called on the proxy's thread.
    public func hold(
        _ api: KafkaAPI, occurrence: Int = 1, client: RequestHold.ClientSide = .keepOpen,
        where matches: @escaping @Sendable (KafkaRequest) -> Bool = { _ in true }
    ) -> RequestHold {
        let hold = RequestHold(
            api, occurrence: occurrence, clientSide: client, matches: matches, order: { [desk] in desk.order($0) })
        desk.rules.withLock { $0.holds.append(hold) }
        return hold
    }

    /// Every request of this API reaches the broker so much later, and with it what follows on its connection, also when its client has gone
    /// in the meantime. `nil` ends it.
    public func delay(_ api: KafkaAPI, by duration: Duration?) {
        desk.rules.withLock { $0.delays[api] = duration }
    }

    /// Every request reaches its broker so much later, those of one connection in their order and side by side: a client that is
    /// far away. Making a connection takes no longer.
    public func setDistance(_ duration: Duration) {
        desk.rules.withLock { $0.distance = duration }
    }

    /// Requests of this API that have come from clients so far, with those that are held.
    public func count(of api: KafkaAPI) -> Int {
        desk.rules.withLock { $0.counts[api] ?? 0 }
    }

    /// Cuts every connection there is now. A request that is held or delayed stays so, without its client.
    public func dropConnections() { desk.order(.dropConnections) }

    /// Cuts everything and frees the ports. Returns when the thread has ended; what is still held is lost.
    public func close() async {
        desk.order(.close)
        do { try await worker.join() } catch { printMessage("frame proxy: its thread ended with \(error)") }
    }
}
