// `perennial replay WORKER --name NAME`: runs a worker again from the beginning, beside the live one.

import Cluster
import CommandLine
import Configuration
import Consumption
import Contract
import Kafka
import Log
import NotificationWorker
import Platform
import Runtime
import Settings
import Telemetry
import Workers

struct ReplayRun {
    /// Limit for everything before the first record.
    private static let preparationLimit: Duration = .seconds(60)

    let query: ReplayQuery.Run
    let identity: ReplayIdentity
    let configuration: Configuration
    let output: Output
    /// Where it ends, instead of the ends of the inputs.
    var bounds: [TopicPartition: NextOffset]?

    private var log: any RecordLog { configuration.clientProperties.makeLog() }
    private func tell(_ words: String) { output.message("perennial replay: \(words)") }

    func run() throws(ToolFault) -> ExitCode {
        let make = try processors()
        let (plan, progress) = try prepare(make(Metrics(), nil).definition)
        tell(
            "\(identity): \(progress.total) records of \(progress.partitions) partitions to read"
                + (plan.from.map { ", output from \($0)" } ?? ""))
        let watch = ReplayWatch(identity, configuration, progress, follows: query.follows, output: output)
        let pace = query.rate.map { Pace(recordsPerSecond: $0, threads: configuration.worker.threads) }
        let shadow = Shadow(identity.shadow, silentBefore: plan.silentBefore)
        let start = ContinuousClock.now
        let code = WorkerRun(
            worker: identity.worker, configuration: configuration, output: output,
            replay: WorkerRun.Replay(identity: identity, pace: pace, bounds: bounds ?? [:])
        ).run(beside: { [watch.part($0)] }) { make($0, shadow) }
        summarize(watch, code, start.duration(to: .now))
        return watch.hasGivenUp ? .gaveUp : code
    }

    /// Only the worker, without the sender of answers to Apple.
    private func processors() throws(ToolFault) -> ProcessorMaker {
        var policy: RefundPolicy?
        if identity.worker == .consumption {
            guard !configuration.apps.isEmpty else {
                throw ToolFault(
                    .wrongUsage,
                    "apps is not set, so all requests would be refused: name the JSON file that the live worker has")
            }
            do throws(ConfigurationFaults) {
                policy = try configuration.consumption.policyPath.map(readRefundPolicy)
            } catch {
                throw ToolFault(.wrongUsage, lines: error.faults.map(\.description))
            }
        }
        return try identity.worker.processors(configuration, policy: policy) { tell($1) }
    }

    // MARK: Before the first record

    private func prepare(_ definition: WorkerDefinition) throws(ToolFault) -> (ReplayPlan, ReplayProgress) {
        let deadline = Deadline(after: Self.preparationLimit)
        let access = try ClusterAccess.connect(configuration, as: "replay")
        defer { access.close() }
        try judge(access.cluster)
        let wanted = ReplayPlan(definition, from: query.from?.description, at: WallClock.milliseconds())
        let topic = PlanTopic(identity, log)
        let hasTopic = access.cluster.topics.contains { $0.name == identity.planTopic }
        var plan = hasTopic ? try topic.read(by: deadline) : nil
        try refuse(wanted, plan)
        let inputs = definition.inputTopics
        let survey = try InputSurvey(log, topics: inputs, group: identity.group, by: deadline)
        defer { survey.close() }
        let partitions = inputs.flatMap { topic in
            (0..<definition.partitions).map { TopicPartition(topic, $0) }
        }
        let positions = try ToolFault.persisting(until: deadline) { () throws(KafkaFault) in
            try access.admin.currentOffsets(ofGroup: identity.group, by: deadline)
        }
        let (beginnings, ends) = (try survey.beginnings(partitions), try survey.ends(partitions))
        try judge(beginnings, positions, survey, events: definition.events.topic)
        if plan == nil {
            var new = wanted
            new.silentBefore = try silence(definition, beginnings, ends, survey)
            try ReplayTopics(identity: identity, admin: access.admin).create(access.cluster, by: deadline)
            plan = try topic.write(new, by: deadline)
            try refuse(wanted, plan)
        } else {
            try ReplayTopics(identity: identity, admin: access.admin).create(access.cluster, by: deadline)
        }
        guard let plan else { preconditionFailure("the plan was read or written") }
        return (plan, ReplayProgress(beginnings: beginnings, ends: bounds ?? ends, positions: positions))
    }

    private func refuse(_ wanted: ReplayPlan, _ plan: ReplayPlan?) throws(ToolFault) {
        if let words = plan?.refusal(of: wanted, identity) { throw ToolFault(.wrongUsage, words) }
    }

    /// All live topics must exist; they and the topics of an earlier run must have the partition count that keys are spread over.
    private func judge(_ cluster: Admin.Cluster) throws(ToolFault) {
        let counts = Dictionary(
            cluster.topics.map { ($0.name, $0.partitions.count) }, uniquingKeysWith: { first, _ in first })
        let live = identity.worker.inputs.map(identity.names.topic) + identity.topics.map(\.live)
        for name in live where counts[name] == nil {
            throw ToolFault(
                .wrongUsage,
                "the topic \(name) does not exist, or this user has no right to see it: run perennial topics apply")
        }
        let wanted = configuration.topicPlan.partitions
        for name in live + identity.topics.map(\.shadow) {
            guard let count = counts[name], count != wanted else { continue }
            throw ToolFault(
                .wrongUsage, LogFault.partitions(of: name, are: Int32(count), not: Int32(wanted)).words)
        }
    }

