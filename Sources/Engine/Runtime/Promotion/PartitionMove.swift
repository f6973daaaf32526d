// Moves state and values of one partition from the replay to the live topics.

internal import Log
internal import Platform
internal import Store

/// Compares the replay with the live topics, key by key, and passes on what has to be written.
struct PartitionMove {
    private static let bytesPerBatch = 1 << 20

    private let promotion: Promotion
    private let partition: Int32
    private let liveValues: JoinTable
    private let shadowValues: JoinTable
    private let liveState: JoinTable
    private let shadowState: JoinTable
    private let epoch: UInt32

    init(_ promotion: Promotion, _ partition: Int32, by deadline: Deadline) throws(PromotionFault) {
        self.promotion = promotion
        self.partition = partition
        liveValues = try JoinTable(promotion.scratch, 0)
        shadowValues = try JoinTable(promotion.scratch, 1)
        liveState = try JoinTable(promotion.scratch, 2)
        shadowState = try JoinTable(promotion.scratch, 3)
        let values = promotion.rules.values
        try Self.load(promotion, promotion.live.outputs[values].topic, partition, liveValues, by: deadline)
        try Self.load(promotion, promotion.shadow.outputs[values].topic, partition, shadowValues, by: deadline)
        epoch = try Self.loadState(promotion, promotion.live, partition, liveState, by: deadline)
        _ = try Self.loadState(promotion, promotion.shadow, partition, shadowState, by: deadline)
    }

    func close() throws(PromotionFault) {
        for table in [liveValues, shadowValues, liveState, shadowState] { try table.close() }
    }

    private static func load(
        _ promotion: Promotion, _ topic: String, _ partition: Int32, _ table: JoinTable, by deadline: Deadline
    ) throws(PromotionFault) {
        let place = TopicPartition(topic, partition)
        try TopicScan.run(place, promotion.log, group: promotion.live.group, by: deadline) {
            record throws(PromotionFault) in
            guard let key = record.copyOfKey() else { return }
            try table.put(key, record.copyOfValue().map { KeptRecord(record, value: $0).bytes })
        }
        try table.flush()
    }

    /// - Returns: the epoch of the last note.
    private static func loadState(
        _ promotion: Promotion, _ definition: WorkerDefinition, _ partition: Int32, _ table: JoinTable,
        by deadline: Deadline
    ) throws(PromotionFault) -> UInt32 {
        let place = TopicPartition(definition.changelog, partition)
        var epoch: UInt32 = 0
        try TopicScan.run(place, promotion.log, group: promotion.live.group, by: deadline) {
            record throws(PromotionFault) in
            guard let key = record.copyOfKey(), let first = key.first else { return }
            if first == ChangelogKey.entry {
                try table.put(Array(key.dropFirst()), record.copyOfValue())
            } else if let note = record.copyOfValue().flatMap({ Note(decoding: $0) }) {
                epoch = note.epoch
            }
        }
        try table.flush()
        return epoch
    }

    // MARK: Moving

    /// - Parameter write: receives batches, whose topics are the live outputs and then the changelog.
    func run(
        _ write: (OutputBatch) throws(PromotionFault) -> Void
    ) throws(PromotionFault) -> (counts: PromotionCounts, sum: StateSum) {
        var counts = PromotionCounts()
        let outputs = OutputBatch()
        try moveValues(&counts, outputs, write)
        try liveValues.flush()
        let sum = try moveState(&counts, outputs, write)
        try write(outputs)
        return (counts, sum)
    }

    private func handOver(
        _ outputs: OutputBatch, _ write: (OutputBatch) throws(PromotionFault) -> Void
    ) throws(PromotionFault) {
        guard outputs.byteCount >= Self.bytesPerBatch else { return }
        try write(outputs)
        outputs.removeAll()
    }

