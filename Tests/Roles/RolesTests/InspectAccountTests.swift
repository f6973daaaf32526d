import JSON
import Log
import MemoryLog
import Platform
import Testing
import WorkerTestKit

@Suite struct `An account looked at` {
    private let desk: InspectDesk

    init() throws { desk = try InspectDesk() }

    private func buy(_ id: String, token: String = InspectDesk.token, on day: String = "2026-11-01") throws {
        try desk.tell(
            id,
            told(
                "SUBSCRIBED", on: day,
                bought("t-\(id)", day, to: "2026-12-01").with(("appAccountToken", "'\(token)'")),
                renewal(1, at: "2026-12-01")))
    }

    private func report(_ token: String = InspectDesk.token, _ arguments: [String] = []) throws -> JSONValue {
        let answer = try desk.inspect(["account", token, "--format", "json"] + arguments)
        #expect(answer.code == .done)
        return try JSONValue.read(Array(answer.lines.utf8))
    }

    private func ids(_ report: JSONValue) -> [String?] {
        (report["subscriptions"]?.array ?? []).map { $0["originalTransactionId"]?.string }
    }

    @Test func `owns what was bound to it and not unbound again, and nothing of others`() throws {
        let other = "7e5d0c1a-0001-4000-8000-000000000002"
        try buy("1")
        try buy("2")
        try buy("3", token: other)
        try buy("4", token: InspectDesk.token + "0")
        try desk.work()
        #expect(ids(try report()) == ["1", "2"])
        // A later notification binds it to another account.
        try buy("2", token: other, on: "2026-11-02")
        try desk.work()
        #expect(ids(try report()) == ["1"])
        #expect(ids(try report(other.uppercased())) == ["2", "3"])
    }

    @Test func `that owns nothing is told with the place that was looked into`() throws {
        let nobody = "7e5d0c1a-0001-4000-8000-000000000099"
        let answer = try desk.inspect(["account", nobody])
        #expect(answer.code == .no)
        #expect(
            answer.messages == [
                "perennial inspect: the account \(nobody) owns nothing: searched partition "
                    + "\(InspectDesk.partition(of: nobody)) of appstore.production.accounts. If it belongs to "
                    + "sandbox, add --environment sandbox"
            ])
    }

    @Test func `is told as of now, though its records are older`() throws {
        try buy("1")
        try desk.work()
        #expect(try report()["entitlements"]?["premium"]?["access"]?.bool == true)
        let later = try report(InspectDesk.token, ["--at", "2026-12-02"])
        #expect(later["entitlements"]?["premium"]?["access"]?.bool == false)
        #expect(later["advice"]?.array?.first?["kind"]?.string == "resubscribe")
    }

    @Test func `is not told of a time before its newest record, which nothing knows of`() throws {
        try buy("1")
        try buy("2", on: "2026-11-08")
        try desk.wait(until: "2026-11-09")
        let answer = try desk.inspect(["account", InspectDesk.token, "--at", "2026-11-07T23:59:59Z"])
        #expect(answer.code == .wrongUsage)
        #expect(answer.lines.isEmpty)
        let words = try #require(answer.messages.first)
        #expect(words.contains("the state of the account at 2026-11-07 23:59:59 is not known"))
        #expect(words.contains("the record of 2 is from 2026-11-08 00:00"))
        #expect(words.contains("perennial inspect subscription 2 --at"))
        #expect(try desk.inspect(["account", InspectDesk.token, "--at", "2026-11-08T00:00:01Z"]).code == .done)
    }

    @Test func `is not hidden by a record that cannot be read`() throws {
        try buy("1")
        try desk.work()
        let topic = "appstore.production.accounts"
        let writer = try desk.simulation.log.openWriter(WriterOptions(name: "forger", topics: [topic]))
        let batch = OutputBatch()
        for (id, value) in [("0", "{"), ("9", #"{"state":"later","access":true}"#)] {
            batch.append(
                topic: 0, partition: InspectDesk.partition(of: InspectDesk.token), timestamp: 1,
                key: Array("\(InspectDesk.token)|\(id)".utf8), value: Array(value.utf8))
        }
        _ = try writer.append(batch, by: Deadline(after: .seconds(30)))
        let report = try report()
        #expect(ids(report) == ["1"])
        #expect(report["unreadable"]?.integer == 2)
        #expect(
            try desk.inspect(["account", InspectDesk.token]).lines.contains("9: this version cannot read its record"))
    }
}
