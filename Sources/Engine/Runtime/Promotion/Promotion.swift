// Replaces a live worker's state with that of a replay that has the same positions.

public import Log
public import Platform
public import Store

/// Moves the state of a replay, and the values in which it differs, to the live topics, while the live group has no
/// members.
///
/// All writes follow the rules of the live topics: a value has a greater sequence than the one before it, and the
/// changelog continues. So readers need no change. If a promotion is killed, start it again: it finds what it has
/// already moved.
public struct Promotion {
    private static let bytesPerTransaction = 8 << 20
    private static let patience: Duration = .seconds(30)

    let live: WorkerDefinition
    let shadow: WorkerDefinition
    /// The copy of the live state that is made first. nil: no copy is made.
    let kept: WorkerDefinition?
    /// Name of the replay.
    let name: String
    let rules: any PromotionRules
    let log: any RecordLog
    /// Directory for the tables; its contents are deleted.
    let scratch: any PartitionStores
    /// Called before each step: for progress output, and for tests that end the process there.
    let begins: (PromotionStep) throws(PromotionFault) -> Void

    public init(
        live: WorkerDefinition, shadow: WorkerDefinition, kept: WorkerDefinition?, name: String,
        rules: any PromotionRules, log: any RecordLog, scratch: any PartitionStores,
        begins: @escaping (PromotionStep) throws(PromotionFault) -> Void
    ) {
        self.live = live
        self.shadow = shadow
        self.kept = kept
        self.name = name
        self.rules = rules
        self.log = log
        self.scratch = scratch
        self.begins = begins
    }

    /// The positions of the live worker and of the replay in one partition.
    struct Place {
        let partition: Int32
        let live: Note
        let shadow: Note
    }

    // MARK: Positions

    /// What the state of a worker says.
    public struct Standing: Sendable, Equatable {
        /// Positions by input; partitions without a state are not included.
        public var positions: [TopicPartition: NextOffset] = [:]
        /// The replay whose promotion is in progress.
        public var promotion: String?
    }

    public func standing(ofLive isLive: Bool, by deadline: Deadline) throws(PromotionFault) -> Standing {
        var standing = Standing()
        for (number, note) in try notes(isLive ? live : shadow, by: deadline) {
            for (topic, next) in note.positions { standing.positions[TopicPartition(topic, number)] = next }
            standing.promotion = standing.promotion ?? note.promotion
        }
        return standing
    }

    /// Every live value of the output that has one value per key, including values that were replaced since.
    public func eachLiveValue(
        by deadline: Deadline, _ take: ([UInt8]) -> Void
    ) throws(PromotionFault) {
        for number in 0..<live.partitions {
            let partition = TopicPartition(live.outputs[rules.values].topic, number)
            try TopicScan.run(partition, log, group: live.group, by: deadline) { record throws(PromotionFault) in
                if let value = record.copyOfValue() { take(value) }
            }
        }
    }

    private func openReader(_ changelog: String) throws(LogFault) -> any LogReader {
        try log.openReader(
            ReaderOptions(name: "\(live.name)-promote", group: live.group, topics: [changelog]))
    }

    /// All partitions that have a state. Refused if the replay's positions are not exactly those of the live worker.
    private func places(by deadline: Deadline) throws(PromotionFault) -> [Place] {
        var places: [Place] = []
        var reasons: [String] = []
        let (liveNotes, shadowNotes) = (try notes(live, by: deadline), try notes(shadow, by: deadline))
        for number in 0..<live.partitions {
            switch (liveNotes[number], shadowNotes[number]) {
            case (nil, nil): continue
            case (nil, .some):
                reasons.append("partition \(number): the live worker has no state there, but the replay has one")
            case (.some, nil): reasons.append("partition \(number): the replay has no state there yet")
            case (let live?, let shadow?):
                reasons += self.reasons(number, live, shadow)
                places.append(Place(partition: number, live: live, shadow: shadow))
            }
        }
        if !reasons.isEmpty { throw .refused(reasons) }
        return places
    }

    private func notes(
        _ definition: WorkerDefinition, by deadline: Deadline
    ) throws(PromotionFault) -> [Int32: Note] {
        try PromotionFault.asking { () throws(LogFault) in
            let reader = try openReader(definition.changelog)
            defer { reader.close(by: Deadline(after: .seconds(5))) }
            var notes: [Int32: Note] = [:]
            for number in 0..<definition.partitions {
                let changelog = TopicPartition(definition.changelog, number)
                notes[number] = try ChangelogTail.note(of: changelog, reader, by: deadline)
            }
            return notes
        }
    }

    private func reasons(_ number: Int32, _ live: Note, _ shadow: Note) -> [String] {
        var reasons: [String] = []
        for (topic, next) in live.positions.sorted(by: { $0.key < $1.key }) {
            let other = shadow.positions[topic]
            guard other != next else { continue }
            let words = other.map { "\($0)" } ?? "nowhere"
            reasons.append(
                "partition \(number): the live worker is at \(next) of \(topic), but the replay is at \(words)")
        }
        if live.emitted > 0 {
            reasons.append(
                "partition \(number): the live worker was stopped between the timers of one record; start it for a moment and "
                    + "stop it again")
        }
        if let words = self.live.unreadable(shadow) { reasons.append("partition \(number): \(words)") }
        return reasons
    }

