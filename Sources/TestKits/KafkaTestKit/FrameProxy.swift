// A proxy that knows where Kafka's requests begin and end.

import Glibc
import Platform
import Synchronization

/// Sits between clients and brokers on loopback and forwards everything, except what a rule changes: hold one request
/// and send it later, delay, count, disconnect.
///
/// This produces a request that arrives late: the client gives up and retries it on another connection, and then the
/// first one reaches the broker. One thread does all the work. It ends with `close()`, or when the last reference to
/// the proxy is gone.
public final class FrameProxy: Sendable {
    enum Order: Sendable {
        case release(RequestHold)
        case discard(RequestHold)
        case dropConnections
        case close
    }

    /// The rules of the tests, which the proxy's thread reads.
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
            // A full pipe is fine: then the thread is about to wake up anyway.
            var byte: UInt8 = 0
            _ = write(wakeWriter.number, &byte, 1)
        }
    }

    /// The ports for clients, in the order of the broker ports.
    public let ports: [UInt16]
    private let desk: Desk
    private let worker: WorkerThread

    /// Listens on one free loopback port for each broker port. The brokers need not be running yet.
    public init(brokerPorts: [UInt16]) throws {
        let desk = try Desk()
        let routes = try brokerPorts.map { ProxyRoute(listener: try Loopback.listen(), brokerPort: $0) }
        ports = routes.map { $0.listener.port }
        self.desk = desk
        let loop = ProxyLoop(desk: desk, routes: routes)
        // Handed over: from here on only the new thread uses it.
        let hand = Box<ProxyLoop>()
        hand.put(loop)
        worker = WorkerThread.start("frame-proxy") { hand.take().run() }
    }

    deinit { desk.order(.close) }

    // MARK: Rules

    /// Holds one future request. Several rules may wait; the oldest matching rule takes a request.
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

    /// Every request of this API reaches the broker this much later, and so does everything after it on its connection,
    /// even if the client has disconnected meanwhile. `nil` ends the delay.
    public func delay(_ api: KafkaAPI, by duration: Duration?) {
        desk.rules.withLock { $0.delays[api] = duration }
    }

    /// Simulates a distant client: every request reaches its broker this much later. Requests of one connection keep
    /// their order and travel at the same time. Connecting takes no longer.
    public func setDistance(_ duration: Duration) {
        desk.rules.withLock { $0.distance = duration }
    }

    /// The number of requests of this API received from clients so far, including held ones.
    public func count(of api: KafkaAPI) -> Int {
        desk.rules.withLock { $0.counts[api] ?? 0 }
    }

    /// Closes all current connections. Held and delayed requests stay, without their clients.
    public func dropConnections() { desk.order(.dropConnections) }

    /// Closes everything and frees the ports. Returns when the thread has ended; held requests are lost.
    public func close() async {
        desk.order(.close)
        do { try await worker.join() } catch { printMessage("frame proxy: its thread ended with \(error)") }
    }
}
