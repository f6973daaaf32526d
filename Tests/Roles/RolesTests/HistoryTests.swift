import Contract
import HTTPClient
import HTTPTestKit
import JSON
import KafkaTestKit
import Log
import MemoryLog
import Platform
import ReadAPI
import Service
import Store
import Telemetry
import Testing
import WorkerTestKit

/// Written by the worker, read in two ways.
@Suite struct `The history of one subscription` {
    @Test func `is the same from the api and from inspect`() async throws {
        let desk = try InspectDesk()
        try Self.makeTopics(desk.simulation.log, desk.names)
        let (start, end, next) = ("2026-10-10T09:30", "2026-11-10T09:30", "2026-12-10T09:30")
        try desk.tell(
            Story.id, told("SUBSCRIBED", "INITIAL_BUY", on: start, bought("1", start, to: end), renewal(1, at: end)),
            told("DID_RENEW", on: end, bought("2", end, to: next), renewal(1, at: next)),
            told("DID_CHANGE_RENEWAL_STATUS", on: "2026-11-12", nil, renewal(0, at: next)))
        try desk.wait(until: "2026-12-20")
        let shown = try desk.inspect(["subscription", Story.id, "--format", "json"])
        let inspected = try #require(try JSONValue.read(Array(shown.lines.utf8))["history"]?.array)
        let kinds = inspected.map { $0["event"]?["kind"]?.string }
        #expect(kinds == ["expired", "renewal_turned_off", "renewed", "account_bound", "started"])
        #expect(inspected.allSatisfy { $0["source"]?.string != nil && $0["app"]?.string != nil })

        let answered = try await blocking { [log = desk.simulation.log, names = desk.names] in
            try Self.ask(log, names)["history"]?.array
        }
        #expect(answered == inspected)
        let none = try desk.inspect(["subscription", Story.id, "--format", "json"], without: .entitlementEvents)
        #expect(try JSONValue.read(Array(none.lines.utf8))["history"] == .null)
    }

    /// As `perennial topics apply` does it: a topic that the simulation has made keeps every record.
    private static func makeTopics(_ log: MemoryLog, _ names: Names) throws {
        for id in [TopicID.entitlements, .accounts] { log.delete(topic: names.topic(id)) }
        let all: [TopicID] = [.entitlements, .accounts, .churnCells, .consumption]
        try log.create(
            all.map {
                NewTopic(names.topic($0), partitions: InspectDesk.partitions, isCompacted: $0 != .consumption)
            }, by: Deadline(after: patience))
    }

    private static func ask(_ log: MemoryLog, _ names: Names) throws -> JSONValue {
        let soon = Deadline(after: patience)
        let health = Health()
        let service = ReadAPIService(
            .init(
                [.init(names, MemoryStores())], partitions: Int(InspectDesk.partitions),
                listen: ListenAddress("127.0.0.1:0")!, tokens: []),
            log: log, health: health, metrics: Metrics(), logger: Logger { _ in })
        for part in service.parts { try part.start { _ in } }
        defer { for part in service.parts.reversed() { try? part.stop(by: soon) } }
        while !health.readiness.isHealthy, !soon.hasPassed { pause(for: .milliseconds(10)) }
        #expect(health.readiness.reasons.isEmpty, "\(health.readiness.reasons)")
        let client = try HTTPClient()
        defer { client.close() }
        let address = try #require(service.address)
        let answer = try client.answer(to: .init("GET", "http://\(address)/v1/subscriptions/\(Story.id)/history"))
        #expect(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
        return try JSONValue.read(answer.body)
    }
}
