import Contract
import HTTPClient
import JSON
import KafkaTestKit
import TestTraits
import Testing

@testable import Ingest

@Suite(.ownThreads) struct `Usage` {
    private static let row = #"{"v":1,"originalTransactionId":"2000000123456789","consented":true}"#

    private func door(_ log: FakeLog = FakeLog()) throws -> Door { try Door(log) { $0.usageToken = "secret" } }

    private func post(_ door: Door, _ body: String, token: String = "secret") throws -> (status: Int, text: String) {
        let answer = try door.send(
            "POST", "/usage", Array(body.utf8),
            headers: ["Content-Type": "application/json", "Authorization": "Bearer \(token)"])
        return (answer.status, answer.text)
    }

    @Test func `is written as it came, keyed by its subscription`() throws {
        let door = try door()
        defer { door.stop() }
        #expect(try post(door, Self.row).status == 202)
        let record = try #require(door.log.records.first)
        #expect(record.topic == .usage && record.environment == .production)
        #expect(record.key == Array("2000000123456789".utf8) && record.value == Array(Self.row.utf8))
        #expect(record.header("type") == nil && record.header("schema") == "usage/1")
        #expect(record.timestamp == Apple.now)
        #expect(door.metric("perennial_ingest_usage_records_total") == 1)
    }

    @Test func `belongs to the environment of the setting`() throws {
        let door = try Door {
            $0.usageToken = "secret"
            $0.usageEnvironment = .sandbox
        }
        defer { door.stop() }
        #expect(try post(door, Self.row).status == 202)
        #expect(door.log.records.map(\.environment) == [.sandbox])
    }

    @Test func `belongs to the environment that the record names`() throws {
        let door = try door()
        defer { door.stop() }
        func row(_ environment: String) -> String {
            #"{"v":1,"originalTransactionId":"2000000123456789","environment":\#(environment)}"#
        }
        #expect(
            try post(door, "[\(row(#""Sandbox""#)),\(row(#""Production""#)),\(row("null")),\(Self.row)]").status == 202)
        #expect(door.log.records.map(\.environment) == [.sandbox, .production, .production, .production])
        #expect(door.log.records[0].value == Array(row(#""Sandbox""#).utf8))
        #expect(try post(door, row(#""Xcode""#)).status == 422)
    }

    @Test func `of several subscriptions is one publication`() throws {
        let door = try door()
        defer { door.stop() }
        #expect(try post(door, "[\(Self.row),\(Self.row)]").status == 202)
        #expect(door.log.publications.map(\.records.count) == [2])
        #expect(door.log.records[0].header("id") == door.log.records[1].header("id"))
    }

    /// A misspelled consent would count as none, and no refund request would ever be answered.
    @Test func `with members that mean nothing is taken, and the answer names them`() throws {
        let door = try door()
        defer { door.stop() }
        func row(_ more: String) -> String { #"{"v":1,"originalTransactionId":"1","environment":null\#(more)}"# }
        let answer = try post(door, "[\(row(#","cosented":true,"a\n\"":1"#)),\(row(#","cosented":false"#)),\(row(""))]")
        #expect(answer == (202, #"{"ignored":["cosented","a\n\""]}"#))
        #expect(door.log.records[0].value == Array(row(#","cosented":true,"a\n\"":1"#).utf8))
        #expect(door.metric("perennial_ingest_usage_ignored_total") == 3)
        #expect(try post(door, Self.row) == (202, ""))
        let many = (0..<30).map { #","\#(String(repeating: "x", count: 200 + $0))\#($0)":1,"n\#($0)":1"# }.joined()
        let long = try post(door, row(many))
        #expect(long.status == 202 && long.text.utf8.count < 2200, "\(long.text)")
    }

    @Test func `of nothing is taken`() throws {
        let door = try door()
        defer { door.stop() }
        #expect(try post(door, "[]").status == 202)
        #expect(door.log.publications.isEmpty)
    }

    @Test func `with a bad row is refused as a whole, each bad row named`() throws {
        let door = try door()
        defer { door.stop() }
        let bad = #"{"v":2,"originalTransactionId":"1"}"#
        let answer = try post(door, "[\(bad),\(Self.row),7]")
        #expect(answer.status == 422)
        #expect(answer.text.hasPrefix(#"{"errors":[{"index":0,"reason":"v must be 1"},{"index":2,"reason":""#))
        #expect(door.log.publications.isEmpty)
    }

    @Test func `with many bad rows is told of the first hundred`() throws {
        let door = try door()
        defer { door.stop() }
        let answer = try post(door, "[" + Array(repeating: "7", count: 2000).joined(separator: ",") + "]")
        let errors = try JSONValue.read(Array(answer.text.utf8))["errors"]?.array
        #expect(answer.status == 422 && errors?.count == 100)
        #expect(errors?.last?["index"]?.integer == 99)
    }

    @Test(arguments: ["originalTransactionId", "transactionId"])
    func `whose ids are longer than any is refused`(_ name: String) throws {
        let door = try door()
        defer { door.stop() }
        func row(_ digits: Int) -> String {
            let id = String(repeating: "1", count: digits)
            return name == "transactionId"
                ? #"{"v":1,"originalTransactionId":"1","transactionId":"\#(id)"}"#
                : #"{"v":1,"originalTransactionId":"\#(id)"}"#
        }
        #expect(try post(door, row(64)).status == 202)
        let long = try post(door, row(65))
        #expect(long.status == 422 && long.text.contains("64 digits"), "\(long.text)")
    }

    @Test(arguments: [
        "", "{", #"{"v":1,"v":1}"#, String(repeating: "[", count: 17) + String(repeating: "]", count: 17),
    ])
    func `that is no JSON is malformed`(_ body: String) throws {
        let door = try door()
        defer { door.stop() }
        #expect(try post(door, body) == (400, #"{"error":"malformed"}"#))
    }

    @Test func `without the token is refused before it is read`() throws {
        let door = try door()
        defer { door.stop() }
        for token in ["", "secre", "secrets", "Secret"] {
            #expect(try post(door, Self.row, token: token).status == 401)
        }
        #expect(door.log.publications.isEmpty)
    }

    @Test func `is not there without a token of the settings`() throws {
        let door = try Door()
        defer { door.stop() }
        #expect(try post(door, Self.row).status == 404)
    }

    @Test func `that Kafka does not have is answered 503`() throws {
        let door = try door(FakeLog(.outcome(.failed(.queueFull))))
        defer { door.stop() }
        #expect(try post(door, Self.row) == (503, #"{"error":"queue_full"}"#))
    }
}
