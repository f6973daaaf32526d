// Looks how far the workers are.

internal import Contract
internal import Log
internal import Platform
internal import Service
internal import Telemetry

/// One thread of its own: a coordinator that does not answer is not to keep the copies from being followed.
final class WorkerWatchPart: ServicePart {
    let name: String
    private let thread: ThreadPart
    /// So old is what is known of the workers, while all is well.
    private static let interval: Duration = .seconds(1)

    init(_ names: Names, partitions: Int32, log: any RecordLog, time: ReadAPITime, pace: WorkerPace, logger: Logger) {
        name = "api-watch-\(names.environment.rawValue)"
        thread = ThreadPart(name) { stop in
            let watch = WorkerWatch(names, partitions: partitions, log: log, time: time, pace: pace, logger: logger)
            while !stop.isOpen {
                watch.look()
                stop.wait(for: Self.interval)
            }
            watch.close()
        }
    }

    func start(failed: @escaping @Sendable (any Error) -> Void) throws { try thread.start(failed: failed) }
    func stop(by deadline: Deadline) throws { try thread.stop(by: deadline) }
}

/// Compares the positions of the workers' groups with the ends of `notifications`. One thread.
final class WorkerWatch {
    private static let questionLimit: Duration = .seconds(10)
    private static let closingLimit: Duration = .seconds(5)
    /// For so long a look waits for the records that are next, at most. What does not come is asked for by the next look.
    private static let readingLimit: Duration = .seconds(5)
    private static let recordsPerPoll = 100
    /// The markers of a commit are written within so long: what is still open then is another transaction, which may hang for ever.
    private static let markersLimit: Duration = .seconds(10)

    private let names: Names
    private let topic: String
    private let partitions: [TopicPartition]
    /// Of the topics that workers write and that are followed.
    private let outputs: [TopicPartition]
    private let log: any RecordLog
    private let time: ReadAPITime
    private let pace: WorkerPace
    private let logger: Logger
    private var groups: (any GroupWatch)?
    private var reader: (any LogReader)?
    private let batch = RecordBatch()
    /// Of the look before: where partitions ended, and when that was so.
    private var lastEnds: (ends: [TopicPartition: NextOffset], moment: Int64)?
    /// By worker and partition, what is true as soon as the log shows readers everything up to there.
    private var sights: [Worker: [Int: Sight]] = [:]
    /// The timestamps of records that are next. Those that nobody waits for any more are forgotten.
    private var timestamps: [Place: Int64] = [:]

    private struct Sight {
        var moment: Int64
        /// When the positions were known.
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
            if pace.fault != nil { logger.info("the workers are looked at again") }
            pace.fault = nil
        } catch {
            if pace.fault != error.words {
                logger.error(
                    "how far the workers are cannot be seen",
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
        // The ends first: what the workers have dealt with by the time that their positions are told, was there by this moment.
        let moment = time.now()
        let ends = try reader.ends(.committed, of: partitions, by: deadline)
        let beginnings = try reader.beginnings(of: partitions, by: deadline)
        var positions: [(worker: Worker, positions: [TopicPartition: NextOffset])] = []
        for worker in Worker.allCases {
            let found = try groups.positions(of: names.group(worker), by: deadline)
            positions.append((worker, found.filter { $0.key.topic == topic }))
        }
        // A commit has a marker in each partition, and readers may see the one of the positions first: what the worker has dealt with is
        // in its topics when they show all that was in them after the positions were known.
        let written = try reader.ends(.all, of: outputs, by: deadline)
        guard written.count == outputs.count else {
            throw LogFault(.retrySameCall, .timedOut, "the ends of what the workers write are not known")
        }
        let shown = try reader.ends(.committed, of: outputs, by: deadline)
        let elapsed = time.elapsed()
        let places = positions.map { _, found in
            partitions.map { partition in
                // Where there is no position, or its record is gone, the first record there is comes next.
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

    private func isOutput(_ partition: TopicPartition, of worker: Worker) -> Bool {
        FollowedTopic.allCases.contains { $0.worker == worker && names.topic($0.id) == partition.topic }
    }

    /// An older sight that was not shown yet goes first: under load there is always something that is open.
    private func show(
        _ sight: Sight, of worker: Worker, _ partition: Int, _ shown: [TopicPartition: NextOffset], at elapsed: Duration
    ) {
        var first = sights[worker]?[partition] ?? sight
        // A topic that was made anew is shorter.
        first.ends.merge(sight.ends, uniquingKeysWith: min)
        let isShown = first.ends.allSatisfy { partition, end in shown[partition].map { $0 >= end } ?? false }
        if isShown || elapsed - first.at >= Self.markersLimit {
            pace.see(worker, partition, moment: first.moment, at: elapsed)
            sights[worker]?[partition] = nil
        } else {
            sights[worker, default: [:]][partition] = first
        }
    }

    /// Everything that was taken before it was dealt with.
    private func moment(of place: Place, _ ends: [TopicPartition: NextOffset], at now: Int64) throws(LogFault) -> Int64
    {
        guard let end = ends[place.partition] else {
            throw LogFault(.retrySameCall, .timedOut, "the end of \(place.partition) is not known")
        }
        if place.next >= end { return now }
        if let timestamp = timestamps[place] { return min(timestamp, now) }
        // Everything that waits came after the look before.
        return lastEnds?.moment ?? now
    }

    /// Whether something waits that was there at the look before, or may have been. A worker that is as fast as its notifications come
    /// never has that, and nothing is read.
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
            // One place of each partition at a time: workers may stand apart.
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
                // What takes offsets without being a record.
                for (partition, place) in open {
                    guard let end = ends[partition], let position = reader.position(of: partition), position >= end
                    else { continue }
                    timestamps[place] = time.now()
                    open[partition] = nil
                }
            }
            missing = missing.filter { timestamps[$0] == nil }
        }
        // Nothing is fetched until somebody waits again.
        if !waiting.isEmpty { try reader.read(from: [:]) }
        if !missing.isEmpty {
            throw LogFault(.rebuild, .timedOut, "\(topic) does not give the records that its workers wait for")
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
