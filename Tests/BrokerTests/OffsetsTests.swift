import Foundation
import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

extension RealBroker {
    @Suite(.serialized) struct `Offsets` {
        /// A topic with a group that reads it, and the program that inspects both.
        private struct Reading: Sendable {
            let broker: Broker
            let topic: String
            var group: String { "\(topic).readers" }

            static func make(_ label: String, partitions: Int32 = 1) async throws -> Reading {
                let broker = try await Broker.shared()
                return Reading(broker: broker, topic: try await broker.makeTopic(label, partitions: partitions))
            }

            func partition(_ number: Int32) -> TopicPartition { TopicPartition(topic, number) }

            /// Writes one record at each of these times, without transactions.
            func write(at times: [Int64], partition: Int32 = 0) async throws {
                try await blocking {
                    let producer = try Producer(.init(clientID: "test", properties: broker.properties)) { _ in }
                    let output = try producer.topic(topic)
                    for time in times {
                        try producer.send(
                            to: output, partition: partition, key: nil, value: Array("x".utf8).span, timestamp: time)
                    }
                    try producer.flush(by: Deadline(after: patience))
                    producer.close(by: Deadline(after: patience))
                }
            }

            func place(_ positions: [TopicPartition: Int64], group: String? = nil) async throws {
                try await blocking {
                    let admin = try Admin(clientID: "test", properties: broker.properties)
                    defer { admin.close(by: Deadline(after: patience)) }
                    let deadline = Deadline(after: patience)
                    while true {
                        do throws(KafkaFault) {
                            return try admin.setOffsets(
                                ofGroup: group ?? self.group, to: positions.mapValues { NextOffset($0) }, by: deadline)
                        } catch {
                            // The first group on a broker has to wait for its coordinator.
                            if error.remedy != .retrySameCall || deadline.hasPassed { throw error }
                            pause(for: .milliseconds(50))
                        }
                    }
                }
            }

            func position(_ number: Int32 = 0) async throws -> Int64? {
                try await broker.committed(partition(number), group: group)?.value
            }

            func offsets(_ arguments: [String]) async throws -> ProgramResult {
                try await run(
                    productPath("perennial"),
                    ["offsets"] + arguments + ["--kafka.bootstrap.servers", broker.bootstrap],
                    environment: .only([:]), workingDirectory: "/")
            }

            func shown(_ arguments: [String]) async throws -> [[String: Any]] {
                let shown = try await offsets(["show"] + arguments + ["--format", "json"])
                #expect(shown.code == 0 && shown.standardError.isEmpty, "\(shown.words)")
                return try shown.standardOutput.split(separator: "\n").map { line in
                    try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
                }
            }
        }

