// Watches the positions of the workers.

internal import Contract
internal import Log
internal import Platform
internal import Service
internal import Telemetry

/// Uses its own thread: a coordinator that does not answer must not stop the following of the copies.
final class WorkerWatchPart: ServicePart {
    let name: String
    private let thread: ThreadPart
    /// Age of the known positions while everything works.
    private static let interval: Duration = .seconds(1)

    init(_ names: Names, partitions: Int32, log: any RecordLog, time: ReadAPITime, pace: WorkerPace, logger: Logger) {
        name = "api-watch-\(names.environment.rawValue)"
        thread = ThreadPart(name, isAlone: true) { stop in
            let watch = WorkerWatch(names, partitions: partitions, log: log, time: time, pace: pace, logger: logger)
            while !stop.isOpen {
                watch.look()
                stop.wait(for: Self.interval)
            }
            watch.close()
        }
    }

    func start(failed: @escaping @Sendable (any Error) -> Void) throws { try thread.start(failed: failed) }
    func stopIsNear() { thread.stopIsNear() }
    func stop(by deadline: Deadline) throws { try thread.stop(by: deadline) }
}

/// Compares the positions of the workers' groups with the ends of `notifications`. One thread.
final class WorkerWatch {
    private static let questionLimit: Duration = .seconds(10)
    private static let closingLimit: Duration = .seconds(5)
    /// Longest time that a look waits for the next records. Records that do not arrive are requested again by the next
    /// look.
    private static let readingLimit: Duration = .seconds(5)
    private static let recordsPerPoll = 100
    /// The markers of a commit are written within this time. A transaction that is still open then is another one,
    /// which may hang for ever.
    private static let markersLimit: Duration = .seconds(10)

    private let names: Names
    private let topic: String
    private let partitions: [TopicPartition]
    /// The followed topics that workers write.
    private let outputs: [TopicPartition]
    private let log: any RecordLog
    private let time: ReadAPITime
    private let pace: WorkerPace
    private let logger: Logger
    private var groups: (any GroupWatch)?
    private var reader: (any LogReader)?
    private let batch = RecordBatch()
    /// From the previous look: the ends of the partitions, and when they were read.
    private var lastEnds: (ends: [TopicPartition: NextOffset], moment: Int64)?
    /// By worker and partition: what is true as soon as the log shows readers everything up to there.
    private var sights: [WorkerName: [Int: Sight]] = [:]
    /// Timestamps of the next records. Those that nothing waits for any more are removed.
    private var timestamps: [Place: Int64] = [:]

    private struct Sight {
        var moment: Int64
        /// When the positions were read.
        var at: Duration
        var ends: [TopicPartition: NextOffset]
    }

    private struct Place: Hashable {
        var partition: TopicPartition
        var next: NextOffset
    }

    init(_ names: Names, partitions: Int32, log: any RecordLog, time: ReadAPITime, pace: WorkerPace, logger: Logger) {
        self.names = names
        let topic = names.topic(.notifications)
        self.topic = topic
        self.partitions = (0..<partitions).map { TopicPartition(topic, $0) }
        outputs = FollowedTopic.allCases.flatMap { topic in
            (0..<partitions).map { TopicPartition(names.topic(topic.id), $0) }
        }
        self.log = log
        self.time = time
        self.pace = pace
        self.logger = logger
    }

    func look() {
        do throws(LogFault) {
            try compare()
            if pace.fault != nil { logger.info("the positions of the workers can be read again") }
            pace.fault = nil
        } catch {
            if pace.fault != error.words {
                logger.error(
                    "the positions of the workers cannot be read",
                    ["environment": .string(names.environment.rawValue), "reason": .string(error.words)])
            }
            pace.fault = error.words
            if error.remedy != .retrySameCall { close() }
        }
    }

    func close() {
        batch.removeAll()
        reader?.close(by: Deadline(after: Self.closingLimit))
        groups?.close(by: Deadline(after: Self.closingLimit))
        (reader, groups) = (nil, nil)
    }

    private func compare() throws(LogFault) {
        let deadline = Deadline(after: Self.questionLimit)
        let reader = try openReader()
        let groups = try openGroups()
        // The ends are read first: everything that the workers have processed by the time their positions are read
        // existed at this moment.
        let moment = time.now()
        let ends = try reader.ends(.committed, of: partitions, by: deadline)
        let beginnings = try reader.beginnings(of: partitions, by: deadline)
        var positions: [(worker: WorkerName, positions: [TopicPartition: NextOffset])] = []
        for worker in WorkerName.allCases {
            let found = try groups.positions(of: names.group(worker), by: deadline)
            positions.append((worker, found.filter { $0.key.topic == topic }))
        }
        // A commit has a marker in each partition, and readers may see the one of the positions first. What the worker
        // has processed is in its topics when they show everything that was in them after the positions were read.
        let written = try reader.ends(.all, of: outputs, by: deadline)
        guard written.count == outputs.count else {
            throw LogFault(.retrySameCall, .timedOut, "the ends of the workers' topics are not known")
        }
        let shown = try reader.ends(.committed, of: outputs, by: deadline)
        let elapsed = time.elapsed()
        let places = positions.map { _, found in
            partitions.map { partition in
                // If there is no position, or its record was deleted, the first existing record is next.
                let beginning = beginnings[partition] ?? NextOffset(0)
                return Place(partition: partition, next: max(found[partition] ?? beginning, beginning))
            }
        }
        try readTimestamps(of: Set(places.joined()), ends, reader)
        for (index, (worker, found)) in positions.enumerated() {
            pace.see(worker, hasBegun: !found.isEmpty)
            for (partition, place) in places[index].enumerated() {
                let sight = Sight(
                    moment: try self.moment(of: place, ends, at: moment), at: elapsed,
                    ends: written.filter { $0.key.partition == partition && isOutput($0.key, of: worker) })
                show(sight, of: worker, partition, shown, at: elapsed)
            }
        }
        lastEnds = (ends, moment)
    }

