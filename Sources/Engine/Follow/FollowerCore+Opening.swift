// Checks before reading whether the topics are right and the copies belong to them.

internal import Log
internal import Platform
internal import Telemetry

extension FollowerCore {
    func isTooOld(_ topic: Int, _ partition: Partition, at now: Int64) -> Bool {
        guard let greatest = greatestAges[topic] else { return false }
        return !(-FollowLimits.clockTolerance...greatest).contains(now - partition.places[topic].currentAt)
    }

    /// The reader, or a new one, which continues at the positions of the copies.
    func openReader() throws(LogFault) -> any LogReader {
        if let reader, isPlaced { return reader }
        for partition in partitions where partition.uselessness != nil || !partition.isOpen {
            try openOrThrow(partition)
        }
        do throws(LogFault) {
            let made = if let reader { reader } else { try makeReader() }
            reader = made
            try place(made)
            try begin()
            isPlaced = true
            return made
        } catch {
            dropReader()
            throw error
        }
    }

    private func makeReader() throws(LogFault) -> any LogReader {
        try checkTopics()
        var readerOptions = ReaderOptions(name: options.name, group: options.group, topics: topicNames)
        // At first everything is read, and later little: fetching ahead then fetches the few records that exist.
        readerOptions.readsAhead = true
        readerOptions.isPolledAlways = true
        readerOptions.readAheadBytes = options.readAheadBytes
        return try log.openReader(readerOptions)
    }

    /// Nothing is written to a sink before this.
    private func begin() throws(LogFault) {
        for partition in partitions {
            do throws(SinkFault) {
                try partition.sink.begin()
            } catch {
                if error.isBroken { partition.uselessness = error.words }
                throw LogFault(.rebuild, .other, error.words)
            }
        }
    }

    // MARK: Sinks

    private func openOrThrow(_ partition: Partition) throws(LogFault) {
        do throws(SinkFault) {
            try open(partition)
        } catch {
            throw LogFault(.rebuild, .other, error.words)
        }
    }

    private func open(_ partition: Partition) throws(SinkFault) {
        if let words = partition.uselessness { try wipe(partition, words) }
        if !partition.isOpen {
            var contents: SinkContents
            do throws(SinkFault) {
                contents = try openSink(partition)
            } catch {
                guard error.isBroken else { throw error }
                try wipe(partition, error.words)
                contents = try openSink(partition)
            }
            if case .places(let places) = contents {
                if places.count == topicNames.count { return partition.reset(to: places) }
                contents = .foreign("it was written for other topics")
            }
            if case .foreign(let words) = contents {
                try wipe(partition, words)
                _ = try openSink(partition)
            }
        }
        partition.reset(to: Partition.begun(topics: topicNames.count, at: time.wall()))
        partition.sink.move(to: partition.places)
    }

    private func openSink(_ partition: Partition) throws(SinkFault) -> SinkContents {
        let contents = try partition.sink.open()
        partition.isOpen = true
        return contents
    }

    private func wipe(_ partition: Partition, _ words: String) throws(SinkFault) {
        counts.wipes.add()
        logger.warning(
            "a local copy cannot be used; building it anew",
            ["partition": .integer(partition.number), "reason": .string(words)])
        partition.isOpen = false
        try partition.sink.wipe()
    }

    // MARK: Topics

    private func checkTopics() throws(LogFault) {
        let shapes = try log.topics(topicNames, by: Deadline(after: options.questionLimit))
        for (index, topic) in options.topics.enumerated() {
            let name = topic.name
            guard let shape = shapes[name] else {
                throw LogFault(.stop, .unknownTopic, "the topic \(name) is missing: run perennial topics apply")
            }
            guard shape.partitions == options.partitions else {
                throw .partitions(of: name, are: shape.partitions, not: options.partitions)
            }
            guard topic.isCompacted else { continue }
            guard shape.isCompacted else {
                throw LogFault(
                    .stop, .misuse,
                    "the topic \(name) is not compacted: keys not written for a long time would be missing; run "
                        + "perennial topics apply")
            }
            guard let kept = shape.deletionsKept?.wholeMilliseconds else { continue }
            guard kept >= FollowLimits.leastDeletionsKept else {
                throw LogFault(
                    .stop, .misuse,
                    "the topic \(name) keeps deletions for only \(kept) ms, so some may be missed: run perennial "
                        + "topics apply")
            }
            greatestAges[index] = FollowLimits.greatestAge(whereKept: kept)
        }
    }

