import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

extension RealBroker {
    /// Users that may only do what Kafka's access lists say, and a broker that is not there.
    @Suite(
        .serialized, .enabled(if: BrokerSource.current.canStartBrokers, Comment(rawValue: BrokerSource.privateSkipLine))
    )
    struct `Without a right or a broker` {
        private static let user = KafkaOptions.Credentials(user: "worker", password: "right")
        private static let starting = Task {
            var options = KafkaOptions()
            options.credentials = user
            options.hasAccessLists = true
            return try await KafkaCluster.start(BrokerSource.current.requireDistribution(), options)
        }

        private struct Ground {
            let cluster: KafkaCluster
            let installation: Installation
            /// As the user that has no rights yet.
            let settings: [String]

            func check(_ role: [String]) async throws -> ProgramResult {
                try await run(
                    productPath("perennial"),
                    ["check"] + role + ["--topics.replication.factor", "1", "--topics.min.insync.replicas", "1"]
                        + settings,
                    environment: .only([:]), workingDirectory: "/")
            }

            /// Calls the lines that were printed, as an operator would.
            func grant(_ lines: [String]) async throws {
                for line in lines { try await accessLists(line, "--add") }
            }

            func accessLists(_ line: String, _ verb: String) async throws {
                let words = line.split(separator: " ").map(String.init).dropFirst(3).map { $0 == "--add" ? verb : $0 }
                try await cluster.tool("kafka-acls.sh", words + (verb == "--remove" ? ["--force"] : []))
            }
        }

        private static func ground(_ label: String) async throws -> Ground {
            let cluster = try await starting.value
            let installation = try await Installation.make(
                label, Broker(bootstrap: cluster.bootstrapServers), partitions: 2)
            let servers = try #require(cluster.saslServers)
            return Ground(
                cluster: cluster, installation: installation,
                settings: [
                    "--kafka.bootstrap.servers", servers, "--topic.prefix", installation.prefix, "--partitions", "2",
                    "--kafka.security.protocol", "sasl_plaintext", "--kafka.sasl.mechanisms", "PLAIN",
                    "--kafka.sasl.username", user.user, "--kafka.sasl.password", user.password,
                ])
        }

        private static func grants(_ result: ProgramResult) -> [String] {
            result.standardOutput.split(separator: "\n").map { $0.drop { $0 == " " } }
                .filter { $0.hasPrefix("kafka-acls.sh ") }.map(String.init)
        }

        private static func worker(_ ground: Ground, _ disk: ScratchDirectory) throws -> ServiceProcess {
            try ServiceProcess(
                ["entitlements", "--worker.slot", "0", "--state.directory", "\(disk.path)/disk"] + ground.settings)
        }

        @Test func `check says which rights a role lacks, and the lines it prints are all that a worker needs`()
            async throws
        {
            let ground = try await Self.ground("lines")
            let all = try await ground.check([])
            #expect(all.code == 1)
            #expect(all.standardOutput.contains("there is no right to Describe"), "\(all.standardOutput)")
            #expect(!all.standardOutput.contains("missing"))
            let lacking = try await ground.check(["entitlements"])
            #expect(lacking.code == 1)
            let output = ground.installation.topic("entitlements.dead-letters")
            #expect(
                lacking.standardOutput.contains("wrong   rights  lacking for topic \(output): Describe, Write\n"),
                "\(lacking.standardOutput)")
            // Six topics, the group, the transactional ids.
            let lines = Self.grants(lacking)
            #expect(lines.count == 8, "\(lines)")
            try await ground.grant(lines)
            let after = try await ground.check(["entitlements"])
            #expect(after.code == 0, "\(after.standardOutput)\(after.standardError)")
            #expect(after.standardOutput.contains("ok      rights  of entitlements: "))
            for name in ["entitlements", "entitlement-events", "entitlements.dead-letters", "entitlements.changelog"] {
                let records = try await ground.installation.broker.read(
                    ground.installation.topic(name), uncommitted: true)
                #expect(records.isEmpty, "trying rights has written to \(name)")
            }
            let disk = try ScratchDirectory("rights")
            let worker = try Self.worker(ground, disk)
            try await worker.waitUntilReady()

            // A right that is only needed when something goes wrong is missed all the same, and before that.
            let line = try #require(lines.first { $0.hasSuffix("--topic \(output)") })
            try await worker.stop()
            try await ground.accessLists(line, "--remove")
            // It may still be seen: only the right to write is lacking.
            try await ground.grant([line.replacing("--operation Write", with: "--operation Describe")])
            let bound = try Self.worker(ground, disk)
            try await waitUntil("the dead letters' topic is named", within: patience) {
                try await bound.reasons().contains("topic \(output): Write")
            }
            #expect(bound.log.contains("Kafka refuses rights that this role needs"), "\(bound.process.lastLines(10))")
            #expect(bound.log.contains("--operation Write --topic \(output)"))
            try await ground.grant([line])
            try await bound.waitUntilReady()
            try await bound.stop()
        }

        @Test func `a worker whose broker is away says so within ten seconds, with the address`() async throws {
            let disk = try ScratchDirectory("away")
            let port = try Ports.free()
            let start = ContinuousClock.now
            let worker = try ServiceProcess([
                "churn", "--worker.slot", "0", "--state.directory", "\(disk.path)/disk", "--kafka.bootstrap.servers",
                "127.0.0.1:\(port)",
            ])
            try await Self.saysNoBroker(worker, "127.0.0.1:\(port)")
            #expect(start.duration(to: .now) < .seconds(10))
            #expect(!worker.log.contains("Connection refused (after"), "raw lines of the library are for debug")
            #expect(!worker.log.contains(#""log","#), "\(worker.process.lastLines(10))")
            try await worker.stop()
        }

        private static func saysNoBroker(_ worker: ServiceProcess, _ address: String) async throws {
            try await waitUntil("the absence is told: \(worker.process.lastLines(5))", within: .seconds(10)) {
                let reasons = try await worker.reasons()
                return reasons.contains(#""condition":"kafka""#) && reasons.contains(address)
                    && worker.log.contains("no broker of Kafka answers")
            }
        }

        @Test func `a worker that works says when its broker stands still, and when it answers again`() async throws {
            let cluster = try await KafkaCluster.start(BrokerSource.current.requireDistribution())
            let installation = try await Installation.make(
                "still", Broker(bootstrap: cluster.bootstrapServers), partitions: 2)
            let disk = try ScratchDirectory("still")
            let worker = try ServiceProcess(
                ["churn", "--worker.slot", "0", "--state.directory", "\(disk.path)/disk"] + installation.settings)
            try await worker.waitUntilReady()
            cluster.broker.suspend()
            try await Self.saysNoBroker(worker, cluster.bootstrapServers)
            cluster.broker.resume()
            try await waitUntil("it answers again", within: patience) { worker.log.contains("Kafka answers again") }
            try await worker.waitUntilReady()
            try await worker.stop()
            await cluster.close()
        }
    }
}
