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
        if let type = record.header(HeaderName.type) { return meaning(of: record, type, isTable: isTable) }
        // Builds from 0.2 on write no header `type`.
        if let kind = kindWithoutHeader { return version(of: record, kind) }
        guard let schema = record.header(HeaderName.schema) else {
            return .strange(ProcessFailure("no_type", "the record has no header `schema`"))
        }
        guard let parts = SchemaParts(schema) else { return .strange(Self.failure(schema)) }
        let type = schema.extracting(..<parts.typeCount)
        if !isTable, equal(type, Self.tick) { return .tick }
        for kind in kinds where kind.record.isType(type) {
            return parts.version <= kind.record.version ? .known : newer(parts.version, kind)
        }
        return .unknownType
    }

    private func meaning(
        of record: borrowing RecordView, _ type: Span<UInt8>, isTable: Bool
    ) -> RecordMeaning {
        if !isTable, equal(type, Self.tick) { return .tick }
        for kind in kinds where kind.record.isType(type) { return version(of: record, kind) }
        return .unknownType
    }

    private func version(of record: borrowing RecordView, _ kind: Kind) -> RecordMeaning {
        switch kind.record.schema(of: record) {
        case .known: return .known
        case .newer(let version): return newer(version, kind)
        case .strange: return .strange(Self.failure(record.header(HeaderName.schema)))
        }
    }

    private func newer(_ version: Int, _ kind: Kind) -> RecordMeaning {
        .newerSchema(kind.record.words(of: version, upgrade: "this worker"))
    }

    private static func failure(_ schema: Span<UInt8>?) -> ProcessFailure {
        let text = schema?.withUnsafeBytes { String(decoding: $0.prefix(64), as: UTF8.self) }
        return ProcessFailure("schema", "`\(text ?? "")` is not a schema of this topic")
    }
}

private func equal(_ left: Span<UInt8>, _ right: StaticString) -> Bool {
    guard left.count == right.utf8CodeUnitCount else { return false }
    for index in left.indices where left[index] != right.utf8Start[index] { return false }
    return true
}
