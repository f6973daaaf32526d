// The cut-over from a live worker to a replay of it that has come exactly as far.

public import Log
public import Platform
public import Store

/// Moves the state of a replay, and the values in which it differs, into the live topics, while nobody is in the live group.
///
/// Everything is written in the live topics' own order of things: a value has a greater sequence than the one before it, and the
/// changelog goes on where it was. So readers need to know nothing, and a promotion that is killed is begun again: what it has
/// moved already it finds there.
public struct Promotion {
    private static let bytesPerTransaction = 8 << 20
    private static let patience: Duration = .seconds(30)

    let live: WorkerDefinition
    let shadow: WorkerDefinition
    /// Where the live state goes before; nil: nowhere.
    let kept: WorkerDefinition?
    /// Of the replay.
    let name: String
    let rules: any PromotionRules
    let log: any RecordLog
    /// Of the tables; what is there is removed.
    let scratch: any PartitionStores
    /// Before each step: for progress, and for tests that end the process there.
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

    /// Where the live worker and the replay stand in one partition.
    struct Place {
        let partition: Int32
        let live: Note
        let shadow: Note
    }

    // MARK: Where both stand

    /// What the state of a worker tells.
    public struct Standing: Sendable, Equatable {
        /// Of every input; partitions without a state are left out.
        public var positions: [TopicPartition: NextOffset] = [:]
        /// The replay whose promotion is under way.
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

    /// Every live value of the output that has one for each key, those that others have replaced since included.
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

    /// All partitions that have a state. Refused when the replay has not come exactly as far as the live worker.
    private func places(by deadline: Deadline) throws(PromotionFault) -> [Place] {
        var places: [Place] = []
        var reasons: [String] = []
        let (liveNotes, shadowNotes) = (try notes(live, by: deadline), try notes(shadow, by: deadline))
        for number in 0..<live.partitions {
            switch (liveNotes[number], shadowNotes[number]) {
            case (nil, nil): continue
            case (nil, .some):
                reasons.append("partition \(number): the live worker has no state there, and the replay has")
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
            reasons.append("partition \(number): the live worker is at \(next) of \(topic), and the replay at \(words)")
        }
        if live.emitted > 0 {
            reasons.append(
                "partition \(number): the live worker was stopped between the timers of one record; start it for a moment and "
                    + "stop it again")
        }
        if let words = self.live.unreadable(shadow) { reasons.append("partition \(number): \(words)") }
        return reasons
    }

    // MARK: All of it

    /// What would be moved as things stand, the replay being where it is. Changes nothing.
    public func count(_ partitions: [Int32], by deadline: Deadline) throws(PromotionFault) -> PromotionCounts {
        var counts = PromotionCounts()
        for number in partitions {
            let move = try PartitionMove(self, number, by: deadline)
            counts += try move.run { (_: OutputBatch) throws(PromotionFault) in }.counts
            try move.close()
        }
        return counts
    }

    /// Keeps, marks, moves, finishes.
    public func run(by deadline: Deadline) throws(PromotionFault) -> PromotionCounts {
        let places = try places(by: deadline)
        // A mixture is nothing to go back to; what there was is kept already.
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

    /// Nobody may have worked since the places were looked at; from here on nobody does.
    private func mark(_ places: [Place], _ takeover: any GroupTakeover, by deadline: Deadline) throws(PromotionFault) {
        let wanted = positions(places)
        let committed = try PromotionFault.asking { () throws(LogFault) in
            try takeover.committed(Array(wanted.keys), by: deadline)
        }
        for (partition, next) in committed.sorted(by: { $0.key < $1.key }) where wanted[partition] != next {
            throw .refused([
                "the group \(live.group) is at \(next) of \(partition), and its state at \(wanted[partition]!): somebody has "
                    + "worked meanwhile, or has set the group's offsets"
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
        // Of stores alone.
        (note.changelog, note.writtenAt, note.noteOffset) = (NextOffset(0), 0, nil)
        outputs.begin(topic: live.outputs.count, partition: partition, timestamp: max(0, note.clock))
        let (key, value) = (ChangelogKey.note, note.encoded)
        outputs.end(key: key.span, value: value.span)
    }
}
