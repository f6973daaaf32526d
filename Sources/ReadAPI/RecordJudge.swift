// What a record of a followed topic means for the copy.

internal import Churn
internal import Contract
internal import JSON
internal import Log

/// Looks at one record after the other. One thread.
struct RecordJudge: ~Copyable {
    enum Verdict: Equatable {
        case put(KeySpace)
        case cell(KeptCell)
        case delete
        /// Of a type that this build does not know.
        case skip
        /// Not to be answered with. What its key had before goes too: it is not the state any more, and a compacted topic has
        /// forgotten it.
        case keepOut(Flaw)
        /// Written by a later build: nothing behind it may be read before this one is upgraded.
        case newer(String)
    }

    /// A closed set: these become labels.
    enum Flaw: String, CaseIterable {
        case key, type, schema, json, shape
    }

    private var json = JSONDocument(limits: PublishedRecord.limits)

    mutating func judge(_ record: borrowing RecordView, _ topic: FollowedTopic) -> Verdict {
        guard let key = record.key, Self.isKey(key, of: topic, in: record.partition) else { return .keepOut(.key) }
        // Whatever its headers say: compaction takes the key's earlier values for it, too.
        guard let value = record.value else { return .delete }
        guard let type = record.header("type") else { return .keepOut(.type) }
        guard type.equals(topic.type.rawValue) else { return .skip }
        switch Self.version(record.header("schema"), topic.type) {
        case nil: return .keepOut(.schema)
        case let version? where version > topic.type.version:
            return .newer(
                "a record has the schema \(topic.type.rawValue)/\(version), and this build reads up to "
                    + "\(topic.type.version): upgrade perennial api")
        default: break
        }
        do throws(JSONFault) { try json.read(value) } catch { return .keepOut(.json) }
        if topic == .cells { return cell(record) }
        guard PublishedRecord.isOne(json.root, in: json) else { return .keepOut(.shape) }
        switch topic {
        case .entitlements: return .put(.entitlements)
        case .accounts: return .put(PublishedRecord.isGranting(json.root, in: json) ? .granting : .others)
        case .cells: return .keepOut(.shape)
        }
    }

    /// Of what was read. A cell without anything would be a deletion: its worker writes none.
    private func cell(_ record: borrowing RecordView) -> Verdict {
        guard let cell = CellRecord(json), let key = record.copyOfKey(), cell.key == CellKey(key) else {
            return .keepOut(.shape)
        }
        return .cell(KeptCell(cell))
    }

    private static func isKey(_ key: Span<UInt8>, of topic: FollowedTopic, in partition: Int32) -> Bool {
        switch topic {
        case .entitlements: return key.count > 0
        // <appAccountToken>|<originalTransactionId>
        case .accounts:
            for index in key.indices where key[index] == UInt8(ascii: "|") { return index > 0 }
            return false
        // <partition>|<day>|...
        case .cells: return CellKey(key.withUnsafeBufferPointer { Array($0) })?.partition == partition
        }
    }

    /// nil: no schema of this type. A record without the header is of the first version.
    private static func version(_ schema: Span<UInt8>?, _ type: RecordType) -> Int? {
        guard let schema else { return 1 }
        let name = type.rawValue.utf8.count
        // Nine digits at most, so that every number fits.
        guard schema.count > name + 1, schema.count <= name + 10,
            schema.extracting(first: name + 1).equals("\(type.rawValue)/")
        else { return nil }
        var number = 0
        for index in (name + 1)..<schema.count {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(schema[index]) else { return nil }
            number = number * 10 + Int(schema[index] - UInt8(ascii: "0"))
        }
        return number > 0 ? number : nil
    }
}

extension Span<UInt8> {
    func equals(_ text: String) -> Bool {
        withUnsafeBufferPointer { $0.elementsEqual(text.utf8) }
    }
}
