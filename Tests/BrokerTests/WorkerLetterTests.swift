import Foundation
import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

extension RealBroker {
    @Suite(.serialized) struct `Dead letters of a worker` {
        /// A record as its worker read it.
        private struct Original {
            let key: [UInt8]
            let value: [UInt8]
            let headers: [RecordHeader]
            let time: Int64
        }

        private static let event = Original(
            key: Array("2000000123456789".utf8), value: Array(#"{"v":1,"notificationType":"DID_RENEW"}"#.utf8),
            headers: [
                RecordHeader("id", "n-1"), RecordHeader("type", "notification"), RecordHeader("app", "perennial/0.0.1"),
                RecordHeader("empty", nil as [UInt8]?),
            ], time: 1_700_000_000_123)
        private static let row = Original(
            key: Array("2000000987654321".utf8), value: [0, 0xff, 0x0a],
            headers: [RecordHeader("id", "u-1"), RecordHeader("detail", "of the app")], time: 1_700_000_000_456)

        /// The headers that the runtime appends to a record's own; RolesTests checks that both lists agree.
        private static func marks(_ reason: String, _ source: String, _ time: Int64) -> [RecordHeader] {
            [
                RecordHeader("reason", reason), RecordHeader("source", source),
                RecordHeader("first-timestamp", String(time)), RecordHeader("app", "perennial/0.1.0"),
            ]
        }

        private static func write(to installation: Installation) async throws {
            let (notifications, usage) = (installation.topic("notifications"), installation.topic("usage"))
            try await blocking {
                // Written in a transaction, as a worker does: there are markers between the dead letters.
                let producer = try TransactionalProducer.ready(
                    "\(installation.prefix).0-0", installation.broker.properties)
                let letters = try producer.topic(installation.topic("consumption.dead-letters"))
                func send(_ original: Original, _ headers: [RecordHeader]) throws {
                    try producer.begin()
                    try producer.send(
                        to: letters, partition: 2, key: original.key.span,
                        value: original.value.isEmpty ? nil : original.value.span, headers: headers)
                    try producer.commit()
                }
                try send(event, event.headers + marks("bad_body", "\(notifications):2:7", event.time))
                try send(row, row.headers + marks("no_consent", "\(usage):1:0", row.time))
                let timer = Original(key: event.key, value: [], headers: [RecordHeader("timer", "3")], time: event.time)
                try send(timer, timer.headers + marks("bad_body", "\(notifications):2:9", timer.time))
                // One letter of another installation's topic, and one of a topic that the worker does not read.
                for topic in ["another.production.notifications", installation.topic("entitlements")] {
                    try send(event, event.headers + marks("bad_body", "\(topic):0:0", event.time))
                }
                producer.close(by: Deadline(after: patience))
            }
        }

        private static func deadLetters(_ arguments: [String], _ installation: Installation) async throws
            -> ProgramResult
        {
            try await run(
                productPath("perennial"), ["dead-letters"] + arguments + installation.settings,
                environment: .only([:]), workingDirectory: "/")
        }

        @Test func `are listed with their source, shown with their JSON, and go back byte for byte`() async throws {
            let installation = try await Installation.make("worker-letters", try await Broker.shared(), partitions: 3)
            let (notifications, usage) = (installation.topic("notifications"), installation.topic("usage"))
            try await Self.write(to: installation)
            func deadLetters(_ arguments: [String]) async throws -> ProgramResult {
                try await Self.deadLetters(arguments, installation)
            }

            let listed = try await deadLetters(["list", "consumption", "--format", "json"])
            #expect(listed.code == 0, "\(listed.words)")
            let letters = try listed.standardOutput.split(separator: "\n").map { line in
                try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            }
            #expect(letters.count == 5)
            #expect(letters.first?["key"] as? String == "2000000123456789")
            #expect(letters.contains { $0["source"] as? String == "\(usage):1:0" && $0["detail"] is NSNull })
            #expect(letters.compactMap { $0["timer"] as? String } == ["3"])
            let shown = try await deadLetters(["show", "consumption", "2000000123"])
            #expect(shown.code == 0)
            #expect(shown.standardOutput.contains("source    \(notifications):2:7\n"), "\(shown.standardOutput)")
            #expect(shown.standardOutput.contains("key       2000000123456789\n"))
            #expect(shown.standardOutput.contains(#"payload   {"v":1,"notificationType":"DID_RENEW"}"# + "\n"))
            #expect(shown.standardOutput.contains("timer     3\n"))

            let tally = """
                bad_body  can be redriven: 1  timers: 1  settled keys: 0  gaps: 0  from a topic that the worker does not read: 2
                no_consent  can be redriven: 1  timers: 0  settled keys: 0  gaps: 0  from a topic that the worker does not read: 0

                """
            let dry = try await deadLetters(["redrive", "consumption"])
            #expect(dry.code == 0 && dry.standardOutput == tally, "\(dry.words)")
            #expect(dry.standardError.contains("nothing was written; --apply publishes the 2 that can be redriven"))
            #expect(try await installation.broker.readWhole(notifications).isEmpty)
            #expect(try await installation.broker.readWhole(usage).isEmpty)

            let applied = try await deadLetters(["redrive", "consumption", "--apply"])
            #expect(applied.code == 0 && applied.standardOutput == tally, "\(applied.words)")
            for (topic, original) in [(notifications, Self.event), (usage, Self.row)] {
                let records = try await installation.broker.readWhole(topic)
                try #require(records.count == 1)
                #expect(records[0].key == original.key)
                #expect(records[0].value == original.value)
                #expect(records[0].headers == original.headers + [RecordHeader("attempt", "1")])
                #expect(records[0].timestamp == original.time)
                #expect(records[0].partition == Partitioner.partition(of: original.key, count: 3))
            }
            #expect(try await installation.broker.readWhole(installation.topic("entitlements")).isEmpty)

            // A filter selects a part, and records are only appended.
            let part = try await deadLetters(["redrive", "consumption", "--apply", "--reason", "no_consent"])
            #expect(part.standardError.contains("1 records are published"), "\(part.words)")
            #expect(try await installation.broker.readWhole(notifications).count == 1)
            #expect(try await installation.broker.readWhole(usage).count == 2)
        }

        @Test func `are not redriven into topics with another number of partitions`() async throws {
            let installation = try await Installation.make("letters-count", try await Broker.shared(), partitions: 2)
            let other = Installation(broker: installation.broker, prefix: installation.prefix, partitions: 3)
            let outcome = try await Self.deadLetters(["redrive", "churn", "--apply"], other)
            #expect(outcome.code == 2)
            let words = "has 2 partitions and the setting partitions says 3"
            #expect(outcome.standardError.contains(words), "\(outcome.words)")
        }
    }
}
