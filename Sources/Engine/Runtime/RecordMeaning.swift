// Decides by the headers of a record whether a worker can read it.

internal import Log

/// What the headers of a record mean.
enum RecordMeaning: Equatable {
    case known
    /// The record moves the clock, and the processor does not get it.
    case tick
    /// This build does not know the record's type: the record is skipped and counted.
    case unknownType
    /// A later build wrote the record: no later record may be read before this build is upgraded.
    case newerSchema(String)
    /// The headers are invalid.
    case strange(ProcessFailure)
}

extension InputTopic {
    private static let tick: StaticString = "tick"

    func meaning(of record: borrowing RecordView, isTable: Bool) -> RecordMeaning {
        guard let type = record.header(HeaderName.type) else {
            guard let kind = kindWithoutHeader else {
                return .strange(ProcessFailure("no_type", "the record has no header `type`"))
            }
            return version(of: record, kind)
        }
        if !isTable, equal(type, Self.tick) { return .tick }
        for kind in kinds where kind.record.isType(type) { return version(of: record, kind) }
        return .unknownType
    }

    private func version(of record: borrowing RecordView, _ kind: Kind) -> RecordMeaning {
        switch kind.record.schema(of: record) {
        case .known: return .known
        case .newer(let version): return .newerSchema(kind.record.words(of: version, upgrade: "this worker"))
        case .strange:
            let text = record.header(HeaderName.schema)?.withUnsafeBytes {
                String(decoding: $0.prefix(64), as: UTF8.self)
            }
            return .strange(ProcessFailure("schema", "`\(text ?? "")` is not a schema of this type"))
        }
    }
}

private func equal(_ left: Span<UInt8>, _ right: StaticString) -> Bool {
    guard left.count == right.utf8CodeUnitCount else { return false }
    for index in left.indices where left[index] != right.utf8Start[index] { return false }
    return true
}