    private func isOutput(_ partition: TopicPartition, of worker: WorkerName) -> Bool {
        FollowedTopic.allCases.contains { $0.worker == worker && names.topic($0.id) == partition.topic }
    }

    /// An older report that is not confirmed yet is confirmed first: under load there is always an open transaction.
    private func show(
        _ sight: Sight, of worker: WorkerName, _ partition: Int, _ shown: [TopicPartition: NextOffset],
        at elapsed: Duration
    ) {
        var first = sights[worker]?[partition] ?? sight
        // A topic that was deleted and made again is shorter.
        first.ends.merge(sight.ends, uniquingKeysWith: min)
        let isShown = first.ends.allSatisfy { partition, end in shown[partition].map { $0 >= end } ?? false }
        if isShown || elapsed - first.at >= Self.markersLimit {
            pace.see(worker, partition, moment: first.moment, at: elapsed)
            sights[worker]?[partition] = nil
        } else {
            sights[worker, default: [:]][partition] = first
        }
    }

    /// Everything received before this time has been processed.
    private func moment(of place: Place, _ ends: [TopicPartition: NextOffset], at now: Int64) throws(LogFault) -> Int64
    {
        guard let end = ends[place.partition] else {
            throw LogFault(.retrySameCall, .timedOut, "the end of \(place.partition) is not known")
        }
        if place.next >= end { return now }
        if let timestamp = timestamps[place] { return min(timestamp, now) }
        // All waiting records arrived after the previous look.
        return lastEnds?.moment ?? now
    }

    /// Whether a record that existed at the previous look, or may have, is still waiting. A worker that keeps up with
    /// its notifications never has one, and nothing is read.
    private func isWaiting(_ place: Place, _ ends: [TopicPartition: NextOffset]) -> Bool {
        guard let end = ends[place.partition], place.next < end else { return false }
        guard let last = lastEnds?.ends[place.partition] else { return true }
        return place.next < last
    }

    private func readTimestamps(
        of places: Set<Place>, _ ends: [TopicPartition: NextOffset], _ reader: any LogReader
    ) throws(LogFault) {
        let waiting = places.filter { isWaiting($0, ends) }
        timestamps = timestamps.filter { waiting.contains($0.key) }
        var missing = waiting.filter { timestamps[$0] == nil }
        let batch = batch
        let deadline = Deadline(after: Self.readingLimit)
        while !missing.isEmpty, !deadline.hasPassed {
            // One position of each partition at a time: workers may be at different positions.
            let next = Dictionary(missing.map { ($0.partition, $0) }) { $0.next < $1.next ? $0 : $1 }
            try reader.read(from: next.mapValues(\.next))
            var open = next
            while !open.isEmpty, !deadline.hasPassed {
                try reader.poll(into: batch, limit: Self.recordsPerPoll, wait: .milliseconds(100))
                for index in 0..<batch.count {
                    let record = batch[index]
                    let partition = partitions[Int(record.partition)]
                    if let place = open.removeValue(forKey: partition) { timestamps[place] = record.timestamp }
                }
                batch.removeAll()
                // Offsets that are not records, such as markers.
                for (partition, place) in open {
                    guard let end = ends[partition], let position = reader.position(of: partition), position >= end
                    else { continue }
                    timestamps[place] = time.now()
                    open[partition] = nil
                }
            }
            missing = missing.filter { timestamps[$0] == nil }
        }
        // Nothing is fetched until a position waits again.
        if !waiting.isEmpty { try reader.read(from: [:]) }
        if !missing.isEmpty {
            throw LogFault(.rebuild, .timedOut, "the next records of \(topic) did not arrive in time")
        }
    }

    private func openReader() throws(LogFault) -> any LogReader {
        if let reader { return reader }
        let made = try log.openReader(
            ReaderOptions(name: "perennial-api-watch", group: names.apiGroup, topics: [topic]))
        reader = made
        return made
    }

    private func openGroups() throws(LogFault) -> any GroupWatch {
        if let groups { return groups }
        let made = try log.openGroupWatch("perennial-api-watch")
        groups = made
        return made
    }
}
