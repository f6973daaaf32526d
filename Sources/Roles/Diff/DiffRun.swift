// One call of `diff`, over any log.

import Churn
import Comparison
import Contract
import Log
import Platform

struct DiffRun {
    /// Of what is fetched ahead. With the buffers of the scratch files and the keys of one of them it leaves the process far below
    /// 256 MiB.
    private static let readAheadBytes = 48 << 20

    private static let answerLimit: Duration = .seconds(20)

    let query: DiffQuery
    let identity: ReplayIdentity
    /// As the settings have it.
    let partitions: Int32
    let log: any RecordLog
    let output: Output
    /// Of the topics that there are.
    let partitionCounts: [String: Int32]
    /// Read before this runs.
    let positions: InputPositions
    let plan: ReplayPlan
    /// Of cells.
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
                "the replay \(query.name) was made with --from \(from): what it read before that is in no topic of it. Compare one "
                    + "that was made without --from")
        }
        let topics = DiffedTopic.all(of: query.worker)
        try checkTopics(topics)
        let reader = try open(topics)
        defer { reader.close(by: Deadline(after: .seconds(5))) }
        try checkLag()
        // Behind the positions, before anything is read: what the topics hold at these ends rests on the input before those.
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

    // MARK: Whether they can be compared

    static func missing(_ identity: ReplayIdentity, _ topics: [String]) -> ToolFault {
        let others = ReplayIdentity.all(in: topics, of: [identity.names]).filter { $0.worker == identity.worker }
            .map(\.shadow.description)
        let worker = identity.worker.rawValue
        return ToolFault(
            .wrongUsage,
            "there is no replay \(identity.shadow) of \(worker) in \(identity.names.environment.rawValue)"
                + (others.isEmpty ? "" : "; there are: \(others.joined(separator: ", "))")
                + ". perennial replay \(worker) --name \(identity.shadow) makes one")
    }

    private func checkTopics(_ topics: [DiffedTopic]) throws(ToolFault) {
        let shadows = topics.map { query.name.shadow(of: names.topic($0.id)) }
        for topic in [names.topic(.notifications)] + topics.map({ names.topic($0.id) }) {
            guard let count = partitionCounts[topic] else {
                throw ToolFault(
                    .wrongUsage,
                    "the topic \(topic) is not there: check topic.prefix, and whether perennial topics apply was run")
            }
            guard count == partitions else {
                throw ToolFault(.wrongUsage, LogFault.partitions(of: topic, are: count, not: partitions).words)
            }
        }
        for shadow in shadows {
            guard let count = partitionCounts[shadow] else {
                throw ToolFault(.wrongUsage, "the topic \(shadow) is not there: run \(replay) again, which makes it")
            }
            guard count == partitions else {
                throw ToolFault(
                    .wrongUsage,
                    "the topic \(shadow) has \(count) partitions and the live one \(partitions): their keys are in other "
                        + "places. Remove the replay with perennial replay \(query.worker.rawValue) --drop \(query.name), and "
                        + "run \(replay)")
            }
        }
    }

    private func open(_ topics: [DiffedTopic]) throws(ToolFault) -> any LogReader {
        let live = topics.map { names.topic($0.id) }
        // The group is neither joined nor committed to, but the library looks its coordinator up.
        var options = ReaderOptions(
            name: "perennial-diff", group: identity.group, topics: live + live.map(query.name.shadow(of:)))
        options.readsAhead = true
        options.readAheadBytes = Self.readAheadBytes
        do throws(LogFault) { return try log.openReader(options) } catch { throw ToolFault(.wrongUsage, error.words) }
    }

    /// A replay that ended before its end has nothing to show for many keys, and no difference would be found in them.
    private func checkLag() throws(ToolFault) {
        let topics = identity.worker.inputs.map(names.topic)
        let patience = Deadline(after: Self.answerLimit)
        let survey = try InputSurvey(log, topics: topics, group: identity.group, by: patience)
        defer { survey.close() }
        for topic in topics {
            let all = partitionsOf(topic)
            // What came after it was begun it need not have read.
            let goals = try survey.offsets(at: plan.begunAt, all)
            var lag = InputLag(
                beginnings: try survey.beginnings(all), ends: try survey.ends(all), goals: goals,
                positions: positions.shadow)
            // The end may be no record but the marker of a transaction, behind which nobody commits a position.
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
                    "perennial diff: \(lag.waiting) records of \(topic) wait for the replay: what the live worker has made of "
                        + "them counts as newer")
            }
        }
    }

    private func refusal(of lag: InputLag, _ topic: String) -> [String] {
        let forgotten =
            positions.shadow.isEmpty
            ? [
                "its group has no positions: it has committed nothing, or was away for so long that Kafka has forgotten them"
            ]
            : []
        return [
            "the replay \(query.name) is not at its end: \(lag.missing) of \(lag.records) records of \(topic) wait for it"
        ] + forgotten + ["\(replay) goes on where it ended; --unfinished compares what is there"]
    }

    // MARK: Comparing

    /// What is kept from topic to topic. One thread.
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

        /// - Parameter part: of these records, that have been dealt with in this step.
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
            // A partition at a time: what it has is forgotten before the next.
            for (side, partition, span) in [(Side.here, shadow, here), (.there, live, there)] where span.count > 0 {
                let scan = PartitionScan(reader: reading.reader, partition: partition)
                try scan.run(
                    until: span.end,
                    progress: { fraction in
                        reading.update(fraction, of: span.count) { "reading \(partition)" }
                    }
                ) { record throws(ToolFault) in try intake.add(record, side) }
                reading.work.done(span.count)
            }
            // Of a topic that keeps records for some time: before this one they were deleted.
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

/// How much of a comparison is done: every record is read, and every record is compared. Pure.
struct DiffProgress {
    private let all: Int64
    private var done: Int64 = 0

    init(records: Int64) { all = records * 2 }

    /// So many were read, or compared.
    mutating func done(_ records: Int64) { done += records }

    /// - Parameter part: of these records, that have been dealt with in the step that is under way.
    func fraction(_ part: Double, of records: Int64) -> Double {
        all == 0 ? 1 : (Double(done) + part * Double(records)) / Double(all)
    }
}

/// What of one input topic a replay has still to read, in offsets.
struct InputLag {
    /// From its position to what has to be there for a comparison.
    private(set) var isMissing: [TopicPartition: Range<Int64>] = [:]
    var missing: Int64
    private(set) var waiting: Int64 = 0
    /// All that is there.
    private(set) var records: Int64 = 0

    init(
        beginnings: [TopicPartition: NextOffset], ends: [TopicPartition: NextOffset],
        goals: [TopicPartition: NextOffset], positions: [TopicPartition: NextOffset]
    ) {
        for (partition, end) in ends {
            let beginning = beginnings[partition]?.value ?? 0
            // What was deleted cannot be read any more.
            let next = max(positions[partition]?.value ?? beginning, beginning)
            let goal = goals[partition]?.value ?? end.value
            if next < goal { isMissing[partition] = next..<goal }
            waiting += max(0, end.value - next)
            records += max(0, end.value - beginning)
        }
        missing = isMissing.values.reduce(0) { $0 + Int64($1.count) }
    }
}
