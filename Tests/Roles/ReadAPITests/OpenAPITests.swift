import Contract
import JSON
import Log
import MemoryLog
import Platform
import Schemas
import Testing

@testable import HTTP
@testable import ReadAPI

/// docs/reference/read-api.openapi.json.
private struct Document {
    let json: JSONValue

    init() throws {
        let root = "\(#filePath)".split(separator: "/").dropLast(4).joined(separator: "/")
        json = try JSONValue.read(readFile("/\(root)/docs/reference/read-api.openapi.json", limitBytes: 1 << 20))
    }

    struct Operation {
        let path: String
        let value: JSONValue
        var id: String { value["operationId"]?.string ?? "?" }
    }

    var operations: [Operation] {
        (json["paths"]?.object?.members ?? []).map { Operation(path: $0.name, value: $0.value["get"] ?? .null) }
    }

    /// The value at this place, or the target of its reference.
    func resolved(_ value: JSONValue) -> JSONValue {
        guard let reference = value["$ref"]?.string else { return value }
        return reference.split(separator: "/").dropFirst().reduce(json) { $0[String($1)] ?? .null }
    }

    func parameters(of operation: Operation, in place: String) -> [String] {
        (operation.value["parameters"]?.array ?? []).map(resolved).filter { $0["in"]?.string == place }
            .compactMap { $0["name"]?.string }
    }

    func responses(of operation: Operation) -> [Int: JSONValue] {
        let members = operation.value["responses"]?.object?.members ?? []
        return Dictionary(uniqueKeysWithValues: members.map { (Int($0.name) ?? 0, resolved($0.value)) })
    }

    /// What is wrong with an answer, compared with the description of its status.
    func problems(of response: HTTPResponse, by description: JSONValue) -> [String] {
        var problems: [String] = []
        let headers = description["headers"]?.object?.members ?? []
        for (name, rule) in headers.map({ ($0.name, resolved($0.value)) }) {
            guard let value = response.headers[name] else {
                problems.append("lacks the header \(name)")
                continue
            }
            if let constant = rule["schema"]?["const"]?.string, constant != value {
                problems.append("\(name): \(value)")
            }
        }
        for field in response.headers.fields where field.name != "Content-Type" {
            if !headers.contains(where: { $0.name == field.name }) { problems.append("says nothing of \(field.name)") }
        }
        guard let schema = description["content"]?["application/json"]?["schema"] else {
            return problems + (response.body.isEmpty ? [] : ["has a body"])
        }
        guard let body = try? JSONValue.read(response.body) else { return problems + ["is no JSON"] }
        let parts = json["components"]?["schemas"] ?? .null
        return problems + Schema(schema, of: parts).problems(of: body)
    }
}

@Suite struct `The OpenAPI file of the read API` {
    private let document: Document
    private let sandbox: Rig
    private let rig: Rig
    private static let days = "from=2026-02-01&to=2026-03-01"

    init() throws {
        document = try Document()
        let memory = MemoryLog(clock: .manual())
        let time = TestTime()
        let names = Names(prefix: Rig.names.prefix, environment: .sandbox)
        sandbox = try Rig(memory: memory, time: time, names: names)
        rig = try Rig(
            memory: memory, time: time, tokens: ["sixteen-letters-1"], maxBehind: .seconds(600), beside: sandbox)
    }