    /// Tables always lack old records, because of their retention. The state is made from the events.
    private func judge(
        _ beginnings: [TopicPartition: NextOffset], _ positions: [TopicPartition: NextOffset], _ survey: InputSurvey,
        events: String
    ) throws(ToolFault) {
        var lost = KeptHistory.lostBeginnings(beginnings.filter { $0.key.topic == events }, positions: positions)
        for table in identity.worker.inputs.dropFirst().map(identity.names.topic) {
            let gone = KeptHistory.lostBeginnings(beginnings.filter { $0.key.topic == table }, positions: positions)
            if gone.isEmpty { continue }
            tell("Kafka has deleted the oldest records of \(table) in \(gone.count) partitions: the replay lacks them")
        }
        if lost.isEmpty { return }
        let starts = Dictionary(uniqueKeysWithValues: lost.map { ($0.partition, $0.offset) })
        let times = try survey.firstTimestamps(starts, until: Deadline(after: .seconds(10)))
        for index in lost.indices { lost[index].timestamp = times[lost[index].partition] }
        let words = KeptHistory.words(lost)
        guard query.isIncomplete else {
            throw ToolFault(.wrongUsage, lines: words + ["--incomplete runs the replay anyway"])
        }
        for line in words { tell("warning: \(line)") }
    }

    /// Where output begins, in offsets of every input.
    private func silence(
        _ definition: WorkerDefinition, _ beginnings: [TopicPartition: NextOffset],
        _ ends: [TopicPartition: NextOffset], _ survey: InputSurvey
    ) throws(ToolFault) -> [TopicPartition: NextOffset] {
        switch query.from {
        case nil: return [:]
        case .time(let time, _)?: return try survey.offsets(at: time, beginnings.keys.sorted())
        case .offsets(let offsets)?:
            guard definition.tables.isEmpty else {
                throw ToolFault(
                    .wrongUsage,
                    "\(definition.name) reads \(1 + definition.tables.count) topics, each with its own offsets: give --from as a "
                        + "time")
            }
            var silence: [TopicPartition: NextOffset] = [:]
            for (number, offset) in offsets.sorted(by: { $0.key < $1.key }) {
                let partition = TopicPartition(definition.events.topic, number)
                guard let beginning = beginnings[partition], let end = ends[partition] else {
                    throw ToolFault(.wrongUsage, "--from: there is no partition \(number)")
                }
                guard (beginning.value...end.value).contains(offset) else {
                    throw ToolFault(
                        .wrongUsage,
                        "--from: \(partition) has offsets from \(beginning) to \(end), not \(offset)")
                }
                silence[partition] = NextOffset(offset)
            }
            return silence
        }
    }

    // MARK: After the last record

    private func summarize(_ watch: ReplayWatch, _ code: ExitCode, _ time: Duration) {
        if let admin = try? Admin(clientID: "perennial-replay", properties: configuration.clientProperties) {
            watch.look(admin)
            admin.close(by: Deadline(after: .seconds(2)))
        }
        let seen = watch.seen
        let seconds = time.fractionalSeconds
        let rate = seconds > 0 ? Int(Double(seen.done) / seconds) : 0
        let letters = letters().map { ", dead letters: \($0)" } ?? ""
        let end = seen.isAtEnd ? "is at its end" : "has not reached its end; the same command continues it"
        tell(
            "\(identity) \(end): \(seen.done) of \(seen.total) records, \(seen.partitionsAtEnd) of \(seen.partitions) partitions "
                + "at their end, \(Int(seconds.rounded())) s, \(rate)/s\(letters)")
    }

    /// The number of dead letters that the replay has written so far; nil: it is not known.
    private func letters() -> String? {
        let deadline = Deadline(after: .seconds(5))
        guard let survey = try? InputSurvey(log, topics: [identity.deadLetters], group: identity.group, by: deadline)
        else { return nil }
        defer { survey.close() }
        let partitions = (0..<Int32(configuration.topicPlan.partitions)).map {
            TopicPartition(identity.deadLetters, $0)
        }
        guard let beginnings = try? survey.beginnings(partitions), let ends = try? survey.ends(partitions) else {
            return nil
        }
        let spans = ends.reduce(into: [TopicPartition: Range<Int64>]()) { spans, entry in
            let beginning = beginnings[entry.key]?.value ?? 0
            spans[entry.key] = beginning..<max(beginning, entry.value.value)
        }
        // Many letters need no exact count: the number of offsets is enough.
        guard spans.values.allSatisfy({ $0.count <= Int(InputSurvey.countLimit) }) else {
            return "<=\(spans.values.reduce(0) { $0 + $1.count })"
        }
        guard let counts = try? survey.count(spans, until: deadline) else { return nil }
        return "\(counts.values.reduce(0, +))"
    }
}
