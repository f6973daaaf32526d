// A copy of the live state and values, under the names of a replay, with which a promotion can be undone.

internal import Log
internal import Platform

/// The copy is a replay with the live worker's positions. To undo a promotion, promote the copy.
struct StateCopy {
    private static let bytesPerBatch = 1 << 20

    private let promotion: Promotion
    private let kept: WorkerDefinition

    init(_ promotion: Promotion, _ kept: WorkerDefinition) {
        self.promotion = promotion
        self.kept = kept
    }

    /// The topics of the copy exist, and are empty unless the same state was copied before.
    func run(_ places: [Promotion.Place], by deadline: Deadline) throws(PromotionFault) {
        let positions = Dictionary(
            uniqueKeysWithValues: places.flatMap { place in
                place.live.positions.map { (TopicPartition($0.key, place.partition), $0.value) }
            })
        let compacted = promotion.rules.compacted
        let topics = compacted.map { kept.outputs[$0].topic } + [kept.changelog]
        let takeover = try PromotionFault.asking { () throws(LogFault) in
            try promotion.log.openTakeover(
                TakeoverOptions(group: kept.group, identity: "\(kept.group).keep", topics: topics), by: deadline)
        }
        defer { takeover.close(by: Deadline(after: .seconds(5))) }
        // The offsets are committed when the copy is complete.
        let committed = try PromotionFault.asking { () throws(LogFault) in
            try takeover.committed(Array(positions.keys), by: deadline)
        }
        if committed == positions { return }
        let sources = compacted.map { promotion.live.outputs[$0].topic } + [promotion.live.changelog]
        // Any partition may contain values of the other outputs.
        for (topic, source) in sources.enumerated() {
            for number in 0..<promotion.live.partitions {
                try copy(TopicPartition(source, number), as: topic, takeover, by: deadline)
            }
        }
        try PromotionFault.asking { () throws(LogFault) in try takeover.commit(positions) }
    }

    private func copy(
        _ source: TopicPartition, as topic: Int, _ takeover: any GroupTakeover, by deadline: Deadline
    ) throws(PromotionFault) {
        let outputs = OutputBatch()
        func hand() throws(PromotionFault) {
            try PromotionFault.asking { () throws(LogFault) in
                try takeover.append(outputs)
                try takeover.commit([:])
            }
            outputs.removeAll()
        }
        try TopicScan.run(source, promotion.log, group: promotion.live.group, by: deadline) {
            record throws(PromotionFault) in
            outputs.begin(topic: topic, partition: source.partition, timestamp: record.timestamp)
            for header in record.headers { outputs.header(header) }
            outputs.end(key: record.key, value: record.value)
            if outputs.byteCount >= Self.bytesPerBatch { try hand() }
        }
        if !outputs.isEmpty { try hand() }
    }
}
