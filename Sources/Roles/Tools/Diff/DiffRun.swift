// One call of `diff`, on any log.

import Churn
import Cluster
import CommandLine
import Comparison
import Contract
import Log
import Platform
import Workers

struct DiffRun {
    /// Bytes that are fetched ahead. Together with the buffers of the scratch files and the keys of one file, the process stays far
    /// below 256 MiB.
    private static let readAheadBytes = 48 << 20

    private static let answerLimit: Duration = .seconds(20)

    let query: DiffQuery
    let identity: ReplayIdentity
    /// The setting `partitions`.
    let partitions: Int32
    let log: any RecordLog
    let output: Output
    /// The partition counts of the existing topics.
    let partitionCounts: [String: Int32]
    /// Read before this runs.
    let positions: InputPositions
    let plan: ReplayPlan
    /// The day of a time, for cells.
    var dayOf: @Sendable (Int64) -> CivilDay = { dayInUTC($0) }

    private struct Span {
        let beginning: NextOffset
        let end: NextOffset
        var count: Int64 { max(0, end.value - beginning.value) }
    }

    private var names: Names { identity.names }
    private var replay: String { "perennial replay \(identity.worker.rawValue) --name \(identity.shadow)" }

    func run() throws(ToolFault) -> ExitCode {
        if let from = plan.from {
            throw ToolFault(
                .wrongUsage,
                "the replay \(query.name) was made with --from \(from), so its topics lack earlier values. Compare a replay that "
                    + "was made without --from")
        }
        let topics = DiffedTopic.all(of: query.worker)
        try checkTopics(topics)
        let reader = try open(topics)
        defer { reader.close(by: Deadline(after: .seconds(5))) }
        try checkLag()
        // The ends are read after the positions and before any record: values before these ends depend on input before the positions.
        var spans: [TopicPartition: Span] = [:]
        for topic in topics.map({ names.topic($0.id) }).flatMap({ [query.name.shadow(of: $0), $0] }) {
            for partition in partitionsOf(topic) {
                let range = try PartitionScan(reader: reader, partition: partition).range()
                spans[partition] = Span(beginning: range.beginning, end: range.end)
            }
        }
        let report = DiffReport(query, names, output)
        let reading = Reading(reader, DiffProgress(records: spans.values.reduce(0) { $0 + $1.count }), report)
        var total = DiffCounts()
        for topic in topics {
            let counts = try compare(topic, spans, reading)
            report.tell(counts, of: topic)
            total = total + counts
        }
        report.end(total, isOnlyTopic: topics.count == 1, changes: reading.cells.changes(dayOf: dayOf))
        return total.differ ? .no : .done
    }

    private func partitionsOf(_ topic: String) -> [TopicPartition] {
        (0..<partitions).map { TopicPartition(topic, $0) }
    }

    // MARK: Whether both can be compared

    static func missing(_ identity: ReplayIdentity, _ topics: [String]) -> ToolFault {
        let others = ReplayIdentity.all(in: topics, of: [identity.names]).filter { $0.worker == identity.worker }
            .map(\.shadow.description)
        let worker = identity.worker.rawValue
        return ToolFault(
            .wrongUsage,
            "there is no replay \(identity.shadow) of \(worker) in \(identity.names.environment.rawValue)"
                + (others.isEmpty ? "" : "; there are: \(others.joined(separator: ", "))")
                + ". Run one with perennial replay \(worker) --name \(identity.shadow)")
    }

    private func checkTopics(_ topics: [DiffedTopic]) throws(ToolFault) {
        let shadows = topics.map { query.name.shadow(of: names.topic($0.id)) }
        for topic in [names.topic(.notifications)] + topics.map({ names.topic($0.id) }) {
            guard let count = partitionCounts[topic] else { throw ToolFault.missing(topic: topic) }
            guard count == partitions else {
                throw ToolFault(.wrongUsage, LogFault.partitions(of: topic, are: count, not: partitions).words)
            }
        }
        for shadow in shadows {
            guard let count = partitionCounts[shadow] else {
                throw ToolFault(.wrongUsage, "the topic \(shadow) does not exist: run \(replay) again to create it")
            }
            guard count == partitions else {
                throw ToolFault(
                    .wrongUsage,
                    "the topic \(shadow) has \(count) partitions and the live topic has \(partitions), so their keys are in "
                        + "different partitions. Remove the replay with perennial replay \(query.worker.rawValue) --drop "
                        + "\(query.name), and run \(replay)")
            }
        }
    }

    private func open(_ topics: [DiffedTopic]) throws(ToolFault) -> any LogReader {
        let live = topics.map { names.topic($0.id) }
        // The group is neither joined nor committed to, but librdkafka looks up its coordinator.
        var options = ReaderOptions(
            name: "perennial-diff", group: identity.group, topics: live + live.map(query.name.shadow(of:)))
        options.readsAhead = true
        options.readAheadBytes = Self.readAheadBytes
        do throws(LogFault) { return try log.openReader(options) } catch { throw ToolFault(.wrongUsage, error.words) }
    }

