import Contract
import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

extension RealBroker {
    /// The built program against a Kafka of its own, checked with Kafka's own tools.
    @Suite(
        .serialized, .enabled(if: BrokerSource.current.canStartBrokers, Comment(rawValue: BrokerSource.privateSkipLine))
    )
    struct `The program on Kafka` {
        private static let credentials = KafkaOptions.Credentials(user: "perennial", password: "right")
        private static let starting = Task {
            var options = KafkaOptions()
            options.credentials = credentials
            return try await KafkaCluster.start(BrokerSource.current.requireDistribution(), options)
        }

        /// Runs `perennial` with the settings of one broker only: no environment variables, no settings file.
        private func perennial(
            _ arguments: [String], servers: String? = nil, replicas: Int = 1
        ) async throws -> ProgramResult {
            let cluster = try await Self.starting.value
            let settings = [
                "--kafka.bootstrap.servers", servers ?? cluster.bootstrapServers, "--topics.replication.factor",
                "\(replicas)", "--topics.min.insync.replicas", "1",
            ]
            return try await run(
                productPath("perennial"), arguments + settings, environment: .only([:]), workingDirectory: "/")
        }

        @Test func `creates every topic of the contract with its settings, and a second run changes nothing`()
            async throws
        {
            let cluster = try await Self.starting.value
            let settings = ["--topic.prefix", "whole"]
            let before = try await perennial(["topics", "plan"] + settings)
            #expect(before.code == 1)
            let lines = before.standardOutput.split(separator: "\n")
            #expect(lines.dropLast().count == 2 * contractTopics.count)
            #expect(lines.dropLast().allSatisfy { $0.hasPrefix("create  whole.") })
            #expect(lines.last?.hasPrefix("in all  ") == true)
            #expect(try await !cluster.tool("kafka-topics.sh", ["--list"]).contains("whole."), "plan changes nothing")

            let applied = try await perennial(["topics", "apply"] + settings)
            #expect(applied.code == 0, "\(applied.standardError)")
            let described = try await cluster.tool("kafka-topics.sh", ["--describe"])
            let configured = try await cluster.tool(
                "kafka-configs.sh", ["--describe", "--entity-type", "topics", "--all"])
            let configurations = topicConfigurations(configured)
            for environment in ["production", "sandbox"] {
                for topic in contractTopics {
                    let name = "whole.\(environment).\(topic.name)"
                    let line = described.split(separator: "\n").first { $0.hasPrefix("Topic: \(name)\t") }
                    #expect(line?.contains("PartitionCount: 12\t") == true, "\(name): \(line ?? "missing")")
                    let has = try #require(configurations[name], "\(name) has no configuration")
                    for (key, value) in topic.settings { #expect(has[key] == value, "\(name) \(key)") }
                    #expect(has["min.insync.replicas"] == "1")
                }
            }
            let again = try await perennial(["topics", "apply"] + settings)
            #expect(again.code == 0)
            #expect(again.standardOutput == "ok      \(2 * contractTopics.count) topics are as they should be\n")
            // Kafka's tool lists topics in any order, and Kafka itself creates a topic when the first client uses a group.
            let after = topicConfigurations(
                try await cluster.tool("kafka-configs.sh", ["--describe", "--entity-type", "topics", "--all"]))
            #expect(after.count { $0.key.hasPrefix("whole.") } == 2 * contractTopics.count)
            for (name, has) in after where name.hasPrefix("whole.") { #expect(has == configurations[name], "\(name)") }
            #expect(try await perennial(["topics", "plan"] + settings).code == 0)
        }

        @Test func `reports a wrong number of partitions and leaves it alone`() async throws {
            let cluster = try await Self.starting.value
            let name = "count.sandbox.notifications"
            try await cluster.tool("kafka-topics.sh", ["--create", "--topic", name, "--partitions", "7"])
            let settings = ["--topic.prefix", "count", "--environment", "sandbox"]
            for verb in ["apply", "plan", "apply"] {
                let outcome = try await perennial(["topics", verb] + settings)
                #expect(outcome.code == 1)
                #expect(
                    outcome.standardOutput.contains("wrong   \(name)  has 7 partitions"), "\(outcome.standardOutput)")
            }
            let described = try await cluster.tool("kafka-topics.sh", ["--describe", "--topic", name])
            #expect(described.contains("PartitionCount: 7\t"))
            // The command still set the settings of this topic and created the other topics.
            let settled = try await cluster.tool(
                "kafka-configs.sh", ["--describe", "--entity-type", "topics", "--entity-name", name])
            #expect(settled.contains("message.timestamp.after.max.ms=60000"))
            #expect(try await cluster.tool("kafka-topics.sh", ["--list"]).contains("count.sandbox.entitlements"))
            #expect(try await !cluster.tool("kafka-topics.sh", ["--list"]).contains("count.production."))
        }

        @Test func `corrects a setting and leaves the operator's own alone`() async throws {
            let cluster = try await Self.starting.value
            let settings = ["--topic.prefix", "drift", "--environment", "sandbox"]
            #expect(try await perennial(["topics", "apply"] + settings).code == 0)
            let name = "drift.sandbox.signed"
            func configure(_ change: String) async throws {
                try await cluster.tool(
                    "kafka-configs.sh",
                    ["--alter", "--entity-type", "topics", "--entity-name", name, "--add-config", change])
            }
            try await configure("retention.ms=60000")
            try await configure("flush.messages=12345")
            // The controller has the changes; a broker that is busy learns of them a moment later.
            var plan = try await perennial(["topics", "plan"] + settings)
            try await waitUntil("the changes are planned", within: patience) {
                plan = try await perennial(["topics", "plan"] + settings)
                return plan.code == 1
            }
            #expect(
                plan.standardOutput.hasPrefix(
                    "change  \(name)  retention.ms 60000 (1 min) -> 34560000000 (400 d)\nin all  "), "\(plan.words)")
            let json = try await perennial(["topics", "plan", "--format", "json"] + settings)
            #expect(json.code == 1 && json.standardOutput.contains(#""action":"change""#), "\(json.words)")
            #expect(try await perennial(["topics", "apply"] + settings).code == 0)
            let after = topicConfigurations(
                try await cluster.tool(
                    "kafka-configs.sh", ["--describe", "--entity-type", "topics", "--entity-name", name, "--all"]))
            #expect(after[name]?["retention.ms"] == "34560000000")
            #expect(after[name]?["flush.messages"] == "12345")
            #expect(after[name]?["compression.type"] == "zstd")
        }

