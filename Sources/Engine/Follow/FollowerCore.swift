// The implementation of the follower, shared by all sinks.

internal import Log
internal import Platform
internal import Telemetry

/// Not generic: the loop over records would look up types that only the user's module knows. For use by one thread.
final class FollowerCore {
    typealias Partition = FollowedPartition

    let options: FollowOptions
    let log: any RecordLog
    let time: FollowTime
    let readiness: Readiness
    let counts: FollowCounts
    let logger: Logger
    private let makeSink: (Int32) -> any PartitionSink
    let topicNames: [String]
    /// Sorted by number.
    private(set) var partitions: [Partition] = []
    /// By number; nil: the partition is not followed.
    private var byNumber: [Partition?]
    var reader: (any LogReader)?
    /// The reader reads exactly the followed partitions.
    var isPlaced = false
    private let batch = RecordBatch()
    var isLookWanted = false
    var nextLook: Duration = .zero
    var nextProgress: Duration = .zero
    var wasComplete = false
    var faultTold: String?
    var faultSince: Duration?
    private(set) var recordsRead: Int64 = 0
    var looks = 0
    /// Milliseconds, by the number of the topic: see `checkTopics`. nil: its copies cannot become too old.
    var greatestAges: [Int64?]

    init(
        _ options: FollowOptions, log: any RecordLog, time: FollowTime, readiness: Readiness, counts: FollowCounts,
        logger: Logger, sink: @escaping (Int32) -> any PartitionSink
    ) {
        self.options = options
        self.log = log
        self.time = time
        self.readiness = readiness
        self.counts = counts
        self.logger = logger
        makeSink = sink
        topicNames = options.topics.map(\.name)
        byNumber = Array(repeating: nil, count: Int(options.partitions))
        greatestAges = options.topics.map { $0.isCompacted ? FollowLimits.greatestAge : nil }
    }

    func name(_ topic: Int, _ partition: Partition) -> TopicPartition {
        TopicPartition(topicNames[topic], partition.number)
    }

    // MARK: Followed partitions

    func follow(partitions wanted: Set<Int32>) {
        precondition(
            wanted.allSatisfy { byNumber.indices.contains(Int($0)) },
            "there are \(byNumber.count) partitions: \(wanted)")
        let leaving = partitions.filter { !wanted.contains($0.number) }
        let coming = wanted.filter { byNumber[Int($0)] == nil }
        if leaving.isEmpty && coming.isEmpty { return }
        for partition in leaving {
            close(partition)
            byNumber[Int(partition.number)] = nil
        }
        for number in coming.sorted() {
            byNumber[Int(number)] = Partition(number, makeSink(number), topics: topicNames.count, at: time.wall())
        }
        partitions = byNumber.compactMap { $0 }
        isPlaced = false
    }

    func followed(_ number: Int32) -> Partition? {
        byNumber.indices.contains(Int(number)) ? byNumber[Int(number)] : nil
    }

    // MARK: A step

    func step() -> FollowStep {
        if partitions.isEmpty {
            dropReader()
            reportIdle()
            return .idle
        }
        do throws(LogFault) {
            var reader = try openReader()
            // If a copy is too old, nothing may be taken before it is known whether records are missing in between.
            if isLookWanted || isAnyTooOld {
                try look(reader)
                reader = try openReader()
            }
            try reader.poll(into: batch, limit: FollowLimits.recordsPerPoll, wait: options.pollWait)
            let isDrained = batch.count < FollowLimits.recordsPerPoll
            let hasPaused = take(reader)
            batch.removeAll()
            write(all: isDrained)
            if time.elapsed() >= nextLook { try look(reader) }
            report()
            // The reader would continue to fetch records that may not be read.
            if hasPaused { dropReader() }
            return tell(nil)
        } catch {
            batch.removeAll()
            if error.remedy != .retrySameCall { dropReader() }
            report()
            return tell(error)
        }
    }

    private var isAnyTooOld: Bool {
        let now = time.wall()
        return partitions.contains { partition in
            partition.topics.contains { partition.isRead($0) && isTooOld($0, partition, at: now) }
        }
    }

    /// - Returns: whether a partition was paused.
    private func take(_ reader: any LogReader) -> Bool {
        let batch = batch
        var hasPaused = false
        for index in 0..<batch.count {
            let record = batch[index]
            guard let partition = followed(record.partition), partition.isRead(record.topic) else { continue }
            if let words = partition.sink.take(record) {
                pause(record.topic, partition, "\(name(record.topic, partition)) at \(record.offset): \(words)")
                hasPaused = true
            } else {
                recordsRead += 1
                partition.held += 1
                partition.see(record.topic, timestamp: record.timestamp)
                partition.advance(record.topic, to: NextOffset(after: record.offset))
            }
        }
        for partition in partitions {
            for topic in partition.topics where partition.isRead(topic) {
                // This position is also after the control records, which use offsets.
                guard let next = reader.position(of: name(topic, partition)) else { continue }
                partition.advance(topic, to: next)
            }
        }
        return hasPaused
    }

    private func pause(_ topic: Int, _ partition: Partition, _ words: String) {
        partition.courses[topic].pause = words
        logger.error("a partition is paused: its next record needs a later build", ["reason": .string(words)])
    }

    // MARK: Writing

    /// - Parameter all: if false, only large partitions are written.
    private func write(all: Bool) {
        let bytes = FollowLimits.heldBytes(partitions: partitions.count)
        let now = time.elapsed()
        for partition in partitions where partition.isOpen {
            let isLarge = partition.held >= FollowLimits.recordsPerWrite || partition.sink.heldBytes >= bytes
            let arePlacesDue = now - partition.writtenAt >= FollowLimits.placesInterval
            // A caller that learns that the copy is complete may read it at once, so nothing of it may be held back.
            if partition.held > 0 && (all || isLarge || partition.isComplete) || partition.held == 0 && arePlacesDue {
                write(partition)
            } else if partition.held == 0 {
                partition.sink.move(to: partition.places)
            }
        }
    }

    private func write(_ partition: Partition) {
        do throws(SinkFault) {
            let isComplete = partition.isComplete
            try partition.sink.write(partition.places, isLasting: !partition.isFirstFilling || isComplete)
            if isComplete { partition.isFirstFilling = false }
            partition.held = 0
            partition.writtenAt = time.elapsed()
        } catch {
            fail(partition, error)
        }
    }

    /// Closes the sink; it is opened again, or built anew, with the next reader.
    func fail(_ partition: Partition, _ fault: SinkFault) {
        logger.error("a local copy failed; opening it again", ["reason": .string(fault.words)])
        partition.reset(to: partition.places)
        if fault.isBroken { partition.uselessness = fault.words }
        partition.isOpen = false
        // An error of closing concerns only what is lost already.
        try? partition.sink.close()
        dropReader()
    }

    // MARK: Closing

    /// The reader may hold records of a partition that is no longer wanted, or be at a wrong offset.
    func dropReader() {
        batch.removeAll()
        reader?.close(by: Deadline(after: FollowLimits.closing))
        reader = nil
        isPlaced = false
    }

    private func close(_ partition: Partition) {
        if partition.isOpen { write(partition) }
        guard partition.isOpen else { return }
        partition.isOpen = false
        do throws(SinkFault) {
            try partition.sink.close()
        } catch {
            logger.error("a local copy could not be closed", ["reason": .string(error.words)])
        }
    }

    func close() {
        dropReader()
        follow(partitions: [])
    }
}
