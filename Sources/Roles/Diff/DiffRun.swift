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

    let query: DiffQuery
    let names: Names
    /// As the settings have it.
    let partitions: Int32
    let log: any RecordLog
    let output: Output
    /// Of the topics that there are.
    let partitionCounts: [String: Int32]
    /// Read before this runs.
    let positions: InputPositions
    let mark: ReplayMark
    /// Of cells.
    var dayOf: @Sendable (Int64) -> CivilDay = { dayInUTC($0) }

    private struct Span {
        let beginning: NextOffset
        let end: NextOffset
        var count: Int64 { max(0, end.value - beginning.value) }
    }

    func run() throws(ToolFault) -> ExitCode {
        let topics = DiffedTopic.all(of: query.worker)
        try checkTopics(topics)
        let reader = try open(topics)
        defer { reader.close(by: Deadline(after: .seconds(5))) }
        try checkLag(reader)
        // Behind the positions, before anything is read: what the topics hold at these ends rests on the input before those.
        var spans: [TopicPartition: Span] = [:]
        for topic in topics.map({ names.topic($0.id) }).flatMap({ [query.name.shadow(of: $0), $0] }) {
            for partition in partitionsOf(topic) {
                let range = try PartitionScan(reader: reader, partition: partition).range()
                spans[partition] = Span(beginning: range.beginning, end: range.end)
            }
        }
        let report = DiffReport(query, names, output)
        let reading = Reading(reader, spans.values.reduce(0) { $0 + $1.count }, report)
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

    private func checkTopics(_ topics: [DiffedTopic]) throws(ToolFault) {
        let shadows = topics.map { query.name.shadow(of: names.topic($0.id)) }
        let replay = "perennial replay \(query.worker.rawValue) --name \(query.name)"
        guard shadows.contains(where: { partitionCounts[$0] != nil }) else {
            let others = Set(
                partitionCounts.keys.compactMap(ShadowName.split).filter { other in
                    topics.contains { names.topic($0.id) == other.live }
                }.map(\.shadow)
            ).sorted()
            let hint = others.isEmpty ? "" : "; there are: \(others.map(\.description).joined(separator: ", "))"
            throw ToolFault(
                .wrongUsage,
                "there is no replay \(query.name) of \(query.worker.rawValue) in \(names.environment.rawValue)\(hint). "
                    + "\(replay) makes one")
        }
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
        // A name that access lists can give: it is neither joined nor committed to, but the library looks its coordinator up.
        var options = ReaderOptions(
            name: "perennial-diff", group: "\(names.prefix).\(names.environment.rawValue).diff",
            topics: live + live.map(query.name.shadow(of:)))
        options.readsAhead = true
        options.readAheadBytes = Self.readAheadBytes
        do throws(LogFault) { return try log.openReader(options) } catch { throw ToolFault(.wrongUsage, error.words) }
    }

    /// A replay that ended before its end has nothing to show for many keys, and no difference would be found in them.
    private func checkLag(_ reader: any LogReader) throws(ToolFault) {
        for topic in query.worker.inputs.map(names.topic) {
            guard let count = partitionCounts[topic] else { continue }
            var lag = InputLag()
            for number in 0..<count {
                let scan = PartitionScan(reader: reader, partition: TopicPartition(topic, number))
                let (beginning, end) = try scan.range()
                // What came later it need not have read.
                let goal = try mark.begunAt.map { time throws(ToolFault) in try scan.start(at: time) } ?? end
                lag.add(
                    from: beginning, to: end, goal: goal ?? end, position: positions.shadow[scan.partition])
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
        let replay = "perennial replay \(query.worker.rawValue) --name \(query.name)"
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
        let all: Int64
        let report: DiffReport
        var done: Int64 = 0
        var progress = ProgressBar.standardError()
        var cells = CellSides()

        init(_ reader: any LogReader, _ all: Int64, _ report: DiffReport) {
            self.reader = reader
            self.all = all
            self.report = report
        }

        func update(_ more: Double, _ words: () -> String) {
            progress.update((Double(done) + more) / Double(max(1, all)), words)
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
            let intake = RecordIntake(topic, join, positions, mark)
            // A partition at a time: what it has is forgotten before the next.
            for (side, partition, span) in [(Side.here, shadow, here), (.there, live, there)] where span.count > 0 {
                let scan = PartitionScan(reader: reading.reader, partition: partition)
                try scan.run(
                    until: span.end,
                    progress: { fraction in
                        reading.update(fraction * Double(span.count)) { "reading \(partition)" }
                    }
                ) { record throws(ToolFault) in try intake.add(record, side) }
                reading.done += span.count
            }
            // Of a topic that keeps records for some time: before this one they were deleted.
            let oldest = there.beginning.value > 0 ? intake.oldestThere ?? .max : nil
            try join.eachKey { key throws(ToolFault) in
                reading.update(0) { "comparing \(live)" }
                if let sample = comparison.add(key, partition: number, oldestThere: oldest, &reading.cells) {
                    reading.progress.end()
                    reading.report.tell(sample)
                }
            }
        }
        reading.progress.end()
        return comparison.counts
    }
}

/// What of one input topic a replay has still to read, in offsets.
struct InputLag: Equatable {
    /// Of what has to be there for a comparison.
    private(set) var missing: Int64 = 0
    private(set) var waiting: Int64 = 0
    /// All that is there.
    private(set) var records: Int64 = 0

    mutating func add(from beginning: NextOffset, to end: NextOffset, goal: NextOffset, position: NextOffset?) {
        let next = max(position ?? beginning, beginning)
        missing += max(0, goal.value - next.value)
        waiting += max(0, end.value - next.value)
        records += max(0, end.value - beginning.value)
    }
}
