// Which records a worker understands, by their headers.

internal import Log

/// What the headers of a record say about it.
enum RecordMeaning: Equatable {
    case known
    /// Moves the clock, and has nothing for the processor.
    case tick
    /// Of a type that this build does not know: skipped and counted.
    case unknownType
    /// Written by a later build: nothing behind it may be read before this one is upgraded.
    case newerSchema(String)
    /// Headers that make no sense.
    case strange(ProcessFailure)
}

extension InputTopic {
    private static let tick: StaticString = "tick"

    func meaning(of record: borrowing RecordView, isTable: Bool) -> RecordMeaning {
        guard let type = record.header("type") else {
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
            let text = record.header("schema")?.withUnsafeBytes { String(decoding: $0.prefix(64), as: UTF8.self) }
            return .strange(ProcessFailure("schema", "`\(text ?? "")` is no schema of this type"))
        }
    }
}

private func equal(_ left: Span<UInt8>, _ right: StaticString) -> Bool {
    guard left.count == right.utf8CodeUnitCount else { return false }
    for index in left.indices where left[index] != right.utf8Start[index] { return false }
    return true
}
