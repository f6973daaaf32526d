// Counts the verdicts for the keys of one topic, and selects samples.

import Churn
import Comparison
import Contract
import JSON

/// A key whose values differ.
struct DiffSample {
    let topic: TopicID
    let partition: Int32
    let key: [UInt8]
    let verdict: KeyVerdict
    /// The last record of each side.
    let here: JoinedRecord?
    let there: JoinedRecord?
}

/// One thread.
struct TopicComparer: ~Copyable {
    private let topic: DiffedTopic
    private let isCells: Bool
    private let requests = RequestFold()
    private var judge: KeyJudge
    private var json = JSONDocument()
    private var samplesLeft: Int
    private(set) var counts = DiffCounts()

    init(_ topic: DiffedTopic, _ worker: WorkerName, samples: Int) {
        self.topic = topic
        isCells = topic.id == .churnCells
        judge = KeyJudge(topic.rules)
        samplesLeft = samples
    }

    /// - Parameter oldestThere: if the first records of the live topic were deleted, the timestamp of the first that is left.
    /// - Returns: a sample to show.
    mutating func add(
        _ key: JoinedKey, partition: Int32, oldestThere: Int64?, _ cells: inout CellSides
    ) -> DiffSample? {
        var (here, there) = (merged(key.here), merged(key.there))
        if isCells { (here, there) = (withoutEmptyCell(here), withoutEmptyCell(there)) }
        let verdict = judge.judge(
            here: here.map { KeptValue($0.value, isNewer: $0.isNewer) },
            there: there.map { KeptValue($0.value, isNewer: $0.isNewer) })
        let isLeftOut = verdict.isDifference && isLeftOut(key, oldestThere)
        if isCells { addCells(here, there, isAlike: verdict == .newer || isLeftOut, &cells) }
        if isLeftOut {
            counts.leftOut += 1
            return nil
        }
        count(verdict)
        guard verdict.isDifference, samplesLeft > 0 else { return nil }
        samplesLeft -= 1
        return DiffSample(
            topic: topic.id, partition: partition, key: key.key, verdict: verdict, here: here, there: there)
    }

    /// Whether the live topic, which has a limited retention, has lost the records of this key.
    private func isLeftOut(_ key: JoinedKey, _ oldestThere: Int64?) -> Bool {
        guard topic.id == .consumption, let oldestThere else { return false }
        return key.here.contains { $0.timestamp < oldestThere }
    }

    private mutating func count(_ verdict: KeyVerdict) {
        switch verdict {
        case .same: counts.same += 1
        case .newer: counts.newer += 1
        case .nothing: break
        case .different: counts.different += 1
        case .onlyHere: counts.onlyHere += 1
        case .onlyThere: counts.onlyThere += 1
        }
    }

    /// In a topic of steps, all steps together are one value.
    private func merged(_ records: [JoinedRecord]) -> JoinedRecord? {
        guard var record = records.last else { return nil }
        guard topic.id == .consumption else { return record }
        let steps = records.compactMap(\.value)
        record.value = steps.isEmpty ? nil : requests.value(steps)
        record.isNewer = records.contains(where: \.isNewer)
        return record
    }

    // MARK: Cells

    /// A cell whose counters are all zero equals a missing cell.
    private mutating func withoutEmptyCell(_ record: JoinedRecord?) -> JoinedRecord? {
        guard var record, let value = record.value, let cell = cell(value), cell.sums.isEmpty else { return record }
        record.value = nil
        return record
    }

    private mutating func addCells(
        _ here: JoinedRecord?, _ there: JoinedRecord?, isAlike: Bool, _ cells: inout CellSides
    ) {
        cells.add(
            shadow: here?.value.flatMap { cell($0) }, live: there?.value.flatMap { cell($0) }, isAlike: isAlike)
    }

    private mutating func cell(_ value: [UInt8]) -> CellRecord? {
        do throws(JSONFault) { try json.read(value.span) } catch { return nil }
        return CellRecord(json)
    }
}
