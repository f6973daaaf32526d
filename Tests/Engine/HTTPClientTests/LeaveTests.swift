import HTTP
import HTTPClient
import HTTPTestKit
import KafkaTestKit
import Synchronization
import TestTraits
import Testing

/// Says yes until it has been asked this many times, and counts.
private final class Leave: Sendable {
    private let asked = Mutex(0)
    private let yeses: Int

    init(yeses: Int) { self.yeses = yeses }

    var count: Int { asked.withLock { $0 } }
    func ask() -> Bool {
        asked.withLock { asked in
            asked += 1
            return asked <= yeses
        }
    }
}

@Suite(.ownThreads) struct `A request that asks for leave` {
    private func request(_ url: String, _ leave: Leave, body: String = "") -> HTTPClient.Request {
        var request = HTTPClient.Request("PUT", url, body: Array(body.utf8))
        request.mayBegin = leave.ask
        return request
    }

    @Test func `is sent when it gets it, having asked once`() throws {
        let server = try TestServer()
        defer { server.stop() }
        let client = try HTTPClient()
        defer { client.close() }
        for _ in 0..<3 {
            let leave = Leave(yeses: 1)
            #expect(try client.answer(to: request(server.url("/"), leave, body: "x")).body == Array("x".utf8))
            #expect(leave.count == 1)
        }
        #expect(server.connections == 1)
    }

    @Test func `leaves nothing on the wire when it is refused, after the connection was made`() async throws {
        let raw = try SilentPort()
        let client = try HTTPClient()
        let outcomes = Outcomes()
        let leave = Leave(yeses: 0)
        client.send(request("http://127.0.0.1:\(raw.port)/", leave, body: "x"), completion: outcomes.take)
        let connection = try await raw.accept()
        try await waitUntil("the request ends") { outcomes.count == 1 }
        #expect(outcomes.faults == [.withdrawn])
        #expect(leave.count == 1)
        client.close()
        #expect(try await connection.bytesToTheEnd() == 0)
    }

    @Test func `is not seen by a server with TLS when it is refused, and the next one is`() async throws {
        let identity = try await TestIdentity.localhost.value
        let holder = Holder()
        let server = try TestServer(holder, identity: identity)
        defer { server.stop() }
        let client = try HTTPClient.make { $0.extraAuthorities = identity.certificate }
        defer { client.close() }
        let outcomes = Outcomes()
        let leave = Leave(yeses: 0)
        #expect(client.fault(request(server.url("/"), leave, body: "x")) == .withdrawn)
        // It is not asked before the connection is ready.
        #expect(leave.count == 1)
        client.send(request(server.url("/"), Leave(yeses: 1), body: "y"), completion: outcomes.take)
        try await waitUntil("a request arrives") { holder.count > 0 }
        #expect(holder.count == 1)
        holder.answerAll()
        try await waitUntil("it is answered") { outcomes.statuses == [200] }
    }

    @Test func `does not ask when there is no connection`() throws {
        let client = try HTTPClient()
        defer { client.close() }
        let leave = Leave(yeses: 1)
        #expect(client.fault(request("http://127.0.0.1:\(try SilentPort.closed())/", leave)) == .notConnected)
        #expect(leave.count == 0)
    }

    /// The server reads the second request of a kept connection and closes the connection: the library takes the connection for
    /// dead.
    private func askOverDeadConnection(
        _ raw: SilentPort, _ leave: Leave, _ client: HTTPClient, _ outcomes: Outcomes, isLast: Bool = false
    ) async throws {
        let url = "http://127.0.0.1:\(raw.port)/"
        client.send(.init("GET", url), completion: outcomes.take)
        let first = try await raw.accept()
        try await first.readHead()
        try first.answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        try await waitUntil("the first request is answered") { outcomes.statuses == [200] }
        client.send(request(url, leave, body: "x"), completion: outcomes.take)
        try await first.readHead()
        if isLast { raw.stopListening() }
        first.end()
    }

    @Test func `asks again when it is sent anew because a kept connection was dead`() async throws {
        let client = try HTTPClient()
        defer { client.close() }
        let (raw, leave, outcomes) = (try SilentPort(), Leave(yeses: 2), Outcomes())
        try await askOverDeadConnection(raw, leave, client, outcomes)
        let second = try await raw.accept()
        try await second.readHead()
        #expect(leave.count == 2)
        try second.answer("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
        try await waitUntil("it is answered") { outcomes.statuses == [200, 202] }
    }

    @Test func `is broken, not withdrawn, when it is refused after a try that was written`() async throws {
        let client = try HTTPClient()
        let (raw, leave, outcomes) = (try SilentPort(), Leave(yeses: 1), Outcomes())
        try await askOverDeadConnection(raw, leave, client, outcomes)
        let second = try await raw.accept()
        try await waitUntil("it ends") { outcomes.count == 2 }
        #expect(outcomes.faults == [.broken])
        #expect(leave.count == 2)
        client.close()
        #expect(try await second.bytesToTheEnd() == 0)
    }

    @Test func `is broken when it was written, and there is no connection for a second try`() async throws {
        let client = try HTTPClient()
        defer { client.close() }
        let (raw, leave, outcomes) = (try SilentPort(), Leave(yeses: 2), Outcomes())
        try await askOverDeadConnection(raw, leave, client, outcomes, isLast: true)
        try await waitUntil("it ends") { outcomes.count == 2 }
        #expect(outcomes.faults == [.broken])
        #expect(leave.count == 1)
    }

    @Test func `has its own time when it is given one`() throws {
        let silent = try SilentPort()
        let client = try HTTPClient.make { $0.timeout = patience * 10 }
        defer { client.close() }
        var request = HTTPClient.Request("GET", "http://127.0.0.1:\(silent.port)/")
        request.timeout = .milliseconds(100)
        #expect(client.fault(request) == .timedOut)
    }

    @Test func `shows neither address, headers nor body to who prints it`() {
        var request = HTTPClient.Request("PUT", "https://host/secret", headers: [.init("Authorization", "secret")])
        request.body = Array("secret".utf8)
        var dumped = ""
        dump(request, to: &dumped)
        dump(request.headers, to: &dumped)
        let texts = ["\(request)", "\(request.headers)", String(reflecting: request), dumped]
        for text in texts { #expect(!text.contains("secret") && !text.contains("115"), "\(text)") }
        #expect(dumped.contains("PUT") && dumped.contains("Authorization"))
    }
}
