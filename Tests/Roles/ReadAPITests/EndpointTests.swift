import HTTP
import HTTPClient
import HTTPTestKit
import JSON
import KafkaTestKit
import Platform
import Telemetry
import TestTraits
import Testing

@testable import ReadAPI

/// Over real HTTP, with copies that the test has filled. Stop it before the test ends.
private final class Door {
    let rig: Rig
    private let server: HTTPServer
    private let client: HTTPClient

    init(tokens: [String] = [], fill: (Rig) throws -> Void = { _ in }) throws {
        rig = try Rig(tokens: tokens)
        try fill(rig)
        var options = HTTPServer.Configuration(name: "test", address: ListenAddress("127.0.0.1:0")!)
        options.drainGrace = .milliseconds(50)
        options.maxBodyBytes = 0
        options.refusal = HTTPResponse.refusalInJSON
        server = try HTTPServer(options, handler: rig.endpoint, metrics: Metrics(), logger: Logger { _ in })
        client = try HTTPClient()
    }

    func stop() {
        client.close()
        server.stop(by: soon)
    }

    func ask(_ path: String, _ method: String = "GET", _ headers: [String: String] = [:]) throws
        -> HTTPClient.Response
    {
        try client.answer(
            to: .init(method, "http://\(server.address)\(path)", headers: headers.map { .init($0.key, $0.value) }))
    }
}

extension HTTPClient.Response {
    fileprivate var text: String { String(decoding: body, as: UTF8.self) }
}

