import HTTP
import KafkaTestKit
import TestTraits
import Testing

@Suite(.ownThreads) struct `An HTTP server` {
    @Test func `answers one request after the other on a connection`() throws {
        let server = try TestServer()
        defer { server.stop() }
        let client = try server.client()
        for round in 0..<5 {
            let body = Array("round \(round)".utf8)
            #expect(try client.get("/").text == "hello\n")
            #expect(try client.post("/echo", body).body == body)
        }
        #expect(server.answered("2xx") == 10)
    }

    @Test func `answers requests that came in one piece, in order`() throws {
        let server = try TestServer()
        defer { server.stop() }
        let client = try server.client()
        let bodies = (0..<10).map { String(repeating: "x", count: $0 * 700) }
        let requests = bodies.map { "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: \($0.utf8.count)\r\n\r\n\($0)" }
        client.send(requests.joined())
        for body in bodies { #expect(try client.answer().text == body) }
    }

    @Test func `takes a request one byte at a time`() throws {
        let server = try TestServer()
        defer { server.stop() }
        let client = try server.client()
        for byte in "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\n\r\nok".utf8 { client.send([byte]) }
        #expect(try client.answer().text == "ok")
    }

    @Test(arguments: [0, 1, 19_500, 256 << 10]) func `takes bodies up to its limit`(_ bytes: Int) throws {
        let server = try TestServer()
        defer { server.stop() }
        let client = try server.client()
        let body = (0..<bytes).map { UInt8(truncatingIfNeeded: $0) }
        #expect(try client.post("/echo", body).body == body)
    }

    @Test func `takes a chunked body`() throws {
        let server = try TestServer()
        defer { server.stop() }
        let client = try server.client()
        client.send(
            "POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        let answer = try client.answer()
        #expect(answer.text == "abcde" && answer.has("Connection: close"))
    }

    @Test func `asks a client that waits to go on`() throws {
        let server = try TestServer()
        defer { server.stop() }
        let client = try server.client()
        client.send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        #expect(try client.answer(hasBody: false).status == 100)
        client.send("ok")
        #expect(try client.answer().text == "ok")
    }

    @Test func `gives a handler every value of a header whatever its case, the query and the peer`() throws {
        let server = try TestServer()
        defer { server.stop() }
        let client = try server.client()
        #expect(try client.get("/headers?a=%20b&c", "X-Test: 1\r\nx-TEST: 2\r\n").text == "1|2 a=%20b&c 127.0.0.1\n")
        #expect(try client.get("http://elsewhere/headers").text == " - 127.0.0.1\n")
    }

    @Test func `answers HEAD with the head of GET`() throws {
        let server = try TestServer()
        defer { server.stop() }
        let client = try server.client()
        client.send("HEAD / HTTP/1.1\r\nHost: t\r\n\r\n")
        let answer = try client.answer(hasBody: false)
        #expect(answer.status == 200 && answer.has("Content-Length: 6"))
        #expect(try client.get("/").text == "hello\n")
    }

    @Test func `says 404 for an unknown path and 405 with Allow for an unknown method`() throws {
        let server = try TestServer()
        defer { server.stop() }
        let client = try server.client()
        #expect(try client.get("/nothing").status == 404)
        #expect(try client.get("//").status == 404)
        let answer = try client.post("/", Array("body".utf8))
        #expect(answer.status == 405 && answer.has("Allow: GET, HEAD"))
        #expect(try client.get("/echo").has("Allow: POST"))
        client.send("BREW / HTTP/1.1\r\nHost: t\r\n\r\n")
        #expect(try client.answer().status == 405)
    }

    @Test func `reads a refused body to its end and goes on with the connection`() throws {
        let server = try TestServer()
        defer { server.stop() }
        let client = try server.client()
        let answer = try client.post("/nothing", [UInt8](repeating: 0, count: 600_000))
        #expect(answer.status == 404 && !answer.has("Connection: close"))
        #expect(try client.get("/").status == 200)
    }

    @Test func `serves many clients at once`() throws {
        let server = try TestServer()
        defer { server.stop() }
        let clients = try (0..<100).map { _ in try server.client() }
        for round in 0..<3 {
            for (index, client) in clients.enumerated() {
                let body = "client \(index) round \(round)"
                client.send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
            }
            for (index, client) in clients.enumerated() {
                #expect(try client.answer().text == "client \(index) round \(round)")
            }
        }
        #expect(server.metric(#"perennial_http_connections{server="test"}"#) == 100)
    }
}

@Suite(.ownThreads) struct `A router` {
    private func answer(_ router: Router, _ target: String) throws -> RawClient.Answer {
        let server = try TestServer(router)
        defer { server.stop() }
        return try server.client().get(target)
    }

    @Test func `matches a star with one segment`() throws {
        var router = Router()
        router.get("/v1/things/*") { .text(200, $0.path) }
        #expect(try answer(router, "/v1/things/a%2Fb?x").text == "/v1/things/a%2Fb\n")
        for miss in ["/v1/things/", "/v1/things", "/v1/things/a/b", "/v1/Things/a", "/v1/thing\u{73}\u{301}/a"] {
            #expect(try answer(router, miss).status == 404)
        }
    }

    @Test func `asks who may come in before anything else, and the check of a route last`() throws {
        var router = Router(admit: { $0.headers["X-Pass"] == nil ? .text(403, "no") : nil })
        router.add("GET", "/secret", check: { _ in .text(401, "token?") }) { _, responder in
            responder.respond(.text(200, "yes"))
        }
        let server = try TestServer(router)
        defer { server.stop() }
        let client = try server.client()
        #expect(try client.get("/nothing").status == 403)
        #expect(try client.get("/nothing", "X-Pass: 1\r\n").status == 404)
        #expect(try client.get("/secret", "X-Pass: 1\r\n").status == 401)
    }
}
