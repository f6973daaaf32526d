// A connection to a server that can be cut.

import Glibc
import KafkaTestKit
import Platform
import Synchronization

/// Forwards bytes to a port of this host while it is open. While it is closed nothing listens, as when a server is down.
final class Gate: Sendable {
    private static let limit: Duration = .seconds(5)
    /// Time between two checks of the wanted state.
    private static let interval: Int32 = 10

    /// State shared by the thread and its owner.
    private final class Orders: Sendable {
        let isWantedOpen = Mutex(false)
        let isOpen = Mutex(false)
        let isOver = Latch()

        var isServing: Bool { !isOver.isOpen && isWantedOpen.withLock { $0 } }
    }

    let port: UInt16
    private let orders = Orders()
    private let thread: WorkerThread

    /// The gate is closed at first.
    init(to target: UInt16) throws {
        let port = try Ports.free()
        self.port = port
        thread = WorkerThread.start("gate") { [orders] in
            while !orders.isOver.isOpen {
                if orders.isServing { try Self.serve(orders, port, target) }
                pause(for: .milliseconds(Int64(Self.interval)))
            }
        }
    }

    /// Returns when the gate listens on its port.
    func open() async throws { try await want(true) }
    /// Returns when the port is free and no more bytes are forwarded.
    func close() async throws { try await want(false) }

    func end() async throws {
        orders.isOver.open()
        try await thread.join()
    }

    private func want(_ wanted: Bool) async throws {
        orders.isWantedOpen.withLock { $0 = wanted }
        try await waitUntil("the gate is \(wanted ? "open" : "closed")") {
            // The error that ended the thread also ends the wait.
            try thread.result?.get()
            return orders.isOpen.withLock { $0 } == wanted
        }
    }

    /// A client's connection, and the connection to the server that it is forwarded to.
    private final class Pair {
        let client: Descriptor
        let server: Descriptor

        init(client: consuming Descriptor, server: consuming Descriptor) {
            self.client = client
            self.server = server
        }

        var interests: [pollfd] {
            [client.number, server.number].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        }

        /// false: one side has closed.
        func carry() -> Bool {
            Self.carry(from: client, to: server) && Self.carry(from: server, to: client)
        }

        private static func carry(from: borrowing Descriptor, to: borrowing Descriptor) -> Bool {
            var buffer = [UInt8](repeating: 0, count: 64 << 10)
            let count = recv(from.number, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            guard count != 0 else { return false }
            guard count > 0 else { return errno == EAGAIN || errno == EINTR }
            // Requests and answers are small, so they fit into the socket's buffer.
            do throws(SystemFailure) { try to.sendAll(Array(buffer[..<count])) } catch { return false }
            return true
        }
    }

    private static func serve(_ orders: Orders, _ port: UInt16, _ target: UInt16) throws {
        let listener = try Loopback.listen(port: port)
        orders.isOpen.withLock { $0 = true }
        var pairs: [Pair] = []
        while orders.isServing {
            var polled = pairs.flatMap(\.interests)
            polled.append(pollfd(fd: listener.descriptor.number, events: Int16(POLLIN), revents: 0))
            poll(&polled, nfds_t(polled.count), interval)
            pairs.removeAll { !$0.carry() }
            while let client = Loopback.accept(from: listener.descriptor.number) {
                pairs.append(Pair(client: client, server: try Loopback.connect(port: target, limit: limit)))
            }
        }
        // First all forwarded connections are cut.
        pairs = []
        _ = consume listener
        orders.isOpen.withLock { $0 = false }
    }
}