        @Test func `says how many brokers so many replicas need`() async throws {
            let cluster = try await Self.starting.value
            let outcome = try await perennial(["topics", "apply", "--topic.prefix", "wide"], replicas: 3)
            #expect(outcome.code == 1)
            #expect(
                outcome.standardError.contains("topics.replication.factor=3 needs as many brokers, but there are 1"))
            #expect(try await !cluster.tool("kafka-topics.sh", ["--list"]).contains("wide."))
        }

        @Test func `checks a whole installation`() async throws {
            let settings = ["--topic.prefix", "checked"]
            let before = try await perennial(["check"] + settings)
            #expect(before.code == 1)
            #expect(before.standardOutput.contains("are missing: run perennial topics apply"))
            #expect(try await perennial(["topics", "apply"] + settings).code == 0)
            let after = try await perennial(["check"] + settings)
            #expect(after.code == 0, "\(after.standardOutput)")
            #expect(after.standardOutput.hasPrefix("ok       settings\n"))
            #expect(after.standardOutput.contains("\nok       kafka  brokers: 1, cluster "))
        }

        @Test func `signs in with the right password, and names a wrong one within ten seconds`() async throws {
            let cluster = try await Self.starting.value
            let servers = try #require(cluster.saslServers)
            let scratch = try ScratchDirectory("password")
            func check(_ password: String, _ mechanism: String = "PLAIN") async throws -> (ProgramResult, Duration) {
                let path = try scratch.write(password + "\n", to: "password")
                let start = ContinuousClock.now
                let outcome = try await perennial(
                    [
                        "check", "--topic.prefix", "signed-in", "--kafka.security.protocol", "sasl_plaintext",
                        "--kafka.sasl.mechanisms", mechanism, "--kafka.sasl.username", Self.credentials.user,
                        "--kafka.sasl.password", "file:\(path)",
                    ], servers: servers)
                return (outcome, start.duration(to: .now))
            }
            let (right, _) = try await check(Self.credentials.password)
            #expect(right.standardOutput.contains("ok       kafka  brokers: 1"), "\(right.standardOutput)")
            let (wrong, taken) = try await check("wrong-secret")
            #expect(wrong.code == 1)
            #expect(wrong.standardOutput.contains("Kafka refuses the credentials: check kafka.sasl.username"))
            #expect(!(wrong.standardOutput + wrong.standardError).contains("wrong-secret"))
            #expect(taken < .seconds(10))

            // Older libraries cannot sign in to Kafka 4 with SCRAM, as perennial version warns.
            try await cluster.tool(
                "kafka-configs.sh",
                [
                    "--alter", "--entity-type", "users", "--entity-name", Self.credentials.user, "--add-config",
                    "SCRAM-SHA-512=[password=with-scram]",
                ])
            let version = Librdkafka.version.split(whereSeparator: { ".-".contains($0) }).prefix(3).map { Int($0) ?? 0 }
            let isOlder = version.lexicographicallyPrecedes([2, 6, 1])
            let isKafka4 = try await cluster.tool("kafka-topics.sh", ["--version"]).contains(#/(?m)^[4-9]\./#)
            let (scram, _) = try await check("with-scram", "SCRAM-SHA-512")
            #expect(
                (scram.code == 0 || scram.standardOutput.contains("ok       kafka  brokers: 1"))
                    == !(isOlder && isKafka4))
        }
    }
}

