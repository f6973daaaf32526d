import Contract
import Foundation
import JSON
import Kafka
import KafkaTestKit
import Platform
import Testing

@testable import Cluster
@testable import Tools

@Suite struct `A tool that does not reach Kafka` {
    private func explain(_ faults: [(code: KafkaCode, detail: String)]) -> [String] {
        ClusterAccess.explain(
            faults, last: KafkaFault(.retrySameCall, .timedOut, operation: "describe the cluster"),
            servers: "kafka:9092")
    }

    @Test(arguments: [
        (KafkaCode.authentication, "check kafka.sasl.username, kafka.sasl.password"),
        (.tls, "check kafka.ssl.ca.location"), (.resolve, "check kafka.bootstrap.servers=kafka:9092"),
        (.transport, "check that Kafka runs at kafka.bootstrap.servers=kafka:9092"),
    ])
    func `says what to look at`(code: KafkaCode, words: String) {
        let causes = explain([(code, "in the library's words"), (.allBrokersDown, "1/1 brokers are down")])
        #expect(causes.count == 1)
        #expect(causes[0].contains(words))
        #expect(causes[0].contains("in the library's words"))
    }

    @Test func `says so when nothing at all was heard`() {
        #expect(explain([]).first?.hasPrefix("no broker of kafka.bootstrap.servers=kafka:9092 answers") == true)
    }

    private func timed(_ arguments: [String]) async throws -> (ProgramResult, Duration) {
        let start = ContinuousClock.now
        let outcome = try await perennial(arguments)
        return (outcome, start.duration(to: .now))
    }

    /// Port 1 of loopback: nothing listens there.
    @Test(arguments: [
        (["check"], 1, "fault    kafka  no connection"), (["topics", "plan"], 3, "perennial topics: no connection"),
        (["offsets", "show"], 3, "perennial offsets: no connection"),
    ])
    func `ends in time with the exit code of the contract`(command: [String], code: Int, words: String) async throws {
        let (outcome, taken) = try await timed(command + ["--kafka.bootstrap.servers", "127.0.0.1:1"])
        #expect(outcome.code == Int32(code))
        #expect(outcome.words.contains(words))
        #expect(outcome.words.contains("Connection refused"))
        // check promises to answer within ten seconds, everything else within thirty.
        #expect(taken < .seconds(command == ["check"] ? 10 : 30))
    }

    @Test(arguments: [
        (["check"], "kafka.bootstrap.servers is not set: name one or more brokers"),
        (["topics", "plan"], "kafka.bootstrap.servers is not set: name one or more brokers"),
        (["topics"], "usage: perennial topics plan|apply"),
        (["topics", "drop"], "plan or apply, not \"drop\""),
        (["check", "--kafka.sasl.password", "file:/nonexistent/secret"], "/nonexistent/secret"),
        (["check", "--config", "/nonexistent.conf"], "/nonexistent.conf"),
        (["check", "--partitions", "many"], "flag --partitions"),
        (["check", "--kafka.isolation.level", "read_uncommitted"], "kafka.isolation.level cannot be set"),
        (
            [
                "check", "--kafka.bootstrap.servers", "a:1", "--kafka.ssl.ca.location", "/nonexistent.pem",
                "--kafka.security.protocol", "ssl",
            ], "/nonexistent.pem"
        ),
    ])
    func `for a wrong configuration exits 2 before it connects`(arguments: [String], words: String) async throws {
        let (outcome, taken) = try await timed(arguments)
        #expect(outcome.code == 2)
        #expect(outcome.words.contains(words), "\(outcome)")
        #expect(taken < .seconds(20))
    }

    @Test func `ends at a signal`() async throws {
        let tool = try ChildProcess(
            productPath("perennial"), ["topics", "plan", "--kafka.bootstrap.servers", "127.0.0.1:1"],
            environment: .only([:]))
        // librdkafka names its threads: when one exists, the program waits for signals and has asked for a broker.
        try await waitUntil("it asks for a broker") { tool.threadNames.contains { $0.hasPrefix("rdk:") } }
        #expect(try await tool.terminate(within: .seconds(2)) == .exited(code: 3))
        #expect(tool.standardError.contains("interrupted"))
    }
}

extension ChildProcess {
    fileprivate var threadNames: [String] {
        let tasks = "/proc/\(processID)/task"
        return (try? FileManager.default.contentsOfDirectory(atPath: tasks))?.compactMap {
            try? String(contentsOfFile: "\(tasks)/\($0)/comm", encoding: .utf8)
        } ?? []
    }
}

