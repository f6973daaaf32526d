import HTTP
import KafkaTestKit
import Platform
import Synchronization
import TestTraits
import Testing

@Suite(.ownThreads) struct `An answer` {
    @Test func `may come later from another thread`() async throws {
        let holder = Holder()
        let server = try TestServer(holder)
        defer { server.stop() }
        let clients = try (0..<20).map { _ in try server.client() }
        for round in 0..<20 {
            for index in clients.indices { clients[index].sendGet("/\(index)-\(round)") }
            try await holder.waitUntilHolds(clients.count)
            #expect(server.metric(#"perennial_http_requests_in_flight{server="test"}"#) == 20)
            let held = holder.take()
            let answering = WorkerThread.start("answers") {
                for (request, responder) in held { responder.respond(.text(200, request.path)) }
            }
            for index in clients.indices { #expect(try clients[index].answer().text == "/\(index)-\(round)\n") }
            try await answering.join()
        }
        #expect(server.metric(#"perennial_http_requests_in_flight{server="test"}"#) == 0)
    }

    /// The thread that answers races with the thread that suspends.
    @Test func `is never lost between now and later`() throws {
        let queue = Mutex<[Responder]>([])
        let stop = Latch()
        let ended = Latch()
        WorkerThread.start("answers") {
            while !stop.isOpen {
                let some = queue.withLock { queue in
                    defer { queue = [] }
                    return queue
                }
                for responder in some { responder.respond(.text(200, "x")) }
            }
            ended.open()
        }
        var router = Router()
        router.add("GET", "/") { _, responder in queue.withLock { $0.append(responder) } }
        let server = try TestServer(router)
        defer {
            server.stop()
            stop.open()
            ended.wait(for: patience)
        }
        let client = try server.client()
        for _ in 0..<2000 { #expect(try client.get("/").status == 200) }
    }

    @Test func `that the handler forgets is 500, counted and logged`() throws {
        var router = Router()
        router.add("GET", "/forgets") { _, _ in }
        let server = try TestServer(router)
        defer { server.stop() }
        let client = try server.client()
        #expect(try client.get("/forgets").status == 500)
        #expect(server.refused("unanswered") == 1)
        #expect(server.log.text.contains(#""path":"/forgets""#))
    }

    @Test func `that is forgotten later is 500 too`() async throws {
        let (holder, server, client) = try await heldRequest()
        defer { server.stop() }
        _ = holder.take()
        #expect(try client.answer().status == 500)
    }

    @Test func `that never comes is a connection that ends, now or later, and frees its place`() async throws {
        var router = Router()
        router.add("GET", "/") { _, responder in responder.hangUp() }
        let abrupt = try TestServer(router)
        defer { abrupt.stop() }
        for _ in 0..<50 {
            let client = try abrupt.client()
            client.sendGet()
            #expect(try client.readToEnd().isEmpty)
        }
        let (holder, server, client) = try await heldRequest()
        defer { server.stop() }
        let responder = holder.take()[0].responder
        #expect(responder.hangUp())
        #expect(!responder.respond(.text(200, "too late")) && !responder.hangUp())
        #expect(try client.readToEnd().isEmpty)
        for one in [abrupt, server] {
            try await one.waitUntilConnections(0)
            #expect(one.metric(#"perennial_http_requests_in_flight{server="test"}"#) == 0)
            #expect(one.answered("5xx") == 0 && one.refused("unanswered") == 0)
        }
    }

    @Test func `is given once; the second does not reach the next request`() async throws {
        let (holder, server, client) = try await heldRequest()
        defer { server.stop() }
        let first = holder.take()[0].responder
        #expect(first.respond(.text(200, "first")))
        #expect(try client.answer().text == "first\n")
        client.sendGet()
        try await holder.waitUntilHolds(1)
        #expect(!first.respond(.text(200, "late")))
        #expect(holder.take()[0].responder.respond(.text(200, "second")))
        #expect(try client.answer().text == "second\n")
    }

    @Test func `to a client that has gone hurts nobody`() async throws {
        let holder = Holder()
        let server = try TestServer(holder)
        defer { server.stop() }
        do {
            let client = try server.client()
            client.sendGet()
            try await holder.waitUntilHolds(1)
        }
        for (_, responder) in holder.take() { responder.respond(.text(200, "hello?")) }
        try await server.waitUntilConnections(0)
    }

    @Test func `with a header that HTTP cannot carry is 500`() throws {
        var router = Router()
        router.get("/") { _ in
            var response = HTTPResponse.text(200, "x")
            response.headers.add("X-Split", "a\r\nSet-Cookie: b")
            return response
        }
        let server = try TestServer(router)
        defer { server.stop() }
        let answer = try server.client().get("/")
        #expect(answer.status == 500 && !answer.head.contains("Set-Cookie"))
        #expect(server.refused("unanswered") == 1)
    }

    @Test func `is 503 with Retry-After when too many wait, and the server recovers`() async throws {
        let holder = Holder()
        let server = try TestServer(holder) { $0.maxInFlight = 2 }
        defer { server.stop() }
        let clients = try (0..<2).map { _ in try server.client() }
        for client in clients { client.sendGet() }
        try await holder.waitUntilHolds(2)
        // Not before: a silent connection is closed after a while.
        let third = try server.client()
        let refused = try third.get("/")
        #expect(refused.status == 503 && refused.has("Retry-After: 60"))
        #expect(server.refused("overloaded") == 1)
        for (_, responder) in holder.take() { responder.respond(.text(200, "x")) }
        for client in clients { #expect(try client.answer().status == 200) }
        third.sendGet()
        try await holder.waitUntilHolds(1)
        holder.take()[0].responder.respond(.text(200, "x"))
        #expect(try third.answer().status == 200)
    }
}