/// What docs/reference/topics.md says of each topic, written down independently of the code.
private let contractTopics: [(name: String, settings: [(String, String)])] = {
    let day: Int64 = 86_400_000
    func kept(_ days: Int64) -> (String, String) { ("retention.ms", String(days * day)) }
    let delete = ("cleanup.policy", "delete")
    let compact = ("cleanup.policy", "compact")
    let appendTime = ("message.timestamp.type", "LogAppendTime")
    var topics: [(name: String, settings: [(String, String)])] = [
        (
            "notifications",
            [
                delete, ("retention.ms", "-1"), ("message.timestamp.type", "CreateTime"),
                ("message.timestamp.after.max.ms", "60000"),
            ]
        ),
        ("signed", [delete, kept(400), ("compression.type", "zstd")]),
        ("rejected", [delete, kept(90), appendTime]),
        ("entitlements", [compact]), ("entitlement-events", [delete, kept(400)]), ("accounts", [compact]),
        ("churn-cells", [compact]), ("churn-events", [delete, kept(400)]),
        ("usage", [delete, kept(400)]), ("consumption", [delete, kept(400)]),
        ("consumption-attempts", [delete, kept(400)]),
    ]
    for worker in ["entitlements", "churn", "consumption"] {
        topics.append(("\(worker).changelog", [compact]))
        topics.append(("\(worker).dead-letters", [delete, kept(90), appendTime]))
    }
    return topics
}()

/// Name → setting → value, from the output of `kafka-configs.sh --describe --all`.
private func topicConfigurations(_ text: String) -> [String: [String: String]] {
    var all: [String: [String: String]] = [:]
    var name = ""
    for line in text.split(separator: "\n") {
        if line.hasPrefix("All configs for topic ") || line.hasPrefix("Dynamic configs for topic ") {
            name = String(line.split(separator: " ")[4])
        } else if let pair = line.split(separator: " ").first, let equals = pair.firstIndex(of: "=") {
            all[name, default: [:]][String(pair[..<equals])] = String(pair[pair.index(after: equals)...])
        }
    }
    return all
}