    // MARK: Running

    /// Counts what a promotion would move now. Changes nothing.
    public func count(_ partitions: [Int32], by deadline: Deadline) throws(PromotionFault) -> PromotionCounts {
        var counts = PromotionCounts()
        for number in partitions {
            let move = try PartitionMove(self, number, by: deadline)
            counts += try move.run { (_: OutputBatch) throws(PromotionFault) in }.counts
            try move.close()
        }
        return counts
    }

    /// Copies the live state, marks it, moves the replay's state, and removes the marks.
    public func run(by deadline: Deadline) throws(PromotionFault) -> PromotionCounts {
        let places = try places(by: deadline)
        // After an interrupted promotion the state is a mixture and not worth a copy; the copy from before exists.
        let isUnderWay = places.contains { $0.live.promotion != nil }
        if let kept, !isUnderWay {
            try begins(.keep)
            try StateCopy(self, kept).run(places, by: deadline)
        }
        let takeover = try openTakeover(by: deadline)
        defer { takeover.close(by: Deadline(after: .seconds(5))) }
        try begins(.mark)
        try mark(places, takeover, by: deadline)
        var counts = PromotionCounts()
        var sums: [Int32: StateSum] = [:]
        for place in places {
            try begins(.move(place.partition))
            let move = try PartitionMove(self, place.partition, by: deadline)
            var bytes = 0
            let moved = try move.run { outputs throws(PromotionFault) in
                bytes += outputs.byteCount
                try PromotionFault.asking { () throws(LogFault) in try takeover.append(outputs) }
                guard bytes >= Self.bytesPerTransaction else { return }
                bytes = 0
                try PromotionFault.asking { () throws(LogFault) in try takeover.commit([:]) }
            }
            try PromotionFault.asking { () throws(LogFault) in try takeover.commit([:]) }
            try move.close()
            counts += moved.counts
            sums[place.partition] = moved.sum
        }
        try begins(.finish)
        try finish(places, sums, takeover)
        return counts
    }

    private func openTakeover(by deadline: Deadline) throws(PromotionFault) -> any GroupTakeover {
        try PromotionFault.asking { () throws(LogFault) in
            try log.openTakeover(
                TakeoverOptions(
                    group: live.group, identity: "\(live.group).promote",
                    topics: live.outputs.map(\.topic) + [live.changelog]), by: deadline)
        }
    }

    private func positions(_ places: [Place]) -> [TopicPartition: NextOffset] {
        var positions: [TopicPartition: NextOffset] = [:]
        for place in places {
            for (topic, next) in place.live.positions { positions[TopicPartition(topic, place.partition)] = next }
        }
        return positions
    }

    /// No worker may have run since the positions were read. After the marks no worker can.
    private func mark(_ places: [Place], _ takeover: any GroupTakeover, by deadline: Deadline) throws(PromotionFault) {
        let wanted = positions(places)
        let committed = try PromotionFault.asking { () throws(LogFault) in
            try takeover.committed(Array(wanted.keys), by: deadline)
        }
        for (partition, next) in committed.sorted(by: { $0.key < $1.key }) where wanted[partition] != next {
            throw .refused([
                "the group \(live.group) is at \(next) of \(partition), but its state is at \(wanted[partition]!): a "
                    + "worker has run meanwhile, or somebody has set the group's offsets"
            ])
        }
        let outputs = OutputBatch()
        for place in places {
            var note = place.live
            note.promotion = name
            note.sum = nil
            add(note, place.partition, to: outputs)
        }
        try PromotionFault.asking { () throws(LogFault) in
            try takeover.append(outputs)
            try takeover.commit(wanted)
        }
    }

    private func finish(
        _ places: [Place], _ sums: [Int32: StateSum], _ takeover: any GroupTakeover
    ) throws(PromotionFault) {
        let outputs = OutputBatch()
        for place in places {
            var note = place.shadow
            note.life = place.live.life
            note.epoch = place.live.epoch + 1
            note.sum = sums[place.partition]
            note.promotion = nil
            add(note, place.partition, to: outputs)
        }
        try PromotionFault.asking { () throws(LogFault) in
            try takeover.append(outputs)
            try takeover.commit(positions(places))
        }
    }

    private func add(_ note: Note, _ partition: Int32, to outputs: OutputBatch) {
        var note = note
        // Only stores use these.
        (note.changelog, note.writtenAt, note.noteOffset) = (NextOffset(0), 0, nil)
        outputs.begin(topic: live.outputs.count, partition: partition, timestamp: max(0, note.clock))
        let (key, value) = (ChangelogKey.note, note.encoded)
        outputs.end(key: key.span, value: value.span)
    }
}
