import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

extension RealBroker {
    @Suite(
        .serialized, .enabled(if: BrokerSource.current.canStartBrokers, Comment(rawValue: BrokerSource.privateSkipLine))
    )
    struct `A gap in the notifications` {
        private func write(_ count: Int, to topic: String, partition: Int32, _ broker: Broker) async throws {
            try await blocking {
                let producer = try Producer(.init(clientID: "test", properties: broker.properties)) { _ in }
                let output = try producer.topic(topic)
                let headers = [RecordHeader("schema", "tick/1")]
                for number in 0..<count {
                    try producer.send(
                        to: output, partition: partition, key: nil, value: Array(#"{"v":1,"tick":1}"#.utf8).span,
                        headers: headers, timestamp: 1_700_000_000_000 + Int64(number))
                }
                try producer.flush(by: Deadline(after: patience))
                producer.close(by: Deadline(after: patience))
            }
        }

        private func offsets(_ arguments: [String], _ installation: Installation) async throws -> ProgramResult {
            try await run(
                productPath("perennial"), ["offsets", "accept-gap"] + arguments + installation.settings,
                environment: .only([:]), workingDirectory: "/")
        }

        @Test func `pauses one partition, and is closed by the command that is named`() async throws {
            let cluster = try #require(try await SharedKafka.cluster())
            let installation = try await Installation.make("gap", try await Broker.shared(), partitions: 2)
            let (broker, topic) = (installation.broker, installation.topic("notifications"))
            let group = "\(installation.prefix).production.churn"
            let disk = try ScratchDirectory("gap")
            func start() throws -> ServiceProcess {
                try ServiceProcess(
                    ["churn", "--worker.slot", "0", "--worker.leave", "true", "--state.directory", "\(disk.path)/disk"]
                        + installation.settings)
            }
            func waitFor(_ position: Int64, partition: Int32) async throws {
                try await waitUntil("partition \(partition) is at \(position)", within: patience) {
                    try await broker.committed(TopicPartition(topic, partition), group: group)?.value == position
                }
            }

            let first = try start()
            for partition: Int32 in 0..<2 { try await write(5, to: topic, partition: partition, broker) }
            for partition: Int32 in 0..<2 { try await waitFor(5, partition: partition) }
            try await first.stop()
            #expect(try await offsets(["churn"], installation).code == 1)

            try await write(10, to: topic, partition: 0, broker)
            let file = try disk.write(
                #"{"version": 1, "partitions": [{"topic": "\#(topic)", "partition": 0, "offset": 12}]}"#,
                to: "places.json")
            _ = try await cluster.tool("kafka-delete-records.sh", ["--offset-json-file", file])
            let second = try start()
            try await waitUntil("the gap is reported", within: patience) {
                try await second.reasons().contains("\(topic)[0] from offset 5 to 11 were deleted")
            }
            #expect(try await second.reasons().contains("perennial offsets accept-gap churn --partition 0"))
            try await write(3, to: topic, partition: 1, broker)
            try await waitFor(8, partition: 1)
            #expect(try await second.metric(#"perennial_input_gaps_total{worker="churn"}"#) == 1)

            let busy = try await offsets(["churn", "--partition", "0", "--apply"], installation)
            #expect(busy.code == 1 && busy.standardError.contains("the group \(group) has members"), "\(busy.words)")
            try await second.stop()
            let dry = try await offsets(["churn"], installation)
            #expect(dry.code == 0, "\(dry.words)")
            #expect(
                dry.standardOutput
                    == "gap  \(topic)[0]  5 -> 12  7 offsets are gone  last record read: 2023-11-14T22:13:20.004Z  "
                    + "first record left: 2023-11-14T22:13:20.007Z\n")
            try await waitFor(5, partition: 0)
            let applied = try await offsets(["churn", "--partition", "0", "--apply"], installation)
            #expect(applied.code == 0, "\(applied.words)")
            try await waitFor(12, partition: 0)

            let third = try start()
            try await waitFor(15, partition: 0)
            try await third.waitUntilReady()
            try await third.stop()
            let letters = try await run(
                productPath("perennial"), ["dead-letters", "list", "churn"] + installation.settings,
                environment: .only([:]), workingDirectory: "/")
            #expect(letters.standardOutput.contains("\(topic):0:5"), "\(letters.words)")
            #expect(letters.standardOutput.contains("7 offsets of \(topic)[0] were lost"))
        }
    }
}
