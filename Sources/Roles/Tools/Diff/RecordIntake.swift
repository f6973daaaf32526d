// Passes records of both topics to the join.

import Cluster
import Contract
import Log
import Notices
import Platform

/// For one partition of both sides. One thread.
final class RecordIntake {
    private let topic: DiffedTopic
    private let join: KeyJoin
    private let requests = RequestFold()
    private var rules: (here: SourceRule, there: SourceRule)
    /// The timestamp of the first record of the live topic that is still there.
    private(set) var oldestThere: Int64?

    init(_ topic: DiffedTopic, _ join: KeyJoin, _ positions: InputPositions) {
        self.topic = topic
        self.join = join
        rules = (.shadow(positions), .live(positions))
    }

    func add(_ record: borrowing RecordView, _ side: Side) throws(ToolFault) {
        if side == .there, oldestThere == nil { oldestThere = record.timestamp }
        if case .newer(let words) = topic.kind.meaning(of: record, upgrade: "the perennial that compares") {
            throw ToolFault(.wrongUsage, "\(side == .here ? "shadow" : "live") topic of \(topic.id.name): \(words)")
        }
        // No worker writes a record without a key.
        guard let key = record.key else { return }
        let source = record.header(HeaderName.source)
        let isNewer = side == .here ? rules.here.isNewer(source) : rules.there.isNewer(source)
        guard topic.id == .consumption else {
            return try join.add(
                side, key: key, value: record.value, isNewer: isNewer, offset: record.offset,
                timestamp: record.timestamp)
        }
        // If a step cannot be read, only its subscription is known.
        guard let value = record.value, let step = requests.step(value) else {
            return try join.add(
                side, key: key, value: record.value, isNewer: isNewer, offset: record.offset,
                timestamp: record.timestamp)
        }
        guard step.isDecision else { return }
        try join.add(
            side, key: step.id.bytes.span, value: value, isNewer: isNewer, offset: record.offset,
            timestamp: record.timestamp)
    }
}
