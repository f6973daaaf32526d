import Contract
import Kafka
import KafkaTestKit
import Log
import MemoryLog
import Platform
import Runtime
import Testing

@testable import Tools
@testable import Workers

@Suite struct `Replays` {
    private static let names = Names(prefix: TopicPrefix("appstore")!, environment: .production)

    private static func identity(_ name: String, _ worker: WorkerName = .churn) -> ReplayIdentity {
        ReplayIdentity(worker: worker, names: names, shadow: ShadowName(name)!)
    }

    private static func plan(_ change: (inout ReplayPlan) -> Void = { _ in }) -> ReplayPlan {
        let bytes = Array(
            #"{"v":1,"app":"perennial/1","rules":"r","from":"2h","begunAt":5,"silentBefore":[{"topic":"t","partition":3,"offset":9}]}"#
                .utf8)
        var plan = ReplayPlan(bytes)!
        change(&plan)
        return plan
    }

    @Test(arguments: [
        ([], "give one of --name NAME"), (["churn"], "give one of --name NAME"),
        (["churn", "--name", "a", "--list"], "give one of --name NAME"),
        (["churn", "--name", "a", "--drop", "a"], "give one of --name NAME"),
        (["--name", "a"], "replay needs a worker: entitlements, churn, consumption"),
        (["--drop", "a"], "replay needs a worker"),
        (["ingest", "--name", "a"], "there is no worker \"ingest\""), (["churn", "--name", "a.b"], "not \"a.b\""),
        (["churn", "--drop", ""], "not \"\""), (["churn", "--drop", "a", "--follow"], "--follow belongs to --name"),
        (["--list", "--rate", "100"], "--rate belongs to --name"),
        (["churn", "--name", "a", "--format", "json"], "--format belongs to --list"),
        (["--list", "--format", "xml"], "--format must be text or json"),
        (["churn", "--name", "a", "--rate", "9"], "--rate takes 10 to"),
        (["churn", "--name", "a", "--rate", "19", "--worker.threads", "2"], "--rate takes 20 to"),
        (["churn", "--name", "a", "--from", "later"], "--from takes 2h"),
        (["churn", "--name", "a", "--from", "1:2,1:3"], "--from names partition 1 twice"),
        (["churn", "--name", "a", "--admin.listen", "here"], "admin.listen"),
        (["consumption", "--name", "a", "--kafka.bootstrap.servers", "127.0.0.1:1"], "apps is not set"),
        (["churn", "--name", "a"], "kafka.bootstrap.servers is not set"),
    ])
    func `are refused with what is wrong`(arguments: [String], words: String) async throws {
        let outcome = try await perennial(["replay"] + arguments)
        #expect(outcome.code == 2 && outcome.standardError.contains(words), "\(outcome.words)")
    }

    @Test func `have a plan that says who may take part`() throws {
        let plan = Self.plan()
        #expect(ReplayPlan(plan.encoded) == plan)
        #expect(plan.silentBefore == [TopicPartition("t", 3): NextOffset(9)])
        #expect(plan.refusal(of: Self.plan { $0.begunAt = 99 }, Self.identity("a")) == nil)
        for (other, words) in [
            (Self.plan { $0.from = nil }, "was started with --from 2h, but this call is without --from"),
            (Self.plan { $0.from = "3h" }, "is with --from 3h"), (Self.plan { $0.app = "perennial/2" }, "perennial/2"),
            (Self.plan { $0.rules = "s" }, "other settings"), (Self.plan { $0.rules = nil }, "other settings"),
        ] {
            let refusal = plan.refusal(of: other, Self.identity("a"))
            #expect(refusal?.contains(words) == true && refusal?.contains("perennial replay churn --drop a") == true)
        }
        for bytes in ["", "{}", #"{"v":2,"app":"a","begunAt":1,"silentBefore":[]}"#] {
            #expect(ReplayPlan(Array(bytes.utf8)) == nil)
        }
    }

    @Test func `of which two begin at once have the plan that was written first`() throws {
        let log = MemoryLog(clock: .manual(startingAt: 0))
        let identity = Self.identity("race")
        let deadline = Deadline(after: .seconds(5))
        try log.create([NewTopic(identity.planTopic, partitions: 1)], by: deadline)
        let topic = PlanTopic(identity, log)
        #expect(try topic.read(by: deadline) == nil)
        let (first, second) = (Self.plan(), Self.plan { $0.from = "7d" })
        #expect(try topic.write(first, by: deadline) == first)
        #expect(try topic.write(second, by: deadline) == first)
        #expect(try topic.read(by: deadline) == first)
    }