        @Test
        func
            `are shown with what is left and what an open transaction holds back, and ends of transactions are no lag`()
            async throws
        {
            let reading = try await Reading.make("offsets-lag", partitions: 2)
            let (broker, topic, group) = (reading.broker, reading.topic, reading.group)
            let atEnd = "\(group).end"
            try await reading.write(at: [1_700_000_000_000], partition: 1)
            try await reading.place([reading.partition(0): 1, reading.partition(1): 1])
            // Offsets 0 and 1 are records and 2 the end of their transaction; 3 is a record with its end at 4; the transaction of
            // 5 is open.
            try await blocking {
                var options = TransactionalProducer.Configuration(
                    transactionalID: "\(topic).0-0", properties: broker.properties)
                // Longer than the whole test; otherwise the broker would abort the transaction.
                options.transactionTimeout = .seconds(300)
                let producer = try TransactionalProducer(options)
                try producer.start(by: Deadline(after: patience))
                let output = try producer.topic(topic)
                func send(_ time: Int64) throws {
                    try producer.send(
                        to: output, partition: 0, key: nil, value: Array("x".utf8).span, timestamp: time)
                }
                try producer.begin()
                try send(1_700_000_000_001)
                try send(1_700_000_000_002)
                try producer.commit()
                try producer.begin()
                try send(1_700_000_000_003)
                try producer.commit()
                try producer.begin()
                try producer.sendAndWait("open", to: output)
                let consumer = try onlooker(group, broker.properties)
                try producer.sendOffsets([reading.partition(0): NextOffset(5)], of: consumer.groupMetadata())
                try await reading.place([reading.partition(0): 4], group: atEnd)

                let lines = try await reading.shown([group])
                try #require(lines.count == 3)
                let first = lines[0]
                #expect(first["topic"] as? String == topic && first["partition"] as? Int == 0)
                #expect(first["position"] as? Int == 1, "what is only pending is not in force")
                #expect(first["beginning"] as? Int == 0)
                #expect(first["end"] as? Int == 5)
                #expect(first["endOfAll"] as? Int == 6)
                #expect(first["heldBack"] as? Int == 1)
                #expect(first["lag"] as? Int == 2)
                #expect(first["lagIsExact"] as? Bool == true)
                #expect(first["nextTimestamp"] as? Int64 == 1_700_000_000_002)
                #expect(lines[1]["lag"] as? Int == 0 && lines[1]["heldBack"] as? Int == 0)
                #expect(lines[1]["nextTimestamp"] is NSNull)
                #expect(lines[2]["kind"] as? String == "group" && lines[2]["state"] as? String == "Empty")
                #expect(lines[2]["lag"] as? Int == 2 && lines[2]["heldBack"] as? Int == 1)

                let end = try await reading.shown([atEnd])
                #expect(end[0]["position"] as? Int == 4 && end[0]["end"] as? Int == 5)
                #expect(end[0]["lag"] as? Int == 0, "the end of a transaction is nothing to read")

                let reset = try await reading.offsets(["reset", group, "--to", "beginning", "--apply"])
                #expect(reset.code == 3, "the commit that is pending would undo it")
                #expect(reset.standardError.contains("nothing was written: the positions of \(group) are not stable"))
                #expect(try await reading.shown([group])[0]["position"] as? Int == 1)

                try producer.abort()
                producer.close(by: Deadline(after: patience))
                consumer.close(by: Deadline(after: patience))
            }
            // The marker of an aborted transaction may be written after the answer.
            try await waitUntil("the abort is seen", within: patience) {
                try await reading.shown([group])[0]["heldBack"] as? Int == 0
            }
            let after = try await reading.shown([group])
            #expect(after[0]["heldBack"] as? Int == 0)
            #expect(after[0]["lag"] as? Int == 2, "what was aborted is nothing to read either")
        }

        @Test func `of an installation are those of its groups, and a worker has a row for each partition it reads`()
            async throws
        {
            let installation = try await Installation.make("offsets", try await Broker.shared(), partitions: 3)
            let topic = installation.topic("notifications")
            let reading = Reading(broker: installation.broker, topic: topic)
            let worker = "\(installation.prefix).production.churn"
            try await reading.place([TopicPartition(topic, 1): 0], group: worker)
            try await reading.place([TopicPartition(topic, 1): 0], group: "\(installation.prefix)-other.production.x")
            let clock = "\(installation.prefix).sandbox.clock"
            let settings = ["--topic.prefix", installation.prefix]
            try await blocking {
                let member = try Consumer(
                    .init(clientID: "ticker", groupID: clock, properties: installation.broker.properties))
                defer { member.close(by: Deadline(after: patience)) }
                try member.subscribe(to: [installation.topic("notifications", "sandbox")])
                try member.poll(until: { member.assignment.count == 3 })
                let all = try await reading.shown(settings)
                #expect(
                    all.filter { $0["kind"] as? String == "group" }.map { $0["group"] as? String } == [worker, clock])
                let rows = try await reading.shown(["churn", "--environment", "production"] + settings)
                #expect(rows.map { $0["partition"] as? Int } == [0, 1, 2, nil])
                #expect(rows.map { $0["position"] as? Int } == [nil, 0, nil, nil])
                #expect(rows.last?["withoutPosition"] as? Int == 2)
                let ticking = try await reading.shown(["clock"] + settings)
                try #require(ticking.count == 4)
                #expect((ticking[0]["member"] as? [String: Any])?["client"] as? String == "ticker")
            }
            let unknown = try await reading.offsets(["show", "consumption"] + settings)
            #expect(unknown.code == 1)
            #expect(unknown.standardError.contains("there is no group \(installation.prefix).production.consumption"))
            #expect(unknown.standardOutput.isEmpty)
        }