@Suite(.ownThreads) struct `The read API` {
    @Test func `answers for a subscription with its record, byte for byte, and the position it rests on`() throws {
        // Members that this build does not know, spaces and escapes included.
        let record = #"{ "v":1,"originalTransactionId":"1", "access":true,"new":[1.50,"\u0041\/"],"accessUntil":null}"#
        let door = try Door { rig in
            try rig.write(.init(topic: .entitlements, key: "1", value: record))
            rig.settle()
        }
        defer { door.stop() }
        let answer = try door.ask("/v1/subscriptions/1")
        #expect(answer.status == 200 && answer.header("Content-Type") == "application/json")
        #expect(answer.header("Cache-Control") == "no-store")
        let json = try JSONValue.read(answer.body)
        let place = try #require(json["position"]?.array?.first)
        #expect(place["topic"]?.string == "appstore.production.entitlements" && place["offset"]?.integer == 1)
        #expect(place["partition"]?.integer == 0 || (place["partition"]?.integer ?? 9) < 3)
        // The partition's clock: the greatest timestamp of any record.
        #expect(place["asOf"]?.integer == 1_771_000_000_000)
        let now = door.rig.time.now
        #expect(
            answer.text.hasPrefix(
                #"{"access":true,"accessUntil":null,"asOf":\#(now),"subscription":\#(record),"position":[{"topic":"#))
        #expect(place["behind"]?.integer == 1000, "the last look of this test was a second ago")
        #expect(try door.ask("/v1/subscriptions/%31").body == answer.body)
        let head = try door.ask("/v1/subscriptions/1", "HEAD")
        #expect(head.status == 200 && head.body.isEmpty)
    }

    @Test func `tells which of the published items are accessible`() throws {
        let runs = #"[{"start":100,"end":200},{"start":300,"end":null}]"#
        let door = try Door { rig in
            try rig.write(.subscription(Record(id: "1").with("runs", runs)))
            try rig.write(.subscription(Record(id: "2").with("runs", #"[{"start":1,"end":"sealed"},{"end":5},7]"#)))
            rig.settle()
        }
        defer { door.stop() }
        func accessible(_ id: String, _ query: String) throws -> [Int64]? {
            let answer = try door.ask("/v1/subscriptions/\(id)/content?\(query)")
            let json = try JSONValue.read(answer.body)
            #expect(json["position"]?.array?.count == 1)
            return json["accessible"]?.array?.compactMap(\.integer)
        }
        let query = [350, 50, 90, 150, 200, 250, 300].map { "published=\($0)" }.joined(separator: "&")
        // 90 was the newest issue when the first run began; when the second began, 300 was, not 250.
        #expect(try accessible("1", query) == [350, 90, 150, 300])
        #expect(try accessible("1", "published=150&published=250&published=350&scope=current") == [250, 350])
        #expect(try accessible("1", "published=201") == [201])
        #expect(try accessible("2", "published=3") == [])
        #expect(try door.ask("/v1/subscriptions/9/content?published=1").status == 404)
    }

    /// The notification of the renewal may come late: until the leeway is over, access continues, and so does access to content.
    @Test func `takes no content away before access ends`() throws {
        let end = TestTime().now - 60_000
        let record = Record(id: "1").with("runs", "[{\"start\":100,\"end\":\(end)}]")
            .with("accessUntil", "\(end + 3_600_000)")
        let door = try Door { rig in
            try rig.write(.subscription(record))
            rig.settle(steps: 3)
        }
        defer { door.stop() }
        func accessible(_ scope: String) throws -> [Int64]? {
            let path = "/v1/subscriptions/1/content?published=150,\(end + 30_000),\(end + 7_200_000)&scope=\(scope)"
            return try JSONValue.read(try door.ask(path).body)["accessible"]?.array?.compactMap(\.integer)
        }
        for scope in ["current", "archive"] { #expect(try accessible(scope) == [150, end + 30_000], "\(scope)") }
        door.rig.time.set(now: end + 3_600_000)
        #expect(try accessible("current") == [])
        #expect(try accessible("archive") == [150])
    }

    @Test func `takes as many dates as it says, and says how many when there are more`() throws {
        let door = try Door { rig in
            try rig.write(.subscription(Record(id: "1").with("runs", #"[{"start":1771000000500,"end":null}]"#)))
            rig.settle()
        }
        defer { door.stop() }
        let dates = (0..<1000).map { "\(1_771_000_000_000 + $0)" }
        let answer = try door.ask("/v1/subscriptions/1/content?published=\(dates.joined(separator: ","))")
        #expect(try JSONValue.read(answer.body)["accessible"]?.array?.count == 500)
        let refused = try door.ask("/v1/subscriptions/1/content?published=1,\(dates.joined(separator: ","))")
        #expect(refused.status == 400)
        #expect(refused.text == #"{"error":"too_many_values","parameter":"published","limit":1000}"#)
    }

    @Test func `has no clock of a partition in which nothing was written`() throws {
        let rig = try Rig()
        rig.settle()
        #expect(rig.account(token)?["position"]?.array?.first?["asOf"] == .null)
    }

    /// Without a token any web page could ask through a browser on this machine, using a name that resolves to it.
    @Test func `without a token answers only to localhost and addresses`() throws {
        let door = try Door(tokens: []) { rig in
            try rig.write(.subscription(Record(id: "1")))
            rig.settle()
        }
        defer { door.stop() }
        for host in ["localhost", "localhost:8080", "LOCALHOST", "127.0.0.1:1", "[::1]:8080", "[::1]", "192.0.2.1"] {
            #expect(try door.ask("/v1/subscriptions/1", "GET", ["Host": host]).status == 200, "\(host)")
        }
        for host in ["evil.example", "localhost.evil.example:8080", "127.0.0.1.evil.example", "localhost:80:80"] {
            let answer = try door.ask("/v1/subscriptions/1", "GET", ["Host": host])
            #expect(answer.status == 400, "\(host)")
            #expect(answer.text == #"{"error":"foreign_host","parameter":"Host"}"#)
        }
    }

    /// The first condition that holds decides the answer: token, path, method, parameters, readiness, subject.
    @Test func `refuses with these answers`() throws {
        let door = try Door(tokens: ["secret"]) { rig in
            try rig.write(.subscription(Record(id: "1")))
            rig.settle()
        }
        defer { door.stop() }
        let token = ["Authorization": "Bearer secret"]
        let rows: [(method: String, path: String, headers: [String: String], status: Int, body: String)] = [
            ("GET", "/v1/subscriptions/1", [:], 401, #"{"error":"unauthorized"}"#),
            ("GET", "/v1/subscriptions/1", ["Authorization": "Bearer secre"], 401, #"{"error":"unauthorized"}"#),
            ("POST", "/nowhere", [:], 401, #"{"error":"unauthorized"}"#),
            ("POST", "/nowhere", token, 404, #"{"error":"unknown_path"}"#),
            ("GET", "/v1/metrics/", token, 404, #"{"error":"unknown_path"}"#),
            ("POST", "/v1/metrics", token, 405, #"{"error":"method_not_allowed"}"#),
            ("GET", "/v1/metrics", token, 400, #"{"error":"missing_parameter","parameter":"from"}"#),
            (
                "GET", "/v1/metrics?from=2026-01-01&to=2026-01-32", token, 400,
                #"{"error":"invalid_parameter","parameter":"to","reason":"it must be a day, as 2026-11-01"}"#
            ),
            ("POST", "/v1/subscriptions/%zz", token, 405, #"{"error":"method_not_allowed"}"#),
            ("get", "/v1/subscriptions/1", token, 405, #"{"error":"method_not_allowed"}"#),
            (
                "GET", "/v1/subscriptions/%zz", token, 400,
                #"{"error":"invalid_parameter","parameter":"originalTransactionId"}"#
            ),
            (
                "GET", "/v1/accounts/me", token, 400,
                #"{"error":"invalid_parameter","parameter":"appAccountToken"}"#
            ),
            (
                "GET", "/v1/subscriptions/1/content", token, 400,
                #"{"error":"missing_parameter","parameter":"published"}"#
            ),
            (
                "GET", "/v1/subscriptions/1/content?published=now", token, 400,
                #"{"error":"invalid_parameter","parameter":"published"}"#
            ),
            (
                "GET", "/v1/subscriptions/1?environment=Production", token, 400,
                #"{"error":"invalid_parameter","parameter":"environment","reason":"it must be production"}"#
            ),
            (
                "GET", "/v1/subscriptions/1?environment=production&environment=production", token, 400,
                #"{"error":"too_many_values","parameter":"environment","limit":1}"#
            ),
            ("GET", "/v1/subscriptions/1\u{2f}content%2f", token, 404, #"{"error":"unknown_path"}"#),
        ]
        for row in rows {
            let answer = try door.ask(row.path, row.method, row.headers)
            #expect(answer.status == row.status, "\(row)")
            #expect(answer.text == row.body, "\(row)")
            #expect(answer.header("Allow") == (row.status == 405 ? "GET, HEAD" : nil))
            #expect(answer.header("WWW-Authenticate") == (row.status == 401 ? "Bearer" : nil))
            #expect(answer.header("Cache-Control") == "no-store", "\(row)")
        }
        let missing = try door.ask("/v1/subscriptions/9", "GET", token)
        #expect(missing.status == 404 && missing.header("Cache-Control") == "no-store")
        #expect(
            missing.text.hasPrefix(#"{"error":"not_found","position":[{"topic":"appstore.production.entitlements""#))
        #expect(try door.ask("/v1/subscriptions/1", "GET", token).status == 200)
        #expect(door.rig.metric(#"perennial_api_requests_total{route="none",code="401"}"#) == 3)
        #expect(door.rig.metric(#"perennial_api_requests_total{route="content",code="400"}"#) == 2)
        #expect(door.rig.metric(#"perennial_api_requests_total{route="subscription",code="200"}"#) == 1)
    }

    @Test func `answers 503, and when to come again, before it has caught up`() throws {
        let door = try Door()
        defer { door.stop() }
        for path in [
            "/v1/subscriptions/1", "/v1/subscriptions/1/content?published=1", "/v1/accounts/\(token)",
            "/v1/metrics?from=2026-01-01&to=2026-02-01",
        ] {
            let answer = try door.ask(path)
            #expect(answer.status == 503 && answer.header("Retry-After") == "5")
            #expect(answer.text == #"{"error":"unavailable"}"#)
        }
        door.rig.settle()
        #expect(try door.ask("/v1/accounts/\(token)").status == 200)
    }

    @Test func `takes no bodies, and answers hostile targets without a stumble`() throws {
        let door = try Door { $0.settle() }
        defer { door.stop() }
        let long = String(repeating: "a", count: 15_000)
        for (path, status) in [
            ("/v1/subscriptions/\(long)", 400), ("/v1/accounts/\(long)", 400), ("/v1/subscriptions/%00", 404),
            ("/v1/subscriptions/1/content?published=\(long)", 400), ("/v1/subscriptions/a%2F..%2F..%2Fetc", 404),
            ("/v1/accounts/%ff%fe", 400), ("/\(long)", 404), ("/v1/subscriptions/1?\(long)", 404),
        ] {
            #expect(try door.ask(path).status == status, "\(path.prefix(60))")
        }
        let answer = try door.ask("/v1/subscriptions/\(String(repeating: "a", count: 20_000))")
        #expect(answer.status == 431 || answer.status == 414)
    }
}
