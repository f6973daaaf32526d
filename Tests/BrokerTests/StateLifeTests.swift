import KafkaTestKit
import Ledger
import Platform
import Runtime
import Testing

extension RealBroker {
    /// Disks and changelogs that do not match, or do not match any more.
    @Suite(
        .serialized, .enabled(if: BrokerSource.current.canStartBrokers, Comment(rawValue: BrokerSource.privateSkipLine))
    )
    struct `The state of a worker` {
        @Test func `on an old disk is built anew when the topics were, and have grown past it`() async throws {
            let servers = try await SharedKafka.bootstrapServers()
            let group = try await LedgerGroup.make("anew", workers: servers, others: servers, partitions: 4)
            try await run(group, directory: "old", seed: 1, seconds: 1)
            try await group.makeAnew()
            try await run(group, directory: "new", seed: 2, seconds: 8)
            let log = try await run(group, directory: "old", seed: 3, seconds: 1)
            #expect(log.contains("an earlier life of"))
            let wrong = try await group.judge()
            #expect(wrong.isEmpty, "\(wrong.prefix(3).joined(separator: "\n"))")
        }

        @Test func `is not restored from a changelog that has lost its beginning, or may lose it`() async throws {
            let cluster = try #require(try await SharedKafka.cluster())
            let servers = try await SharedKafka.bootstrapServers()
            let group = try await LedgerGroup.make("beginning", workers: servers, others: servers, partitions: 4)
            try await run(group, directory: "whole", seed: 1, seconds: 3)
            for policy in ["delete", "compact,delete"] {
                try await group.setChangelogPolicy(policy)
                try await expectRefusal(group, directory: "empty", "is not compacted: it loses keys")
            }
            let places = (0..<4).map { number in
                "{\"topic\": \"\(group.ledger.definition.changelog)\", \"partition\": \(number), \"offset\": 5}"
            }
            let file = "\(group.scratch.path)/places.json"
            try OutputFile.write(
                Array("{\"version\": 1, \"partitions\": [\(places.joined(separator: ", "))]}".utf8), to: file)
            _ = try await cluster.tool("kafka-delete-records.sh", ["--offset-json-file", file])
            try await group.setChangelogPolicy("compact")
            try await expectRefusal(group, directory: "empty", "begins at offset 5, not at 0")
            // A worker whose disk has the whole state continues, and logs that the changelog is incomplete.
            let log = try await run(group, directory: "whole", seed: 2, seconds: 1)
            #expect(log.contains("the changelog is not complete"))
            let wrong = try await group.judge()
            #expect(wrong.isEmpty, "\(wrong.prefix(3).joined(separator: "\n"))")
        }

        /// A worker processes the input for this long and stops. Returns its log.
        @discardableResult
        private func run(_ group: LedgerGroup, directory: String, seed: UInt64, seconds: Int) async throws -> String {
            let worker = try group.start(0, directory: "\(group.scratch.path)/\(directory)")
            let fed = Latch()
            async let feeding: Void = group.feed(perSecond: 400, seed: seed, until: fed)
            try await Task.sleep(for: .seconds(seconds))
            fed.open()
            try await feeding
            try await group.waitUntilDone()
            #expect(try await worker.terminate(within: .seconds(30)) == .exited(code: 0))
            return worker.standardError
        }

        private func expectRefusal(_ group: LedgerGroup, directory: String, _ words: String) async throws {
            let worker = try group.start(0, directory: "\(group.scratch.path)/\(directory)")
            try await waitUntil("the worker says: \(words)", within: .seconds(60)) {
                worker.standardError.contains(words)
            }
            #expect(!worker.standardError.contains(" runs"))
            #expect(try await worker.terminate(within: .seconds(30)) == .exited(code: 0))
        }
    }
}
