import Configuration
import HTTP
import HTTPClient
import KafkaTestKit
import Platform
import TestTraits
import Testing

@testable import Ingest

@Suite(.ownThreads) struct `The endpoint` {
    private func door() throws -> Door {
        try Door {
            $0.usageToken = "secret"
            $0.allowed = .ranges([try! AddressRange("17.0.0.0/8")])
        }
    }

    /// Each row breaks one rule more than the next; the first broken rule decides the answer.
    @Test func `refuses by the first rule that is broken`() throws {
        let door = try door()
        defer { door.stop() }
        let apple = "17.1.1.1"
        let rows: [(method: String, path: String, headers: [String: String], status: Int, word: String)] = [
            ("GET", "/other", [:], 403, "forbidden"),
            ("GET", "/other", ["X-Forwarded-For": apple], 404, "not_found"),
            ("GET", "/usage", ["X-Forwarded-For": apple], 405, "method_not_allowed"),
            ("HEAD", "/notifications", ["X-Forwarded-For": apple], 405, "method_not_allowed"),
            ("post", "/notifications", ["X-Forwarded-For": apple], 405, "method_not_allowed"),
            ("POST", "/usage", ["X-Forwarded-For": apple], 401, "unauthorized"),
            ("POST", "/usage", ["X-Forwarded-For": apple, "Authorization": "Bearer secret"], 415, "media_type"),
            ("POST", "/notifications", ["X-Forwarded-For": apple, "Content-Type": "text/plain"], 415, "media_type"),
            ("POST", "/notifications/v1", ["X-Forwarded-For": apple], 404, "not_found"),
            ("POST", "/notifications/", ["X-Forwarded-For": apple], 404, "not_found"),
        ]
        for row in rows {
            let answer = try door.send(row.method, row.path, row.method == "POST" ? [0x20] : [], headers: row.headers)
            #expect(answer.status == row.status, "\(row)")
            if row.method != "HEAD" { #expect(answer.text == #"{"error":"\#(row.word)"}"#) }
            // A client that may not enter must not hold a connection.
            #expect(answer.header("Connection") == (row.status == 403 ? "close" : nil), "\(row)")
            if row.status == 405 { #expect(answer.header("Allow") == "POST") }
            if row.status == 401 { #expect(answer.header("WWW-Authenticate") == "Bearer") }
        }
        #expect(door.log.publications.isEmpty)
    }

    @Test func `says 413 only to whom it would have listened`() throws {
        let door = try door()
        defer { door.stop() }
        let large = [UInt8](repeating: 0x20, count: 300 << 10)
        #expect(try door.send("POST", "/notifications", large, headers: [:]).status == 403)
        let headers = ["X-Forwarded-For": "17.1.1.1", "Content-Type": "text/plain"]
        #expect(try door.send("POST", "/notifications", large, headers: headers).status == 415)
    }

    @Test func `ignores the query`() throws {
        let door = try Door()
        defer { door.stop() }
        #expect(try door.send("POST", "/notifications?a=b", Apple.body()).status == 200)
    }

    @Test(
        arguments: [
            ("application/json", "gzip", 415), ("application/json", "identity, br", 415),
            ("application/json", "identity", 200), ("application/json; charset=utf-8", "", 200),
            ("Application/JSON;charset=\"UTF-8\"; x=y", "", 200), ("application/json; charset=latin1", "", 415),
            ("application/json; charset=", "", 415), ("application/json;;a; charset", "", 200),
            ("application/json; x=\"charset=latin1\"", "", 200), ("application/json", "identity, IDENTITY ,", 200),
            ("application/jsonp", "", 415), ("application/x-json", "", 415),
        ])
    func `takes JSON in UTF-8 as it is, nothing compressed`(
        _ type: String, _ encoding: String, _ status: Int
    ) throws {
        let door = try Door()
        defer { door.stop() }
        var headers = ["Content-Type": type]
        if !encoding.isEmpty { headers["Content-Encoding"] = encoding }
        #expect(try door.send("POST", "/notifications", Apple.body(), headers: headers).status == status)
    }

    /// 15,000 of them cost 4 ms of a thread that all requests need.
    @Test func `reads no long media type`() throws {
        func headers(_ bytes: Int) -> HTTPHeaders {
            var headers = HTTPHeaders()
            let start = "application/json"
            headers.add("Content-Type", start + String(repeating: ";", count: bytes - start.utf8.count))
            return headers
        }
        #expect(hasJSONBody(headers(256)))
        #expect(!hasJSONBody(headers(257)))
        var compressed = headers(20)
        compressed.add("Content-Encoding", String(repeating: ",", count: 256))
        #expect(hasJSONBody(compressed))
        compressed.add("Content-Encoding", String(repeating: ",", count: 257))
        #expect(!hasJSONBody(compressed))
    }

    @Test func `lets in whom the list allows, by the address that a trusted proxy tells`() throws {
        let door = try door()
        defer { door.stop() }
        #expect(try door.notify(Apple.body(), from: "17.1.1.1").status == 200)
        #expect(try door.notify(Apple.body(), from: "18.1.1.1").status == 403)
        // The proxy itself is not on the list.
        #expect(try door.notify(Apple.body()).status == 403)
        // An unreadable address matches no entry.
        #expect(try door.notify(Apple.body(), from: "17.1.1.1, unknown").status == 403)
        // The client may write anything; the proxy has added the last address.
        #expect(try door.notify(Apple.body(), from: "17.1.1.1, 18.1.1.1").status == 403)
    }

    @Test func `does not believe a proxy that is not trusted`() throws {
        let door = try Door {
            $0.clients = ClientAddresses(trustedProxies: [])
            $0.allowed = .ranges([try! AddressRange("17.0.0.0/8")])
        }
        defer { door.stop() }
        #expect(try door.notify(Apple.body(), from: "17.1.1.1").status == 403)
    }

    @Test func `logs refusals in one line, and nothing of what they held`() throws {
        let door = try door()
        defer { door.stop() }
        for _ in 0..<3 { _ = try door.send("GET", "/secret-path") }
        _ = try door.notify(Array("secret-body".utf8), from: "17.1.1.1")
        #expect(door.lines.all == "")
        door.refusals.flush()
        #expect(door.lines.all.contains("forbidden=3, malformed=1"))
        #expect(!door.lines.all.contains("secret"))
        door.refusals.flush()
        #expect(door.lines.all.split(separator: "\n").count == 1)
    }
}

@Suite struct `The client's address` {
    private let clients = ClientAddresses(trustedProxies: [
        try! AddressRange("10.0.0.0/8"), try! AddressRange("fd00::/8"),
    ])

    @Test(
        arguments: [
            (["198.51.100.7"], "198.51.100.7"), (["1.1.1.1, 198.51.100.7"], "198.51.100.7"),
            (["198.51.100.7, 10.1.1.1", "fd00::1"], "198.51.100.7"), (["198.51.100.7:4711"], "198.51.100.7"),
            (["[2001:db8::1]:443"], "2001:db8::1"), (["[2001:db8::1]"], "2001:db8::1"),
            (["2001:db8::1"], "2001:db8::1"),
            (["::ffff:17.0.0.1"], "17.0.0.1"), ([" \t17.0.0.1\t "], "17.0.0.1"), (["10.1.1.1"], "10.9.9.9"),
            ([], "10.9.9.9"), (["198.51.100.7, unknown"], nil), (["17.0.0.1,"], nil), ([""], nil), (["17.0.0.01"], nil),
            (["17.0.0.1:99999"], nil), ([String(repeating: ",", count: 9000) + "198.51.100.7"], "198.51.100.7"),
            (["198.51.100.7", "10.1.1.1"], "198.51.100.7"), ([String(repeating: " ", count: 130) + "17.0.0.1"], nil),
            (["198.51.100.7,unknown,10.1.1.1"], nil),
        ] as [([String], String?)])
    func `is the last that is no trusted proxy`(_ forwarded: [String], _ expected: String?) {
        var headers = HTTPHeaders()
        for value in forwarded { headers.add("x-forwarded-for", value) }
        let client = clients.client(peer: IPAddress("10.9.9.9"), headers)
        #expect(client?.description == expected)
    }

    @Test func `is the peer when that is no trusted proxy`() {
        var headers = HTTPHeaders()
        headers.add("X-Forwarded-For", "17.0.0.1")
        #expect(clients.client(peer: IPAddress("198.51.100.7"), headers)?.description == "198.51.100.7")
        #expect(clients.client(peer: nil, headers) == nil)
    }

    @Test(arguments: [
        ("17.0.0.0", true), ("17.255.255.255", true), ("16.255.255.255", false), ("18.0.0.0", false), ("1100::", false),
    ])
    func `is Apple's in 17.0.0.0/8`(_ address: String, _ isApple: Bool) {
        #expect(IPAddress(address)?.isApple == isApple)
    }
}
