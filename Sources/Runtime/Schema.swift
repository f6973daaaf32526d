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
        for kind in kinds where equal(type, kind.type) { return version(of: record, kind) }
        return .unknownType
    }

    /// `<type>/<version>`. A record without it is of the first version.
    private func version(of record: borrowing RecordView, _ kind: Kind) -> RecordMeaning {
        guard let schema = record.header("schema") else { return .known }
        guard let version = number(in: schema, behind: kind.type) else {
            let text = schema.withUnsafeBytes { String(decoding: $0.prefix(64), as: UTF8.self) }
            return .strange(ProcessFailure("schema", "`\(text)` is no schema of this type"))
        }
        if version <= kind.version { return .known }
        return .newerSchema(
            "a record has the schema \(String(decoding: kind.type, as: UTF8.self))/\(version), and this build reads up to "
                + "\(kind.version): upgrade this worker")
    }

    private func number(in schema: Span<UInt8>, behind type: [UInt8]) -> Int? {
        guard schema.count > type.count + 1, schema.count <= type.count + 10, schema[type.count] == UInt8(ascii: "/")
        else { return nil }
        var number = 0
        for index in schema.indices {
            let byte = schema[index]
            if index < type.count {
                if byte != type[index] { return nil }
            } else if index > type.count {
                guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
                number = number * 10 + Int(byte - UInt8(ascii: "0"))
            }
        }
        return number > 0 ? number : nil
    }
}

private func equal(_ left: Span<UInt8>, _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    for index in left.indices where left[index] != right[index] { return false }
    return true
}

private func equal(_ left: Span<UInt8>, _ right: StaticString) -> Bool {
    guard left.count == right.utf8CodeUnitCount else { return false }
    for index in left.indices where left[index] != right.utf8Start[index] { return false }
    return true
}
