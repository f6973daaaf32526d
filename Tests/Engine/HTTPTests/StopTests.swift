import HTTP
import KafkaTestKit
import Platform
import Synchronization
import TestTraits
import Testing

@Suite(.ownThreads) struct `Stopping an HTTP server` {
    @Test func `loses no answer of busy clients`() async throws {
        let server = try TestServer { $0.drainGrace = .seconds(1) }
        let port = server.port
        let lost = Atomic(0)
        let answered = Atomic(0)
        let clients = (0..<16).map { index in
            WorkerThread.start("client-\(index)") {
                let client = try RawClient(port: port)
                while true {
                    guard let answer = try? client.get("/") else {
                        lost.add(1, ordering: .relaxed)
                        return
                    }
                    answered.add(1, ordering: .relaxed)
                    if answer.has("Connection: close") { return }
                }
            }
        }
        try await waitUntil("a thousand answers") { answered.load(ordering: .relaxed) > 1000 }
        #expect(server.stop())
        for client in clients { try await client.join() }
        #expect(lost.load(ordering: .relaxed) == 0)
    }

    @Test func `waits for what handlers hold`() async throws {
        let (holder, server, client) = try await heldRequest()
        let isStopped = Latch()
        let stopping = WorkerThread.start("stops") {
            #expect(server.stop())
            isStopped.open()
        }
        #expect(!isStopped.wait(for: .milliseconds(300)))
        holder.take()[0].responder.respond(.text(200, "at last"))
        let answer = try client.answer()
        #expect(answer.text == "at last\n" && answer.has("Connection: close"))
        try await stopping.join()
    }

    @Test func `answers 503 at its deadline for a handler that does not`() async throws {
        let (holder, server, client) = try await heldRequest()
        let begin = ContinuousClock.now
        #expect(!server.stop(.milliseconds(300)))
        #expect(begin.duration(to: .now) < .seconds(5))
        let answer = try client.answer()
        #expect(answer.status == 503 && answer.has("Retry-After: 60"))
        #expect(server.refused("stopped") == 1)
        #expect(!holder.take()[0].responder.respond(.text(200, "too late")))
    }

    /// A request that a handler gets after all held requests were answered would be held for ever, and libmicrohttpd aborts the
    /// process if it ends with a request that was not resumed.
    @Test func `gives no request to a handler after its deadline`() async throws {
        let (holder, server, client) = try await heldRequest()
        let slow = try server.client()
        try await server.waitUntilConnections(2)
        slow.send("GET / HTTP/1.1\r\n")
        let isStopped = Latch()
        WorkerThread.start("stops") {
            server.stop(.milliseconds(300))
            isStopped.open()
        }
        #expect(try client.answer().status == 503)
        slow.send("Host: t\r\n\r\n")
        #expect(try slow.answer().status == 503)
        #expect(isStopped.wait(for: patience))
        #expect(holder.count == 1)
    }

    @Test func `refuses new connections at once`() async throws {
        let (holder, server, client) = try await heldRequest()
        let isStopped = Latch()
        WorkerThread.start("stops") {
            server.stop()
            isStopped.open()
        }
        try await waitUntil("new connections are refused") { (try? server.client()) == nil }
        #expect(!isStopped.isOpen)
        holder.take()[0].responder.respond(.text(200, "x"))
        #expect(try client.answer().status == 200)
        #expect(isStopped.wait(for: patience))
    }

    @Test func `closes idle and silent connections after the grace`() async throws {
        let server = try TestServer()
        let idle = try server.client()
        #expect(try idle.get("/").status == 200)
        let silent = try server.client()
        try await server.waitUntilConnections(2)
        #expect(server.stop())
        #expect(try idle.readToEnd() == "")
        #expect(try silent.readToEnd() == "")
    }

    /// Two threads of libmicrohttpd once removed the listening socket from one epoll set at the same time, and aborted.
    @Test func `is safe while connections come and go`() throws {
        for _ in 0..<200 {
            let server = try TestServer { $0.drainGrace = .zero }
            let clients = try (0..<4).map { _ in try server.client() }
            for client in clients { client.sendGet() }
            #expect(server.stop())
        }
    }

    @Test func `frees the port for the next`() throws {
        func successor() throws -> TestServer? {
            let first = try TestServer()
            let address = first.server.address
            #expect(try first.client().get("/").status == 200)
            first.stop()
            return try? TestServer { $0.address = address }
        }
        // Any test that runs at the same time may be given the port in between.
        let second = try #require(try successor() ?? successor() ?? successor())
        #expect(try second.client().get("/").status == 200)
        second.stop()
        #expect(second.stop())
    }
}

@Suite(.ownThreads) struct `A listening address` {
    @Test func `that another process has is named, with what to do`() throws {
        let server = try TestServer()
        defer { server.stop() }
        let fault = #expect(throws: HTTPServerFault.self) { try TestServer { $0.address = server.server.address } }
        #expect(fault?.description.contains("127.0.0.1:\(server.port)") == true)
        #expect(fault?.description.contains("another process has the port") == true)
    }

    @Test func `of no interface of the machine is named`() throws {
        let address = try #require(ListenAddress("192.0.2.1:0"))
        let fault = #expect(throws: HTTPServerFault.self) { try TestServer { $0.address = address } }
        #expect(fault?.description.contains("192.0.2.1:0") == true)
    }

    @Test func `may be IPv6, and takes IPv4 too when it is all addresses`() throws {
        let address = try #require(ListenAddress("[::]:0"))
        let server = try TestServer { $0.address = address }
        defer { server.stop() }
        #expect(try server.client().get("/headers").text == " - 127.0.0.1\n")
    }
}
