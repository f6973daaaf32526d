// Moves a worker past deleted records of an input while no process works on the partition.

public import Log
public import Platform

/// A gap that a command can close: the records are lost, and the worker continues after them.
public struct AcceptableGap: Sendable, Equatable {
    public let input: TopicPartition
    /// The position of the worker.
    public let position: NextOffset
    /// The first offset that the log still has.
    public let beginning: NextOffset
    public let end: NextOffset
    /// The partition's clock: the greatest timestamp that the worker has read, in milliseconds since 1970. nil: it has
    /// read none.
    public let clock: Int64?
    /// Timestamp of the first record that still exists. nil: there is no record.
    public let firstTimestamp: Int64?

    /// Records were deleted. If false, the position lies beyond the end.
    public var isDeletion: Bool { position < beginning }
    /// The number of offsets that are gone. nil: it is not known.
    public var lostOffsets: Int64? { isDeletion ? beginning.value - position.value : nil }
}

/// Finds and closes gaps in the inputs of one worker. It needs only the log, no local state.
public struct GapAcceptance {
    /// Names of the worker's topics and of its group.
    public struct Place: Sendable {
        public var worker: String
        public var group: String
        /// The topic of events first, then the tables.
        public var inputs: [String]
        public var changelog: String
        public var deadLetters: String
        /// `perennial/<version>`.
        public var app: String

        public init(
            worker: String, group: String, inputs: [String], changelog: String, deadLetters: String, app: String
        ) {
            self.worker = worker
            self.group = group
            self.inputs = inputs
            self.changelog = changelog
            self.deadLetters = deadLetters
            self.app = app
        }
    }

    private let place: Place
    private let log: any RecordLog

    public init(_ place: Place, log: any RecordLog) {
        self.place = place
        self.log = log
    }

    // MARK: Looking

    /// The gaps in these partitions of the inputs. This changes nothing.
    public func look(at partitions: [Int32], by deadline: Deadline) throws(LogFault) -> [AcceptableGap] {
        let reader = try log.openReader(
            ReaderOptions(name: "accept-gap", group: place.group, topics: [place.changelog] + place.inputs))
        defer { reader.close(by: Deadline(after: .seconds(5))) }
        var gaps: [AcceptableGap] = []
        for number in partitions {
            let changelog = TopicPartition(place.changelog, number)
            guard let note = try ChangelogTail.note(of: changelog, reader, by: deadline) else { continue }
            for input in place.inputs {
                if let gap = try gap(TopicPartition(input, number), note, reader, by: deadline) { gaps.append(gap) }
            }
        }
        return gaps
    }

    private func gap(
        _ input: TopicPartition, _ note: Note, _ reader: any LogReader, by deadline: Deadline
    ) throws(LogFault) -> AcceptableGap? {
        guard let position = note.positions[input.topic] else { return nil }
        guard let beginning = try reader.beginnings(of: [input], by: deadline)[input],
            let end = try reader.ends(.all, of: [input], by: deadline)[input]
        else { throw LogFault(.retrySameCall, .timedOut, "the broker did not return the end offsets of \(input)") }
        guard InputGap.find(input, at: position, beginning: beginning, end: end) != nil else { return nil }
        return AcceptableGap(
            input: input, position: position, beginning: beginning, end: end,
            clock: note.clock == .min ? nil : note.clock,
            firstTimestamp: try firstTimestamp(input, from: beginning, to: end, reader, by: deadline))
    }

    private func firstTimestamp(
        _ input: TopicPartition, from beginning: NextOffset, to end: NextOffset, _ reader: any LogReader,
        by deadline: Deadline
    ) throws(LogFault) -> Int64? {
        try reader.read(from: [input: beginning])
        let batch = RecordBatch()
        defer { batch.removeAll() }
        while (reader.position(of: input) ?? beginning) < end, !deadline.hasPassed {
            try reader.poll(into: batch, limit: 1, wait: .milliseconds(100))
            if batch.count > 0 { return batch[0].timestamp }
        }
        return nil
    }

    // MARK: Closing

    /// Sets the worker's position in this input, in the group and in the changelog, and writes a dead letter about it,
    /// all in one transaction. The group must have no members.
    public func accept(_ gap: AcceptableGap, at next: NextOffset, by deadline: Deadline) throws(LogFault) {
        let takeover = try log.openTakeover(
            TakeoverOptions(
                group: place.group, identity: "\(place.group).accept-gap",
                topics: [place.changelog, place.deadLetters]), by: deadline)
        defer { takeover.close(by: Deadline(after: .seconds(5))) }
        let note = try settledNote(of: gap, takeover, by: deadline)
        let outputs = OutputBatch()
        addNote(note, gap, next, to: outputs)
        addLetter(gap, next, to: outputs)
        try takeover.append(outputs)
        try takeover.commit([gap.input: next])
    }

    /// The note of the changelog, if it agrees with the group and with the position that `look` found.
    private func settledNote(
        of gap: AcceptableGap, _ takeover: any GroupTakeover, by deadline: Deadline
    ) throws(LogFault) -> Note {
        let committed = try takeover.committed([gap.input], by: deadline)[gap.input]
        let reader = try log.openReader(
            ReaderOptions(name: "accept-gap", group: place.group, topics: [place.changelog]))
        defer { reader.close(by: Deadline(after: .seconds(5))) }
        let changelog = TopicPartition(place.changelog, gap.input.partition)
        guard let note = try ChangelogTail.note(of: changelog, reader, by: deadline),
            note.positions[gap.input.topic] == gap.position
        else {
            throw LogFault(
                .stop, .misuse,
                "the worker's position in \(gap.input) has changed since it was checked: run the command again")
        }
        if let committed, committed != gap.position {
            throw LogFault(
                .stop, .misuse,
                "the group \(place.group) has committed offset \(committed) of \(gap.input), but the worker's state is "
                    + "at \(gap.position): set the group's offset to the state's position first")
        }
        return note
    }

    private func addNote(_ note: Note, _ gap: AcceptableGap, _ next: NextOffset, to outputs: OutputBatch) {
        var note = note
        note.positions[gap.input.topic] = next
        // `emitted` counts the outputs of the record at the old position.
        if gap.input.topic == place.inputs[0] { note.emitted = 0 }
        outputs.begin(topic: 0, partition: gap.input.partition, timestamp: max(0, note.clock))
        let (key, value) = (ChangelogKey.note, note.encoded)
        outputs.end(key: key.span, value: value.span)
    }

    private func addLetter(_ gap: AcceptableGap, _ next: NextOffset, to outputs: OutputBatch) {
        let (input, clock) = (gap.input, max(0, gap.clock ?? 0))
        let lost = gap.lostOffsets.map { "\($0) offsets" } ?? "an unknown number of records"
        outputs.begin(topic: 1, partition: input.partition, timestamp: clock)
        outputs.header(HeaderName.gap, Array("\(gap.position)-\(next)".utf8).span)
        outputs.header(HeaderName.reason, Array("gap".utf8).span)
        outputs.header(
            HeaderName.detail,
            Array("\(lost) of \(input) were lost before they were read; accepted, reading continues at \(next)".utf8)
                .span)
        outputs.header(HeaderName.source, Array("\(input.topic):\(input.partition):\(gap.position)".utf8).span)
        outputs.header(HeaderName.firstTimestamp, Array("\(clock)".utf8).span)
        outputs.header(HeaderName.app, Array(place.app.utf8).span)
        outputs.end(key: nil, value: nil)
    }
}