    private func moveValues(
        _ counts: inout PromotionCounts, _ outputs: OutputBatch, _ write: (OutputBatch) throws(PromotionFault) -> Void
    ) throws(PromotionFault) {
        var (changed, added, same, removed) = (0, 0, 0, 0)
        try shadowValues.each { key, bytes throws(PromotionFault) in
            let shadow = try kept(bytes)
            let live = try liveValues.value(of: key).map { bytes throws(PromotionFault) in try kept(bytes) }
            let records = promotion.rules.replacement(of: key, live: live?.value, shadow: shadow.value)
            if records.isEmpty { same += 1 } else if live == nil { added += 1 } else { changed += 1 }
            add(records, as: shadow, to: outputs)
            for record in records where record.output == promotion.rules.values {
                var new = shadow
                new.value = record.value ?? []
                try liveValues.put(key, record.value == nil ? nil : new.bytes)
            }
            try handOver(outputs, write)
        }
        try liveValues.each { key, bytes throws(PromotionFault) in
            guard try shadowValues.value(of: key) == nil else { return }
            let live = try kept(bytes)
            removed += 1
            add(promotion.rules.replacement(of: key, live: live.value, shadow: nil), as: live, to: outputs)
            try handOver(outputs, write)
        }
        counts.changed += changed
        counts.added += added
        counts.same += same
        counts.removed += removed
    }

    private func kept(_ bytes: [UInt8]) throws(PromotionFault) -> KeptRecord {
        guard let record = KeptRecord(bytes) else { throw .store("its bytes are damaged") }
        return record
    }

    /// Adds headers of the source record, as this build writes them. An `id` must be unique in a topic, so this one gets
    /// a suffix. The schema is that of the output.
    private func add(_ records: [PromotedRecord], as source: KeptRecord, to outputs: OutputBatch) {
        for record in records {
            outputs.begin(
                topic: record.output, partition: record.partition ?? partition, timestamp: source.timestamp)
            for header in AppHeader.joined(source.headers) {
                if header.isNamed(HeaderName.type) { continue }
                if header.isNamed(HeaderName.id), let id = header.value {
                    outputs.header(RecordHeader(HeaderName.id, id + Array("-e\(epoch + 1)".utf8)))
                } else if header.isNamed(HeaderName.schema) {
                    outputs.header(RecordHeader(HeaderName.schema, promotion.live.outputs[record.output].schema))
                } else {
                    outputs.header(header)
                }
            }
            let (key, value) = (record.key, record.value)
            if let value {
                outputs.end(key: key.span, value: value.span)
            } else {
                outputs.end(key: key.span, value: nil)
            }
        }
    }

    private func moveState(
        _ counts: inout PromotionCounts, _ outputs: OutputBatch, _ write: (OutputBatch) throws(PromotionFault) -> Void
    ) throws(PromotionFault) -> StateSum {
        var sum = StateSum()
        var moved = 0
        let changelog = promotion.live.outputs.count
        try shadowState.each { key, bytes throws(PromotionFault) in
            let entry = try promoted(bytes, of: key)
            sum.add(EntryHash.hash(key: key.span, entry: entry.span))
            guard try liveState.value(of: key) != entry else { return }
            moved += 1
            addEntry(key, entry, changelog, to: outputs)
            try handOver(outputs, write)
        }
        try liveState.each { key, _ throws(PromotionFault) in
            guard try shadowState.value(of: key) == nil else { return }
            moved += 1
            addEntry(key, nil, changelog, to: outputs)
            try handOver(outputs, write)
        }
        counts.state += moved
        return sum
    }

    private func promoted(_ bytes: [UInt8], of key: [UInt8]) throws(PromotionFault) -> [UInt8] {
        guard var content = EntryCoding.decode(bytes.span), let state = content.value else {
            throw .log(LogFault(.stop, .other, "\(promotion.shadow.changelog) contains no state of this worker"))
        }
        let value = try liveValues.value(of: key).map { bytes throws(PromotionFault) in try kept(bytes).value }
        content.value = promotion.rules.state(state, format: content.format, of: key, after: value)
        var entry: [UInt8] = []
        EntryCoding.encode(content, withPlaces: false, into: &entry)
        return entry
    }

    private func addEntry(_ key: [UInt8], _ entry: [UInt8]?, _ topic: Int, to outputs: OutputBatch) {
        outputs.begin(topic: topic, partition: partition, timestamp: 0)
        let key = [ChangelogKey.entry] + key
        if let entry { outputs.end(key: key.span, value: entry.span) } else { outputs.end(key: key.span, value: nil) }
    }
}
