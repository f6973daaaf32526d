// What happens before reading: are the topics as they should be, and do the copies belong to them?

internal import Contract
internal import Log
internal import Platform
internal import Store
internal import Telemetry

extension Following {
    /// A copy that was not complete for so long may have missed deletions: it is built anew, also where the topic keeps them for
    /// longer (`perennial topics apply` says a week): settings may have been others meanwhile, and Kafka's own is a day.
    static let greatestAge: Int64 = 20 * 3_600_000
    /// In milliseconds. Below it copies would be built anew for every hitch.
    private static let leastDeletionsKept: Int64 = 60_000
    /// A note from later than now was written by a clock that ran ahead, and says nothing about its age; less than this is two
    /// hosts that do not quite agree.
    private static let clockTolerance: Int64 = 5 * 60_000
    private static let questionLimit: Duration = .seconds(10)

    func isTooOld(_ topic: FollowedTopic, _ state: CopyState, at now: Int64) -> Bool {
        !(-Self.clockTolerance...greatestAges[topic.rawValue]).contains(now - state.note[topic].currentAt)
    }

    /// A sixth of the time for which deletions are kept is left for reading what has gathered meanwhile.
    private static func greatestAge(whereKept kept: Int64) -> Int64 { min(greatestAge, kept / 6 * 5) }

    /// The reader, or a new one that begins where the copies stand.
    func openReader() throws(LogFault) -> any LogReader {
        if let reader { return reader }
        for state in states where state.uselessness != nil || !state.copy.isOpen {
            do throws(StoreFault) {
                try open(state)
            } catch {
                throw LogFault(.rebuild, .other, error.words)
            }
        }
        try checkTopics()
        var options = ReaderOptions(
            name: "perennial-api", group: configuration.names.apiGroup,
            topics: FollowedTopic.allCases.map { topicName($0) })
        // Everything is read at first, and after that little: what is fetched ahead is what there is.
        options.readsAhead = true
        let made = try log.openReader(options)
        do throws(LogFault) {
            try place(made)
            try countCells()
        } catch {
            made.close(by: Deadline(after: Self.questionLimit))
            throw error
        }
        reader = made
        return made
    }

    /// Of every copy that was opened since: nothing is written to one before.
    private func countCells() throws(LogFault) {
        for state in states {
            do throws(StoreFault) {
                try state.copy.countCells()
            } catch {
                if error.cause == .corrupt { state.uselessness = error.words }
                throw LogFault(.rebuild, .other, error.words)
            }
        }
    }

    private func open(_ state: CopyState) throws(StoreFault) {
        if let words = state.uselessness { try wipe(state, words) }
        if !state.copy.isOpen {
            let opened: (note: CopyNote?, isEmpty: Bool)
            do throws(StoreFault) {
                opened = try state.copy.open(stores)
            } catch {
                guard error.cause == .corrupt else { throw error }
                try wipe(state, error.words)
                opened = try state.copy.open(stores)
            }
            if let note = opened.note, note.partitions == Int32(states.count) { return state.reset(to: note) }
            if !opened.isEmpty {
                try wipe(state, "it was written by another build, or for another number of partitions")
                _ = try state.copy.open(stores)
            }
        }
        state.reset(to: CopyNote(partitions: Int32(states.count), begunAt: time.wall()))
        state.copy.move(to: state.note)
    }

    private func wipe(_ state: CopyState, _ words: String) throws(StoreFault) {
        metrics.wipes.add()
        logger.warning(
            "a local copy is of no use and is built anew",
            ["partition": .integer(state.copy.number), "reason": .string(words)])
        try state.copy.wipe(stores)
    }

    // MARK: Topics

    private func checkTopics() throws(LogFault) {
        let names = FollowedTopic.allCases.map { topicName($0) }
        let shapes = try log.topics(names, by: Deadline(after: Self.questionLimit))
        for (topic, name) in zip(FollowedTopic.allCases, names) {
            guard let shape = shapes[name] else {
                throw LogFault(.stop, .unknownTopic, "the topic \(name) is missing: run perennial topics apply")
            }
            guard shape.partitions == states.count else {
                throw .partitions(of: name, are: shape.partitions, not: Int32(states.count))
            }
            guard shape.isCompacted else {
                throw LogFault(
                    .stop, .misuse,
                    "the topic \(name) is not compacted: what was not written for long would be missing; run perennial "
                        + "topics apply")
            }
            guard let kept = shape.deletionsKept?.wholeMilliseconds else { continue }
            guard kept >= Self.leastDeletionsKept else {
                throw LogFault(
                    .stop, .misuse,
                    "the topic \(name) keeps deletions for \(kept) ms, too short a time to see them all: run perennial "
                        + "topics apply")
            }
            greatestAges[topic.rawValue] = Self.greatestAge(whereKept: kept)
        }
    }

    /// Lets the reader begin where the copies stand. One that does not belong to its topics is built anew from the beginning.
    private func place(_ reader: any LogReader) throws(LogFault) {
        let deadline = Deadline(after: Self.questionLimit)
        let followed = states.flatMap { state in FollowedTopic.allCases.map { partition($0, state) } }
        let (wall, elapsed) = (time.wall(), time.elapsed())
        let beginnings = try reader.beginnings(of: followed, by: deadline)
        let ends = try reader.ends(.committed, of: followed, by: deadline)
        for partition in followed where beginnings[partition] == nil || ends[partition] == nil {
            throw LogFault(.retrySameCall, .timedOut, "the ends of \(partition) are not known")
        }
        var starts: [TopicPartition: NextOffset] = [:]
        for state in states {
            for topic in FollowedTopic.allCases {
                let name = partition(topic, state)
                let words = try uselessness(
                    of: state, topic, beginning: beginnings[name]!, end: ends[name]!, at: wall, reader)
                if let words {
                    state.uselessness = words
                    do throws(StoreFault) { try open(state) } catch { throw LogFault(.rebuild, .other, error.words) }
                    break
                }
            }
            for topic in FollowedTopic.allCases where state.pauses[topic.rawValue] == nil {
                let name = partition(topic, state)
                starts[name] = state.note[topic].next ?? beginnings[name]!
                state.note[topic].next = starts[name]
                state.see(topic, CopyState.Goal(end: ends[name]!, wall: wall, elapsed: elapsed))
            }
        }
        try reader.read(from: starts)
    }

    /// Why a copy that stands there cannot be brought to the end; nil when it can.
    private func uselessness(
        of state: CopyState, _ topic: FollowedTopic, beginning: NextOffset, end: NextOffset, at now: Int64,
        _ reader: any LogReader
    ) throws(LogFault) -> String? {
        guard let next = state.note[topic].next else { return nil }
        let partition = partition(topic, state)
        if next < beginning { return "\(partition) does not reach back to it" }
        if next > end {
            // Committed records may seem to end earlier for a moment, after another broker has taken over.
            let last = try reader.ends(.all, of: [partition], by: Deadline(after: Self.questionLimit))[partition]
            guard let last else { throw LogFault(.retrySameCall, .timedOut, "the end of \(partition) is not known") }
            if next > last { return "it is ahead of \(partition), which was made anew" }
        }
        if next < end, isTooOld(topic, state, at: now) { return "it is so old that it may have missed deletions" }
        return nil
    }
}
