import Contract
import HTTP
import JSON
import Log
import MemoryLog
import Platform
import Testing

@testable import ReadAPI

/// Production, and sandbox in the same API.
private struct Pair {
    let production: Rig
    let sandbox: Rig

    init(maxBehind: Duration? = nil, tokens: [String] = []) throws {
        let memory = MemoryLog(clock: .manual())
        let time = TestTime()
        let names = Names(prefix: Rig.names.prefix, environment: .sandbox)
        sandbox = try Rig(memory: memory, time: time, maxBehind: maxBehind, names: names)
        production = try Rig(
            memory: memory, time: time, tokens: tokens, maxBehind: maxBehind, beside: sandbox)
    }

    func ask(_ route: Question.Route, _ subject: String, _ query: String? = nil) throws -> (Int, JSONValue) {
        let response = production.endpoint.answer(route, subject[...].utf8, query: query)
        return (response.status, try JSONValue.read(response.body))
    }
}

extension Record {
    fileprivate func ofSandbox() -> Record { with("productId", #""pro.sandbox""#) }

    /// In the form of records of sandbox.
    fileprivate var sandboxJSON: String { json.replacing(#""Production""#, with: #""Sandbox""#) }
}

@Suite struct `Both environments` {
    @Test func `are answered from one api, production first, or the one that is asked for`() throws {
        let pair = try Pair()
        try pair.production.write(.subscription(Record(id: "1")), .subscription(Record(id: "2")))
        for id in ["2", "3"] {
            let value = Record(id: id).sandboxJSON
            try pair.sandbox.write(.init(topic: .entitlements, key: id, value: value))
        }
        pair.production.settle(steps: 5)
        func environment(_ id: String, _ query: String? = nil) throws -> String? {
            try pair.ask(.subscription, id, query).1["subscription"]?["environment"]?.string
        }
        #expect(try environment("1") == "Production")
        #expect(try environment("2") == "Production", "both know it")
        #expect(try environment("3") == "Sandbox")
        #expect(try environment("2", "environment=sandbox") == "Sandbox")
        #expect(try environment("3", "environment=production") == nil)
        #expect(try pair.ask(.subscription, "1", "environment=sandbox").0 == 404)
        #expect(try pair.ask(.content, "3", "published=1770000000000").0 == 200)
        // The answer that there is none depends on both environments; what was found in the first depends only on it.
        func topics(_ id: String, _ query: String? = nil) throws -> [String?]? {
            try pair.ask(.subscription, id, query).1["position"]?.array?.map { $0["topic"]?.string }
        }
        #expect(try topics("1") == ["appstore.production.entitlements"])
        #expect(try topics("3") == ["appstore.production.entitlements", "appstore.sandbox.entitlements"])
        #expect(try topics("9") == ["appstore.production.entitlements", "appstore.sandbox.entitlements"])
        #expect(try topics("9", "environment=sandbox") == ["appstore.sandbox.entitlements"])
        // Two subscriptions with one id and one sequence are still different.
        let tags = [nil, "environment=sandbox"].map {
            pair.production.endpoint.answer(.subscription, "2"[...].utf8, query: $0).headers["ETag"]
        }
        #expect(tags == [#"W/"17""#, #"W/"17-sandbox""#])
    }

    /// A tester's purchase does not replace the customer's, and does not hide that it ends.
    @Test func `make one account, in which production goes first where both give access`() throws {
        let pair = try Pair()
        let end = pair.production.time.now + 86_400_000
        let bought = Record(id: "1").with("accessUntil", "\(end)").with("autoRenew", "false")
        try pair.production.write(.binding(token, bought))
        let tested = Record(id: "2").with("accessUntil", "\(end + 86_400_000)").sandboxJSON
        try pair.sandbox.write(.init(topic: .accounts, key: "\(token)|2", value: tested))
        pair.production.settle(steps: 5)
        let both = try pair.ask(.account, token).1
        let premium = try #require(both["entitlements"]?["premium"])
        #expect(premium["originalTransactionId"]?.string == "1" && premium["environment"]?.string == "Production")
        #expect(both["subscriptions"]?.array?.count == 2 && both["position"]?.array?.count == 2)
        #expect(both["advice"]?.array?.map { $0["originalTransactionId"]?.string } == ["1"])
        #expect(both["asOf"]?.integer == pair.production.time.now)
        let sandbox = try pair.ask(.account, token, "environment=sandbox").1
        #expect(sandbox["entitlements"]?["premium"]?["originalTransactionId"]?.string == "2")
        // When the customer's purchase is over, the tester's is still there.
        pair.production.time.set(now: end)
        let later = try pair.ask(.account, token).1["entitlements"]?["premium"]
        #expect(later?["environment"]?.string == "Sandbox" && later?["access"]?.bool == true)
    }

    @Test func `have rates apart`() throws {
        let pair = try Pair()
        try pair.production.write(.cell(Cell(product: "sold")))
        try pair.sandbox.write(.cell(Cell(product: "tested")))
        pair.production.settle(steps: 5)
        let days = "from=2026-02-01&to=2026-03-01&by=product"
        func products(_ query: String) throws -> [String?]? {
            try pair.ask(.metrics, "", query).1["groups"]?.array?.map { $0["group"]?["productId"]?.string }
        }
        #expect(try products(days) == ["sold"])
        #expect(try products(days + "&environment=sandbox") == ["tested"])
        #expect(try pair.ask(.metrics, "", days + "&environment=sandbox").1["environment"]?.string == "Sandbox")
    }

    @Test func `answer for the one as long as the other is not there yet`() throws {
        let pair = try Pair()
        try pair.production.write(.subscription(Record(id: "1")))
        for _ in 0..<5 {
            pair.production.watch.look()
            _ = pair.production.following.step()
            pair.production.time.advance(by: .seconds(1))
        }
        #expect(pair.production.status(.subscription, "1") == 200)
        #expect(pair.production.status(.subscription, "9") == 503, "sandbox may know it")
        #expect(pair.production.status(.subscription, "9", "environment=production") == 404)
        #expect(pair.production.status(.account, token) == 503)
    }

    /// An installation without testers has no worker for them.
    @Test func `need no worker of sandbox before it has begun`() throws {
        let pair = try Pair(maxBehind: .seconds(5))
        let writer = try pair.sandbox.memory.openWriter(
            WriterOptions(name: "ingest", topics: [pair.sandbox.names.topic(.notifications)]))
        let batch = OutputBatch()
        for partition in 0..<pair.sandbox.partitions {
            batch.append(
                topic: 0, partition: partition, timestamp: pair.sandbox.time.now, key: nil, value: [], headers: [])
        }
        _ = try writer.append(batch, by: soon)
        pair.production.settle(steps: 20)
        let (status, body) = try pair.ask(.subscription, "9")
        #expect(status == 404)
        #expect(body["position"]?.array?.map { $0["behind"]?.integer } == [1000, 20_000])
    }
}

@Suite struct `Access in an answer` {
    @Test func `is that of the moment of the answer, also where the record says what was`() throws {
        let rig = try Rig()
        let end = rig.time.now + 60_000
        try rig.write(.subscription(Record(id: "1").with("accessUntil", "\(end)")))
        rig.settle(steps: 3)
        func answer(at now: Int64) -> JSONValue? {
            rig.time.set(now: now)
            return rig.subscription("1")
        }
        for (now, access) in [(end - 1, true), (end, false)] {
            let found = answer(at: now)
            #expect(found?["access"]?.bool == access && found?["accessUntil"]?.integer == end)
            #expect(found?["asOf"]?.integer == now && found?["subscription"]?["access"]?.bool == true)
        }
    }

    @Test func `is another version of the answer when it ends, and so is a record with another sequence`() throws {
        let rig = try Rig()
        let end = rig.time.now + 60_000
        try rig.write(.subscription(Record(id: "1").with("accessUntil", "\(end)")))
        rig.settle(steps: 3)
        func ask(_ seen: String?) -> HTTPResponse {
            var headers = HTTPHeaders()
            if let seen { headers.add("If-None-Match", seen) }
            return rig.endpoint.answer(.subscription, "1"[...].utf8, query: nil, headers)
        }
        let first = ask(nil)
        #expect(first.status == 200 && first.headers["ETag"] == #"W/"17""#)
        for seen in [#"W/"17""#, #""17""#, #"W/"3", W/"17""#, "*"] {
            let again = ask(seen)
            #expect(again.status == 304 && again.body.isEmpty && again.headers["ETag"] == #"W/"17""#, "\(seen)")
        }
        for seen in [#"W/"1""#, #"W/"17-ended""#, "17", ""] { #expect(ask(seen).status == 200, "\(seen)") }
        rig.time.set(now: end)
        #expect(ask(#"W/"17""#).status == 200 && ask(nil).headers["ETag"] == #"W/"17-ended""#)
        try rig.write(.subscription(Record(id: "1").with("sequence", "18")))
        rig.settle(steps: 3)
        #expect(ask(#"W/"17""#).headers["ETag"] == #"W/"18""#)
        try rig.write(.subscription(Record(id: "1").with("sequence", nil)))
        rig.settle(steps: 3)
        #expect(ask("*").status == 200 && ask(nil).headers["ETag"] == nil)
    }
}

@Suite struct `Tokens of the read API` {
    @Test func `are valid side by side, and change while it runs`() throws {
        let rig = try Rig(tokens: ["first-token-of-16", "other-token-of-16"])
        func admits(_ token: String) -> Bool {
            var headers = HTTPHeaders()
            headers.add("Authorization", "Bearer \(token)")
            return rig.tokens.admit(headers)
        }
        #expect(admits("first-token-of-16") && admits("other-token-of-16"))
        #expect(!admits("first-token-of-1") && !admits("first-token-of-16,other-token-of-16") && !admits(""))
        try rig.tokens.replace(by: ["other-token-of-16", "third-token-of-16"])
        #expect(!admits("first-token-of-16") && admits("other-token-of-16") && admits("third-token-of-16"))
        // An API that listens on a public address must not lose its token, and nobody may think that it has one when it has none.
        #expect(throws: TokensGone.self) { try rig.tokens.replace(by: []) }
        #expect(!admits("first-token-of-16") && admits("other-token-of-16"))
        let open = try Rig()
        #expect(throws: TokensGone.self) { try open.tokens.replace(by: ["first-token-of-16"]) }
    }
}
