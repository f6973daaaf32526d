import Foundation
import KafkaTestKit
import Platform
import Testing

extension RealBroker {
    @Suite(.enabled(if: Interop.isInstalled, Comment(rawValue: Interop.absence)))
    struct `Another Kafka client` {
        /// What the script says of one record.
        private struct Finding: Decodable {
            let type: String
            let partition: Int32
            let offset: Int64
            let key: String?
            let sha256: String?
            let notificationUUID: String?
            let faults: [String]
        }

        /// The script has its own murmur2, its own reader of JSON Schema, and the contract's rules, written down independently.
        @Test func `finds every notification that ingest answered 200, in its place and as its schema says`()
            async throws
        {
            let installation = try await Installation.make("interop", try await Broker.shared(), partitions: 5)
            let store = try await MakeBelieveStore.open(telling: [
                "--seed", "13", "--from", "2026-01-01", "--subscribers", "40", "--environment", "both", "--days", "200",
                "--duplicates", "10",
                "--delays", "10", "--forgeries", "30",
            ])
            // Apple does not resend notifications of sandbox: those that a slow machine did not accept in time would be lost.
            let ingest = try ServiceProcess(
                [
                    "ingest", "--ingest.plaintext", "true", "--ingest.listen", "127.0.0.1:0", "--ingest.timeout.ms",
                    "60000",
                    "--tick.interval.ms", "1000",
                ]
                    + store.ingestSettings + installation.settings)
            try await ingest.waitUntilReady()
            let simulator = try store.post(to: try await ingest.port("ingest listens"), rate: 500)
            // Exit code 0: the endpoint, too, refused every forgery for the right reason.
            #expect(try await simulator.wait(within: .seconds(300)) == .exited(code: 0), "\(simulator.lastLines(10))")
            for environment in ["production", "sandbox"] {
                try await waitUntil("\(environment) has a tick", within: patience) {
                    try await installation.broker.read(installation.topic("notifications", environment))
                        .contains { $0.header("schema") == "tick/1" }
                }
            }
            try await ingest.stop()

            var found = Set<String>()
            for environment in ["production", "sandbox"] {
                let topic = installation.topic("notifications", environment)
                let records = try await findings(in: topic, installation.broker)
                for record in records where !record.faults.isEmpty {
                    Issue.record("\(topic) \(record.partition) \(record.offset): \(record.faults.prefix(3))")
                }
                #expect(Set(records.map(\.type)) == ["notification", "tick"])
                #expect(Set(records.filter { $0.type == "notification" }.map(\.partition)).count > 1)
                found.formUnion(records.compactMap(\.sha256))
            }
            let taken = try store.answers().filter { $0.expected == "accepted" && $0.status == 200 }.map(\.sha256)
            #expect(taken.count > 200)
            #expect(Set(taken) == found)
        }

        private func findings(in topic: String, _ broker: Broker) async throws -> [Finding] {
            let result = try await Interop.run("read_notifications.py", [broker.bootstrap, topic, Interop.schemas])
            try #require(result.code == 0, "\(result.standardError.suffix(2000))")
            return try result.standardOutput.split(separator: "\n").map {
                try JSONDecoder().decode(Finding.self, from: Data($0.utf8))
            }
        }
    }
}
