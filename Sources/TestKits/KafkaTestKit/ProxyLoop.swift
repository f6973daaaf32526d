// The thread of the frame proxy: one poll(2) for all its sockets.

import Glibc
import Platform
import Synchronization

final class ProxyRoute: Sendable {
    let listener: Listener
    let brokerPort: UInt16

    init(listener: consuming Listener, brokerPort: UInt16) {
        self.listener = listener
        self.brokerPort = brokerPort
    }
}

/// Created on one thread and then used only by the proxy's thread: this hand-over makes `@unchecked` right.
final class ProxyLoop: @unchecked Sendable {
    private let desk: FrameProxy.Desk
    private let routes: [ProxyRoute]
    private var connections: [ProxyConnection] = []
    private var isClosing = false

    init(desk: FrameProxy.Desk, routes: [ProxyRoute]) {
        self.desk = desk
        self.routes = routes
    }

    func run() {
        while true {
            takeOrders()
            if isClosing { break }
            waitForSockets()
        }
        for connection in connections { connection.end("the proxy was closed") }
        for hold in desk.rules.withLock({ $0.holds }) { hold.end("the proxy was closed") }
    }

    private func takeOrders() {
        let orders = desk.rules.withLock { rules in
            defer { rules.orders = [] }
            return rules.orders
        }
        for order in orders {
            switch order {
            case .close: isClosing = true
            case .dropConnections: for connection in connections { connection.drop() }
            case .release(let hold): connection(holding: hold)?.release()
            case .discard(let hold):
                desk.rules.withLock { $0.holds.removeAll { $0 === hold } }
                connection(holding: hold)?.end("it was discarded")
            }
        }
    }

    private func connection(holding hold: RequestHold) -> ProxyConnection? {
        connections.first { $0.held === hold }
    }

    private func waitForSockets() {
        for connection in connections { connection.advance() }
        connections.removeAll { $0.isFinished }
        var polled = [pollfd(fd: desk.wakeReader.number, events: Int16(POLLIN), revents: 0)]
        for route in routes {
            polled.append(pollfd(fd: route.listener.descriptor.number, events: Int16(POLLIN), revents: 0))
        }
        for connection in connections { polled.append(contentsOf: connection.interests) }
        let nextDue = connections.compactMap(\.remainingDelay).min()
        guard poll(&polled, nfds_t(polled.count), nextDue?.timeoutMilliseconds ?? -1) > 0 else { return }
        if polled[0].revents != 0 { emptyWakePipe() }
        for index in connections.indices {
            let first = 1 + routes.count + 2 * index
            connections[index].serve(clientEvents: polled[first].revents, brokerEvents: polled[first + 1].revents)
        }
        for (index, route) in routes.enumerated() where polled[1 + index].revents != 0 { accept(on: route) }
    }

    private func emptyWakePipe() {
        var bytes = [UInt8](repeating: 0, count: 256)
        while read(desk.wakeReader.number, &bytes, bytes.count) == bytes.count {}
    }

    private func accept(on route: ProxyRoute) {
        while let client = Loopback.accept(from: route.listener.descriptor.number) {
            do throws(SystemFailure) {
                let broker = try Loopback.beginConnect(port: route.brokerPort)
                connections.append(ProxyConnection(client: client, broker: broker, desk: desk))
            } catch {
                // The broker is down: the client's connection is closed, as if it had been refused.
            }
        }
    }
}
