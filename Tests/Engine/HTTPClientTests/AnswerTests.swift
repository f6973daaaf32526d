import HTTP
import HTTPClient
import HTTPTestKit
import KafkaTestKit
import Platform
import TestTraits
import Testing

@Suite(.ownThreads) struct `An HTTP client` {
    private func withServer(_ body: (TestServer) async throws -> Void) async throws {
        let server = try TestServer()
        defer { server.stop() }
        try await body(server)
    }

    @Test(arguments: [200, 202, 404, 503, 302])
    func `gives back the status, and follows no redirect`(_ status: Int) async throws {
        try await withServer { server in
            let client = try HTTPClient()
            defer { client.close() }
            #expect(try client.answer(to: .init("GET", server.url("/\(status)"))).status == status)
        }
    }

    @Test(arguments: ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"])
    func `says the method and headers it is given, and no others that matter`(_ method: String) async throws {
        try await withServer { server in
            let client = try HTTPClient.make { $0.userAgent = "tester/1" }
            defer { client.close() }
            let response = try client.answer(
                to: .init(
                    method, server.url("/"), headers: [.init("X-One", "1"), .init("X-Empty", "")],
                    body: method == "POST" ? Array("body".utf8) : []))
            #expect(response.header("x-method") == method)
            #expect(response.header("X-Had-X-One") == "<1>")
            #expect(response.header("X-Had-X-Empty") == "<>")
            #expect(response.header("X-Had-User-Agent") == "<tester/1>")
            #expect(response.header("X-Had-Content-Type") == nil)
            #expect(response.body == (method == "POST" ? Array("body".utf8) : []))
        }
    }

    @Test func `sends an empty body with its length`() async throws {
        try await withServer { server in
            let client = try HTTPClient()
            defer { client.close() }
            for method in ["POST", "PUT"] {
                let response = try client.answer(to: .init(method, server.url("/")))
                #expect(response.header("X-Had-Content-Length") == "<0>")
            }
        }
    }

    @Test func `carries large bodies in both ways without asking first`() async throws {
        try await withServer { server in
            let client = try HTTPClient.make { $0.maxResponseBytes = 4 << 20 }
            defer { client.close() }
            let body = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            let response = try client.answer(
                to: .init("POST", server.url("/"), headers: [.init("Content-Type", "x/y")], body: body))
            #expect(response.body == body)
            #expect(response.header("X-Had-Content-Type") == "<x/y>")
            #expect(response.header("X-Had-Expect") == nil)
        }
    }

    @Test func `keeps its connections`() async throws {
        try await withServer { server in
            let client = try HTTPClient.make { $0.maxInFlight = 4 }
            defer { client.close() }
            for _ in 0..<20 { _ = try client.answer(to: .init("GET", server.url("/"))) }
            #expect(server.connections == 1)
        }
    }

    @Test func `answers many at once, with no more connections than it may have`() async throws {
        try await withServer { server in
            let client = try HTTPClient.make { $0.maxInFlight = 4 }
            defer { client.close() }
            let outcomes = Outcomes()
            for number in 0..<500 {
                client.send(.init("POST", server.url("/"), body: Array("\(number)".utf8)), completion: outcomes.take)
            }
            try await waitUntil("all are answered") { outcomes.count == 500 }
            let bodies = try outcomes.all.map { String(decoding: try $0.get().body, as: UTF8.self) }
            #expect(Set(bodies) == Set((0..<500).map(String.init)))
            #expect((server.connections ?? 99) <= 4)
        }
    }

    @Test func `refuses what is no request, on this side of the wire`() async throws {
        try await withServer { server in
            let client = try HTTPClient()
            defer { client.close() }
            let url = server.url("/")
            let wrong: [HTTPClient.Request] = [
                .init("GET", "no url at all"), .init("GET", "ftp://127.0.0.1/"), .init("GET", "file:///etc/passwd"),
                .init("GET", url + "\r\nX: y"), .init("GET", url + "\u{0}x"), .init("GET X", url), .init("", url),
                .init("GET", url, headers: [.init("A", "b\r\nC: d")]), .init("GET", url, headers: [.init("A:", "b")]),
                .init("GET", url, headers: [.init("", "b")]),
            ]
            for request in wrong { #expect(client.fault(request) == .invalidRequest, "\(request)") }
            #expect(server.connections == 0)
        }
    }
}

@Suite(.ownThreads) struct `An HTTP client with TLS` {
    private func withServer(
        _ identity: Task<HTTPServer.Identity, any Error>,
        _ body: (TestServer, HTTPServer.Identity) async throws -> Void
    ) async throws {
        let identity = try await identity.value
        let server = try TestServer(identity: identity)
        defer { server.stop() }
        try await body(server, identity)
    }

    @Test func `trusts an authority that it is given`() async throws {
        try await withServer(TestIdentity.localhost) { server, identity in
            let client = try HTTPClient.make { $0.extraAuthorities = identity.certificate }
            defer { client.close() }
            let body = [UInt8](repeating: 7, count: 300_000)
            for _ in 0..<3 {
                #expect(try client.answer(to: .init("POST", server.url("/"), body: body)).body == body)
            }
            #expect(server.connections == 1)
        }
    }

    @Test func `has several requests on their way at once`() async throws {
        let identity = try await TestIdentity.localhost.value
        let holder = Holder()
        let server = try TestServer(holder, identity: identity)
        defer { server.stop() }
        let client = try HTTPClient.make { $0.extraAuthorities = identity.certificate }
        defer { client.close() }
        let outcomes = Outcomes()
        for _ in 0..<3 { client.send(.init("GET", server.url("/")), completion: outcomes.take) }
        try await waitUntil("three are on their way") { holder.count == 3 }
        holder.answerAll()
        try await waitUntil("three are answered") { outcomes.statuses == [200, 200, 200] }
    }

    @Test func `refuses a server whose authority it does not know`() async throws {
        let other = try await TestIdentity.elsewhere.value
        try await withServer(TestIdentity.localhost) { server, _ in
            for authorities in [nil, other.certificate] {
                let client = try HTTPClient.make { $0.extraAuthorities = authorities }
                defer { client.close() }
                #expect(client.fault(.init("GET", server.url("/"))) == .tls)
            }
        }
    }

    @Test func `refuses a certificate of another name`() async throws {
        try await withServer(TestIdentity.elsewhere) { server, identity in
            let client = try HTTPClient.make { $0.extraAuthorities = identity.certificate }
            defer { client.close() }
            #expect(client.fault(.init("GET", server.url("/"))) == .tls)
        }
    }

    @Test func `refuses authorities that are none`() async throws {
        try await withServer(TestIdentity.localhost) { server, _ in
            let client = try HTTPClient.make { $0.extraAuthorities = Array("nonsense".utf8) }
            defer { client.close() }
            #expect(client.fault(.init("GET", server.url("/"))) == .tls)
        }
    }

    @Test func `does not speak TLS with a server that does not, nor the other way round`() async throws {
        try await withServer(TestIdentity.localhost) { server, _ in
            let client = try HTTPClient()
            defer { client.close() }
            let plain = server.url("/").replacing("https://", with: "http://")
            #expect([.broken, .badAnswer].contains(client.fault(.init("GET", plain))))
        }
        let server = try TestServer()
        defer { server.stop() }
        let client = try HTTPClient()
        defer { client.close() }
        #expect(client.fault(.init("GET", server.url("/").replacing("http://", with: "https://"))) == .tls)
    }
}