@Suite struct `What topics are compared by` {
    private let planned = TopicPlan(
        prefix: TopicPrefix("appstore")!, partitions: 12, replicationFactor: 3, minimumInSyncReplicas: 2
    ).topics(in: .sandbox)

    private func existing(_ change: (inout ExistingTopic) -> Void = { _ in }) -> SeenTopics {
        var all: [String: ExistingTopic] = [:]
        for topic in planned {
            all[topic.name] = ExistingTopic(
                partitions: topic.partitions, replicas: topic.replicationFactor,
                settings: Dictionary(uniqueKeysWithValues: topic.settings.map { ($0.name, $0.value) }))
        }
        change(&all[planned[0].name]!)
        return SeenTopics(existing: all)
    }

    @Test func `a cluster that has everything gives no findings`() {
        #expect(TopicComparison.findings(planned, existing()).isEmpty)
    }

    @Test func `an empty cluster misses everything, in the order of the plan`() {
        #expect(TopicComparison.findings(planned, SeenTopics()) == planned.map { .missing($0) })
    }

    @Test func `a plan fits a terminal, and says how much it is in all`() throws {
        let report = TopicReport(planned: planned, findings: planned.map { .missing($0) })
        #expect(report.lines.allSatisfy { $0.count <= 100 }, "\(report.lines)")
        #expect(report.lines[0].hasPrefix("create  appstore.sandbox.notifications "))
        #expect(report.lines[0].hasSuffix("  12 x 3, kept for ever"))
        #expect(report.lines.contains { $0.contains("signed ") && $0.hasSuffix("12 x 3, kept 400 d, zstd") })
        #expect(
            report.lines.contains { $0.contains("accounts ") && $0.hasSuffix("12 x 3, the last record of each key") })
        let (count, partitions) = (planned.count, planned.count * 12)
        #expect(
            report.lines.last
                == "in all  \(count) of \(count) topics to create, with \(partitions) partitions and \(3 * partitions) replicas"
        )
        let json = try JSONValue.read(Array(report.json.utf8))
        #expect(json["findings"]?.array?.count == count)
        #expect(json["findings"]?.array?.first?["settings"]?["retention.ms"]?.string == "-1")
        #expect(TopicReport(planned: planned, findings: []).lines == ["ok      \(count) topics are as they should be"])
    }

    @Test(arguments: [
        ("retention.ms", "34560000000", "34560000000 (400 d)"), ("retention.ms", "-1", "-1 (for ever)"),
        ("retention.ms", "1500", "1500"), ("a.ms", "7200000", "7200000 (2 h)"), ("a.ms", "0", "0"),
        ("message.timestamp.before.max.ms", "9223372036854775807", "9223372036854775807 (without limit)"),
        ("segment.bytes", "67108864", "67108864 (64 MiB)"), ("retention.bytes", "-1", "-1 (without limit)"),
        ("max.message.bytes", "1048588", "1048588"), ("cleanup.policy", "compact", "compact"), ("a.ms", "x", "x"),
    ])
    func `values are shown in units that people read`(name: String, value: String, words: String) {
        #expect(ShownSetting.words(name, value) == words)
    }

    @Test func `what there is no right to see is not missing, and settings that cannot be read are not different`() {
        var seen = existing { $0.settings = nil }
        seen.existing[planned[1].name] = nil
        seen.hidden = [planned[1].name]
        let findings = TopicComparison.findings(planned, seen)
        #expect(findings == [.forbidden(planned[0], .describeConfigs), .forbidden(planned[1], .describe)])
        #expect(findings.allSatisfy { $0.isForPeople && $0.line.hasPrefix("hidden  \($0.topic.name)  ") })
    }

    @Test func `a setting that the broker does not know is named`() {
        let findings = TopicComparison.findings(
            planned, existing { $0.settings?["message.timestamp.after.max.ms"] = nil })
        #expect(findings.count == 1)
        #expect(
            findings.first?.line.contains("message.timestamp.after.max.ms unknown to this broker -> 60000 (1 min)")
                == true)
    }

    @Test func `more in-sync replicas than there are replicas are never asked for`() {
        let findings = TopicComparison.findings(
            planned,
            existing {
                $0.replicas = 1
                $0.settings?["min.insync.replicas"] = "1"
            })
        #expect(findings == [.wrongReplication(planned[0], has: 1)])
    }

    @Test func `partitions and replicas that differ are for people`() {
        let findings = TopicComparison.findings(
            planned, existing { ($0.partitions, $0.replicas) = (3, 2) })
        #expect(findings == [.wrongPartitions(planned[0], has: 3), .wrongReplication(planned[0], has: 2)])
        #expect(findings.allSatisfy { $0.isForPeople })
    }
}