    /// A replay that has not reached its end lacks values for many keys, so differences in them would be missed.
    private func checkLag() throws(ToolFault) {
        let topics = identity.worker.inputs.map(names.topic)
        let patience = Deadline(after: Self.answerLimit)
        let survey = try InputSurvey(log, topics: topics, group: identity.group, by: patience)
        defer { survey.close() }
        for topic in topics {
            let all = partitionsOf(topic)
            // The replay need not have read records that arrived after it was started.
            let goals = try survey.offsets(at: plan.begunAt, all)
            var lag = InputLag(
                beginnings: try survey.beginnings(all), ends: try survey.ends(all), goals: goals,
                positions: positions.shadow)
            // The last offset may be the marker of a transaction; nobody commits a position after it.
            if lag.missing > 0, lag.isMissing.values.allSatisfy({ $0.count <= Int(InputSurvey.countLimit) }),
                let counts = try survey.count(lag.isMissing, until: patience)
            {
                lag.missing = Int64(counts.values.reduce(0, +))
            }
            if lag.missing > 0, !query.takesUnfinished {
                throw ToolFault(.wrongUsage, lines: refusal(of: lag, topic))
            }
            if lag.waiting > 0 {
                output.message(
                    "perennial diff: the replay has not read \(lag.waiting) records of \(topic): values that the live worker made "
                        + "from them count as newer")
            }
        }
    }

    private func refusal(of lag: InputLag, _ topic: String) -> [String] {
        let forgotten =
            positions.shadow.isEmpty
            ? [
                "its group has no positions: it has committed nothing, or was stopped for so long that Kafka has deleted them"
            ]
            : []
        return [
            "the replay \(query.name) is not at its end: it has not read \(lag.missing) of \(lag.records) records of \(topic)"
        ] + forgotten + ["\(replay) continues where it stopped; --unfinished compares what it has written so far"]
    }

    // MARK: Comparing

    /// The state that is kept from topic to topic. One thread.
    private final class Reading {
        let reader: any LogReader
        let report: DiffReport
        var work: DiffProgress
        var progress = ProgressBar.standardError()
        var cells = CellSides()

        init(_ reader: any LogReader, _ work: DiffProgress, _ report: DiffReport) {
            self.reader = reader
            self.work = work
            self.report = report
        }

        /// - Parameter part: the fraction of these records that this step has processed.
        func update(_ part: Double, of records: Int64, _ words: () -> String) {
            progress.update(work.fraction(part, of: records), words)
        }
    }

    private func compare(
        _ topic: DiffedTopic, _ spans: [TopicPartition: Span], _ reading: Reading
    ) throws(ToolFault) -> DiffCounts {
        var comparison = TopicComparer(topic, query.worker, samples: query.samples - reading.report.samples)
        for number in 0..<partitions {
            let live = TopicPartition(names.topic(topic.id), number)
            let shadow = TopicPartition(query.name.shadow(of: live.topic), number)
            guard let here = spans[shadow], let there = spans[live], here.count + there.count > 0 else { continue }
            let join = try KeyJoin(
                in: query.scratch, records: here.count + there.count, keepsAll: topic.id == .consumption)
            let intake = RecordIntake(topic, join, positions)
            // One partition at a time: its records are dropped before the next one.
            for (side, partition, span) in [(Side.here, shadow, here), (.there, live, there)] where span.count > 0 {
                let scan = PartitionScan(reader: reading.reader, partition: partition)
                try scan.run(
                    from: span.beginning, until: span.end,
                    progress: { fraction in
                        reading.update(fraction, of: span.count) { "reading \(partition)" }
                    }
                ) { record throws(ToolFault) in try intake.add(record, side) }
                reading.work.done(span.count)
            }
            // In a topic with time-based retention, records before this one were deleted.
            let oldest = there.beginning.value > 0 ? intake.oldestThere ?? .max : nil
            let records = here.count + there.count
            try join.eachKey { key, part throws(ToolFault) in
                reading.update(part, of: records) { "comparing \(live)" }
                if let sample = comparison.add(key, partition: number, oldestThere: oldest, &reading.cells) {
                    reading.progress.end()
                    reading.report.tell(sample)
                }
            }
            reading.work.done(records)
        }
        reading.progress.end()
        return comparison.counts
    }
}

/// The progress of a comparison: every record is read once and compared once. Pure.
struct DiffProgress {
    private let all: Int64
    private var done: Int64 = 0

    init(records: Int64) { all = records * 2 }

    /// Adds records that were read or compared.
    mutating func done(_ records: Int64) { done += records }

    /// - Parameter part: the fraction of these records that the current step has processed.
    func fraction(_ part: Double, of records: Int64) -> Double {
        all == 0 ? 1 : (Double(done) + part * Double(records)) / Double(all)
    }
}

/// What a replay still has to read of one input topic, in offsets.
struct InputLag {
    /// From its position to the offset that it must reach for a comparison.
    private(set) var isMissing: [TopicPartition: Range<Int64>] = [:]
    var missing: Int64
    private(set) var waiting: Int64 = 0
    /// All offsets of the topic.
    private(set) var records: Int64 = 0

    init(
        beginnings: [TopicPartition: NextOffset], ends: [TopicPartition: NextOffset],
        goals: [TopicPartition: NextOffset], positions: [TopicPartition: NextOffset]
    ) {
        for (partition, end) in ends {
            let beginning = beginnings[partition]?.value ?? 0
            // Deleted records cannot be read any more.
            let next = max(positions[partition]?.value ?? beginning, beginning)
            let goal = goals[partition]?.value ?? end.value
            if next < goal { isMissing[partition] = next..<goal }
            waiting += max(0, end.value - next)
            records += max(0, end.value - beginning)
        }
        missing = isMissing.values.reduce(0) { $0 + Int64($1.count) }
    }
}
