import KafkaTestKit
import Platform
import Synchronization
import Telemetry
import TestTraits
import Testing

@testable import HTTP

/// What many clients together may take away from others.
@Suite(.ownThreads) struct `A crowd of clients` {
    private static let small = [UInt8](repeating: 7, count: 1000)

    private func announce(_ server: TestServer, _ bytes: Int) throws -> RawClient {
        let client = try server.client()
        client.send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: \(bytes)\r\n\r\n")
        return client
    }

    /// Sends a body without its last byte.
    private func begin(_ server: TestServer, _ bytes: Int) throws -> RawClient {
        let client = try announce(server, bytes)
        client.send([UInt8](repeating: 0, count: bytes - 1))
        return client
    }

    @Test func `has one budget for its bodies, of which large ones take half`() async throws {
        let server = try TestServer {
            $0.maxBodyBytes = 100 << 10
            $0.maxBufferedBytes = 500 << 10
        }
        defer { server.stop() }
        let third = try announce(server, 100 << 10)
        third.send([0])
        try await waitUntil("its body has begun, and may have the usual size") {
            server.server.bufferedBytes == 32 << 10
        }
        let waiting = try [begin(server, 100 << 10), begin(server, 100 << 10)]
        try await waitUntil("both are held") { server.server.bufferedBytes == 232 << 10 }
        third.send([UInt8](repeating: 0, count: (100 << 10) - 1))
        let answer = try third.answer()
        #expect(answer.status == 503 && answer.has("Retry-After: 60"))
        #expect(server.refused("buffers_full") == 1)
        // From now on an announced body need not be sent, and its connection is free for others.
        let fourth = try announce(server, 100 << 10)
        let said = try fourth.readToEnd()
        #expect(said.hasPrefix("HTTP/1.1 503 ") && said.contains("Retry-After: 60"))
        #expect(server.refused("buffers_full") == 2)
        // The connection stays open, and a body of usual size is accepted.
        #expect(try third.post("/echo", Self.small).status == 200)
        #expect(try server.client().post("/echo", Self.small).status == 200)
        for client in waiting {
            client.send([0])
            #expect(try client.answer().status == 200)
        }
        try await waitUntil("all of it is given back") { server.server.bufferedBytes == 0 }
        #expect(try server.client().post("/echo", [UInt8](repeating: 0, count: 100 << 10)).status == 200)
    }

    @Test func `leaves a quarter of the budget to those who are preferred`() {
        let budget = BodyBudget(bytes: 100)
        #expect(budget.take(50, isLarge: true, isPreferred: false))
        #expect(!budget.take(1, isLarge: true, isPreferred: false))
        #expect(budget.take(25, isLarge: false, isPreferred: false))
        #expect(!budget.take(1, isLarge: false, isPreferred: false))
        #expect(budget.take(25, isLarge: true, isPreferred: true))
        #expect(!budget.take(1, isLarge: false, isPreferred: true))
    }

    @Test func `gives the room back of bodies that never end`() async throws {
        let server = try TestServer { $0.requestDeadline = .milliseconds(300) }
        defer { server.stop() }
        let clients = try (0..<3).map { _ in try begin(server, 50 << 10) }
        #expect(try clients.allSatisfy { try $0.answer().status == 408 })
        try await waitUntil("all of it is given back") { server.server.bufferedBytes == 0 }
    }

    @Test func `gives memory back once when a burst is over`() {
        let budget = BodyBudget(bytes: 64 << 20)
        #expect(budget.take(7 << 20, isLarge: false, isPreferred: false))
        budget.giveBack(7 << 20)
        #expect(!budget.isBurstOver())
        #expect(budget.take(20 << 20, isLarge: true, isPreferred: false))
        #expect(!budget.isBurstOver())
        budget.giveBack(14 << 20)
        #expect(!budget.isBurstOver())
        budget.giveBack(1 << 20)
        #expect(budget.isBurstOver() && !budget.isBurstOver())
    }