    private func fill() throws {
        try rig.write(
            .subscription(Record(id: "1")), .binding(token, Record(id: "1").with("autoRenew", "false")),
            .cell(Cell()),
            .init(
                topic: .events, key: "1",
                value: #"{"v":1,"originalTransactionId":"1","kind":"renewed","sequence":17}"#),
            .init(
                topic: .consumption, key: "1",
                value: #"{"v":1,"id":"u-1","originalTransactionId":"1","transactionId":"t","kind":"requested","#
                    + #""at":1771000000000,"deadline":1771043200000,"requestReason":"OTHER","policy":null,"#
                    + #""httpStatus":null,"errorCode":null,"attempt":null,"retryAt":null,"detail":null}"#))
        // More than an answer takes.
        let big = #"["\#(String(repeating: "n", count: 900_000))"]"#
        for number in 0..<10 {
            try rig.write(.binding(otherToken, Record(id: "9\(number)").with("entitlements", big)))
        }
        rig.settle(steps: 10)
    }

    /// The name that the server uses.
    private func ask(
        _ path: String, _ query: String?, _ method: String = "GET", token: String? = "sixteen-letters-1",
        seen: String? = nil
    ) -> HTTPResponse {
        var headers = HTTPHeaders()
        if let token { headers.add("Authorization", "Bearer \(token)") }
        if let seen { headers.add("If-None-Match", seen) }
        let request = HTTPRequest(
            method: method, path: path, query: query, headers: headers, peer: nil)
        if let early = rig.endpoint.earlyAnswer(to: request) { return early }
        guard let (route, subject) = Question.route(path) else { return .text(500, "no route") }
        return rig.endpoint.answer(route, subject, query: query, headers).notStored
    }

    @Test func `has every path, and every parameter with its place`() throws {
        var ids: [String] = []
        for operation in document.operations {
            let path = operation.path.replacing(#/\{[^}]*\}/#, with: "1")
            let found = try #require(Question.route(path), "\(operation.path)")
            #expect(found.route.name == operation.id)
            ids.append(operation.id)
            let query = document.parameters(of: operation, in: "query")
            #expect(query.sorted() == Question.parameterNames(of: found.route).sorted(), "\(operation.id)")
            let inPath = operation.path.matches(of: #/\{([^}]*)\}/#).map { String($0.1) }
            #expect(document.parameters(of: operation, in: "path") == inPath)
            // Each name is the one that a refusal contains.
            let required = operation.id == "metrics" ? Self.days : operation.id == "content" ? "published=1" : ""
            for name in query {
                let others = required.split(separator: "&").filter { !$0.hasPrefix("\(name)=") }
                let response = ask(path, (others + ["\(name)=%zz"]).joined(separator: "&"))
                let body = try JSONValue.read(response.body)
                #expect(response.status == 400 && body["parameter"]?.string == name, "\(operation.id) \(name)")
            }
            if let name = inPath.first {
                let body = try JSONValue.read(ask(operation.path.replacing(#/\{[^}]*\}/#, with: "%zz"), required).body)
                #expect(body["parameter"]?.string == name)
            }
        }
        #expect(ids.sorted() == Question.Route.allCases.map(\.name).sorted())
        #expect(document.json["openapi"]?.string == "3.1.0")
    }

    /// Statuses that depend on the client, on the data, and on the workers.
    @Test func `has every status with every header and member, and none that never comes`() throws {
        var seen: [String: Set<Int>] = [:]
        let operations = document.operations
        func path(_ operation: Document.Operation, _ subject: String) -> String {
            operation.path.replacing(#/\{[^}]*\}/#, with: subject)
        }
        func query(_ operation: Document.Operation) -> String? {
            operation.id == "metrics" ? Self.days : operation.id == "content" ? "published=1771000000000" : nil
        }
        func look(_ operation: Document.Operation, _ response: HTTPResponse) {
            seen[operation.id, default: []].insert(response.status)
            guard let description = document.responses(of: operation)[response.status] else {
                Issue.record("\(operation.id): \(response.status) is not described")
                return
            }
            let problems = document.problems(of: response, by: description)
            #expect(problems == [], "\(operation.id) \(response.status)")
        }
        for operation in operations { look(operation, ask(path(operation, token), query(operation))) }
        try fill()
        for operation in operations {
            let subject = operation.id == "account" ? token : operation.id == "refund" ? "u-1" : "1"
            let good = ask(path(operation, subject), query(operation))
            #expect(good.status == 200, "\(operation.id)")
            look(operation, good)
            look(operation, ask(path(operation, subject), query(operation), token: nil))
            look(operation, ask(path(operation, subject), query(operation), "POST"))
            look(operation, ask(path(operation, subject), "environment=none"))
            if let tag = good.headers["ETag"] { look(operation, ask(path(operation, subject), nil, seen: tag)) }
            if operation.id == "account" {
                look(operation, ask(path(operation, otherToken), nil))
            } else if operation.id == "metrics" {
                look(operation, ask(operation.path, Self.days + "&interval=week&by=product"))
                look(operation, ask(operation.path, "from=2017-01-01&to=2027-01-01&by=product&interval=day"))
            } else {
                look(operation, ask(path(operation, "nobody"), query(operation)))
            }
        }
        for operation in operations {
            let described = document.responses(of: operation)
            #expect(seen[operation.id] == Set(described.keys), "\(operation.id)")
        }
        let statuses = Set(operations.flatMap { document.responses(of: $0).keys })
        #expect(statuses == Set(ReadAPIMetrics.statuses))
    }

    @Test func `has the answer of an api whose worker is dead`() throws {
        try fill()
        let names = rig.names.topic(.notifications)
        let writer = try rig.memory.openWriter(.init(name: "ingest", topics: [names]))
        let batch = OutputBatch()
        for partition in 0..<rig.partitions {
            batch.append(topic: 0, partition: partition, timestamp: rig.time.now, key: nil, value: [1], headers: [])
        }
        _ = try writer.append(batch, by: soon)
        rig.settle(steps: 605)
        for operation in document.operations where operation.id == "subscription" || operation.id == "history" {
            let response = ask(operation.path.replacing(#/\{[^}]*\}/#, with: "1"), nil)
            #expect(response.status == 503)
            let description = try #require(document.responses(of: operation)[503])
            #expect(document.problems(of: response, by: description) == [])
            #expect(try JSONValue.read(response.body)["error"]?.string == "behind")
        }
    }

    /// The schemas leave some objects open; a schema of their own describes what they contain.
    @Test func `describes a grant as it is answered`() throws {
        try fill()
        let answer = try JSONValue.read(ask("/v1/accounts/\(token)", nil).body)
        let grant = try #require(answer["entitlements"]?["premium"])
        let parts = document.json["components"]?["schemas"] ?? .null
        #expect(Schema("Grant", of: parts).problems(of: grant) == [])
    }
}
