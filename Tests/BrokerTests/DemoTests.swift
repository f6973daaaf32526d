import Kafka
import KafkaTestKit
import Platform
import Testing

extension RealBroker {
    @Suite struct `The demo on a real broker` {
        /// Names of topics and groups that a demo has created.
        private func traces(on broker: Broker) async throws -> [String] {
            try await blocking {
                let admin = try Admin(clientID: "test", properties: broker.properties)
                defer { admin.close(by: Deadline(after: patience)) }
                let topics = try admin.cluster(by: Deadline(after: patience)).topics.map(\.name)
                let groups = try admin.groups(by: Deadline(after: patience))
                return (topics + groups).filter { $0.hasPrefix("perennial-demo-") }
            }
        }

        @Test func `tells a history that ends now, answers, and removes what it has made`() async throws {
            let broker = try await Broker.shared()
            let folder = try ScratchDirectory("demo")
            let demo = try ChildProcess(
                productPath("perennial"), ["demo", "--kafka", broker.bootstrap], environment: .only([:]),
                workingDirectory: folder.path)
            try await demo.waitUntilPrinted("/v1/accounts/", within: patience * 3)
            #expect(try await traces(on: broker).contains { $0.hasSuffix(".production.entitlements") })
            let question = try #require(demo.standardOutput.split(separator: "\n").first { $0.hasPrefix("curl ") })
            let answer = try await run(
                "/bin/sh", ["-c", String(question)], environment: .only(["PATH": "/usr/bin:/bin"])
            ).standardOutput
            // The access that it has now depends on how many of its days have passed since.
            #expect(answer.contains(#""access":"#), "\(answer)")
            try await demo.waitUntilPrinted("answered by rule: ", within: patience * 3)
            demo.kill(2)
            #expect(try await demo.wait() == .exited(code: 0))
            let words = demo.standardOutput + demo.standardError
            #expect(
                words.contains("created the topics") && words.contains("removed the topics"), "\(words)")
            #expect(!words.contains("to be retried"), "it waits until ingest can write")
            #expect(try await traces(on: broker) == [])
        }
    }
    @Suite(
        .serialized, .enabled(if: BrokerSource.current.canStartBrokers, Comment(rawValue: BrokerSource.privateSkipLine))
    )
    struct `A demo whose broker is gone` {
        @Test func `says which topics to delete`() async throws {
            let cluster = try await KafkaCluster.start(BrokerSource.current.requireDistribution())
            let folder = try ScratchDirectory("demo")
            let demo = try ChildProcess(
                productPath("perennial"), ["demo", "--kafka", cluster.bootstrapServers], environment: .only([:]),
                workingDirectory: folder.path)
            try await demo.waitUntilPrinted("/v1/accounts/", within: patience * 3)
            try await cluster.broker.kill9()
            let start = ContinuousClock.now
            demo.kill(2)
            #expect(try await demo.wait() == .exited(code: 3))
            print("a demo whose broker is gone ended after \(start.duration(to: .now))")
            let prefix = try #require(
                demo.standardError.split { " ,".contains($0) }.first { $0.hasPrefix("perennial-demo-") })
            let words = demo.standardError.split(separator: "\n").last { $0.contains("delete them yourself") }
            #expect(words?.contains("could not remove all topics \(prefix) (") == true, "\(demo.lastLines(20))")
            await cluster.close()
        }
    }
}