    @Test func `gives memory back when most of many connections are gone, also of those that said nothing`() throws {
        let core = try ServerCore(
            .init(name: "test", address: try #require(ListenAddress("127.0.0.1:0"))), handler: Router(),
            metrics: Metrics(), logger: Logger { _ in })
        func isOver(_ connections: Int) -> Bool { core.isBurstOver(openConnections: connections) }
        #expect(!isOver(127) && !isOver(0))
        #expect(!isOver(2_000) && !isOver(501))
        #expect(isOver(500) && !isOver(500))
        // The remaining ones are so many that they count as a crowd themselves.
        #expect(isOver(0) && !isOver(0))
        // Bodies have their own limit for a burst.
        #expect(core.bodies.take(20 << 20, isLarge: true, isPreferred: false) && !isOver(0))
        core.bodies.giveBack(20 << 20)
        #expect(isOver(0) && !isOver(0))
    }

    @Test func `is turned away before it has said anything`() async throws {
        let asked = Mutex<[String]>([])
        let server = try TestServer {
            $0.accepts = { peer, open in
                asked.withLock { $0.append("\(peer) \(open)") }
                return open < 2
            }
        }
        defer { server.stop() }
        let first = try server.client()
        #expect(try first.get("/").status == 200)
        let second = try server.client()
        #expect(try second.get("/").status == 200)
        #expect(try server.client().readToEnd() == "")
        #expect(asked.withLock { $0 } == ["127.0.0.1 0", "127.0.0.1 1", "127.0.0.1 2"])
        #expect(server.refused("not_admitted") == 1)
        first.send("GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
        _ = try first.readToEnd()
        try await server.waitUntilConnections(1)
        #expect(try server.client().get("/").status == 200)
    }

    @Test func `that says nothing is closed soon, and also one that stays in its head`() throws {
        let server = try TestServer {
            $0.greetingDeadline = .milliseconds(200)
            $0.headDeadline = .milliseconds(400)
            $0.requestDeadline = .seconds(60)
        }
        defer { server.stop() }
        let silent = try server.client()
        let slow = try server.client()
        slow.send("GET / HTTP/1.1\r\nHost")
        let body = try begin(server, 10)
        #expect(try silent.readToEnd().hasPrefix("HTTP/1.1 408 "))
        #expect(try slow.readToEnd().hasPrefix("HTTP/1.1 408 "))
        #expect(server.refused("timed_out") == 2)
        // A request that has come this far has more time.
        body.send([0])
        #expect(try body.answer().status == 200)
    }

    @Test func `has less time for its heads when it takes a quarter of all places`() async throws {
        let server = try TestServer {
            $0.maxConnections = 16
            ($0.greetingDeadline, $0.headDeadline, $0.requestDeadline) = (.seconds(60), .seconds(60), .seconds(60))
            $0.crowdedDeadline = .milliseconds(100)
        }
        defer { server.stop() }
        let body = try begin(server, 10)
        let silent = try server.client()
        // It must be older than the others: they are closed too, and then no more than a quarter is taken.
        try await server.waitUntilConnections(2)
        // Together with them, more than a quarter.
        let others = try (0..<3).map { _ in try server.client() }
        defer { withExtendedLifetime(others) {} }
        #expect(try silent.readToEnd().hasPrefix("HTTP/1.1 408 "))
        // A request that has come this far keeps its time.
        body.send([0])
        #expect(try body.answer().status == 200)
    }

    @Test func `of silent connections gives way to others`() async throws {
        let server = try TestServer {
            $0.maxConnections = 20
            $0.crowdedDeadline = .seconds(60)
            $0.greetingDeadline = .seconds(60)
            $0.headDeadline = .seconds(60)
            $0.requestDeadline = .seconds(60)
        }
        defer { server.stop() }
        let first = try server.client()
        try await server.waitUntilConnections(1)
        let others = try (0..<19).map { _ in try server.client() }
        defer { withExtendedLifetime(others) {} }
        #expect(try server.client().get("/").status == 200)
        let received = try first.readToEnd()
        #expect(received == "")
    }

    /// A connection that a proxy or Apple keeps open must not be cut because strangers are silent or send half bodies.
    @Test func `gives way to others and preferred ones do not, also in the middle of a body`() async throws {
        let preferred = Mutex(true)
        let server = try TestServer {
            $0.maxConnections = 20
            $0.greetingDeadline = .seconds(60)
            $0.headDeadline = .seconds(60)
            $0.requestDeadline = .seconds(60)
            $0.prefers = { _ in preferred.withLock { $0 } }
        }
        defer { server.stop() }
        let kept = try server.client()
        #expect(try kept.get("/").status == 200)
        preferred.withLock { $0 = false }
        let first = try begin(server, 10)
        // The server accepts on two threads: only then is this one the oldest.
        try await server.waitUntilConnections(2)
        let others = try (0..<16).map { _ in try begin(server, 10) }
        defer { withExtendedLifetime(others) {} }
        try await waitUntil("their bodies have begun") { server.server.bufferedBytes == 170 }
        // As long as the next one has sent nothing, it may be closed first.
        var last: RawClient?
        for _ in 0..<20 where server.server.bufferedBytes < 180 {
            last = try begin(server, 10)
            pause(for: .milliseconds(50))
        }
        defer { withExtendedLifetime(last) {} }
        let received = try first.readToEnd()
        #expect(received == "")
        #expect(try server.client().get("/").status == 200)
        #expect(try kept.get("/").status == 200)
    }
}
