import Foundation
import JSON
import Log
import MemoryLog
import Platform
import Testing
import WorkerTestKit

@testable import Tools

@Suite struct `Refund requests looked at` {
    private let desk: RefundDesk

    init() throws {
        desk = try RefundDesk()
        try desk.tellAll()
    }

    private func card(_ name: String) throws -> String {
        let url = try #require(
            Bundle.module.url(forResource: name, withExtension: "txt", subdirectory: "Cards"), "no card \(name).txt")
        return try String(contentsOf: url, encoding: .utf8)
    }

    private static let cards = [
        ("refund-sent", ["2000000000000001"]), ("refund-withheld", [RefundDesk.uuid(2)]),
        ("refund-waiting", ["2000000000000003"]), ("refund-two", ["2000000000000004"]),
        ("refund-failed", [RefundDesk.uuid(6)]), ("refunds", []),
    ]

    @Test(arguments: cards)
    func `are what people are shown, in eighty columns`(_ name: String, _ asks: [String]) throws {
        let answer = desk.inspect(asks)
        #expect(answer.code == .done)
        #expect(answer.messages == [])
        for line in answer.lines.split(separator: "\n", omittingEmptySubsequences: false) {
            #expect(line.count <= 80 && line.last != " ", "\(line)")
        }
        #expect(answer.lines + "\n" == (try card(name)), "it is:\n\(answer.lines)")
    }

    private func refunds(_ asks: [String]) throws -> [JSONValue] {
        let answer = desk.inspect(asks + ["--format", "json"])
        #expect(answer.code == .done, "\(answer.messages)")
        return try #require(try JSONValue.read(Array(answer.lines.utf8))["refunds"]?.array)
    }

    @Test func `are found by every one of their ids, whatever the partition`() throws {
        #expect(try refunds(["2000000000000045"]).map { $0["id"]?.string } == [RefundDesk.uuid(5)])
        #expect(
            try refunds([RefundDesk.uuid(4).uppercased()]).map { $0["transactionId"]?.string } == ["2000000000000044"])
        #expect(try refunds(["2000000000000004"]).map { $0["id"]?.string } == [RefundDesk.uuid(5), RefundDesk.uuid(4)])
        #expect(try refunds([]).count == 6)
    }

    @Test func `of one subscription are read from its partition alone`() throws {
        let answer = desk.inspect(["2000000000000004", "--format", "json"])
        let position = try #require(try JSONValue.read(Array(answer.lines.utf8))["position"]?.array)
        #expect(
            position.map { $0["partition"]?.integer } == [Int64(RefundDesk.partition(of: "2000000000000004"))])
        #expect(position.first?["topic"]?.string == "appstore.production.consumption")
    }

    @Test func `are those that Apple signed from and until then`() throws {
        #expect(try refunds(["--from", "2026-11-22T09:00", "--to", "2026-11-22T11:30"]).count == 2)
        #expect(try refunds(["--to", "2026-11-20T10:00:01"]).count == 2)
        #expect(desk.inspect(["--from", "2026-11-23"]).code == .no)
        let wrong = desk.inspect(["--from", "2026-11-23", "--to", "2026-11-22"])
        #expect(wrong.code == .wrongUsage)
        #expect(wrong.messages.first?.contains("--to must be after --from") == true)
    }

    @Test func `that are not there are told with what was looked for`() throws {
        let answer = desk.inspect(["2000000000000009"])
        #expect(answer.code == .no && answer.lines.isEmpty)
        #expect(answer.messages.first?.contains("there is no refund request of 2000000000000009") == true)
        #expect(answer.messages.first?.contains("--environment sandbox") == true)
    }

    @Test func `need their topic, and say how it is made`() throws {
        let answer = desk.inspect([], topic: false)
        #expect(answer.code == .wrongUsage)
        #expect(answer.messages.first?.contains("perennial topics apply") == true)
    }

    @Test(
        arguments: [
            (["1 2"], "no spaces"), ([""], "ID is empty"),
            (["1", "--at", "2h"], "--at does not belong to refunds"), (["--format", "csv"], "text or json"),
            (["--from", "noon"], "--from takes 2026-11-20"),
        ])
    func `asked for wrongly are refused`(_ arguments: [String], _ words: String) {
        let answer = desk.inspect(arguments)
        #expect(answer.code == .wrongUsage)
        #expect(answer.messages.first?.contains(words) == true, "\(answer.messages)")
    }

    @Test func `are only the newest, when there are many, and say so`() throws {
        for number in 1...60 {
            try desk.tell(
                "CONSUMPTION_REQUEST", "many-\(number)", of: "30000000000000\(number)",
                on: "2026-10-01T10:\(number < 11 ? "0" : "")\(number - 1)")
        }
        let answer = desk.inspect([])
        #expect(answer.lines.split(separator: "\n").count == 2 + RefundsQuery.limitListed)
        #expect(answer.messages == ["perennial inspect: only the newest 50 are shown; --all shows more"])
        #expect(desk.inspect(["--all"]).lines.split(separator: "\n").count == 2 + 66)
    }

    @Test func `are not hidden by records that cannot be read`() throws {
        let topic = "appstore.production.consumption"
        let writer = try desk.simulation.log.openWriter(WriterOptions(name: "forger", topics: [topic]))
        let batch = OutputBatch()
        for (value, schema) in [("{", "consumption/1"), ("{}", "consumption/1"), (#"{"v":2}"#, "consumption/2")] {
            batch.append(
                topic: 0, partition: RefundDesk.partition(of: "2000000000000001"), timestamp: at("2026-11-22"),
                key: Array("2000000000000001".utf8), value: Array(value.utf8),
                headers: [RecordHeader("schema", schema)])
        }
        _ = try writer.append(batch, by: Deadline(after: .seconds(30)))
        let answer = desk.inspect(["2000000000000001"])
        #expect(answer.code == .done && answer.lines.contains("SENT"))
        #expect(answer.messages.contains { $0.contains("3 records") })
        #expect(answer.messages.contains { $0.contains("consumption/2, and this build reads up to 1: upgrade") })
    }
}