    /// The first and last offsets of each partition, and when they were requested.
    private struct Ends {
        var wall: Int64
        var elapsed: Duration
        var beginnings: [TopicPartition: NextOffset]
        var ends: [TopicPartition: NextOffset]
    }

    /// Makes the reader read from the positions of the copies. A copy that does not belong to its topics is built anew.
    private func place(_ reader: any LogReader) throws(LogFault) {
        let ends = try askEnds(reader)
        for partition in partitions {
            for topic in partition.topics {
                guard let words = try uselessness(of: partition, topic, ends, reader) else { continue }
                partition.uselessness = words
                try openOrThrow(partition)
                break
            }
        }
        let timed = try startsByTime(reader)
        var starts: [TopicPartition: NextOffset] = [:]
        for partition in partitions {
            for topic in partition.topics where partition.isRead(topic) {
                let name = name(topic, partition)
                let start = partition.places[topic].next ?? timed[name] ?? ends.beginnings[name]!
                starts[name] = start
                partition.start(topic, at: start)
                partition.see(
                    topic, Partition.Goal(end: ends.ends[name]!, wall: ends.wall, elapsed: ends.elapsed))
            }
        }
        try reader.read(from: starts)
        isLookWanted = false
    }

    private func askEnds(_ reader: any LogReader) throws(LogFault) -> Ends {
        let deadline = Deadline(after: options.questionLimit)
        let followed = partitions.flatMap { partition in partition.topics.map { name($0, partition) } }
        let (wall, elapsed) = (time.wall(), time.elapsed())
        let beginnings = try reader.beginnings(of: followed, by: deadline)
        let ends = try reader.ends(options.ends, of: followed, by: deadline)
        for partition in followed where beginnings[partition] == nil || ends[partition] == nil {
            throw LogFault(.retrySameCall, .timedOut, "the broker did not return the end offsets of \(partition)")
        }
        return Ends(wall: wall, elapsed: elapsed, beginnings: beginnings, ends: ends)
    }

    /// Finds the start for topics that begin at a time and of which nothing is stored.
    private func startsByTime(_ reader: any LogReader) throws(LogFault) -> [TopicPartition: NextOffset] {
        var found: [TopicPartition: NextOffset] = [:]
        for (topic, option) in options.topics.enumerated() {
            guard case .time(let moment) = option.start else { continue }
            let asked = partitions.filter { $0.places[topic].next == nil && $0.isRead(topic) }.map { name(topic, $0) }
            if asked.isEmpty { continue }
            let deadline = Deadline(after: options.questionLimit)
            // The ends are requested first: if no record is young enough, the answer is the end of a moment later, and
            // records committed in between would lie before it.
            let before = try reader.ends(.committed, of: asked, by: deadline)
            let starts = try reader.offsets(at: moment(), in: asked, by: deadline)
            for partition in asked {
                guard let start = starts[partition], let end = before[partition] else {
                    throw LogFault(
                        .retrySameCall, .timedOut,
                        "the broker did not return the start offset of \(partition)")
                }
                found[partition] = min(start, end)
            }
        }
        return found
    }

    /// Why a copy at this position cannot be continued; nil if it can.
    private func uselessness(
        of state: Partition, _ topic: Int, _ ends: Ends, _ reader: any LogReader
    ) throws(LogFault) -> String? {
        guard let next = state.places[topic].next else { return nil }
        let partition = name(topic, state)
        let end = ends.ends[partition]!
        if next < ends.beginnings[partition]! { return "\(partition) begins after the position of the copy" }
        if next > end {
            // After a change of the leader the end of the committed records may be lower for a moment.
            let last = try reader.ends(.all, of: [partition], by: Deadline(after: options.questionLimit))[partition]
            guard let last else {
                throw LogFault(
                    .retrySameCall, .timedOut,
                    "the broker did not return the end offset of \(partition)")
            }
            if next > last { return "it is ahead of \(partition), which was deleted and created again" }
        }
        if next < end, isTooOld(topic, state, at: ends.wall) { return "it is so old that it may have missed deletions" }
        return nil
    }
}