        @Test func `are reset in earnest only with apply, to where was asked`() async throws {
            let reading = try await Reading.make("offsets-reset", partitions: 2)
            let start: Int64 = 1_767_225_600_000  // 2026-01-01T00:00:00Z
            try await reading.write(at: [start - 1000, start, start + 1000])
            try await reading.write(at: [start], partition: 1)
            try await reading.place([reading.partition(0): 3])

            let dry = try await reading.offsets(["reset", reading.group, "--to", "beginning"])
            #expect(dry.code == 0, "\(dry.words)")
            #expect(
                dry.standardOutput == "change  \(reading.topic)[0]  3 -> 0\nchange  \(reading.topic)[1]  none -> 0\n")
            #expect(dry.standardError.contains("nothing was written; --apply sets 2 positions"))
            #expect(try await reading.position() == 3, "a dry run changes nothing")
            #expect(try await reading.position(1) == nil)

            for (to, first, second) in [
                ("2026-01-01", 1, 0), ("end", 3, 1), ("beginning", 0, 0), ("0:2", 2, 0), ("1:1,0:3", 3, 1),
            ] as [(String, Int64, Int64)] {
                let applied = try await reading.offsets(["reset", reading.group, "--to", to, "--apply"])
                #expect(applied.code == 0, "\(applied.words)")
                #expect(try await reading.position() == first, "\(to)")
                #expect(try await reading.position(1) == second, "\(to)")
            }
            let same = try await reading.offsets(["reset", reading.group, "--to", "end", "--apply"])
            #expect(same.code == 0 && same.standardOutput.isEmpty)
            #expect(same.standardError.contains("every position is already there"))
            #expect(try await reading.offsets(["reset", reading.group, "--to", "0:4", "--apply"]).code == 2)
            let unknown = try await reading.offsets(["reset", "\(reading.group).x", "--to", "end", "--apply"])
            #expect(unknown.code == 1)
            #expect(unknown.standardError.contains("there is no group \(reading.group).x"))
        }

        @Test func `of a group that somebody is in are left alone, and who is in it is told`() async throws {
            let reading = try await Reading.make("offsets-active")
            try await reading.write(at: [1_700_000_000_000])
            try await reading.place([reading.partition(0): 1])
            let reset = ["reset", reading.group, "--to", "beginning", "--apply"]
            try await blocking {
                let member = try Consumer(
                    .init(clientID: "dashboard", groupID: reading.group, properties: reading.broker.properties))
                try member.subscribe(to: [reading.topic])
                try member.poll(until: { !member.assignment.isEmpty })
                let refused = try await reading.offsets(reset)
                #expect(refused.code == 1)
                #expect(refused.standardError.contains("the group has members"))
                #expect(refused.standardError.contains("perennial offsets: dashboard  /"), "\(refused.words)")
                #expect(try await reading.position() == 1)
                // A member may join after the program has looked: then the broker refuses, with this message.
                let admin = try Admin(clientID: "test", properties: reading.broker.properties)
                let fault = fault { () throws(KafkaFault) in
                    try admin.setOffsets(
                        ofGroup: reading.group, to: [reading.partition(0): NextOffset(0)], by: Deadline(after: patience)
                    )
                }
                #expect(fault?.code == .unknownMember)
                admin.close(by: Deadline(after: patience))
                member.close(by: Deadline(after: patience))
            }
            #expect(try await reading.offsets(reset).code == 0)
            #expect(try await reading.position() == 0)
        }
    }
}
