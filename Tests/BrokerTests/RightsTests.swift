import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

extension RealBroker {
    /// Users that may do only what Kafka's ACLs allow, and a broker that is not there.
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
            /// As a user that has no rights yet.
            let settings: [String]

            func check(_ role: [String]) async throws -> ProgramResult {
                try await run(
                    productPath("perennial"),
                    ["check"] + role + ["--topics.replication.factor", "1", "--topics.min.insync.replicas", "1"]
                        + settings,
                    environment: .only([:]), workingDirectory: "/")
            }

            /// Runs the printed lines as an operator would.
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
            #expect(all.standardOutput.contains("this user has no right to Describe"), "\(all.standardOutput)")
            #expect(!all.standardOutput.contains("missing"))
            let lacking = try await ground.check(["entitlements"])
            #expect(lacking.code == 1)
            let output = ground.installation.topic("entitlements.dead-letters")
            #expect(
                lacking.standardOutput.contains("fault    rights  missing for topic \(output): Describe, Write\n"),
                "\(lacking.standardOutput)")
            // Six topics, the group, and the transactional ids.
            let lines = Self.grants(lacking)
            #expect(lines.count == 8, "\(lines)")
            try await ground.grant(lines)
            let after = try await ground.check(["entitlements"])
            #expect(after.code == 0, "\(after.standardOutput)\(after.standardError)")
            #expect(after.standardOutput.contains("ok       rights  of entitlements: "))
            for name in ["entitlements", "entitlement-events", "entitlements.dead-letters", "entitlements.changelog"] {
                let records = try await ground.installation.broker.read(
                    ground.installation.topic(name), uncommitted: true)
                #expect(records.isEmpty, "checking rights has written to \(name)")
            }
            let disk = try ScratchDirectory("rights")
            let worker = try Self.worker(ground, disk)
            try await worker.waitUntilReady()

            // A missing right is reported at the start, even if it is needed only when something goes wrong.
            let line = try #require(lines.first { $0.hasSuffix("--topic \(output)") })
            try await worker.stop()
            try await ground.accessLists(line, "--remove")
            // The topic is still visible: only the right to write is missing.
            try await ground.grant([line.replacing("--operation Write", with: "--operation Describe")])
            let bound = try Self.worker(ground, disk)
            try await waitUntil("the topic of dead letters is reported", within: patience) {
                try await bound.reasons().contains("topic \(output): Write")
            }
            #expect(bound.log.contains("Kafka refuses rights that this role needs"), "\(bound.process.lastLines(10))")
            #expect(bound.log.contains("--operation Write --topic \(output)"))
            try await ground.grant([line])
            try await bound.waitUntilReady()
            try await bound.stop()
        }

        /// The table of docs/reference/kafka-rights.md about commands that run beside a live worker, row by row.
        private struct Rows {
            let ground: Ground
            let name: String

            private func topic(_ id: String, shadow: Bool = false) -> String {
                ground.installation.topic(id) + (shadow ? ".replay-\(name)" : "")
            }

            private func give(_ operations: [String], _ resources: [String], isPrefix: Bool = false) async throws {
                let words =
                    ["--add", "--allow-principal", "User:worker"] + operations.flatMap { ["--operation", $0] }
                    + resources
                    + (isPrefix ? ["--resource-pattern-type", "prefixed"] : [])
                try await ground.accessLists("kafka-acls.sh - - " + words.joined(separator: " "), "--add")
            }

            private func topics(_ ids: [String], shadow: Bool = false) -> [String] {
                ids.flatMap { ["--topic", topic($0, shadow: shadow)] }
            }

            private static let written = ["churn-cells", "churn-events", "churn.changelog", "churn.dead-letters"]

            func replay(drops: Bool) async throws {
                try await give(["Describe", "Read"], topics(["notifications"]))
                try await give(["Describe", "DescribeConfigs"], topics(Self.written))
                try await shadows(drops: drops)
            }

            func shadows(drops: Bool) async throws {
                let more = drops ? ["Delete"] : []
                try await give(
                    ["Create", "Describe", "DescribeConfigs", "Read", "Write"] + more,
                    topics(Self.written + ["churn.plan"], shadow: true))
                try await give(["Describe", "Read"] + more, ["--group", topic("churn", shadow: true)])
                try await give(
                    ["Describe", "Write"], ["--transactional-id", topic("churn", shadow: true)], isPrefix: true)
            }

            func diff() async throws {
                try await give(
                    ["Describe", "Read"],
                    topics(["notifications", "churn-cells"]) + topics(["churn-cells", "churn.plan"], shadow: true))
                try await give(["Describe"], ["--group", topic("churn"), "--group", topic("churn", shadow: true)])
            }

            func promotion(applies: Bool) async throws {
                let live = topics(["churn-cells", "churn-events", "churn.changelog"])
                try await give(["Read"] + (applies ? ["Write"] : []), live)
                try await give(["Describe"] + (applies ? ["Read"] : []), ["--group", topic("churn")])
                if !applies { return }
                try await give(["Describe", "Write"], ["--transactional-id", topic("churn.promote")])
                try await Rows(ground: ground, name: "before-\(name)").shadows(drops: true)
            }
        }

        /// A live worker that has stopped; a user with all rights ran it.
        private static func groundWithState(_ label: String) async throws -> (Ground, ReplayScene) {
            let ground = try await ground(label)
            let scene = try ReplayScene.over(ground.installation)
            try await scene.tell(try FixtureStory(partitions: 2).steps[0])
            let live = try scene.startLive("churn", ["--worker.leave", "true"])
            try await scene.waitUntilDealtWith(by: scene.group("churn"))
            try await live.stop()
            return (ground, scene)
        }

        private static func asUser(_ words: [String], _ ground: Ground, _ disk: String) async throws -> ProgramResult {
            try await run(
                productPath("perennial"), words + ["--worker.slot", "0", "--state.directory", disk] + ground.settings,
                environment: .only([:]), workingDirectory: "/")
        }

        @Test func `replay does with the rights that its page names`() async throws {
            let (ground, scene) = try await Self.groundWithState("replay-rights")
            let disk = scene.disks.file("user")
            let refused = try await Self.asUser(["replay", "churn", "--name", "r"], ground, disk)
            #expect(refused.code != 0, "\(refused.words)")
            try await Rows(ground: ground, name: "r").replay(drops: false)
            let replay = try await Self.asUser(["replay", "churn", "--name", "r"], ground, disk)
            #expect(replay.code == 0, "\(replay.words)")
            try await Rows(ground: ground, name: "r").shadows(drops: true)
            let dropped = try await Self.asUser(["replay", "churn", "--drop", "r"], ground, disk)
            #expect(dropped.code == 0, "\(dropped.words)")
        }

        @Test func `diff and promote do with the rights that its page names`() async throws {
            let (ground, scene) = try await Self.groundWithState("diff-rights")
            let replay = try await scene.tool("churn", ["--name", "r"])
            #expect(replay.code == 0, "\(replay.words)")
            let rows = Rows(ground: ground, name: "r")
            let refused = try await Self.asUser(["diff", "churn", "--name", "r"], ground, scene.disks.file("user"))
            #expect(refused.code != 0, "\(refused.words)")
            try await rows.diff()
            let diff = try await Self.asUser(["diff", "churn", "--name", "r"], ground, scene.disks.file("user"))
            #expect(diff.code == 0, "\(diff.words)")

            let (other, stage) = try await Self.groundWithState("promote-rights")
            let again = try await stage.tool("churn", ["--name", "r"])
            #expect(again.code == 0, "\(again.words)")
            let disk = stage.disks.file("user")
            let words = ["promote", "churn", "--name", "r"]
            try await Rows(ground: other, name: "r").replay(drops: false)
            try await Rows(ground: other, name: "r").promotion(applies: false)
            let dry = try await Self.asUser(words, other, disk)
            #expect(dry.code == 0, "\(dry.words)")
            let bare = try await Self.asUser(words + ["--apply"], other, disk)
            #expect(bare.code != 0, "\(bare.words)")
            try await Rows(ground: other, name: "r").promotion(applies: true)
            let applied = try await Self.asUser(words + ["--apply"], other, disk)
            #expect(applied.code == 0, "\(applied.words)")
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
            #expect(!worker.log.contains("Connection refused (after"), "raw lines of the library belong to level debug")
            #expect(!worker.log.contains(#""log","#), "\(worker.process.lastLines(10))")
            try await worker.stop()
        }

        private static func saysNoBroker(
            _ worker: ServiceProcess, _ address: String, within limit: Duration = .seconds(10)
        ) async throws {
            try await waitUntil("the absence is reported: \(worker.process.lastLines(5))", within: limit) {
                let reasons = try await worker.reasons()
                return reasons.contains(#""condition":"kafka""#) && reasons.contains(address)
                    && worker.log.contains("no Kafka broker answers")
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
            // Five seconds more if the broker stops while the worker tries its rights.
            try await Self.saysNoBroker(worker, cluster.bootstrapServers, within: .seconds(20))
            cluster.broker.resume()
            try await waitUntil("it answers again", within: patience) { worker.log.contains("Kafka answers again") }
            try await worker.waitUntilReady()
            try await worker.stop()
            await cluster.close()
        }
    }
}