    @Test func `are found by any of their topics, and nothing else is taken for one`() {
        let wanted = [Self.identity("one"), Self.identity("two", .entitlements)]
        let ofFirst = wanted[0].topics.map(\.shadow) + [wanted[0].planTopic]
        let topics =
            ofFirst + [
                wanted[1].changelog, "appstore.production.churn-cells", "appstore.production.notifications.replay-x",
                "other.production.churn-cells.replay-x", "appstore.sandbox.churn-cells.replay-x",
                "appstore.production.churn-cells.replay-", "appstore.production.churn-cells.replay-a.b",
            ]
        #expect(ReplayIdentity.all(in: topics, of: [Self.names]) == wanted)
        #expect(
            ofFirst.sorted() == [
                "appstore.production.churn-cells.replay-one", "appstore.production.churn-events.replay-one",
                "appstore.production.churn.changelog.replay-one", "appstore.production.churn.dead-letters.replay-one",
                "appstore.production.churn.plan.replay-one",
            ])
        #expect(wanted[0].group == "appstore.production.churn.replay-one")
    }

    @Test func `are at their end when no record is left, and count from where they began`() {
        func at(_ values: Int64...) -> [TopicPartition: NextOffset] {
            Dictionary(
                uniqueKeysWithValues: values.enumerated().map { (TopicPartition("t", Int32($0)), NextOffset($1)) })
        }
        var progress = ReplayProgress(beginnings: at(0, 10, 0), ends: at(100, 30, 0), positions: at(40))
        #expect(progress.total == 80 && progress.done == 0 && !progress.isAtEnd)
        #expect(progress.partitions == 3 && progress.partitionsAtEnd == 1)
        // Offsets beyond the end that was seen at the start, and an offset of another topic.
        progress.update(at(200, 20).merging([TopicPartition("u", 0): NextOffset(7)]) { $1 })
        #expect(progress.done == 70 && progress.fraction == 0.875)
        #expect(progress.left == [TopicPartition("t", 1): 20..<30])
        // The remaining offset is the end of a transaction.
        progress.noteRead(TopicPartition("t", 1))
        #expect(progress.isAtEnd && progress.fraction == 1)
        #expect(ReplayProgress(beginnings: [:], ends: [:], positions: [:]).isAtEnd)
    }

    @Test func `stand still when all that a process has is at its end or does not go on`() {
        func at(_ values: Int64...) -> [TopicPartition: NextOffset] {
            Dictionary(
                uniqueKeysWithValues: values.enumerated().map { (TopicPartition("t", Int32($0)), NextOffset($1)) })
        }
        var progress = ReplayProgress(beginnings: at(0, 0, 0), ends: at(10, 10, 10), positions: at(10, 4, 4))
        #expect(progress.standstill.isEmpty, "nothing is given to it yet")
        progress.holding.partitions = [0, 1]
        progress.holding.stuck = [0: "behind its end", 1: "why"]
        #expect(progress.standstill == [1: "why"])
        // Another process owns the third partition; then this one gets it, and has work.
        progress.holding.partitions = [0, 1, 2]
        #expect(progress.standstill.isEmpty)
        progress.update(at(10, 4, 10))
        #expect(progress.standstill == [1: "why"])
        progress.update(at(10, 10, 10))
        #expect(progress.standstill.isEmpty && progress.isAtEnd)
    }

    @Test func `have topics like the live ones, and what is not compacted stays`() {
        func settings(_ pairs: [(String, String, Bool)]) -> [String] {
            ReplayTopics.settings(of: pairs.map { Admin.TopicSetting(name: $0.0, value: $0.1, isOwn: $0.2) })
                .map { "\($0.name)=\($0.value)" }
        }
        #expect(
            settings([
                ("cleanup.policy", "delete", true), ("retention.ms", "5", true), ("retention.bytes", "7", false),
                ("min.insync.replicas", "2", true), ("segment.ms", "9", false),
                ("leader.replication.throttled.replicas", "0:1", true),
            ]) == ["cleanup.policy=delete", "min.insync.replicas=2", "retention.ms=-1", "retention.bytes=-1"])
        #expect(
            settings([("cleanup.policy", "compact", true), ("delete.retention.ms", "5", true)]) == [
                "cleanup.policy=compact", "delete.retention.ms=5",
            ])
    }

    @Test func `need everything from the beginning, and it is told what is gone`() throws {
        #expect(
            KeptHistory.loss(bySettings: ["cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"])
                == nil)
        for (name, value) in [("cleanup.policy", "compact"), ("retention.ms", "86400000"), ("retention.bytes", "9")] {
            #expect(KeptHistory.loss(bySettings: [name: value])?.contains("\(name)=\(value)") == true)
        }
        let (a, b) = (TopicPartition("n", 0), TopicPartition("n", 1))
        let beginnings = [a: NextOffset(7), b: NextOffset(0)]
        var lost = KeptHistory.lostBeginnings(beginnings)
        #expect(lost == [LostBeginning(partition: a, offset: NextOffset(7))])
        lost[0].timestamp = 1_767_225_600_000
        let words = KeptHistory.words(lost).joined(separator: "\n")
        #expect(words.contains("n[0] begins at offset 7, of 2026-01-01 00:00 UTC"))
        #expect(words.contains("knows only what arrived since 2026-01-01 00:00 UTC"))
        // Records that a replay has already read may be deleted.
        #expect(KeptHistory.lostBeginnings(beginnings, positions: [a: NextOffset(7)]).isEmpty)
        #expect(KeptHistory.lostBeginnings(beginnings, positions: [a: NextOffset(6)]).count == 1)
    }

    @Test func `count what is left record by record, ends of transactions not`() throws {
        let log = MemoryLog(clock: .manual(startingAt: 0))
        let deadline = Deadline(after: .seconds(5))
        try log.create([NewTopic("t", partitions: 2)], by: deadline)
        let writer = try log.openWriter(WriterOptions(name: "w", topics: ["t"]))
        let batch = OutputBatch()
        for number in 0..<5 {
            batch.append(topic: 0, partition: 0, timestamp: Int64(number + 3), key: nil, value: [1])
        }
        _ = try writer.append(batch, by: deadline)
        let survey = try InputSurvey(log, topics: ["t"], group: "g", by: deadline)
        defer { survey.close() }
        let (a, b) = (TopicPartition("t", 0), TopicPartition("t", 1))
        let counts = try survey.count([a: 2..<5, b: 0..<0], until: Deadline(after: .seconds(2)))
        #expect(counts == [a: 3, b: 0])
        #expect(try survey.firstTimestamps([a: NextOffset(2)], until: Deadline(after: .seconds(2))) == [a: 5])
    }
}
