// Judges what a record of a followed topic means for the copy.

internal import Churn
internal import Consumption
internal import Contract
internal import JSON
internal import Log
internal import Notices
internal import Records

/// Judges records of all partitions, one after the other. Used on one thread.
final class RecordJudge {
    enum Verdict: Equatable {
        case put(KeySpace)
        case cell(KeptCell)
        case refund(ArrivingRefund)
        case event(sequence: Int64)
        case delete
        /// The record has a type that this build does not know.
        case skip
        /// The record cannot be used in an answer. The earlier value of its key is removed too: it is not current any
        /// more, and a compacted topic has dropped it.
        case keepOut(Flaw)
        /// Written by a later build: nothing after it may be read before this build is upgraded.
        case newer(String)
    }

    /// A closed set: these become labels.
    enum Flaw: String, CaseIterable {
        case key, type, schema, json, shape
    }

    /// Indexed by topic.
    private static let kinds = FollowedTopic.allCases.map { RecordKind($0.type.rawValue, version: $0.type.version) }

    private var json = JSONDocument(limits: PublishedRecord.limits)

    func judge(_ record: borrowing RecordView, _ topic: FollowedTopic) -> Verdict {
        guard let key = record.key, Self.isKey(key, of: topic, in: record.partition) else { return .keepOut(.key) }
        // Whatever its headers say: compaction also drops the earlier values of its key.
        guard let value = record.value else { return topic.isCompacted ? .delete : .keepOut(.shape) }
        switch Self.kinds[topic.rawValue].meaning(of: record, upgrade: "perennial api") {
        case .known: break
        case .newer(let words): return .newer(words)
        case .unknownType: return .skip
        case .strange(.type): return .keepOut(.type)
        case .strange(.schema): return .keepOut(.schema)
        }
        do throws(JSONFault) { try json.read(value) } catch { return .keepOut(.json) }
        if topic == .cells { return cell(record) }
        if topic == .consumption { return refund(key) }
        if topic == .events { return event(key) }
        guard PublishedRecord.isOne(json.root, in: json) else { return .keepOut(.shape) }
        switch topic {
        case .entitlements: return .put(.entitlements)
        case .accounts: return .put(PublishedRecord.isGranting(json.root, in: json) ? .granting : .others)
        case .cells, .consumption, .events: return .keepOut(.shape)
        }
    }

    /// Judges the record in `json`. Answers look for it in the partition of its subscription.
    private func refund(_ key: Span<UInt8>) -> Verdict {
        guard let record = ConsumptionRecord(json) else { return .keepOut(.shape) }
        let isOfKey = key.withUnsafeBufferPointer { $0.elementsEqual(record.originalTransactionId.bytes) }
        return isOfKey ? .refund(ArrivingRefund(record)) : .keepOut(.key)
    }

    /// Judges the record in `json`.
    private func event(_ key: Span<UInt8>) -> Verdict {
        guard let sequence = HistoryEntry.sequence(json),
            let id = json.member("originalTransactionId", of: json.root).flatMap({ json.text($0.value) })
        else { return .keepOut(.shape) }
        let isOfKey = key.withUnsafeBufferPointer { $0.elementsEqual(id.utf8) }
        return isOfKey ? .event(sequence: sequence) : .keepOut(.key)
    }

    /// Judges the record in `json`. A cell without sums would be a deletion, which its worker does not write this way.
    private func cell(_ record: borrowing RecordView) -> Verdict {
        guard let cell = CellRecord(json), let key = record.copyOfKey(), cell.key == CellKey(key) else {
            return .keepOut(.shape)
        }
        return .cell(KeptCell(cell))
    }

    private static func isKey(_ key: Span<UInt8>, of topic: FollowedTopic, in partition: Int32) -> Bool {
        switch topic {
        case .entitlements, .consumption, .events: return key.count > 0
        // <appAccountToken>|<originalTransactionId>
        case .accounts:
            for index in key.indices where key[index] == UInt8(ascii: "|") { return index > 0 }
            return false
        // <partition>|<day>|...
        case .cells: return CellKey(key.withUnsafeBufferPointer { Array($0) })?.partition == partition
        }
    }
}
