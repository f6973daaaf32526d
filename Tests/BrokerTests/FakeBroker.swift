import Glibc
import KafkaTestKit
import Platform
import Synchronization

/// Speaks just enough of Kafka's framing to show what a proxy lets through: it records each request and answers with the
/// request's correlation id and its number in the order of arrival.
final class FakeBroker: Sendable {
    private struct State {
        var requests: [KafkaRequest] = []
        var isClosing = false
        var workers: [WorkerThread] = []
    }

    let port: UInt16
    private let state = Mutex(State())
    private let listener: Listener

    init() throws {
        let listener = try Loopback.listen()
        port = listener.port
        self.listener = listener
    }

    /// Runs `body` with a broker that is stopped afterwards.
    static func serving(_ body: (FakeBroker) async throws -> Void) async throws {
        let broker = try FakeBroker()
        let worker = WorkerThread.start("fake-broker") { broker.acceptAll() }
        do { try await body(broker) } catch {
            try await broker.close(worker)
            throw error
        }
        try await broker.close(worker)
    }

    private func close(_ worker: WorkerThread) async throws {
        cutAll()
        try await worker.join()
        for worker in state.withLock({ $0.workers }) { try await worker.join() }
    }

    /// Accepted connections. A connection that still waits to be accepted cannot be cut.
    var connectionCount: Int { state.withLock { $0.workers.count } }

    /// Closes every connection and accepts no more.
    func cutAll() { state.withLock { $0.isClosing = true } }

    var requests: [KafkaRequest] { state.withLock { $0.requests } }
    var keys: [KafkaAPI] { requests.map(\.api) }
    private var isClosing: Bool { state.withLock { $0.isClosing } }

    private func acceptAll() {
        while !isClosing {
            guard Self.waitForInput(listener.descriptor.number) else { continue }
            guard let client = Loopback.accept(from: listener.descriptor.number) else { continue }
            let hand = Mutex<Int32>(dup(client.number))
            let worker = WorkerThread.start("fake-broker-1") { self.serve(hand.withLock { $0 }) }
            state.withLock { $0.workers.append(worker) }
        }
    }

    private static func waitForInput(_ descriptor: Int32) -> Bool {
        var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        // Short, so that the thread notices closing soon.
        return poll(&polled, 1, 20) > 0
    }

    private func serve(_ number: Int32) {
        let client = Descriptor(owning: number)
        var queue = ByteQueue()
        var bytes = [UInt8](repeating: 0, count: 65536)
        while !isClosing {
            guard Self.waitForInput(client.number) else { continue }
            let count = recv(client.number, &bytes, bytes.count, 0)
            guard count > 0 else { return }
            queue.append(bytes.prefix(count))
            while let frame = try? queue.takeFrame(), let request = KafkaRequest(frame: frame) {
                let place = state.withLock { state in
                    state.requests.append(request)
                    return state.requests.count
                }
                var response = WireWriter()
                response.number(request.correlationID)
                response.number(Int16(place))
                var framed = WireWriter()
                framed.block(response.bytes)
                guard (try? client.sendAll(framed.bytes)) != nil else { return }
            }
        }
    }
}
